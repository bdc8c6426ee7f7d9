//! Computes: create or adopt, keep as declared, restart, delete.

mod claims;
mod conflict;
mod connection;
mod create;
mod delete;
mod evidence;
mod keep;
mod maintenance;
mod operations;
mod postponed;
mod record;
mod restart;
mod restart_evidence;
mod schedules;
mod sight;
mod snapshot;
mod status;
mod stray;
#[cfg(test)]
mod tests;
mod twin;
mod unfollowed;
mod update;
mod wish;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

pub use claims::{
    Claim, Claims, Holder, Mine, Other, Reservations, Reserved, ReservedPlace, Rival, Subject, at_stake, claimed,
    claims, subjects, turn, wanted,
};
pub use create::{creating, is_current, may_rest_on_older_list};
pub use delete::misses_its_project;
pub use record::is_held;
pub use schedules::Agenda;
pub use status::status;
pub use stray::looks_besides;
pub(super) use unfollowed::reported;
pub use unfollowed::{Unfollowed, unfollowed};

use self::snapshot::Snapshot;
use super::connection::{Address, ConnectionSecret, CredentialsView, SecretView};
use super::disruption::{Permit, permit};
use super::drift::Difference;
use super::identity::{Binding, ComputeIdentity, CreateIntent, RestartRecord};
use super::memory::of_fault;
use super::names::ClusterId;
use super::seal::InvalidAnnotation;
use super::{AccountView, Decision, Health, Limits, Memory, Meta, Reason, Report, Wake, brake, later, paused};
use crate::api::{ComputeSpec, ComputeStatus, ComputeType, Deletion, Management, NotApplied};
use crate::domain::{
    Compute, ComputeChange, ComputeState, Fault, Listed, NameSupport, NewCompute, PostgresSettings, Role, Shown,
};

/// Everything that a decision about a Compute rests on, besides its spec and the time.
#[derive(Clone, Debug)]
pub struct ComputeObserved {
    pub meta: Meta,
    pub uid: String,
    pub identity: Result<ComputeIdentity, InvalidAnnotation>,
    /// The record of a backup, or of a person, where the status has none.
    pub wish: Option<ComputeIdentity>,
    /// Since when changes wait, as the status says.
    pub waiting_since: Option<Timestamp>,
    /// The value of the restart annotation that people set.
    pub restart_annotation: Option<String>,
    /// Computes that no create of this resource has created, as people have found out.
    pub not_created: BTreeSet<String>,
    pub account: AccountView,
    /// The base URL of the account's platform.
    pub platform: Option<String>,
    /// The project does not exist any more, as the account's checks show.
    pub project_gone: bool,
    pub snapshot: SnapshotState,
    pub claims: Claims,
    pub secret: SecretView,
    pub credentials: CredentialsView,
    /// Where the status says that a compute is: it was seen there.
    pub last_seen: Option<Address>,
    /// The name of the connection Secret, where it exists.
    pub connection_secret: Option<String>,
    /// Secrets of this resource that its spec does not name any more.
    pub unused_secrets: Vec<String>,
    /// Whether the platform supports names of computes, as the snapshot of the whole project shows.
    pub name_support: NameSupport,
    /// Those database settings of unresolved creates that some compute of the project shows as they were given.
    pub returned: Vec<PostgresSettings>,
    pub memory: Memory,
    /// Newer reads fail; from then on the existing snapshot is no longer used.
    pub stale_from: Option<Timestamp>,
    pub limits: Limits,
    /// The cluster that the operator runs for, for unique names.
    pub cluster: ClusterId,
    /// A number drawn for this decision, for unique names.
    pub draw: u32,
}

/// The newest usable snapshot of the project, with the computes that matter here: those of the branch, and those that the
/// binding, the intent and the spec name.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotState {
    /// There is none yet that began after dbplane's last write.
    Pending,
    /// It failed. That never means that a compute does not exist.
    Failed(Fault),
    /// It began at that time.
    Taken { at: Timestamp, computes: Listed<Compute> },
}

