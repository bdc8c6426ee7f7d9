//! What one process remembers of a resource between two decisions. Losing it costs one more try, never correctness.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Health, Reason, later};
use crate::api::LastOperation;
use crate::platform::{ComputeChange, Fault};

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Create,
    Change,
    Restart,
    Delete,
    Mint,
    Revoke,
    ListKeys,
    WriteSecret,
}

/// Why it did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The platform's answer.
    Platform(Fault),
    /// The API server's answer to the write of a Secret.
    Secret(String),
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

/// The change of one field that was last asked for, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub change: ComputeChange,
    pub at: Timestamp,
    /// How often in a row it was sent.
    pub count: u32,
    /// When a reading last showed it in force.
    pub in_force: Option<Timestamp>,
}

/// What one process remembers of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    failures: BTreeMap<Action, Failure>,
    /// By the field's path in the spec: one that the platform ignores says nothing of the others.
    sent: BTreeMap<String, Sent>,
    /// A change or restart of ours was accepted, and no reading has shown the compute settled since.
    pub changing: bool,
    /// The compute that a create brought forth, until the resource is bound to it.
    pub created: Option<String>,
    /// Since when readings lack the compute that the resource is bound to.
    pub missing_since: Option<Timestamp>,
    /// The call whose outcome is being found out, by when it was recorded, and since when this process knows of it.
    met: Option<(Timestamp, Timestamp)>,
    /// The operation that our last change started.
    pub last_operation: Option<LastOperation>,
    /// When the platform last confirmed the delete.
    pub deleted: Option<Timestamp>,
}

/// Not now: why, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub health: Health,
    pub until: Timestamp,
}

const REFUSED_FIRST: Duration = Duration::from_secs(30);
const REFUSED_MOST: Duration = Duration::from_secs(3600);
const FAILED_FIRST: Duration = Duration::from_secs(1);
const FAILED_MOST: Duration = Duration::from_secs(60);
/// A change that was in force for this long and is gone again is a new difference, not a persistent one.
const SETTLED: Duration = Duration::from_secs(600);
const UNAPPLIED_FIRST: Duration = Duration::from_secs(300);
/// No object has this generation.
const ANOTHER: i64 = -1;
/// How often a difference that comes back is corrected at once.
const AT_ONCE: u32 = 3;

impl Memory {
    /// Remembers a failure.
    pub fn failed(&mut self, action: Action, problem: Problem, generation: i64, now: Timestamp) {
        let count = match self.failures.get(&action) {
            Some(before) if before.generation == generation => before.count.saturating_add(1),
            _ => 1,
        };
        self.failures.insert(action, Failure { problem, at: now, count, generation });
    }

    /// Forgets failures of an action that has succeeded.
    pub fn succeeded(&mut self, action: Action) {
        self.failures.remove(&action);
    }

    /// What was refused to other credentials is tried with the new ones at once, and what those did not see proves nothing.
    pub fn other_credentials(&mut self) {
        self.missing_since = None;
        for failure in self.failures.values_mut() {
            failure.generation = ANOTHER;
        }
    }

    /// Whether the try of an action that was begun at that time failed in a way that shows that it was not done.
    pub fn not_done(&self, action: Action, begun: Timestamp) -> bool {
        self.failures.get(&action).filter(|failure| failure.at >= begun).is_some_and(|failure| match &failure.problem {
            Problem::Platform(fault) => !fault.may_have_happened(),
            Problem::Secret(_) => true,
        })
    }

    /// What the platform said to the last try of an action, when it failed.
    pub fn fault(&self, action: Action) -> Option<&Fault> {
        match &self.failures.get(&action)?.problem {
            Problem::Platform(fault) => Some(fault),
            Problem::Secret(_) => None,
        }
    }

    /// Whether an action has to wait after a failure. A refusal is tried again slowly, or when the spec has changed.
    pub fn hold(&self, action: Action, generation: i64, now: Timestamp) -> Option<Hold> {
        let failure = self.failures.get(&action)?;
        if failure.generation != generation {
            return None;
        }
        let until = later(failure.at, failure.pause());
        (now < until).then(|| Hold { health: failure.health(), until })
    }

