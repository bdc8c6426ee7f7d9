//! Decisions: pure functions that choose the next step, shared by the controller, the tests and
//! `dbplane plan`.
//!
//! A decision depends on the declared spec, an observation and the time, all plain values. Code
//! here cannot reach a clock, a cluster or the platform. This module imports only `api`, `domain`
//! and `text` of this program.

pub mod account;
pub mod advice;
pub mod attention;
pub mod brake;
pub mod circuit;
pub mod compute;
pub mod conditions;
pub mod connection;
pub mod cron;
pub mod declare;
mod disruption;
pub mod drift;
mod gates;
pub mod identity;
pub mod kept;
pub mod key;
pub mod memory;
pub mod names;
mod observed;
pub mod operations;
pub mod put_back;
mod reason;
mod recorded;
pub mod refuser;
pub mod released;
pub mod replica_set;
pub mod seal;
pub mod sizes;
mod template;
pub mod write_contention;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::domain::{OrganizationId, ProjectId};
use crate::text::quoted;
pub use attention::Attention;
pub use brake::Brake;
pub use conditions::{Health, Report, Sync};
pub use memory::{Action, Memory};
pub use observed::Observed;
pub use reason::Reason;
pub use recorded::{Recorded, record_of};
use seal::ObjectKey;

/// The next step, the report, and the time of the next decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<S> {
    /// At most one side effect.
    pub step: Option<S>,
    /// The status to write if there is no step; `None` keeps the present status.
    pub report: Option<Report>,
    pub wake: Wake,
}

impl<S> Decision<S> {
    /// Nothing to do until something changes.
    pub fn rest(report: Report) -> Self {
        Self {
            step: None,
            report: Some(report),
            wake: Wake::OnChange,
        }
    }

    /// No step and no new status, because too little is known yet.
    pub fn silent() -> Self {
        Self {
            step: None,
            report: None,
            wake: Wake::OnChange,
        }
    }

    /// Nothing to do until then, or until something changes.
    pub fn wait(report: Report, until: Timestamp) -> Self {
        Self {
            step: None,
            report: Some(report),
            wake: Wake::At(until),
        }
    }

    /// The first of these decisions that has a step. If none has one: the report of the first, and
    /// the earliest wake.
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

    /// Decides again at `wake` at the latest.
    #[must_use]
    pub fn no_later(self, wake: Wake) -> Self {
        Self {
            wake: self.wake.earlier(wake),
            ..self
        }
    }

    /// One step. The next pass decides again, on a new observation.
    pub fn act(step: S, report: Report) -> Self {
        Self {
            step: Some(step),
            report: Some(report.before_a_step()),
            wake: Wake::OnChange,
        }
    }
}

/// When to decide again. Waiting is never an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// When the resource, an object it refers to, or the platform's objects change.
    OnChange,
    At(Timestamp),
}

impl Wake {
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(one), Self::At(other)) => Self::At(one.min(other)),
            (Self::OnChange, other) => other,
            (one, Self::OnChange) => one,
        }
    }
}

/// The part of an observation about the resource itself, the same for every kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub deleting: bool,
    pub has_finalizer: bool,
    /// The text of its record in the status.
    pub record: Option<String>,
    /// The annotation differs from that text.
    pub record_lost: bool,
    pub paused: bool,
    /// The status says that it can be used.
    pub ready: bool,
    pub brake: Brake,
    /// The last value of the annotation by which users ask to re-read the platform.
    pub reconcile: Option<String>,
}

