//! Read replica sets: as many Computes as are declared, changed in turn, and one Secret for all of them.

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
use super::memory::Backoff;
use super::{Action, Decision, Memory, Meta, Reason, Report, Wake, later, paused};
use crate::api::{Compute, ReadReplicaSetSpec};

/// Everything that a decision about a set rests on, besides its spec and the time.
#[derive(Clone, Debug)]
pub struct SetObserved {
    pub meta: Meta,
    /// The Computes that belong to it, and those that it may take as its own.
    pub computes: Vec<Found>,
    /// What was seen shows all that this process has done to them.
    pub settled: bool,
    /// How many Computes of the set cannot be read: they are there, and nothing is known of them.
    pub unreadable: usize,
    /// The names of all Computes of the namespace.
    pub names: BTreeSet<String>,
    pub secret: SecretView,
    pub credentials: CredentialsView,
    /// The name of the connection Secret, where it exists.
    pub connection_secret: Option<String>,
    /// Secrets of this resource that its spec does not name any more.
    pub unused_secrets: Vec<String>,
    pub memory: Memory,
}

/// A Compute, and what it has to do with the set.
#[derive(Clone, Debug)]
pub struct Found {
    pub relation: Relation,
    pub compute: Arc<Compute>,
}

/// What a set does.
#[derive(Clone, Debug, PartialEq)]
pub enum SetStep {
    /// Creates a Compute of this name.
    Create { name: String },
    /// Takes a Compute as its own that nobody controls.
    Adopt(Member),
    /// Lets go of one that the selector does not select any more.
    Release(Member),
    /// Makes one as the template says.
    Update(Member),
    /// Has one use the template's account, and changes nothing else of it.
    UseAccount(Member),
    /// Deletes one that is one too many.
    Retire(Member),
    /// Writes the connection Secret. The entries in `without` must not be in it.
    WriteConnection { secret: Box<ConnectionSecret>, without: BTreeSet<String> },
}

/// A Compute of the set, as it was when this was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub uid: String,
    pub version: Option<String>,
}

type Choice = Decision<SetStep>;

struct Case<'a> {
    spec: &'a ReadReplicaSetSpec,
    observed: &'a SetObserved,
    replicas: Vec<Replica>,
    leaving: Vec<Replica>,
    now: Timestamp,
}

/// How long the watch is given to show what this process has done, before it is asked about.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// Decides what to do about a set.
pub fn decide(spec: &ReadReplicaSetSpec, observed: &SetObserved, now: Timestamp) -> Decision<SetStep> {
    if observed.meta.deleting {
        return Decision::rest(Report::progressing(
            Reason::Deleting,
            "Kubernetes deletes the Computes of this set, unless it is told to leave them.",
        ));
    }
    if let Some(paused) = paused(&observed.meta) {
        return Decision::rest(paused);
    }
    if !observed.settled {
        return Decision::silent().no_later(Wake::At(later(now, SHOWN_AFTER)));
    }
    let case = Case::new(spec, observed, now);
    let report = case.report();
    let choices = [
        case.membership(&report),
        case.account(&report),
        case.number(&report),
        case.change(&report),
        case.connection(&report),
    ];
    Decision::first_step(choices.into_iter().flatten().chain([Decision::rest(report)]))
}

impl<'a> Case<'a> {
    fn new(spec: &'a ReadReplicaSetSpec, observed: &'a SetObserved, now: Timestamp) -> Self {
        let replicas = member::replicas(spec, &observed.computes);
        Self { spec, observed, replicas, leaving: member::leaving(spec, &observed.computes), now }
    }

    /// A step, unless the API server refused the last one of its kind too recently. Replicas that serve go on meanwhile.
    fn act(&self, action: Action, step: SetStep, report: &Report) -> Choice {
        match self.backoff(action) {
            Some(backoff) => Decision::wait(self.serving(report).beside(backoff.health), backoff.until),
            None => Decision::act(step, report.clone()),
        }
    }

    fn backoff(&self, action: Action) -> Option<Backoff> {
        self.observed.memory.backoff(action, self.observed.meta.generation, self.now)
    }

    fn desired(&self) -> usize {
        usize::try_from(self.spec.replicas).unwrap_or(usize::MAX)
    }

    /// First of all it becomes clear which Computes are the set's.
    fn membership(&self, report: &Report) -> Option<Choice> {
        let step = self.observed.computes.iter().find_map(|found| match found.relation {
            Relation::Member => None,
            Relation::Adoptable => Some(SetStep::Adopt(member::named(&found.compute))),
            Relation::Stranger => Some(SetStep::Release(member::named(&found.compute))),
        })?;
        Some(self.act(Action::Adopt, step, report))
    }
}
