//! The memory of one process about a resource. If it is lost, an action may be retried once more.

mod failures;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use self::failures::REFUSED_MOST;
pub use self::failures::{ActionProblem, FailedAction, of_fault};
use super::compute::schedules::Agenda;
use super::identity::RestartAnswer;
use super::operations::Operations;
use super::{Health, Reason, doubled, later};
use crate::api::LastOperation;
use crate::domain::{ComputeChange, ComputeId, Fault, KeyId, Settings};
use crate::text::sentence;

/// An action that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Create,
    Change,
    Restart,
    Delete,
    /// Reading one compute.
    Ask,
    AskOperations,
    CreateKey,
    Revoke,
    ListKeys,
    /// Checking that the platform accepts a new key.
    TryKey,
    WriteSecret,
    /// Adding a Compute to a set, or removing it from one.
    Adopt,
    CopyRecord,
}

/// The last change of one field that was sent, and its effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub change: ComputeChange,
    /// When the first of the repeated changes was sent.
    pub since: Timestamp,
    pub at: Timestamp,
    /// How many times in a row it was sent.
    pub count: u32,
    /// When a snapshot last showed the changed value.
    pub in_force: Option<Timestamp>,
}

/// The platform's answer whether a compute exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistenceAnswer {
    pub at: Timestamp,
    pub exists: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    failures: BTreeMap<Action, FailedAction>,
    /// When this process recorded its last call of each action.
    recorded: BTreeMap<Action, Timestamp>,
    /// By the field's path in the spec: a platform may ignore one field and apply the others.
    sent: BTreeMap<String, Sent>,
    /// The declared settings when a snapshot last showed them in force.
    in_force: Option<Settings>,
    /// The platform accepted a change or restart, and no later snapshot shows the compute settled.
    pub changing: bool,
    /// The compute that a create returned, until the resource is bound to it.
    pub created: Option<ComputeId>,
    /// Since when snapshots lack the bound compute.
    pub missing_since: Option<Timestamp>,
    /// The platform's last answer about the bound compute.
    pub asked: Option<ExistenceAnswer>,
    /// The answer to the restart that was called at that time, whether or not it could be recorded.
    pub restart_answered: Option<(Timestamp, RestartAnswer)>,
    /// Since when this process has watched the recorded twins without a break.
    pub twins_watched: Option<Timestamp>,
    /// The recorded call with an unknown outcome, and when this process first saw the record.
    unresolved: Option<(Timestamp, Timestamp)>,
    /// The operation of our last change, or a newer one that was listed, until the status shows it.
    pub last_operation: Option<LastOperation>,
    pub operations: Operations,
    /// The settings that a Compute's schedules declare, and until when.
    pub agenda: Option<Arc<Agenda>>,
    /// The compute whose delete the platform last confirmed, and when.
    pub deleted: Option<(ComputeId, Timestamp)>,
}

/// Why an action has to wait, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub health: Health,
    pub until: Timestamp,
}

/// If a difference reappears after this time, it counts as new, not as persistent.
const SETTLED: Duration = Duration::from_secs(600);
/// After this time a compute is deleted again if it is still listed although the platform confirmed
/// the delete.
const DELETE_AGAIN: Duration = Duration::from_secs(60);
const UNAPPLIED_FIRST: Duration = Duration::from_secs(300);
/// No object has this generation.
pub const NO_GENERATION: i64 = -1;
/// How many times a reappearing difference is corrected at once.
const AT_ONCE: u32 = 3;

impl Memory {
    pub fn failed(
        &mut self,
        action: Action,
        problem: ActionProblem,
        generation: i64,
        now: Timestamp,
    ) {
        let count = match self
            .failures
            .get(&action)
            .filter(|before| before.generation == generation)
        {
            Some(before) if generation != NO_GENERATION => before.count.saturating_add(1),
            _ => 1,
        };
        self.failures.insert(
            action,
            FailedAction {
                problem,
                at: now,
                count,
                generation,
            },
        );
    }

    pub fn succeeded(&mut self, action: Action) {
        self.failures.remove(&action);
    }

    /// Retries refused actions at once, and drops absences seen with the old credentials: they
    /// prove nothing.
    pub fn credentials_changed(&mut self) {
        (self.missing_since, self.asked) = (None, None);
        self.operations.ask_anew();
        self.retry();
    }

    pub fn retry(&mut self) {
        for failure in self.failures.values_mut() {
            failure.generation = NO_GENERATION;
        }
    }

