//! What one process remembers of a resource between two decisions. If it is lost, an action may be tried once more; nothing
//! else depends on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::compute::Agenda;
use super::operations::Operations;
use super::{Health, Reason, doubled, later};
use crate::api::LastOperation;
use crate::domain::{ComputeChange, Fault, Settings};
use crate::text::sentence;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Create,
    Change,
    Restart,
    Delete,
    /// Asking for one compute.
    Ask,
    AskOperations,
    CreateKey,
    Revoke,
    ListKeys,
    /// Asking the platform whether it accepts a new key.
    TryKey,
    WriteSecret,
    /// Taking a Compute into a set, or letting it go.
    Adopt,
    /// Copying the record into the annotation.
    CopyRecord,
}

/// Why it did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// What the platform answered, or that it did not.
    Platform(Fault),
    /// Why the API server did not accept a Secret.
    Secret(String),
    /// Why it did not accept another object.
    Object(String),
    /// Which key the platform created, and does not accept.
    NewKey(String),
    /// Why the call, which was not made, could not be recorded.
    NotRecorded(String),
}

/// The last try of an action, when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub problem: Problem,
    pub at: Timestamp,
    /// How many tries in a row have failed.
    pub count: u32,
    pub generation: i64,
}

/// The last change of one field that was sent, and its effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub change: ComputeChange,
    /// When it was sent first in a row.
    pub since: Timestamp,
    pub at: Timestamp,
    /// How often in a row it was sent.
    pub count: u32,
    /// When a snapshot last showed the changed value.
    pub in_force: Option<Timestamp>,
}

/// Whether a compute exists, as the platform answered at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub at: Timestamp,
    pub exists: bool,
}

/// What one process remembers of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    failures: BTreeMap<Action, Failure>,
    /// When this process recorded its last call of each action.
    recorded: BTreeMap<Action, Timestamp>,
    /// By the field's path in the spec: a platform may ignore one field and apply the others.
    sent: BTreeMap<String, Sent>,
    /// What was declared when a snapshot last showed it in force.
    in_force: Option<Settings>,
    /// The platform accepted a change or restart, and no snapshot since then shows the compute settled.
    pub changing: bool,
    /// The compute that a create returned, until the resource is bound to it.
    pub created: Option<String>,
    /// Since when snapshots lack the compute that the resource is bound to.
    pub missing_since: Option<Timestamp>,
    /// What the platform answered last when it was asked for that compute.
    pub asked: Option<Asked>,
    /// The call whose outcome is unknown: when it was recorded, and when this process first saw that record.
    unresolved: Option<(Timestamp, Timestamp)>,
    /// The operation that our last change started, or that was asked for since, until the status shows it.
    pub last_operation: Option<LastOperation>,
    pub operations: Operations,
    /// What a Compute's schedules set, and until when.
    pub agenda: Option<Arc<Agenda>>,
    /// The compute whose delete the platform last confirmed, and when.
    pub deleted: Option<(String, Timestamp)>,
}

/// Why an action has to wait, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub health: Health,
    pub until: Timestamp,
}

const REFUSED_FIRST: Duration = Duration::from_secs(30);
const REFUSED_MOST: Duration = Duration::from_secs(3600);
const FAILED_FIRST: Duration = Duration::from_secs(1);
const FAILED_MOST: Duration = Duration::from_secs(60);
/// A difference that comes back after this long is a new one, not a persistent one.
const SETTLED: Duration = Duration::from_secs(600);
const UNAPPLIED_FIRST: Duration = Duration::from_secs(300);
/// No object has this generation.
pub const NO_GENERATION: i64 = -1;
/// How often a difference that comes back is corrected at once.
const AT_ONCE: u32 = 3;

impl Memory {
    pub fn failed(&mut self, action: Action, problem: Problem, generation: i64, now: Timestamp) {
        let count = match self.failures.get(&action).filter(|before| before.generation == generation) {
            Some(before) if generation != NO_GENERATION => before.count.saturating_add(1),
            _ => 1,
        };
        self.failures.insert(action, Failure { problem, at: now, count, generation });
    }

    /// Forgets failures of an action that has succeeded.
    pub fn succeeded(&mut self, action: Action) {
        self.failures.remove(&action);
    }

    /// The account has other credentials: what the platform refused to the old ones is tried again at once, and what the
    /// old ones did not see proves nothing.
    pub fn credentials_changed(&mut self) {
        (self.missing_since, self.asked) = (None, None);
        self.operations.ask_anew();
        self.retry();
    }

    /// What failed is tried again at once.
    pub fn retry(&mut self) {
        for failure in self.failures.values_mut() {
            failure.generation = NO_GENERATION;
        }
    }

    /// Remembers that this process recorded a call before it makes it.
    pub fn recorded(&mut self, action: Action, at: Timestamp) {
        self.recorded.insert(action, at);
    }

