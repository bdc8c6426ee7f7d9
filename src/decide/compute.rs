//! Decisions about Computes: create or adopt, keep as declared, restart, delete.

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
pub(super) mod schedules;
mod sight;
mod snapshot;
mod status;
mod step;
mod stray;
#[cfg(test)]
mod tests;
mod twin;
mod unfollowed;
mod update;
mod wish;

use std::collections::BTreeSet;

use jiff::Timestamp;

pub use claims::{
    Claim, ClaimSubject, Claims, Holder, Mine, Other, Reservations, Reserved, ReservedPlace,
    RivalCreate, claimed, claims, relevant_subjects, subjects, turn, wanted,
};
pub use create::{creating, is_current, may_rest_on_older_list};
pub use delete::misses_its_project;
pub use record::is_held;
use schedules::Agenda;
pub use status::status;
pub use step::ComputeStep;
pub use stray::looks_besides;
pub use twin::watch_twins;
pub(super) use unfollowed::reported;
pub use unfollowed::{Unfollowed, unfollowed};

use self::snapshot::ComputeSnapshot;
use super::advice::{self, Call};
use super::connection::{Address, CredentialsView, SecretView};
use super::disruption::{Permit, permit};
use super::gates::{self, Gates};
use super::identity::{ComputeIdentity, RestartRecord};
use super::memory::Backoff;
use super::seal::InvalidAnnotation;
use super::{Action, Decision, Health, Memory, Observed, Reason, Report, Wake, drift, later};
use crate::api::{ComputeSpec, ComputeStatus, ComputeType, Deletion, Management, NotApplied};
use crate::domain::{
    Compute, ComputeId, ComputeState, Fault, Listed, NameSupport, PostgresSettings, Role, Shown,
};

/// The input of a decision about a Compute, besides its spec and the time.
pub type ComputeObserved = Observed<ComputeFacts>;

#[derive(Clone, Debug)]
pub struct ComputeFacts {
    pub identity: Result<ComputeIdentity, InvalidAnnotation>,
    /// The record from a backup or a user's annotation, if the status has none.
    pub wish: Option<ComputeIdentity>,
    /// The time since which changes wait, from the status.
    pub waiting_since: Option<Timestamp>,
    /// The value of the restart annotation.
    pub restart_annotation: Option<String>,
    /// Computes that no create of this resource created, according to the user's annotation.
    pub not_created: BTreeSet<ComputeId>,
    /// The base URL of the account's platform.
    pub platform: Option<String>,
    /// The account's checks show that the project no longer exists.
    pub project_gone: bool,
    pub snapshot: SnapshotState,
    pub claims: Claims,
    pub secret: SecretView,
    pub credentials: CredentialsView,
    /// The address where the status last showed a compute.
    pub last_seen: Option<Address>,
    /// The name of the connection Secret, if it exists.
    pub connection_secret: Option<String>,
    /// Secrets of this resource that its spec no longer names.
    pub unused_secrets: Vec<String>,
    /// Support for names of computes, from the snapshot of the whole project.
    pub name_support: NameSupport,
    /// Database settings of unresolved creates that the platform is seen to return unchanged.
    pub returned: Vec<PostgresSettings>,
    /// Newer reads fail: the existing snapshot is stale from this time on.
    pub stale_from: Option<Timestamp>,
}

/// The newest usable snapshot of the project, limited to the relevant computes: those of the
/// branch, and those named by the binding, the intent and the spec.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotState {
    /// No snapshot has begun since dbplane's last write.
    Pending,
    /// The read failed. This never means that a compute does not exist.
    Failed(Fault),
    /// The snapshot, and the time when reading it began.
    Taken {
        at: Timestamp,
        computes: Listed<Compute>,
    },
}

type ComputeDecision = Decision<ComputeStep>;

/// Decides on the next step for a Compute.
pub fn decide(spec: &ComputeSpec, observed: &ComputeObserved, now: Timestamp) -> ComputeDecision {
    let agenda = schedules::agenda(
        spec,
        observed.memory.agenda.as_ref(),
        observed.meta.generation,
        now,
    );
    let agenda = agenda.as_deref();
    let choice = choose(&schedules::in_force(spec, agenda), observed, agenda, now);
    let times = [observed.stale_from, agenda.and_then(Agenda::wake)];
    times
        .into_iter()
        .flatten()
        .fold(choice, |choice, time| choice.no_later(Wake::At(time)))
}

fn choose(
    spec: &ComputeSpec,
    observed: &ComputeObserved,
    agenda: Option<&Agenda>,
    now: Timestamp,
) -> ComputeDecision {
    let case = match &observed.identity {
        Ok(identity) => Ok(ComputeCase {
            spec,
            observed,
            identity,
            agenda,
            now,
        }),
        Err(invalid) => Err(record::invalid(spec, observed, invalid)),
    };
    gates::decide(observed, !is_orphaned(spec), case)
}

