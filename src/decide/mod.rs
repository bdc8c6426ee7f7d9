//! What to do next: pure decisions, shared by the controller, the tests and everything that explains itself.
//!
//! A decision is made from the declared spec, an observation and the time, all of them plain values. Nothing here can look at a
//! clock, a cluster or the platform: this module imports `api` and `domain`, and nothing else of this program.

pub mod account;
pub mod brake;
pub mod compute;
pub mod conditions;
mod disruption;
mod drift;
pub mod identity;
pub mod key;
pub mod memory;
pub mod names;
mod reason;
pub mod seal;
pub mod sizes;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use brake::Brake;
pub use conditions::{Health, Report, Sync};
pub use memory::{Action, Memory};
pub use reason::Reason;
use seal::ObjectKey;

/// What to do now, what to say, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<S> {
    /// At most one side effect.
    pub step: Option<S>,
    /// What the status says when there is no step; `None` where there is nothing new to say.
    pub report: Option<Report>,
    /// When to decide again.
    pub wake: Wake,
}

impl<S> Decision<S> {
    /// Nothing to do until something changes.
    pub fn rest(report: Report) -> Self {
        Self { step: None, report: Some(report), wake: Wake::OnChange }
    }

    /// Nothing to do and nothing new to say until something is known.
    pub fn silent() -> Self {
        Self { step: None, report: None, wake: Wake::OnChange }
    }

    /// Nothing to do until then, or until something changes.
    pub fn wait(report: Report, until: Timestamp) -> Self {
        Self { step: None, report: Some(report), wake: Wake::At(until) }
    }

    /// The first of these that asks for a step. When none does, the first has the word, and the earliest wake counts.
    pub fn foremost(choices: impl IntoIterator<Item = Self>) -> Self {
        let mut foremost: Option<Self> = None;
        for choice in choices {
            if choice.step.is_some() {
                return choice;
            }
            foremost = Some(match foremost {
                Some(first) => first.no_later(choice.wake),
                None => choice,
            });
        }
        foremost.unwrap_or_else(Self::silent)
    }

    /// The same, decided again at `wake` at the latest.
    #[must_use]
    pub fn no_later(self, wake: Wake) -> Self {
        let wake = match (self.wake, wake) {
            (Wake::At(one), Wake::At(other)) => Wake::At(one.min(other)),
            (Wake::OnChange, other) => other,
            (one, Wake::OnChange) => one,
        };
        Self { wake, ..self }
    }

    /// One step; the world it leaves behind is decided on anew.
    pub fn act(step: S, report: Report) -> Self {
        Self { step: Some(step), report: Some(report), wake: Wake::OnChange }
    }
}

/// When to decide again. Waiting is never an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// When the resource, what it refers to, or the platform's objects change.
    OnChange,
    /// At that time at the latest.
    At(Timestamp),
}

/// What every kind's observation says of the resource itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub deleting: bool,
    pub has_finalizer: bool,
    pub paused: bool,
    pub brake: Brake,
}

impl Meta {
    /// The resource, as its annotations name it.
    pub fn object_key(&self) -> ObjectKey<'_> {
        ObjectKey { namespace: &self.namespace, name: &self.name }
    }
}

/// The times and numbers that decisions rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long after a create was begun a reading that lacks it proves that it did not happen. Longer than the request
    /// timeout and the leader lease together.
    pub settle: Duration,
    /// How long a compute may take to start before that is reported as a fault.
    pub start: Duration,
    /// How often a key is asked whether the platform still accepts it.
    pub key_check: Duration,
    /// How many deletions on the platform within a minute need no confirmation; with 0 none does.
    pub deletes_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            settle: Duration::from_secs(60),
            start: Duration::from_secs(600),
            key_check: Duration::from_secs(600),
            deletes_per_minute: 30,
        }
    }
}

/// The account that a resource refers to, as far as the resource is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountView {
    /// Its credentials are at hand; `organization` is what its spec names.
    Usable { organization: Option<String> },
    /// It has not been looked at yet.
    Pending,
    /// There is no such account.
    Missing { name: String },
    /// A ClusterAccount that does not admit the namespace.
    NotAllowed { name: String },
    /// It says itself why it cannot be used.
    NotReady { name: String, message: String },
}

impl AccountView {
    /// Why the account cannot be used; `None` where it can.
    pub fn obstacle(&self) -> Option<Health> {
        match self {
            Self::Usable { .. } | Self::Pending => None,
            Self::Missing { name } => Some(Health::Stalled(
                Reason::AccountNotFound,
                format!("{name} does not exist. Create it, or correct spec.accountRef."),
            )),
            Self::NotAllowed { name } => Some(Health::Stalled(
                Reason::NamespaceNotAllowed,
                format!("{name} does not admit this namespace. Add the namespace to its spec.namespaces."),
            )),
            Self::NotReady { name, message } => {
                Some(Health::Unknown(Reason::AccountNotReady, format!("{name} cannot be used: {message}")))
            }
        }
    }
}

/// `length` after `time`, or the end of time.
pub fn later(time: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    time.checked_add(length).unwrap_or(Timestamp::MAX)
}
