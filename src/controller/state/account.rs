//! The accounts that can be used, with their connections: what the passes over accounts publish and everyone else reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::{Contents, ProcessState};
use crate::api::PlatformAccess;
use crate::controller::object::AccountName;
use crate::decide::account::{Availability, Check};
use crate::domain::NameSupport;
use crate::platform::{PlatformClient, Rate};

/// What all who use an account share.
pub type SharedConnection<P> = Arc<Connection<P>>;

/// One account's client and what it is made of.
#[derive(Clone, Debug)]
pub struct Connection<P> {
    /// No other connection of this process has it.
    pub number: u64,
    pub platform: P,
    pub access: PlatformAccess,
    pub poll_interval: Duration,
    pub credential: SecretString,
    /// Whether the platform was seen to keep the names of computes.
    pub names: NameSupport,
    /// What the platform said when it was last asked about these credentials.
    pub check: Option<Check>,
    /// Of the projects that resources name, those that were listed with these credentials.
    pub seen: Vec<String>,
}

impl<P> Connection<P> {
    /// Whether the connection is made of these very parts.
    pub fn is_made_of(&self, access: &PlatformAccess, credential: &SecretString) -> bool {
        self.access == *access && self.credential.expose_secret() == credential.expose_secret()
    }

    /// How many requests the account may make in any minute.
    pub fn requests_per_minute(&self) -> u32 {
        let limit = self.access.rate_limit.map(|limit| limit.requests_per_minute);
        limit.unwrap_or(Rate::default().requests_per_minute)
    }
}

/// What is published of an account.
#[derive(Clone, Debug)]
pub struct AccountEntry<P> {
    pub connection: Option<SharedConnection<P>>,
    /// Whether it can be used.
    pub availability: Availability,
    /// Whether the account and its Secret are protected while resources use it.
    pub protected: bool,
    /// Whether it reports that its organization has many keys.
    pub many_keys: bool,
    /// The projects of its resources that do not exist any more.
    pub gone: BTreeSet<String>,
    /// Of the spec, which also says which namespaces a ClusterAccount admits.
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
    /// The accounts whose credentials are at hand.
    pub fn connections(&self) -> BTreeMap<AccountName, SharedConnection<P>> {
        self.with(|contents| {
            let accounts = contents.accounts.iter();
            accounts.filter_map(|(name, entry)| Some((name.clone(), entry.connection.clone()?))).collect()
        })
    }
}

impl<P: Clone> ProcessState<P> {
    /// What was last published of an account.
    pub fn account(&self, name: &AccountName) -> Option<AccountEntry<P>> {
        self.with(|contents| contents.accounts.get(name).cloned())
    }

    /// A number for a new connection.
    pub fn next_connection(&self) -> u64 {
        self.with(|contents| {
            contents.connections += 1;
            contents.connections
        })
    }

    /// The platform was asked about the credentials of this very connection.
    pub fn account_checked(&self, name: &AccountName, connection: u64, check: Check) {
        self.with(|contents| {
            if let Some(known) = contents.connection(name, connection) {
                if check.capabilities.compute_names {
                    known.names = NameSupport::Kept;
                }
                known.check = Some(check);
            }
        });
    }

    /// What computes show of names that were read through this very connection; what is known of that by now.
    pub fn names_shown(&self, name: &AccountName, connection: u64, shown: NameSupport) -> NameSupport {
        self.with(|contents| {
            match contents.accounts.get(name).and_then(|entry| entry.connection.as_ref()) {
                Some(known) if known.number == connection && known.names >= shown => return known.names,
                _ => {}
            }
            if let Some(known) = contents.connection(name, connection) {
                known.names = shown;
            }
            shown
        })
    }

    /// The credentials are to be checked anew.
    pub fn check_wanted(&self, name: &AccountName) {
        self.with(|contents| {
            let known = contents.accounts.get_mut(name).and_then(|entry| entry.connection.as_mut());
            if let Some(check) = known.and_then(|known| Arc::make_mut(known).check.as_mut()) {
                check.at = Check::WANTED;
            }
        });
    }

    /// The account is gone.
    pub fn forget_account(&self, name: &AccountName) {
        self.with(|contents| {
            contents.accounts.remove(name);
            contents.former.remove(name);
        });
    }
}

impl<P: Clone> Contents<P> {
    /// The connection of an account, where it still is the one of this number.
    fn connection(&mut self, name: &AccountName, number: u64) -> Option<&mut Connection<P>> {
        let known = self.accounts.get_mut(name)?.connection.as_mut()?;
        (known.number == number).then(|| Arc::make_mut(known))
    }
}

impl<P: PlatformClient> ProcessState<P> {
    /// Publishes an account; whether that is news.
    pub fn publish_account(&self, name: &AccountName, entry: AccountEntry<P>) -> bool {
        self.with(|contents| {
            let number = entry.number();
            let before = contents.accounts.insert(name.clone(), entry.clone());
            let news = before.as_ref().is_none_or(|before| !before.is_same(&entry));
            let replaced = before.and_then(|before| before.connection).filter(|before| Some(before.number) != number);
            let former = contents.former.entry(name.clone()).or_default();
            former.extend(replaced.map(|connection| connection.platform.clone()));
            former.retain(P::is_held_elsewhere);
            news
        })
    }

    /// Whether a call with an earlier key of the account may still be on its way, or begin.
    pub fn uses_former_key(&self, name: &AccountName) -> bool {
        self.with(|contents| {
            let Some(former) = contents.former.get_mut(name) else { return false };
            former.retain(P::is_held_elsewhere);
            !former.is_empty()
        })
    }
}