/// One side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputeStep {
    /// Write intent and finalizer, create, bind. The list that it rests on was begun at `seen`.
    Create { intent: CreateIntent, new: Box<NewCompute>, restart: RestartRecord, seen: Timestamp },
    /// Record the binding to a compute, the creates that stay unanswered, and those that have made one. `restored` where the record of a
    /// backup named the compute.
    Bind {
        binding: Binding,
        restart: RestartRecord,
        unanswered: Vec<CreateIntent>,
        made: Vec<CreateIntent>,
        restored: bool,
    },
    /// Remove the intent: its create was not carried out, or is no longer waited for.
    DropIntent { unanswered: Vec<CreateIntent> },
    /// Record the binding with the branch that the compute is on.
    RecordBinding { binding: Binding },
    /// Record the creates that stay unanswered.
    RecordUnanswered { unanswered: Vec<CreateIntent> },
    /// Record the computes that a create has made beside the one that the resource is bound to, and since when they are named.
    RecordTwins { twins: BTreeMap<String, Timestamp> },
    /// Write the finalizer again, so that the resource stays until its compute is deleted or orphaned, and the copy of the record where it
    /// is lost too.
    Restore { record: Option<String> },
    /// Change a compute; `parts` is what corrects each field. Where it is drift, somebody else has changed what was in force.
    /// Where it interrupts connections anyway, it is the requested restart as well, which is recorded before and after it.
    Change {
        id: String,
        change: ComputeChange,
        parts: BTreeMap<String, ComputeChange>,
        because: String,
        drift: bool,
        restart: Option<RestartRecord>,
    },
    /// Write the restart record, call the platform, complete the record.
    Restart { id: String, record: RestartRecord },
    /// Record a restart that needs no call, or what became of one; `restarted` is the compute that was seen to be restarted.
    RecordRestart { record: RestartRecord, restarted: Option<String> },
    /// Write the connection Secret, and remove these entries of it.
    WriteConnection { secret: Box<ConnectionSecret>, without: BTreeSet<String> },
    /// Ask the platform for one compute, which its list lacks.
    Ask { id: String },
    /// Ask the platform for the operations of one compute, which takes long or has failed.
    AskOperations { id: String },
    /// Delete a compute.
    Delete { id: String },
    /// Delete a compute that a create has made besides, of a resource that stays.
    DeleteTwin { id: String },
    /// Remove the finalizer.
    RemoveFinalizer,
    /// Report by an event with this text the computes that may be the resource's and are not deleted, then remove the
    /// finalizer.
    RemoveFinalizerReportingStrays { event: String },
    /// Report by an event with this text that the project is gone, then remove the finalizer.
    ReleaseWithProject { event: String },
}

type Choice = Decision<ComputeStep>;

/// What to do about a Compute.
pub fn decide(spec: &ComputeSpec, observed: &ComputeObserved, now: Timestamp) -> Choice {
    let agenda = schedules::agenda(spec, &observed.memory, observed.meta.generation, now);
    let agenda = agenda.as_deref();
    let choice = choose(&schedules::in_force(spec, agenda), observed, agenda, now);
    let times = [observed.stale_from, agenda.and_then(Agenda::wake)];
    times.into_iter().flatten().fold(choice, |choice, time| choice.no_later(Wake::At(time)))
}

