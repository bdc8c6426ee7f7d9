//! The accounts that can be used, with their clients: what the Account controllers publish and everyone else reads.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::api::{AccountKind, AccountRef, PlatformAccess};
use crate::decide::account::{Availability, Check};
use crate::platform::RateLimited;

/// Which account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountName {
    pub kind: AccountKind,
    /// `None` for a ClusterAccount.
    pub namespace: Option<String>,
    pub name: String,
}

impl AccountName {
    /// The account that a resource in `namespace` refers to.
    pub fn referred(reference: &AccountRef, namespace: &str) -> Self {
        let namespace = (reference.kind == AccountKind::Account).then(|| namespace.to_owned());
        Self { kind: reference.kind, namespace, name: reference.name.clone() }
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// One account's client and what it is made of.
#[derive(Debug)]
pub struct Handle {
    pub platform: Arc<RateLimited>,
    pub access: PlatformAccess,
    pub poll_interval: Duration,
    credential: SecretString,
    check: Mutex<Option<Check>>,
}

impl Handle {
    pub fn new(
        platform: Arc<RateLimited>,
        access: PlatformAccess,
        poll_interval: Duration,
        credential: SecretString,
    ) -> Self {
        Self { platform, access, poll_interval, credential, check: Mutex::default() }
    }

    /// Whether the handle is made of these very parts.
    pub fn made_of(&self, access: &PlatformAccess, credential: &SecretString) -> bool {
        self.access == *access && self.credential.expose_secret() == credential.expose_secret()
    }

    pub fn check(&self) -> Option<Check> {
        self.check.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn checked(&self, check: Check) {
        *self.check.lock().unwrap_or_else(PoisonError::into_inner) = Some(check);
    }
}

/// What is published of an account.
#[derive(Clone, Debug)]
pub struct Entry {
    pub handle: Option<Arc<Handle>>,
    /// Whether it can be used.
    pub availability: Availability,
    /// Whether the account and its Secret are protected while resources use it.
    pub protected: bool,
    /// Of the spec, which also says whom a ClusterAccount admits.
    pub generation: i64,
}

impl Entry {
    fn same(&self, other: &Self) -> bool {
        let handles = match (&self.handle, &other.handle) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        handles
            && self.availability == other.availability
            && self.protected == other.protected
            && self.generation == other.generation
    }
}

/// All accounts that were looked at.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<HashMap<AccountName, Entry>>);

impl Accounts {
    pub fn get(&self, name: &AccountName) -> Option<Entry> {
        self.with(|accounts| accounts.get(name).cloned())
    }

    /// Publishes an account; whether that is news.
    pub fn publish(&self, name: &AccountName, entry: Entry) -> bool {
        self.with(|accounts| {
            let news = accounts.get(name).is_none_or(|before| !before.same(&entry));
            accounts.insert(name.clone(), entry);
            news
        })
    }

    pub fn forget(&self, name: &AccountName) {
        self.with(|accounts| accounts.remove(name));
    }

    fn with<T>(&self, run: impl FnOnce(&mut HashMap<AccountName, Entry>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
