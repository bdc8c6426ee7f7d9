//! Chooses the key that an account's platform is read with, if any. A key from a Secret is used
//! only if the account in the cluster names the same platform and Secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;

use super::cluster::InMemoryCluster;
use super::outside::Outside;
use super::recorded::RecordedPlatform;
use crate::api::{Account, AccountKind, ClusterAccount, PlatformAccess};
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

#[derive(Debug)]
pub struct AccountCredentials {
    pub outside: Arc<dyn Outside>,
    pub given: Option<GivenKey>,
    pub in_cluster: BTreeMap<AccountName, ClusterCredential>,
    /// The state of each platform according to the records and statuses of resources.
    pub recorded: BTreeMap<AccountName, Arc<RecordedPlatform>>,
}

impl AccountCredentials {
    /// The platform of an account. It is read with the user's key for it, or with the account's
    /// key. If neither may be used, the recorded state is used.
    pub fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
        cluster: &InMemoryCluster,
    ) -> Result<Arc<dyn Platform>, ConnectError> {
        if let Some(given) = &self.given
            && is_same(&given.base_url, &access.base_url)
        {
            return self.outside.connect(access, &given.key);
        }
        let why = match (self.in_cluster.get(name), credential(name, cluster)) {
            (Some(known), Some(credential))
                if known.base_url == access.base_url && known.credential == credential =>
            {
                if !cluster.is_assumed(&(credential.namespace, credential.name)) {
                    return self.outside.connect(access, key);
                }
                "you may not read its Secret. Give its API key with --api-key"
            }
            _ => {
                "the cluster has no such account with this platform and Secret, and a key goes only where it went before. Give one for this \
                 platform with --api-key and --base-url"
            }
        };
        cluster.trail().not_read(format!(
            "The platform of {name}: {why}. What is there is assumed to be as it was recorded last; what nobody has recorded is not known."
        ));
        Ok(self.recorded.get(name).cloned().unwrap_or_default())
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The planned source of an account's key.
fn credential(name: &AccountName, cluster: &InMemoryCluster) -> Option<CredentialRef> {
    let objects = cluster.objects();
    match name.kind {
        AccountKind::Account => Some(objects.get::<Account>(&name.object_ref())?.credential()),
        AccountKind::ClusterAccount => Some(
            objects
                .get::<ClusterAccount>(&name.object_ref())?
                .credential(),
        ),
    }
}