fn choose(spec: &ComputeSpec, observed: &ComputeObserved, agenda: Option<&Agenda>, now: Timestamp) -> Choice {
    let braked = brake::held(&observed.meta, &observed.limits).filter(|_| !is_orphaned(spec));
    let identity = match &observed.identity {
        Ok(identity) => identity,
        Err(invalid) => return braked.unwrap_or_else(|| record::invalid(spec, observed, invalid)),
    };
    let case = Case { spec, observed, identity, agenda, now };
    if let Some(braked) = braked {
        return braked;
    }
    if observed.meta.deleting {
        return delete::decide(&case);
    }
    if let Some(paused) = paused(&observed.meta) {
        return Decision::rest(paused);
    }
    if let Some(choice) = record::restore(&case) {
        return choice;
    }
    if observed.account == AccountView::Pending {
        return Decision::silent();
    }
    if let Some(obstacle) = observed.account.obstacle() {
        return connection::meanwhile(&case, Report::of(obstacle));
    }
    match &observed.snapshot {
        SnapshotState::Pending => Decision::silent(),
        SnapshotState::Failed(fault) => connection::meanwhile(&case, Report::of(unreadable(spec, fault))),
        SnapshotState::Taken { at, computes } => {
            let snapshot = Snapshot::new(*at, computes);
            if let Some(report) = record::elsewhere(&case) {
                return Decision::rest(report);
            }
            match (&identity.binding, &identity.intent) {
                (Some(binding), _) => keep::decide(&case, binding, &snapshot),
                (None, Some(intent)) => create::recover(&case, intent, &snapshot),
                (None, None) => match wish::of(&case) {
                    Some(wish) => wish::decide(&case, wish, &snapshot),
                    None => create::adopt_or_create(&case, &snapshot),
                },
            }
        }
    }
}

fn remove_finalizer(why: &str) -> Choice {
    Decision::act(ComputeStep::RemoveFinalizer, Report::progressing(Reason::Deleting, why))
}

/// Waits for a person. Another resource may get a candidate meanwhile, or give it up, which changes nothing here: hence the timer.
fn await_person(case: &Case, report: Report) -> Choice {
    Decision::wait(report, later(case.now, PERSON_CHECK))
}

/// How often to check what other resources have by now.
const PERSON_CHECK: std::time::Duration = std::time::Duration::from_secs(30);

/// Computes what the schedules of this generation set, unless memory already has that for `now`.
pub fn foresee(memory: &mut Memory, spec: &ComputeSpec, generation: i64, now: Timestamp) {
    memory.agenda = schedules::agenda(spec, memory, generation, now);
}

/// Records in memory what a snapshot shows of the compute that a resource is bound to. `status` is what an earlier process may have left.
pub fn remember(
    memory: &mut Memory,
    (spec, generation): (&ComputeSpec, i64),
    status: Option<&ComputeStatus>,
    shown: &Shown<Compute>,
    now: Timestamp,
) {
    if let Shown::Absent = shown {
        memory.missing_since.get_or_insert(now);
        return;
    }
    (memory.missing_since, memory.asked) = (None, None);
    let Shown::Entry(found) = *shown else { return };
    let agenda = schedules::agenda(spec, memory, generation, now);
    let spec = schedules::in_force(spec, agenda.as_deref());
    let differences = super::drift::differences(&spec, found);
    if differences.is_empty() {
        memory.note_in_force(super::drift::enforced(&spec));
    }
    // With another spec it is sent at once.
    let status = status.filter(|status| status.observed_generation == Some(generation));
    for NotApplied { setting, declared, since } in status.iter().flat_map(|status| &status.not_applied) {
        let same = |it: &&Difference| it.field == *setting && it.declared == *declared;
        let difference = differences.iter().find(same);
        difference.into_iter().for_each(|it| memory.recall_sent(setting, &it.change, *since, now));
    }
    memory.note_differing(&differences.iter().map(|difference| difference.field.as_str()).collect::<Vec<_>>(), now);
    if is_settled(found) {
        memory.changing = false;
    }
    let is_well = is_settled(found) && found.unknown_state().is_none();
    memory.operations.observed(is_well, differences.is_empty(), now);
}

/// Whether this resource waits for something that the platform is expected to change soon; `shown` is what a snapshot shows of the bound
/// compute, if the resource is bound to one.
pub fn is_awaiting(identity: &ComputeIdentity, deleting: bool, memory: &Memory, shown: Option<Shown<Compute>>) -> bool {
    let restarts = identity.restart.as_ref().and_then(|record| record.calling.as_ref());
    match shown {
        None => identity.intent.is_some(),
        Some(Shown::Absent) => true,
        // When it can be read is not expected.
        Some(Shown::Unclear(_)) => false,
        Some(Shown::Entry(found)) => {
            !is_settled(found) || restarts.is_some_and(|before| !before.unclear) || deleting && memory.deleted.is_some()
        }
    }
}