    /// Call this before the recorded call is sent.
    pub fn recorded(&mut self, action: Action, at: Timestamp) {
        self.recorded.insert(action, at);
    }

    /// Returns true if this process recorded the call of that time.
    pub fn is_own(&self, action: Action, begun: Timestamp) -> bool {
        self.recorded.get(&action) == Some(&begun)
    }

    /// Returns true if this process recorded the call of that time and knows that it was not
    /// carried out. The outcome of another process's call is not known here.
    pub fn not_done(&self, action: Action, begun: Timestamp) -> bool {
        let failure = self
            .failures
            .get(&action)
            .filter(|failure| self.is_own(action, begun) && failure.at >= begun);
        failure.is_some_and(|failure| match &failure.problem {
            ActionProblem::Platform(fault) => !fault.may_have_happened(),
            ActionProblem::Secret(_) | ActionProblem::Object(_) | ActionProblem::NotRecorded(_) => {
                true
            }
            ActionProblem::NewKey(_) => false,
        })
    }

    /// The key that the platform returned instead of the one whose creation was recorded at that
    /// time.
    pub fn other_key(&self, begun: Timestamp) -> Option<KeyId> {
        let own = self.is_own(Action::CreateKey, begun);
        let failure = self
            .failures
            .get(&Action::CreateKey)
            .filter(|failure| own && failure.at >= begun)?;
        match &failure.problem {
            ActionProblem::Platform(Fault::OtherKey { id, .. }) => Some(*id),
            _ => None,
        }
    }

    pub fn failures(&self) -> impl Iterator<Item = (Action, &FailedAction)> {
        self.failures
            .iter()
            .map(|(action, failure)| (*action, failure))
    }

    /// The platform's fault of the last attempt of an action, if it failed.
    pub fn fault(&self, action: Action) -> Option<&Fault> {
        match &self.failures.get(&action)?.problem {
            ActionProblem::Platform(fault) => Some(fault),
            _ => None,
        }
    }

    /// The answer that leaves the outcome of that call open, as a sentence. `None` if none arrived.
    pub fn open_answer(&self, action: Action, begun: Timestamp) -> Option<String> {
        let fault = self.fault(action)?;
        let is_open = matches!(
            fault,
            Fault::Gateway { .. } | Fault::Server { .. } | Fault::Undecodable { .. }
        );
        if !is_open || !self.is_own(action, begun) {
            return None;
        }
        Some(format!("{}.", sentence(&fault.to_string())))
    }

    /// How long to back off after a failure. A refusal backs off longer, until the spec changes.
    pub fn backoff(&self, action: Action, generation: i64, now: Timestamp) -> Option<Backoff> {
        let failure = self.failures.get(&action)?;
        if failure.generation != generation {
            return None;
        }
        let until = later(failure.at, failure.pause());
        (now < until).then(|| Backoff {
            health: failure.health(),
            until,
        })
    }

    /// Records when this process first saw the record of a call with an unknown outcome. `recorded`
    /// is the time in that record.
    pub fn note_unresolved(&mut self, recorded: Option<Timestamp>, now: Timestamp) {
        self.unresolved = recorded.map(|at| {
            self.unresolved
                .filter(|(known, _)| *known == at)
                .unwrap_or((at, now))
        });
    }

    /// The end of the settle time of a call, by this process's clock alone. If a later snapshot lacks
    /// the call's result, the call was not carried out.
    pub fn settles_at(&self, recorded: Timestamp, settle: Duration) -> Timestamp {
        let unresolved = self.unresolved.filter(|(known, _)| *known == recorded);
        later(unresolved.map_or(recorded, |(_, since)| since), settle)
    }

    /// When to delete a compute again if a list still shows it; `None` before the platform has
    /// confirmed its delete.
    pub fn deletes_again(&self, id: &ComputeId) -> Option<Timestamp> {
        let (deleted, at) = self.deleted.as_ref()?;
        (deleted == id).then(|| later(*at, DELETE_AGAIN))
    }

    /// Drops an operation once the status shows it: the later of two overlapping leaders prevails.
    pub fn operation_shown(&mut self, operation: Option<&LastOperation>) {
        self.last_operation.take_if(|ours| operation == Some(ours));
        if let Some(operation) = operation {
            self.operations.shown(operation);
        }
    }

    /// Keeps the operations that a change started, in the order of execution.
    pub fn operations_started(&mut self, started: &[LastOperation]) {
        let Some(first) = started.first() else { return };
        self.operations.started(started);
        self.last_operation = Some(self.operations.failed().unwrap_or(first).clone());
    }