    /// Remembers since when this process knows of a call that was recorded at `recorded` and whose outcome was not.
    pub fn met(&mut self, recorded: Option<Timestamp>, now: Timestamp) {
        self.met = recorded.map(|at| self.met.filter(|(known, _)| *known == at).unwrap_or((at, now)));
    }

    /// From when on a reading without what a call was to bring forth proves that it did not happen. Counted by this
    /// process's clock alone: whoever recorded the call may have had another one.
    pub fn settled(&self, recorded: Timestamp, settle: Duration) -> Timestamp {
        let met = self.met.filter(|(known, _)| *known == recorded);
        later(met.map_or(recorded, |(_, since)| since), settle)
    }

    /// Remembers that a change was sent, by the fields that it mends.
    pub fn sent(&mut self, parts: &BTreeMap<String, ComputeChange>, now: Timestamp) {
        for (field, change) in parts {
            let count = match self.sent.get(field) {
                Some(before) if before.change == *change && !before.stood() => before.count.saturating_add(1),
                _ => 1,
            };
            self.sent.insert(field.clone(), Sent { change: change.clone(), at: now, count, in_force: None });
        }
    }

    /// Remembers that a reading shows these fields, and no others, differ from what is declared.
    pub fn differing(&mut self, fields: &[&str], now: Timestamp) {
        for (_, sent) in self.sent.iter_mut().filter(|(field, _)| !fields.contains(&field.as_str())) {
            sent.in_force = Some(now);
        }
    }

    /// Whether a change of a field that was sent before has to wait before it is sent again, and what to call that.
    pub fn repeated(&self, field: &str, change: &ComputeChange, now: Timestamp) -> Option<(Reason, Timestamp)> {
        let sent = self.sent.get(field).filter(|sent| &sent.change == change && !sent.stood())?;
        let (reason, pauses) = match sent.in_force {
            Some(_) => (Reason::DriftPersists, sent.count.checked_sub(AT_ONCE)?),
            None => (Reason::SettingNotApplied, sent.count.saturating_sub(1)),
        };
        let until = later(sent.at, doubled(UNAPPLIED_FIRST, pauses, REFUSED_MOST));
        (now < until).then_some((reason, until))
    }
}

impl Sent {
    /// Whether it was in force for long enough that what differs now is something new.
    fn stood(&self) -> bool {
        self.in_force.is_some_and(|in_force| in_force >= later(self.at, SETTLED))
    }
}

impl Failure {
    fn pause(&self) -> Duration {
        let tries = self.count.saturating_sub(1);
        match &self.problem {
            Problem::Platform(fault) if fault.is_refusal() => doubled(REFUSED_FIRST, tries, REFUSED_MOST),
            Problem::Platform(fault) => {
                doubled(FAILED_FIRST, tries, FAILED_MOST).max(fault.retry_after().unwrap_or_default())
            }
            Problem::Secret(_) => doubled(FAILED_FIRST, tries, FAILED_MOST),
        }
    }

    fn health(&self) -> Health {
        match &self.problem {
            Problem::Platform(fault) => of_fault(fault),
            Problem::Secret(message) => Health::Stalled(Reason::SecretNotWritten, message.clone()),
        }
    }
}