impl Meta {
    /// The resource's namespace and name, as in dbplane's annotations.
    pub fn object_key(&self) -> ObjectKey<'_> {
        ObjectKey {
            namespace: &self.namespace,
            name: &self.name,
        }
    }

    /// The report of a mistake in the spec because of which dbplane cannot look at the object. An
    /// object that could be used stays Ready.
    fn unlooked(&self, mistake: Health) -> Report {
        if self.ready && !self.deleting {
            Report::ready("It could be used when dbplane last looked at it.").beside(mistake)
        } else {
            Report::of(mistake)
        }
    }

    /// The command with which a user changes the spec.
    fn correction(&self, kind: &str, spec: &Value) -> String {
        let Self {
            namespace, name, ..
        } = self;
        let patch = quoted(&json!({ "spec": spec }).to_string());
        format!("kubectl -n {namespace} patch {kind} {name} --type merge -p {patch}")
    }

    /// The commands with which a user refers to another account.
    fn other_account(&self, kind: &str) -> String {
        let correct = self.correction(
            kind,
            &json!({"accountRef": {"kind": "Account", "name": "NAME"}}),
        );
        format!(
            "The accounts and their platforms: kubectl -n {} get accounts. To name one of them: {correct}",
            self.namespace
        )
    }

    /// The record, if its copy in the annotation has to be restored.
    fn lost_record(&self) -> Option<String> {
        if self.record_lost {
            self.record.clone()
        } else {
            None
        }
    }

    /// The last handled request for the status: `old` until the platform has been read after the
    /// last request.
    fn handled_reconcile(&self, looked: bool, old: Option<&String>) -> Option<String> {
        match &self.reconcile {
            Some(request) if looked => Some(request.clone()),
            _ => old.cloned(),
        }
    }
}

/// The durations and numbers that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The settle time: within it, a snapshot without the result of an unanswered create proves
    /// nothing. It is longer than the request timeout and the leader lease together.
    pub settle: Duration,
    /// How long a compute may take to start before that is reported as a fault.
    pub start: Duration,
    /// The maximum time between two checks of a key. If the platform lists keys, the list shows a
    /// revocation sooner.
    pub key_check: Duration,
    /// How many deletions on the platform within a minute need no confirmation; 0 disables the
    /// brake.
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

/// The account of a resource, from the view of that resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountView {
    /// Its credentials can be used. `organization` is from its spec.
    Usable {
        organization: Option<OrganizationId>,
    },
    Pending,
    /// The kind of the resource uses no account.
    NotNeeded,
    Missing {
        name: String,
    },
    /// A ClusterAccount, and this installation does not read ClusterAccounts.
    NotServed {
        name: String,
    },
    /// A ClusterAccount that does not admit the namespace.
    NamespaceNotAllowed {
        name: String,
    },
    /// A ClusterAccount that admits the namespace, but not for this project.
    ProjectNotAllowed {
        name: String,
        project: ProjectId,
    },
    /// It cannot be used. `message` is from its own condition.
    NotReady {
        name: String,
        message: String,
    },
}

impl AccountView {
    /// Why the account cannot be used; `None` if it can.
    pub fn obstacle(&self) -> Option<Health> {
        match self {
            Self::Usable { .. } | Self::Pending | Self::NotNeeded => None,
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
                format!(
                    "{name} does not admit this namespace. Add the namespace to its spec.namespaces."
                ),
            )),
            Self::ProjectNotAllowed { name, project } => Some(Health::Stalled(
                Reason::ProjectNotAllowed,
                format!(
                    "{name} admits this namespace, but not for project {project}. Ask whoever administers the cluster to add \
                     the project to its spec.namespaces.projects, or use another account."
                ),
            )),
            Self::NotReady { name, message } => Some(Health::Unknown(
                Reason::AccountNotReady,
                format!("{name} cannot be used: {message}"),
            )),
        }
    }
}

/// The report while a user has paused the resource.
fn paused(meta: &Meta) -> Option<Report> {
    let meanwhile = if meta.deleting {
        "the deletion waits"
    } else {
        "nothing is written"
    };
    let text = || format!("Paused by the annotation {}; {meanwhile}.", names::PAUSED);
    meta.paused.then(|| Report::of(Health::Paused(text())))
}

/// How long a key that was never seen accepted has to be refused until it counts as refused. A
/// platform may need time to accept a new key everywhere. Clocks may differ, so they do not show
/// the age of a key.
const YOUNG_KEY: Duration = Duration::from_secs(60);
/// How long after an unanswered create its result is still expected: a compute, or a key.
const WATCHED: Duration = Duration::from_secs(24 * 3600);

/// `time` plus `length`, or the latest time that can be represented.
pub fn later(time: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    time.checked_add(length).unwrap_or(Timestamp::MAX)
}

/// A pause that doubles with each attempt.
fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first
        .saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX))
        .min(most)
}