    /// Keeps the listed operations, newest first.
    pub fn operations_listed(&mut self, listed: &[LastOperation], now: Timestamp) {
        self.succeeded(Action::AskOperations);
        self.operations.listed(listed, now);
        if let Some(newest) = self.operations.failed().or(listed.first()) {
            self.last_operation = Some(newest.clone());
        }
    }

    pub fn operations_not_listed(&mut self) {
        self.succeeded(Action::AskOperations);
        self.operations.not_listed();
    }

    /// Keeps a sent change by the fields that it corrects.
    pub fn sent(&mut self, parts: &BTreeMap<String, ComputeChange>, now: Timestamp) {
        for (field, change) in parts {
            let (since, count) = match self.sent.get(field) {
                Some(before) if before.change == *change && !before.stood() => {
                    (before.since, before.count.saturating_add(1))
                }
                _ => (now, 1),
            };
            self.sent.insert(
                field.clone(),
                Sent {
                    change: change.clone(),
                    since,
                    at: now,
                    count,
                    in_force: None,
                },
            );
        }
    }

    /// Adopts from the status a change that an earlier process has sent without effect since then.
    pub fn recall_sent(
        &mut self,
        field: &str,
        change: &ComputeChange,
        since: Timestamp,
        now: Timestamp,
    ) {
        let since = since.min(now);
        let (at, count) = last_sent(since, now);
        let sent = Sent {
            change: change.clone(),
            since,
            at,
            count,
            in_force: None,
        };
        self.sent.entry(field.to_owned()).or_insert(sent);
    }

    /// Since when a change of a field has been sent without effect.
    pub fn not_applied_since(
        &self,
        field: &str,
        change: &ComputeChange,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (reason, _) = self.repeated(field, change, now)?;
        (reason == Reason::SettingNotApplied).then(|| self.sent[field].since)
    }

    /// Call this with all fields whose value in a snapshot differs from the declared one.
    pub fn note_differing(&mut self, fields: &[&str], now: Timestamp) {
        for (_, sent) in self
            .sent
            .iter_mut()
            .filter(|(field, _)| !fields.contains(&field.as_str()))
        {
            sent.in_force = Some(now);
        }
    }

    pub fn note_in_force(&mut self, declared: Settings) {
        self.in_force = Some(declared);
    }

    /// Returns true if the declared settings were in force before: somebody changed them since.
    pub fn was_in_force(&self, declared: &Settings) -> bool {
        self.in_force.as_ref() == Some(declared)
    }

    /// The reason to report and the end of the pause, if a repeated change of a field has to wait.
    pub fn repeated(
        &self,
        field: &str,
        change: &ComputeChange,
        now: Timestamp,
    ) -> Option<(Reason, Timestamp)> {
        let sent = self
            .sent
            .get(field)
            .filter(|sent| &sent.change == change && !sent.stood())?;
        let (reason, pauses) = match sent.in_force {
            Some(_) => (Reason::DriftPersists, sent.count.checked_sub(AT_ONCE)?),
            None => (Reason::SettingNotApplied, sent.count.saturating_sub(1)),
        };
        let until = later(sent.at, unapplied_pause(pauses));
        (now < until).then_some((reason, until))
    }
}

fn unapplied_pause(pauses: u32) -> Duration {
    doubled(UNAPPLIED_FIRST, pauses, REFUSED_MOST)
}

/// Estimates the last time and the count of a change that had no effect since `since`: once after
/// each pause.
fn last_sent(since: Timestamp, now: Timestamp) -> (Timestamp, u32) {
    let (mut at, mut count) = (since, 1);
    while unapplied_pause(count - 1) < REFUSED_MOST {
        let next = later(at, unapplied_pause(count - 1));
        if now < next {
            return (at, count);
        }
        (at, count) = (next, count + 1);
    }
    let hours = now.duration_since(at).as_hours().unsigned_abs();
    let more = u32::try_from(hours).unwrap_or(u32::MAX);
    (
        later(at, REFUSED_MOST.saturating_mul(more)),
        count.saturating_add(more),
    )
}

impl Sent {
    /// Returns true if it was in force long enough that a difference now counts as new.
    fn stood(&self) -> bool {
        self.in_force
            .is_some_and(|in_force| in_force >= later(self.at, SETTLED))
    }
}

#[cfg(test)]
mod tests;
