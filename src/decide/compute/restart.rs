//! Restarts: once for each token.

use jiff::Timestamp;

use super::super::disruption::Permit;
use super::super::drift::{self, Difference};
use super::super::identity::{BeforeRestart, Maintained, RestartRecord};
use super::super::{Action, Decision, Health, Reason, Report};
use super::maintenance::{self, Turn};
use super::postponed::postponed;
use super::{Case, Choice, ComputeStep, Snapshot, is_settled};
use crate::domain::{Compute, ComputeState};

/// The requested restart, if there is one.
pub(super) fn restart(case: &Case, compute: &Compute, snapshot: &Snapshot, report: &Report) -> Option<Choice> {
    let note = |record| Some(Decision::act(ComputeStep::RecordRestart { record }, report.clone()));
    let Some(record) = case.identity.restart.as_ref() else {
        // A compute that was bound before restarts were recorded needs none.
        return note(case.restart_asked());
    };
    match due(case, record, compute) {
        Due::No => None,
        Due::Noted(maintained) => note(RestartRecord { maintained, ..record.clone() }),
        Due::Done => note(RestartRecord { calling: None, ..record.clone() }),
        Due::Unknown(until) if snapshot.at < until => {
            let report = Report::progressing(
                Reason::Restarting,
                "A restart was sent and not answered. dbplane checks whether it was carried out.",
            );
            Some(Decision::wait(report, until))
        }
        // Waking an idle compute would cost the user, and it starts afresh at the next connection anyway.
        Due::Yes if compute.current_state == ComputeState::Idle && compute.pending_state.is_none() => {
            note(asked(case, compute))
        }
        Due::Yes | Due::Unknown(_) if !is_settled(compute) || compute.current_state != ComputeState::Active => {
            Some(Decision::rest(report.clone()))
        }
        Due::Yes | Due::Unknown(_) if comes_with_change(case, compute) => Some(Decision::rest(report.clone())),
        Due::Yes | Due::Unknown(_) => Some(call(case, compute, report)),
    }
}

/// How a report names a restart that waits.
pub(super) fn named(case: &Case, asked: &RestartRecord) -> &'static str {
    let record = case.identity.restart.as_ref();
    let is_requested = record.is_none_or(|record| !has_tokens_of(record, asked));
    if is_requested { "the requested restart" } else { "the regular restart" }
}

fn has_tokens_of(record: &RestartRecord, other: &RestartRecord) -> bool {
    (&record.token, &record.annotation) == (&other.token, &other.annotation)
}

/// The record of the restart that is to be made, where one is and no call for it was begun.
pub(super) fn requested(case: &Case, compute: &Compute) -> Option<RestartRecord> {
    let record = case.identity.restart.as_ref()?;
    (record.calling.is_none() && matches!(due(case, record, compute), Due::Yes)).then(|| begun(case, compute))
}

/// Whether a change that restarts the compute anyway has failed and is tried again soon: the restart is made with it. One that the
/// platform refuses delays no restart.
fn comes_with_change(case: &Case, compute: &Compute) -> bool {
    let memory = &case.observed.memory;
    let waits = |difference: &Difference| memory.repeated(&difference.field, &difference.change, case.now).is_some();
    let mut differences = drift::differences(case.spec, compute).into_iter();
    let backoff = memory.backoff(Action::Change, case.generation(), case.now);
    backoff.is_some_and(|backoff| !matches!(backoff.health, Health::Stalled(..)))
        && differences.any(|difference| difference.disruptive && !waits(&difference))
}

fn begun(case: &Case, compute: &Compute) -> RestartRecord {
    let before = BeforeRestart { updated_at: compute.updated_at, started_at: compute.started_at };
    RestartRecord { calling: Some(before), ..asked(case, compute) }
}

/// The restart that is due, as if it were made now.
fn asked(case: &Case, compute: &Compute) -> RestartRecord {
    let asked = case.restart_asked();
    match maintenance::turn(case, compute) {
        Turn::Due(maintained) => RestartRecord { maintained: Some(maintained), ..asked },
        Turn::No | Turn::Missed(_) => asked,
    }
}

enum Due {
    No,
    Yes,
    /// A schedule of regular restarts is new.
    Noted(Option<Maintained>),
    /// It was requested and has been carried out.
    Done,
    /// It was requested; a snapshot from before that time that shows no sign of it proves nothing.
    Unknown(Timestamp),
}

fn due(case: &Case, record: &RestartRecord, compute: &Compute) -> Due {
    let asked = case.restart_asked();
    match &record.calling {
        Some(before) => unfinished(case, compute, before, record.at),
        None if !has_tokens_of(record, &asked) => Due::Yes,
        None if matches!(maintenance::turn(case, compute), Turn::Due(_)) => Due::Yes,
        None if asked.maintained != record.maintained => Due::Noted(asked.maintained),
        None => Due::No,
    }
}

/// The outcome of a restart whose answer was not recorded.
fn unfinished(case: &Case, compute: &Compute, before: &BeforeRestart, begun: Timestamp) -> Due {
    if case.observed.memory.not_done(Action::Restart, begun) {
        return Due::Yes;
    }
    if compute.current_state == ComputeState::Idle && compute.pending_state.is_none() {
        return Due::Done;
    }
    // The time of the last start shows it; where it is not reported, any change of the compute does.
    let seen = match (before.started_at, compute.started_at) {
        (Some(then), Some(now)) => then != now,
        _ => before.updated_at != compute.updated_at || !is_settled(compute),
    };
    if seen { Due::Done } else { Due::Unknown(case.observed.memory.settles_at(begun, case.observed.limits.settle)) }
}

fn call(case: &Case, compute: &Compute, report: &Report) -> Choice {
    match case.permit(compute) {
        Permit::Now => {
            let step = ComputeStep::Restart { id: compute.id.clone(), record: begun(case, compute) };
            let restarting = Report::progressing(Reason::Restarting, "The compute is being restarted.");
            case.act_beside(report, Action::Restart, step, restarting)
        }
        other => postponed(&other, named(case, &asked(case, compute)).to_owned(), report),
    }
}