impl Gates for ComputeCase<'_> {
    type Step = ComputeStep;

    fn deletion(&self) -> ComputeDecision {
        delete::decide(self)
    }

    fn before_account(&self) -> Option<ComputeDecision> {
        record::restore(self)
    }

    /// The connection Secret still follows the spec and the credentials.
    fn without_account(&self, obstacle: Report) -> ComputeDecision {
        connection::meanwhile(self, obstacle)
    }

    fn decision(&self) -> ComputeDecision {
        match &self.observed.snapshot {
            SnapshotState::Pending => Decision::silent(),
            SnapshotState::Failed(fault) => {
                connection::meanwhile(self, Report::of(unreadable(self.spec, fault)))
            }
            SnapshotState::Taken { at, computes } => {
                with_snapshot(self, &ComputeSnapshot::new(*at, computes))
            }
        }
    }
}

fn with_snapshot(case: &ComputeCase, snapshot: &ComputeSnapshot) -> ComputeDecision {
    if let Some(report) = record::elsewhere(case) {
        return Decision::rest(report);
    }
    match (&case.identity.binding, &case.identity.intent) {
        (Some(binding), _) => keep::decide(case, binding, snapshot),
        (None, Some(intent)) => create::recover(case, intent, snapshot),
        (None, None) => match wish::of(case) {
            Some(wish) => wish::decide(case, wish, snapshot),
            None => create::adopt_or_create(case, snapshot),
        },
    }
}

fn remove_finalizer(why: &str) -> ComputeDecision {
    Decision::act(
        ComputeStep::RemoveFinalizer,
        Report::progressing(Reason::Deleting, why),
    )
}

/// Waits for a user. Meanwhile another resource may bind or release a candidate. That does not
/// enqueue this one, hence the timer.
fn await_person(case: &ComputeCase, report: Report) -> ComputeDecision {
    Decision::wait(report, later(case.now, PERSON_CHECK))
}

/// The interval for checking the claims of other resources.
const PERSON_CHECK: std::time::Duration = std::time::Duration::from_secs(30);

/// Computes the agenda of this generation, unless memory already has it for `now`.
pub fn foresee(memory: &mut Memory, spec: &ComputeSpec, generation: i64, now: Timestamp) {
    memory.agenda = schedules::agenda(spec, memory.agenda.as_ref(), generation, now);
}

/// A spec, and the generation of the resource that declares it.
#[derive(Clone, Copy, Debug)]
pub struct VersionedSpec<'a> {
    pub spec: &'a ComputeSpec,
    pub generation: i64,
}

/// Remembers what a snapshot shows of the bound compute. `status` may come from an earlier process.
pub fn remember(
    memory: &mut Memory,
    declared: VersionedSpec<'_>,
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
    let VersionedSpec { spec, generation } = declared;
    let agenda = schedules::agenda(spec, memory.agenda.as_ref(), generation, now);
    let spec = schedules::in_force(spec, agenda.as_deref());
    let differences = drift::differences(&spec, found);
    if differences.is_empty() {
        memory.note_in_force(drift::enforced(&spec));
    }
    // After a spec change the setting is sent at once, so an older status does not count.
    let status = status.filter(|status| status.observed_generation == Some(generation));
    for NotApplied {
        setting,
        declared,
        since,
    } in status.iter().flat_map(|status| &status.not_applied)
    {
        let difference = differences
            .iter()
            .find(|it| it.field == *setting && it.declared == *declared);
        if let Some(it) = difference {
            memory.recall_sent(setting, &it.change, *since, now);
        }
    }
    memory.note_differing(
        &differences
            .iter()
            .map(|difference| difference.field.as_str())
            .collect::<Vec<_>>(),
        now,
    );
    if is_settled(found) {
        memory.changing = false;
    }
    let is_well = is_settled(found) && found.unknown_state().is_none();
    memory
        .operations
        .observed(is_well, differences.is_empty(), now);
}

/// True if the platform is expected to change something soon that this resource waits for. `shown`
/// is the bound compute in a snapshot, if the resource is bound.
pub fn is_awaiting(
    identity: &ComputeIdentity,
    deleting: bool,
    memory: &Memory,
    shown: Option<Shown<Compute>>,
) -> bool {
    let restarts = identity
        .restart
        .as_ref()
        .and_then(|record| record.calling.as_ref());
    match shown {
        None => identity.intent.is_some(),
        Some(Shown::Absent) => true,
        // An unreadable entry is not expected to become readable soon.
        Some(Shown::Unclear(_)) => false,
        Some(Shown::Entry(found)) => {
            !is_settled(found)
                || restarts.is_some_and(|before| !before.unclear)
                || deleting && memory.deleted.is_some()
        }
    }
}

