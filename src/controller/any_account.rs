//! What Account and ClusterAccount have in common.

use kube::core::object::HasStatus;
use kube::{Api, Client, ResourceExt};

use super::accounts::AccountName;
use super::kind::{Managed, namespaced};
use crate::api::{Account, AccountKind, AccountStatus, ClusterAccount, PlatformAccess};

/// An Account or a ClusterAccount.
pub trait AnyAccount: Managed + HasStatus<Status = AccountStatus> {
    fn reference(&self) -> AccountName;
    fn access(&self) -> &PlatformAccess;
    fn credential(&self) -> CredentialRef;
}

/// The Secret entry that holds an account's API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialRef {
    pub namespace: String,
    pub name: String,
    pub key: String,
}

impl Managed for Account {
    fn api(&self, client: &Client) -> Api<Self> {
        namespaced(self, client)
    }
}

impl AnyAccount for Account {
    fn reference(&self) -> AccountName {
        AccountName { kind: AccountKind::Account, namespace: self.namespace(), name: self.name_any() }
    }

    fn access(&self) -> &PlatformAccess {
        &self.spec.platform
    }

    fn credential(&self) -> CredentialRef {
        let reference = &self.spec.api_key_secret_ref;
        CredentialRef {
            namespace: self.namespace().unwrap_or_default(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        }
    }
}

impl Managed for ClusterAccount {
    fn api(&self, client: &Client) -> Api<Self> {
        Api::all(client.clone())
    }
}

impl AnyAccount for ClusterAccount {
    fn reference(&self) -> AccountName {
        AccountName { kind: AccountKind::ClusterAccount, namespace: None, name: self.name_any() }
    }

    fn access(&self) -> &PlatformAccess {
        &self.spec.platform
    }

    fn credential(&self) -> CredentialRef {
        let reference = &self.spec.api_key_secret_ref;
        CredentialRef {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        }
    }
}