/// What a fault means for a resource.
pub fn of_fault(fault: &Fault) -> Health {
    let message = sentence(&fault.to_string());
    match fault {
        Fault::Unauthorized { .. } => Health::Unknown(Reason::Unauthorized, message),
        Fault::Forbidden { .. } => Health::Stalled(Reason::Forbidden, message),
        Fault::NotFound { .. } | Fault::Unsupported { .. } | Fault::Conflict { .. } | Fault::Rejected { .. } => {
            Health::Stalled(Reason::Refused, message)
        }
        Fault::Busy { .. } | Fault::Throttled { .. } => Health::Progressing(Reason::PlatformBusy, message),
        Fault::Server { .. } | Fault::Transport { .. } | Fault::Unknown { .. } | Fault::Undecodable { .. } => {
            Health::Unknown(Reason::PlatformUnreachable, message)
        }
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn rejected() -> Problem {
        Problem::Platform(Fault::Rejected { status: 422, message: "limit reached".into() })
    }

    #[test]
    fn a_refusal_waits_longer_each_time_and_not_for_a_new_spec() {
        let mut memory = Memory::default();
        memory.failed(Action::Create, rejected(), 1, at(0));
        let hold = memory.hold(Action::Create, 1, at(29)).unwrap();
        assert_eq!(hold.until, at(30));
        assert_eq!(hold.health, Health::Stalled(Reason::Refused, "The platform refuses (422): limit reached".into()));
        assert_eq!(memory.hold(Action::Create, 1, at(30)), None);
        assert_eq!(memory.hold(Action::Create, 2, at(1)), None);
        memory.failed(Action::Create, rejected(), 1, at(30));
        assert_eq!(memory.hold(Action::Create, 1, at(31)).unwrap().until, at(90));
    }

    #[test]
    fn the_clock_of_whoever_recorded_a_call_does_not_count() {
        let settle = Duration::from_secs(60);
        let mut memory = Memory::default();
        for (recorded, now, settled) in [(100, 5000, 5060), (100, 5030, 5060), (90_000, 5040, 5100), (100, 5050, 5110)]
        {
            memory.met(Some(at(recorded)), at(now));
            assert_eq!(memory.settled(at(recorded), settle), at(settled));
        }
        memory.met(None, at(5055));
        memory.met(Some(at(100)), at(5060));
        assert_eq!(memory.settled(at(100), settle), at(5120));
    }

    #[test]
    fn retry_after_is_obeyed() {
        let mut memory = Memory::default();
        let fault = Fault::Throttled { status: 429, retry_after: Some(Duration::from_secs(17)) };
        memory.failed(Action::Change, Problem::Platform(fault), 1, at(0));
        assert_eq!(memory.hold(Action::Change, 1, at(1)).unwrap().until, at(17));
    }

    fn parts(fields: &[&str]) -> BTreeMap<String, ComputeChange> {
        fields.iter().map(|field| ((*field).to_owned(), ComputeChange::default())).collect()
    }

    fn repeated(memory: &Memory, field: &str, now: Timestamp) -> Option<(Reason, Timestamp)> {
        memory.repeated(field, &ComputeChange::default(), now)
    }

    #[test]
    fn a_setting_that_is_never_seen_in_force_is_not_sent_in_a_loop() {
        let mut memory = Memory::default();
        assert_eq!(repeated(&memory, "size", at(0)), None);
        memory.sent(&parts(&["size"]), at(0));
        memory.differing(&["size"], at(0));
        assert_eq!(repeated(&memory, "size", at(10)), Some((Reason::SettingNotApplied, at(300))));
        assert_eq!(repeated(&memory, "size", at(300)), None);
        memory.sent(&parts(&["size"]), at(300));
        assert_eq!(repeated(&memory, "size", at(301)), Some((Reason::SettingNotApplied, at(900))));
    }

    #[test]
    fn a_field_that_is_ignored_says_nothing_of_the_others() {
        let mut memory = Memory::default();
        memory.sent(&parts(&["scaleToZero", "size"]), at(0));
        memory.differing(&["scaleToZero"], at(0));
        assert_eq!(repeated(&memory, "scaleToZero", at(1)), Some((Reason::SettingNotApplied, at(300))));
        assert_eq!(repeated(&memory, "size", at(1)), None);
        assert_eq!(repeated(&memory, "disabled", at(1)), None);
    }

    #[test]
    fn another_value_of_a_field_does_not_wait() {
        let mut memory = Memory::default();
        memory.sent(&parts(&["branchId"]), at(0));
        let other = ComputeChange { branch_id: Some("br-2".into()), ..ComputeChange::default() };
        assert_eq!(memory.repeated("branchId", &other, at(1)), None);
    }

    #[test]
    fn a_difference_that_comes_back_is_corrected_thrice_and_then_with_pauses() {
        let mut memory = Memory::default();
        for second in 0..3 {
            assert_eq!(repeated(&memory, "size", at(second)), None);
            memory.sent(&parts(&["size"]), at(second));
            memory.differing(&[], at(second));
        }
        assert_eq!(repeated(&memory, "size", at(3)), Some((Reason::DriftPersists, at(302))));
        assert_eq!(repeated(&memory, "size", at(302)), None);
    }

    #[test]
    fn the_pauses_between_corrections_grow_up_to_an_hour() {
        let mut memory = Memory::default();
        let mut now = at(0);
        for pause in [0, 0, 300, 600, 1200, 2400, 3600, 3600] {
            memory.sent(&parts(&["size"]), now);
            memory.differing(&[], now);
            let until = later(now, Duration::from_secs(pause));
            let expected = (pause > 0).then_some((Reason::DriftPersists, until));
            assert_eq!(repeated(&memory, "size", now), expected);
            memory.differing(&["size"], until);
            assert_eq!(repeated(&memory, "size", until), None);
            now = until;
        }
        // What stood for a while was not changed back by whoever did that.
        memory.sent(&parts(&["size"]), now);
        memory.differing(&[], later(now, SETTLED));
        assert_eq!(repeated(&memory, "size", later(now, SETTLED)), None);
        memory.sent(&parts(&["size"]), later(now, SETTLED));
        assert_eq!(
            repeated(&memory, "size", later(now, SETTLED)).map(|(reason, _)| reason),
            Some(Reason::SettingNotApplied)
        );
    }

    #[test]
    fn only_what_was_certainly_not_done_counts_as_not_done() {
        let message = String::new;
        for (fault, not_done) in [
            (Fault::Rejected { status: 422, message: message() }, true),
            (Fault::Conflict { message: message() }, true),
            (Fault::Busy { message: message(), retry_after: None }, true),
            (Fault::Throttled { status: 429, retry_after: None }, true),
            (Fault::Transport { message: message() }, true),
            (Fault::Unauthorized { message: message() }, true),
            (Fault::Server { status: 503, message: message() }, false),
            (Fault::Unknown { message: message() }, false),
            (Fault::Undecodable { path: message(), message: message() }, false),
        ] {
            let mut memory = Memory::default();
            memory.failed(Action::Create, Problem::Platform(fault.clone()), 1, at(0));
            assert_eq!(memory.not_done(Action::Create, at(0)), not_done, "{fault:?}");
            assert!(!memory.not_done(Action::Create, at(1)), "of an earlier try: {fault:?}");
            assert!(!memory.not_done(Action::Change, at(0)), "{fault:?}");
        }
    }

    #[test]
    fn other_credentials_are_tried_at_once_and_what_happened_stays_known() {
        let mut memory = Memory::default();
        memory.failed(Action::Create, rejected(), 1, at(0));
        memory.other_credentials();
        assert_eq!(memory.hold(Action::Create, 1, at(1)), None);
        assert!(memory.not_done(Action::Create, at(0)));
        memory.failed(Action::Create, rejected(), 1, at(1));
        assert_eq!(memory.hold(Action::Create, 1, at(2)).unwrap().until, at(31));
    }

    #[test]
    fn what_is_not_a_refusal_is_tried_again_within_a_minute() {
        let mut memory = Memory::default();
        let fault = || Problem::Platform(Fault::Server { status: 500, message: "broken".into() });
        let mut now = at(0);
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            memory.failed(Action::Delete, fault(), 1, now);
            let until = memory.hold(Action::Delete, 1, now).unwrap().until;
            assert_eq!(until, later(now, Duration::from_secs(pause)));
            now = until;
        }
        memory.succeeded(Action::Delete);
        assert_eq!(memory.hold(Action::Delete, 1, now), None);
    }
}
