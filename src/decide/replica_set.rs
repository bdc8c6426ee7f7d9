//! Read replica sets: keep the declared number of Computes, change them in turn, and write one
//! Secret for all of them.

mod member;
mod report;
mod retire;
mod roll;
mod secret;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use self::member::Replica;
pub use self::member::{Relation, is_replica_of, relation};
pub use self::status::{selector, status};
use super::connection::{ConnectionSecret, CredentialsView, SecretView};
use super::gates::{self, Gates};
use super::memory::Backoff;
use super::{Action, Decision, Observed, Reason, Report, Wake, later};
use crate::api::{Compute, Known, ReadReplicaSetSpec, Uid};

/// The input of a decision about a set, besides its spec and the time.
pub type SetObserved = Observed<SetFacts>;

#[derive(Clone, Debug)]
pub struct SetFacts {
    /// The Computes of the set, and those that it may adopt.
    pub computes: Vec<FoundReplica>,
    /// The cache shows all writes of this process to these Computes.
    pub settled: bool,
    /// The number of Computes of the set that cannot be read. They exist, and nothing else is known
    /// about them.
    pub unreadable: usize,
    /// The names of all Computes in the namespace.
    pub names: BTreeSet<String>,
    pub secret: SecretView,
    pub credentials: CredentialsView,
    /// The name of the connection Secret, if it exists.
    pub connection_secret: Option<String>,
    /// Secrets of this resource that its spec no longer names.
    pub unused_secrets: Vec<String>,
}

/// A Compute and its relation to the set.
#[derive(Clone, Debug)]
pub struct FoundReplica {
    pub relation: Relation,
    pub compute: Arc<Known<Compute>>,
}

/// One side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum SetStep {
    /// Create a Compute with this name.
    Create { name: String },
    /// Become the owner of a Compute without a controller.
    Adopt(Member),
    /// Release a Compute that the selector no longer selects.
    Release(Member),
    /// Update a Compute to the template.
    Update(Member),
    /// Set the template's account, and change nothing else of the Compute.
    UseAccount(Member),
    /// Delete a surplus Compute.
    Retire(Member),
    /// Write the connection Secret. The entries in `without` must not be in it.
    WriteConnection {
        secret: Box<ConnectionSecret>,
        without: BTreeSet<String>,
    },
}

/// A Compute of the set, at the version that the decision used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub uid: Uid,
    pub version: Option<String>,
}

type SetDecision = Decision<SetStep>;

struct SetCase<'a> {
    spec: &'a ReadReplicaSetSpec,
    observed: &'a SetObserved,
    replicas: Vec<Replica>,
    leaving: Vec<Replica>,
    now: Timestamp,
}

/// How long to wait for the watch to show this process's writes before a direct read.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

pub fn decide(
    spec: &ReadReplicaSetSpec,
    observed: &SetObserved,
    now: Timestamp,
) -> Decision<SetStep> {
    // Deleting a set deletes nothing on the platform: its Computes have their own brake.
    gates::decide(observed, false, Ok(SetCase::new(spec, observed, now)))
}

impl Gates for SetCase<'_> {
    type Step = SetStep;

    fn deletion(&self) -> SetDecision {
        Decision::rest(Report::progressing(
            Reason::Deleting,
            "Kubernetes deletes the Computes of this set, unless it is told to leave them.",
        ))
    }

    fn decision(&self) -> SetDecision {
        if !self.observed.settled {
            return Decision::silent().no_later(Wake::At(later(self.now, SHOWN_AFTER)));
        }
        let report = self.report();
        let choices = [
            self.membership(&report),
            self.account(&report),
            self.number(&report),
            self.change(&report),
            self.connection(&report),
        ];
        Decision::first_step(
            choices
                .into_iter()
                .flatten()
                .chain([Decision::rest(report)]),
        )
    }
}

impl<'a> SetCase<'a> {
    fn new(spec: &'a ReadReplicaSetSpec, observed: &'a SetObserved, now: Timestamp) -> Self {
        let replicas = member::replicas(spec, &observed.computes);
        Self {
            spec,
            observed,
            replicas,
            leaving: member::leaving(spec, &observed.computes),
            now,
        }
    }

    /// A step, unless the API server refused the last one of its kind too recently. Serving
    /// replicas keep the set usable meanwhile.
    fn act(&self, action: Action, step: SetStep, report: &Report) -> SetDecision {
        match self.backoff(action) {
            Some(backoff) => {
                Decision::wait(self.serving(report).beside(backoff.health), backoff.until)
            }
            None => Decision::act(step, report.clone()),
        }
    }

    fn backoff(&self, action: Action) -> Option<Backoff> {
        self.observed
            .memory
            .backoff(action, self.observed.meta.generation, self.now)
    }

    fn desired(&self) -> usize {
        usize::try_from(self.spec.replicas).unwrap_or(usize::MAX)
    }

    /// Settles ownership before anything else: adopt or release Computes.
    fn membership(&self, report: &Report) -> Option<SetDecision> {
        let step = self
            .observed
            .computes
            .iter()
            .find_map(|found| match found.relation {
                Relation::Member => None,
                Relation::Adoptable => Some(SetStep::Adopt(member::named(&found.compute))),
                Relation::Stranger => Some(SetStep::Release(member::named(&found.compute))),
            })?;
        Some(self.act(Action::Adopt, step, report))
    }
}
