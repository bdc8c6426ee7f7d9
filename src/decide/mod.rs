//! What to do next: pure decisions, shared by the controller, the tests and everything that explains itself.
//!
//! A decision is made from the declared spec, an observation and the time, all of them plain values. Nothing here can look at a
//! clock, a cluster or the platform: this module imports `api` and `domain`, and nothing else of this program.

pub mod account;
pub mod brake;
pub mod circuit;
pub mod compute;
pub mod conditions;
pub mod connection;
pub mod cron;
pub mod declare;
mod disruption;
pub mod drift;
pub mod identity;
pub mod kept;
pub mod key;
pub mod lease;
pub mod memory;
pub mod names;
mod needs;
pub mod operations;
pub mod put_back;
mod reason;
pub mod refuser;
pub mod released;
pub mod repairs;
pub mod replica_set;
pub mod seal;
pub mod sizes;
mod template;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use brake::Brake;
pub use conditions::{Health, Report, Sync, Waiting};
pub use memory::{Action, Memory};
pub use needs::{Need, Needs};
pub use reason::Reason;
use seal::ObjectKey;

/// What to do now, what to report, and when to decide again.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<S> {
    /// At most one side effect.
    pub step: Option<S>,
    /// The status to write when there is no step; `None` to keep the status as it is.
    pub report: Option<Report>,
    /// When to decide again.
    pub wake: Wake,
}

impl<S> Decision<S> {
    /// Nothing to do until something changes.
    pub fn rest(report: Report) -> Self {
        Self { step: None, report: Some(report), wake: Wake::OnChange }
    }

    /// No step and no new status: not enough is known yet.
    pub fn silent() -> Self {
        Self { step: None, report: None, wake: Wake::OnChange }
    }

    /// Nothing to do until then, or until something changes.
    pub fn wait(report: Report, until: Timestamp) -> Self {
        Self { step: None, report: Some(report), wake: Wake::At(until) }
    }

    /// The first of these decisions that has a step. When none has one: the report of the first, and the earliest wake.
    pub fn first_step(choices: impl IntoIterator<Item = Self>) -> Self {
        let mut first: Option<Self> = None;
        for choice in choices {
            if choice.step.is_some() {
                return choice;
            }
            first = Some(match first {
                Some(first) => first.no_later(choice.wake),
                None => choice,
            });
        }
        first.unwrap_or_else(Self::silent)
    }

    /// The same, decided again at `wake` at the latest.
    #[must_use]
    pub fn no_later(self, wake: Wake) -> Self {
        Self { wake: self.wake.earlier(wake), ..self }
    }

    /// One step; after it the next pass decides again, on a new observation.
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

impl Wake {
    /// The earlier one.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(one), Self::At(other)) => Self::At(one.min(other)),
            (Self::OnChange, other) => other,
            (one, Self::OnChange) => one,
        }
    }
}

/// The part of an observation that is about the resource itself, the same for every kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub deleting: bool,
    pub has_finalizer: bool,
    /// The text of its record, as its status has it.
    pub record: Option<String>,
    /// The annotation is not that text.
    pub record_lost: bool,
    pub paused: bool,
    /// The status says that it can be used.
    pub ready: bool,
    pub brake: Brake,
    /// That the platform is to be looked at anew, as people asked last.
    pub reconcile: Option<String>,
}

impl Meta {
    /// The resource, as dbplane's annotations name it.
    pub fn object_key(&self) -> ObjectKey<'_> {
        ObjectKey { namespace: &self.namespace, name: &self.name }
    }

    /// What the status shows of such requests: `old` as long as the platform was not looked at since the last.
    fn handled_reconcile(&self, looked: bool, old: Option<&String>) -> Option<String> {
        self.reconcile.as_ref().filter(|_| looked).or(old).cloned()
    }
}

/// The times and numbers that decisions rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The settle time: how long after an unanswered create a snapshot without its result proves nothing. Longer than
    /// the request timeout and the leader lease together.
    pub settle: Duration,
    /// How long a compute may take to start before that is reported as a fault.
    pub start: Duration,
    /// The time between two checks whether the platform still has a key, at most: where it lists keys, the list shows that sooner.
    pub key_check: Duration,
    /// How many deletions on the platform within a minute need no confirmation; 0 switches the brake off.
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

/// The account that a resource refers to, as the resource may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountView {
    /// It has credentials that can be used; `organization` is the one that its spec names.
    Usable { organization: Option<String> },
    /// It has not been checked yet.
    Pending,
    /// There is no such account.
    Missing { name: String },
    /// A ClusterAccount, of which this installation reads none.
    NotServed { name: String },
    /// A ClusterAccount that does not admit the namespace.
    NamespaceNotAllowed { name: String },
    /// A ClusterAccount that admits the namespace, and not for this project.
    ProjectNotAllowed { name: String, project: String },
    /// It cannot be used; `message` is that of its own condition.
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
            Self::NotServed { name } => Some(Health::Stalled(
                Reason::AccountNotFound,
                format!(
                    "{name} is not looked for: this installation runs with --no-cluster-accounts. Refer to an Account."
                ),
            )),
            Self::NamespaceNotAllowed { name } => Some(Health::Stalled(
                Reason::NamespaceNotAllowed,
                format!("{name} does not admit this namespace. Add the namespace to its spec.namespaces."),
            )),
            Self::ProjectNotAllowed { name, project } => Some(Health::Stalled(
                Reason::ProjectNotAllowed,
                format!(
                    "{name} admits this namespace, but not for project {project}. Ask whoever administers the cluster to add \
                     the project to its spec.namespaces.projects, or use another account."
                ),
            )),
            Self::NotReady { name, message } => {
                Some(Health::Unknown(Reason::AccountNotReady, format!("{name} cannot be used: {message}")))
            }
        }
    }
}

/// What to report while a person has paused the resource.
fn paused(meta: &Meta) -> Option<Report> {
    let meanwhile = if meta.deleting { "the deletion waits" } else { "nothing is written" };
    let text = || format!("Paused by the annotation {}; {meanwhile}.", names::PAUSED);
    meta.paused.then(|| Report::of(Health::Paused(text())))
}

/// How long a key that was never seen accepted has to be refused until it counts as refused. A platform may need a while until it knows a
/// new key, and clocks, which may differ, do not tell how old a key is.
const YOUNG_KEY: Duration = Duration::from_secs(60);
/// How long after an unanswered create its result is still looked for: a compute, or a key.
const WATCHED: Duration = Duration::from_secs(24 * 3600);

/// `length` after `time`, or the latest time that can be represented.
pub fn later(time: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    time.checked_add(length).unwrap_or(Timestamp::MAX)
}

/// A pause that doubles with each time.
fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX)).min(most)
}