    /// Whether this process recorded the call of that time.
    pub fn is_own(&self, action: Action, begun: Timestamp) -> bool {
        self.recorded.get(&action) == Some(&begun)
    }

    /// Whether this process recorded a call at that time and knows that it was not carried out. The outcome of a call that
    /// another process recorded is not known here.
    pub fn not_done(&self, action: Action, begun: Timestamp) -> bool {
        let failure = self.failures.get(&action).filter(|failure| self.is_own(action, begun) && failure.at >= begun);
        failure.is_some_and(|failure| match &failure.problem {
            Problem::Platform(fault) => !fault.may_have_happened(),
            Problem::Secret(_) | Problem::Object(_) | Problem::NotRecorded(_) => true,
            Problem::NewKey(_) => false,
        })
    }

    /// The key that the platform answered with in place of the one whose creation this process recorded at that time.
    pub fn other_key(&self, begun: Timestamp) -> Option<i64> {
        let own = self.is_own(Action::CreateKey, begun);
        let failure = self.failures.get(&Action::CreateKey).filter(|failure| own && failure.at >= begun)?;
        match &failure.problem {
            Problem::Platform(Fault::OtherKey { id, .. }) => Some(*id),
            _ => None,
        }
    }

    pub fn failures(&self) -> impl Iterator<Item = (Action, &Failure)> {
        self.failures.iter().map(|(action, failure)| (*action, failure))
    }

    /// The platform's fault of the last try of an action, when it failed.
    pub fn fault(&self, action: Action) -> Option<&Fault> {
        match &self.failures.get(&action)?.problem {
            Problem::Platform(fault) => Some(fault),
            _ => None,
        }
    }

    /// The answer that leaves open whether the call of that time was carried out, as a sentence; nothing where none came.
    pub fn open_answer(&self, action: Action, begun: Timestamp) -> Option<String> {
        let own = self.fault(action).filter(|_| self.is_own(action, begun));
        let open =
            own.filter(|it| matches!(it, Fault::Gateway { .. } | Fault::Server { .. } | Fault::Undecodable { .. }));
        open.map(|fault| format!("{}.", sentence(&fault.to_string())))
    }

    /// Whether an action has to wait after a failure. After a refusal it waits longer, but not once the spec has changed.
    pub fn backoff(&self, action: Action, generation: i64, now: Timestamp) -> Option<Backoff> {
        let failure = self.failures.get(&action)?;
        if failure.generation != generation {
            return None;
        }
        let until = later(failure.at, failure.pause());
        (now < until).then(|| Backoff { health: failure.health(), until })
    }

    /// Remembers when this process first saw the record of a call whose outcome is unknown; `recorded` is the time in it.
    pub fn note_unresolved(&mut self, recorded: Option<Timestamp>, now: Timestamp) {
        self.unresolved = recorded.map(|at| self.unresolved.filter(|(known, _)| *known == at).unwrap_or((at, now)));
    }

    /// The end of the settle time of a call: a snapshot that begins later and lacks the call's result proves that it was not
    /// carried out. Measured by this process's clock alone: the process that recorded the call may have had another one.
    pub fn settles_at(&self, recorded: Timestamp, settle: Duration) -> Timestamp {
        let unresolved = self.unresolved.filter(|(known, _)| *known == recorded);
        later(unresolved.map_or(recorded, |(_, since)| since), settle)
    }

    /// Forgets an operation once the status shows it. When two leaders overlap, the one that writes later then prevails.
    pub fn operation_shown(&mut self, operation: Option<&LastOperation>) {
        self.last_operation.take_if(|ours| operation == Some(ours));
        if let Some(operation) = operation {
            self.operations.shown(operation);
        }
    }

    /// Remembers the operations that a change started, in the order of their work.
    pub fn operations_started(&mut self, started: &[LastOperation]) {
        let Some(first) = started.first() else { return };
        self.operations.started(started);
        self.last_operation = Some(self.operations.failed().unwrap_or(first).clone());
    }

    /// Remembers the operations that were asked for, newest first.
    pub fn operations_listed(&mut self, listed: &[LastOperation], now: Timestamp) {
        self.succeeded(Action::AskOperations);
        self.operations.listed(listed, now);
        if let Some(newest) = self.operations.failed().or(listed.first()) {
            self.last_operation = Some(newest.clone());
        }
    }

    /// Remembers that the platform does not list operations.
    pub fn operations_not_listed(&mut self) {
        self.succeeded(Action::AskOperations);
        self.operations.not_listed();
    }

    /// Remembers that a change was sent, by the fields that it corrects.
    pub fn sent(&mut self, parts: &BTreeMap<String, ComputeChange>, now: Timestamp) {
        for (field, change) in parts {
            let (since, count) = match self.sent.get(field) {
                Some(before) if before.change == *change && !before.stood() => {
                    (before.since, before.count.saturating_add(1))
                }
                _ => (now, 1),
            };
            self.sent.insert(field.clone(), Sent { change: change.clone(), since, at: now, count, in_force: None });
        }
    }