/// True if no change is in progress on the platform.
pub fn is_settled(compute: &Compute) -> bool {
    compute.pending_state.is_none() && compute.current_state != ComputeState::Init
}

/// The input of one decision.
struct ComputeCase<'a> {
    spec: &'a ComputeSpec,
    observed: &'a ComputeObserved,
    identity: &'a ComputeIdentity,
    agenda: Option<&'a Agenda>,
    now: Timestamp,
}

impl ComputeCase<'_> {
    fn generation(&self) -> i64 {
        self.observed.meta.generation
    }

    fn role(&self) -> Role {
        match self.spec.type_ {
            ComputeType::ReadWrite => Role::Primary,
            ComputeType::ReadOnly => Role::Replica,
        }
    }

    /// True if this or another resource is bound to this compute.
    fn is_taken(&self, id: &ComputeId) -> bool {
        let own = self
            .identity
            .binding
            .as_ref()
            .is_some_and(|binding| binding.id == *id);
        own || self.observed.claims.bound.contains_key(id)
    }

    /// True if the platform returns this database setting unchanged.
    fn is_returned(&self, name: &str, value: &str) -> bool {
        self.observed.returned.iter().any(|returned| {
            returned
                .0
                .get(name)
                .is_some_and(|returned| returned == value)
        })
    }

    /// A step beside a compute that serves. While the step backs off, `serving` is still reported,
    /// with the failure added.
    fn act_beside(
        &self,
        serving: &Report,
        action: Action,
        step: ComputeStep,
        report: Report,
    ) -> ComputeDecision {
        match self.backoff(action, Some(&step)) {
            Some(backoff) => Decision::wait(serving.clone().beside(backoff.health), backoff.until),
            None => Decision::act(step, report),
        }
    }

    /// A step, unless it backs off after a failure.
    fn act(&self, action: Action, step: ComputeStep, report: Report) -> ComputeDecision {
        self.pause(action)
            .unwrap_or_else(|| Decision::act(step, report))
    }

    /// The backoff after a failure.
    fn pause(&self, action: Action) -> Option<ComputeDecision> {
        let backoff = self.backoff(action, None)?;
        Some(Decision::wait(Report::of(backoff.health), backoff.until))
    }

    /// Why an action has to wait, with advice about the fields of the spec that it is for.
    fn backoff(&self, action: Action, step: Option<&ComputeStep>) -> Option<Backoff> {
        let memory = &self.observed.memory;
        let backoff = memory.backoff(action, self.generation(), self.now)?;
        let project = &self.spec.project_id;
        let settings = drift::declared(self.spec);
        let call = match (action, step) {
            (Action::Create, _) => Some(Call::CreateCompute {
                project,
                branch: &self.spec.branch_id,
                role: self.role(),
                settings: &settings,
            }),
            (
                _,
                Some(ComputeStep::Change {
                    id,
                    change,
                    because,
                    ..
                }),
            ) => Some(Call::ChangeCompute {
                id,
                project,
                change,
                because,
            }),
            _ => None,
        };
        Some(advice::backoff(
            backoff,
            memory.fault(action),
            call.as_ref(),
        ))
    }

    fn permit(&self, compute: &Compute) -> Permit {
        let idle = compute.current_state == ComputeState::Idle;
        permit(
            self.spec.disruption.as_deref(),
            idle,
            self.observed.waiting_since.unwrap_or(self.now),
            self.now,
        )
    }

    /// The restart that the spec and the annotation request, as if it were made now. A removed
    /// token requests nothing; its restart stays recorded in `before`.
    fn restart_asked(&self, before: Option<&RestartRecord>) -> RestartRecord {
        let or_before = |asked: Option<&String>, before: Option<&String>| {
            asked.or(before).cloned().unwrap_or_default()
        };
        RestartRecord {
            token: or_before(
                self.spec.restart_token.as_ref(),
                before.map(|record| &record.token),
            ),
            annotation: or_before(
                self.observed.restart_annotation.as_ref(),
                before.map(|record| &record.annotation),
            ),
            at: self.now,
            noted: false,
            maintained: maintenance::followed(self.spec, before, self.now),
            calling: None,
            in_vain: None,
        }
    }
}

/// True if the compute stays on the platform when the resource is deleted.
fn is_orphaned(spec: &ComputeSpec) -> bool {
    spec.deletion == Deletion::Orphan || spec.management == Management::Observe
}

/// The health while the project's computes cannot be read.
fn unreadable(spec: &ComputeSpec, fault: &Fault) -> Health {
    let project = &spec.project_id;
    match advice::health(&Call::ListComputes { project }, fault) {
        // A busy platform says nothing about the compute.
        Health::Progressing(reason, message) => Health::Unknown(reason, message),
        health => health,
    }
}
