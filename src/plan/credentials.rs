//! Chooses the key that an account's platform is read with, if any. A key from a Secret is used
//! only if the account in the cluster names the same platform and Secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;

use super::PlanError;
use super::cluster::PlanCluster;
use super::outside::Outside;
use crate::api::{Account, AccountKind, ClusterAccount, Known, PlatformAccess};
use crate::controller::account::{AnyAccount, CredentialRef};
use crate::controller::object::AccountName;
use crate::platform::{ConnectError, Platform};

/// The platform and credential of an account in the cluster, regardless of manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCredential {
    pub base_url: String,
    pub credential: CredentialRef,
}

/// A key from the user, and the one platform that it is for.
#[derive(Clone, Debug)]
pub struct GivenKey {
    pub key: SecretString,
    pub base_url: String,
}

impl GivenKey {
    /// True if the key is for the platform of this account.
    pub fn is_for(&self, access: &PlatformAccess) -> bool {
        self.base_url.trim_end_matches('/') == access.base_url.trim_end_matches('/')
    }
}

#[derive(Debug)]
pub struct AccountCredentials {
    pub outside: Arc<dyn Outside>,
    pub given: Option<GivenKey>,
    pub in_cluster: BTreeMap<AccountName, ClusterCredential>,
}

impl AccountCredentials {
    /// The platform of an account. It is read with the user's key for it, or with the account's
    /// key. If neither may be used, there is no plan.
    pub fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
        cluster: &PlanCluster,
    ) -> Result<Arc<dyn Platform>, ConnectError> {
        if let Some(given) = &self.given
            && given.is_for(access)
        {
            return self.outside.connect(access, &given.key);
        }
        match (self.in_cluster.get(name), credential(name, cluster)) {
            (Some(known), Some(credential))
                if known.base_url == access.base_url && known.credential == credential =>
            {
                self.outside.connect(access, key)
            }
            _ => {
                cluster.trail.fail(PlanError::NoKey(name.to_string()));
                Err(ConnectError::NoKey)
            }
        }
    }
}

/// The planned source of an account's key.
fn credential(name: &AccountName, cluster: &PlanCluster) -> Option<CredentialRef> {
    match name.kind {
        AccountKind::Account => Some(
            cluster
                .object::<Known<Account>>(&name.object_ref())?
                .credential(),
        ),
        AccountKind::ClusterAccount => Some(
            cluster
                .object::<Known<ClusterAccount>>(&name.object_ref())?
                .credential(),
        ),
    }
}