    /// Takes over what an earlier process has sent without effect since then, as the status says.
    pub fn recall_sent(&mut self, field: &str, change: &ComputeChange, since: Timestamp, now: Timestamp) {
        let since = since.min(now);
        let (at, count) = last_sent(since, now);
        let sent = Sent { change: change.clone(), since, at, count, in_force: None };
        self.sent.entry(field.to_owned()).or_insert(sent);
    }

    /// Since when a change of a field is sent and not applied.
    pub fn not_applied_since(&self, field: &str, change: &ComputeChange, now: Timestamp) -> Option<Timestamp> {
        let (reason, _) = self.repeated(field, change, now)?;
        (reason == Reason::SettingNotApplied).then(|| self.sent[field].since)
    }

    /// Remembers that exactly these fields differ from what is declared, as a snapshot shows.
    pub fn note_differing(&mut self, fields: &[&str], now: Timestamp) {
        for (_, sent) in self.sent.iter_mut().filter(|(field, _)| !fields.contains(&field.as_str())) {
            sent.in_force = Some(now);
        }
    }

    /// Remembers that a snapshot shows what is declared in force.
    pub fn note_in_force(&mut self, declared: Settings) {
        self.in_force = Some(declared);
    }

    /// Whether what is declared was in force before: then it was changed by somebody else since.
    pub fn was_in_force(&self, declared: &Settings) -> bool {
        self.in_force.as_ref() == Some(declared)
    }

    /// Whether a change of a field that was sent before has to wait before it is sent again, and the reason to report.
    pub fn repeated(&self, field: &str, change: &ComputeChange, now: Timestamp) -> Option<(Reason, Timestamp)> {
        let sent = self.sent.get(field).filter(|sent| &sent.change == change && !sent.stood())?;
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

/// When a change was sent last, and how often, that is sent since then without effect: once more after each pause.
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
    (later(at, REFUSED_MOST.saturating_mul(more)), count.saturating_add(more))
}

impl Sent {
    /// Whether it was in force for long enough that a difference now is a new one.
    fn stood(&self) -> bool {
        self.in_force.is_some_and(|in_force| in_force >= later(self.at, SETTLED))
    }
}

impl Failure {
    fn pause(&self) -> Duration {
        let tries = self.count.saturating_sub(1);
        match &self.problem {
            // A platform that names keys otherwise does so each time, and each time there is one more key.
            Problem::Platform(fault) if fault.is_refusal() || matches!(fault, Fault::OtherKey { .. }) => {
                doubled(REFUSED_FIRST, tries, REFUSED_MOST)
            }
            // What the platform says is enough, however often it says so.
            Problem::Platform(fault) => fault
                .retry_after()
                .map_or_else(|| doubled(FAILED_FIRST, tries, FAILED_MOST), |wait| wait.max(FAILED_FIRST)),
            Problem::Secret(_) | Problem::Object(_) | Problem::NotRecorded(_) => {
                doubled(FAILED_FIRST, tries, FAILED_MOST)
            }
            // Each try costs a key.
            Problem::NewKey(_) => doubled(REFUSED_FIRST, tries, REFUSED_MOST),
        }
    }

    /// What it means for the resource.
    pub fn health(&self) -> Health {
        match &self.problem {
            Problem::Platform(fault) => of_fault(fault),
            Problem::Secret(message) => Health::Stalled(Reason::SecretNotWritten, message.clone()),
            Problem::Object(message) => Health::Stalled(Reason::Refused, message.clone()),
            Problem::NewKey(message) => Health::Stalled(Reason::NewKeyRefused, message.clone()),
            Problem::NotRecorded(message) => Health::Unknown(Reason::CallNotRecorded, message.clone()),
        }
    }
}

/// What a fault means for a resource.
pub fn of_fault(fault: &Fault) -> Health {
    let message = sentence(&fault.to_string());
    match fault {
        Fault::Unauthorized { .. } | Fault::KeyInDoubt { .. } => Health::Unknown(Reason::Unauthorized, message),
        Fault::Forbidden { .. } => Health::Stalled(Reason::Forbidden, message),
        Fault::NotFound { .. }
        | Fault::Unsupported { .. }
        | Fault::Conflict { .. }
        | Fault::Rejected { .. }
        | Fault::OtherKey { .. } => Health::Stalled(Reason::Refused, message),
        Fault::TooLarge { .. } => Health::Stalled(Reason::AnswerTooLarge, message),
        Fault::Busy { .. } | Fault::Throttled { .. } => Health::Progressing(Reason::PlatformBusy, message),
        Fault::Gateway { .. }
        | Fault::Server { .. }
        | Fault::Transport { .. }
        | Fault::Unknown { .. }
        | Fault::Undecodable { .. } => Health::Unknown(Reason::PlatformUnreachable, message),
    }
}

#[cfg(test)]
mod tests;
