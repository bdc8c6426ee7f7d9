//! The usable accounts with their connections. Passes over accounts publish them, and all other
//! passes read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::{Contents, ProcessState};
use crate::api::PlatformAccess;
use crate::controller::object::AccountName;
use crate::decide::account::{AccountCheck, Availability};
use crate::domain::{NameSupport, ProjectId};
use crate::platform::{PlatformClient, Rate};

/// The connection that all users of an account share.
pub type SharedConnection<P> = Arc<AccountConnection<P>>;

/// The client of one account, and its inputs.
#[derive(Clone, Debug)]
pub struct AccountConnection<P> {
    /// Unique within this process.
    pub number: u64,
    pub platform: P,
    pub access: PlatformAccess,
    pub poll_interval: Duration,
    pub credential: SecretString,
    /// The platform's support for names of computes, as seen so far.
    pub names: NameSupport,
    /// The platform's last answer about these credentials.
    pub check: Option<AccountCheck>,
    /// The projects named by resources that these credentials could list.
    pub seen: Vec<ProjectId>,
}

impl<P> AccountConnection<P> {
    /// True if the connection was made of exactly these parts.
    pub fn is_made_of(&self, access: &PlatformAccess, credential: &SecretString) -> bool {
        self.access == *access && self.credential.expose_secret() == credential.expose_secret()
    }

    /// The account's limit of requests in any minute.
    pub fn requests_per_minute(&self) -> u32 {
        let limit = self
            .access
            .rate_limit
            .map(|limit| limit.requests_per_minute);
        limit.unwrap_or(Rate::default().requests_per_minute)
    }
}

/// The published state of an account.
#[derive(Clone, Debug)]
pub struct AccountEntry<P> {
    pub connection: Option<SharedConnection<P>>,
    pub availability: Availability,
    /// True if the account and its Secret are protected while resources use it.
    pub protected: bool,
    /// True if the account reports that resources have something through it.
    pub in_use: bool,
    /// True if the account reports that its organization has many keys.
    pub many_keys: bool,
    /// The projects of its resources that no longer exist.
    pub gone: BTreeSet<ProjectId>,
    /// The generation of the spec, which also defines the namespaces that a ClusterAccount admits.
    pub generation: i64,
}

impl<P> AccountEntry<P> {
    fn number(&self) -> Option<u64> {
        self.connection.as_ref().map(|connection| connection.number)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.number() == other.number()
            && self.availability == other.availability
            && self.protected == other.protected
            && self.gone == other.gone
            && self.generation == other.generation
    }
}

impl<P> ProcessState<P> {
    /// The connections of all accounts that have one.
    pub fn connections(&self) -> BTreeMap<AccountName, SharedConnection<P>> {
        self.with(|contents| {
            let accounts = contents.accounts.iter();
            accounts
                .filter_map(|(name, entry)| Some((name.clone(), entry.connection.clone()?)))
                .collect()
        })
    }
}

impl<P: Clone> ProcessState<P> {
    /// The last published state of an account.
    pub fn account(&self, name: &AccountName) -> Option<AccountEntry<P>> {
        self.with(|contents| contents.accounts.get(name).cloned())
    }

    /// True if a published account does not report that it is in use.
    pub fn is_unused(&self, name: &AccountName) -> bool {
        self.with(|contents| {
            contents
                .accounts
                .get(name)
                .is_some_and(|entry| !entry.in_use)
        })
    }

    /// A unique number for a new connection.
    pub fn next_connection(&self) -> u64 {
        self.with(|contents| {
            contents.connections += 1;
            contents.connections
        })
    }

    /// Records the result of a check of these credentials, if the connection is still in use.
    pub fn account_checked(&self, name: &AccountName, connection: u64, check: AccountCheck) {
        self.with(|contents| {
            if let Some(known) = contents.connection(name, connection) {
                if check.capabilities.compute_names {
                    known.names = NameSupport::Kept;
                }
                known.check = Some(check);
            }
        });
    }

    /// Records whether computes that were read through this connection show names. Returns what is
    /// known of that by now.
    pub fn names_shown(
        &self,
        name: &AccountName,
        connection: u64,
        shown: NameSupport,
    ) -> NameSupport {
        self.with(|contents| {
            match contents
                .accounts
                .get(name)
                .and_then(|entry| entry.connection.as_ref())
            {
                Some(known) if known.number == connection && known.names >= shown => {
                    return known.names;
                }
                _ => {}
            }
            if let Some(known) = contents.connection(name, connection) {
                known.names = shown;
            }
            shown
        })
    }

    /// Requests a new check of the credentials.
    pub fn check_wanted(&self, name: &AccountName) {
        self.with(|contents| {
            let known = contents
                .accounts
                .get_mut(name)
                .and_then(|entry| entry.connection.as_mut());
            if let Some(check) = known.and_then(|known| Arc::make_mut(known).check.as_mut()) {
                check.at = AccountCheck::WANTED;
            }
        });
    }

    pub fn forget_account(&self, name: &AccountName) {
        self.with(|contents| {
            contents.accounts.remove(name);
            contents.former.remove(name);
        });
    }
}

impl<P: Clone> Contents<P> {
    /// The connection of an account, if it still has this number.
    fn connection(&mut self, name: &AccountName, number: u64) -> Option<&mut AccountConnection<P>> {
        let known = self.accounts.get_mut(name)?.connection.as_mut()?;
        (known.number == number).then(|| Arc::make_mut(known))
    }
}

impl<P: PlatformClient> ProcessState<P> {
    /// Publishes an account. Returns whether that changed anything for its users.
    pub fn publish_account(&self, name: &AccountName, entry: AccountEntry<P>) -> bool {
        self.with(|contents| {
            let number = entry.number();
            let before = contents.accounts.insert(name.clone(), entry.clone());
            let news = before.as_ref().is_none_or(|before| !before.is_same(&entry));
            let replaced = before
                .and_then(|before| before.connection)
                .filter(|before| Some(before.number) != number);
            let former = contents.former.entry(name.clone()).or_default();
            former.extend(replaced.map(|connection| connection.platform.clone()));
            former.retain(P::is_held_elsewhere);
            news
        })
    }

    /// True if a call with an earlier key of the account may still be in progress, or may begin.
    pub fn uses_former_key(&self, name: &AccountName) -> bool {
        self.with(|contents| {
            let Some(former) = contents.former.get_mut(name) else {
                return false;
            };
            former.retain(P::is_held_elsewhere);
            !former.is_empty()
        })
    }
}