/// Whether no change is in progress on the platform.
pub fn is_settled(compute: &Compute) -> bool {
    compute.pending_state.is_none() && compute.current_state != ComputeState::Init
}

/// The input of one decision.
struct Case<'a> {
    spec: &'a ComputeSpec,
    observed: &'a ComputeObserved,
    identity: &'a ComputeIdentity,
    agenda: Option<&'a Agenda>,
    now: Timestamp,
}

impl Case<'_> {
    fn generation(&self) -> i64 {
        self.observed.meta.generation
    }

    fn role(&self) -> Role {
        match self.spec.type_ {
            ComputeType::ReadWrite => Role::Primary,
            ComputeType::ReadOnly => Role::Replica,
        }
    }

    /// Whether this or another resource is bound to the compute of this identifier.
    fn is_taken(&self, id: &str) -> bool {
        let own = self.identity.binding.as_ref().is_some_and(|binding| binding.id == id);
        own || self.observed.claims.bound.contains_key(id)
    }

    /// Whether the platform returns this database setting as it is given.
    fn is_returned(&self, name: &str, value: &str) -> bool {
        self.observed.returned.iter().any(|returned| returned.0.get(name).is_some_and(|returned| returned == value))
    }

    /// A step that changes what `serving` reports, unless its last try failed too recently. What serves goes on whatever comes of the step.
    fn act_beside(&self, serving: &Report, action: super::Action, step: ComputeStep, report: Report) -> Choice {
        match self.observed.memory.backoff(action, self.generation(), self.now) {
            Some(backoff) => Decision::wait(serving.clone().beside(backoff.health), backoff.until),
            None => Decision::act(step, report),
        }
    }

    /// A step, unless its last try failed too recently.
    fn act(&self, action: super::Action, step: ComputeStep, report: Report) -> Choice {
        self.pause(action).unwrap_or_else(|| Decision::act(step, report))
    }

    /// The pause after a failure.
    fn pause(&self, action: super::Action) -> Option<Choice> {
        let backoff = self.observed.memory.backoff(action, self.generation(), self.now)?;
        Some(Decision::wait(Report::of(backoff.health), backoff.until))
    }

    /// Whether a change that interrupts connections may be made now.
    fn permit(&self, compute: &Compute) -> Permit {
        let idle = compute.current_state == ComputeState::Idle;
        permit(self.spec.disruption.as_deref(), idle, self.observed.waiting_since.unwrap_or(self.now), self.now)
    }

    /// The restart that the spec and the annotation request, as if it were made now. A token that was removed requests nothing; the
    /// restart for it stays recorded in `before`.
    fn restart_asked(&self, before: Option<&RestartRecord>) -> RestartRecord {
        let or_before = |asked: Option<&String>, before: Option<&String>| asked.or(before).cloned().unwrap_or_default();
        RestartRecord {
            token: or_before(self.spec.restart_token.as_ref(), before.map(|record| &record.token)),
            annotation: or_before(self.observed.restart_annotation.as_ref(), before.map(|record| &record.annotation)),
            at: self.now,
            noted: false,
            maintained: maintenance::followed(self.spec, before, self.now),
            calling: None,
            in_vain: None,
        }
    }
}

/// Whether the compute is left on the platform when the resource goes.
fn is_orphaned(spec: &ComputeSpec) -> bool {
    spec.deletion == Deletion::Orphan || spec.management == Management::Observe
}

/// What to report when the project's computes could not be read.
fn unreadable(spec: &ComputeSpec, fault: &Fault) -> Health {
    match (fault, of_fault(fault)) {
        (Fault::NotFound { .. } | Fault::Forbidden { .. }, Health::Stalled(reason, message)) => Health::Stalled(
            reason,
            format!(
                "Project {} cannot be read. {message}. Correct spec.projectID, or use an account whose API key reaches it.",
                spec.project_id
            ),
        ),
        // That the platform is busy says nothing of the compute.
        (_, Health::Progressing(reason, message)) => Health::Unknown(reason, message),
        (_, health) => health,
    }
}
