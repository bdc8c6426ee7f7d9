//! The outcome of a restart call, from the state of the compute afterwards. An answer of 200 proves
//! nothing: a proxy in front of the platform may have sent it.

use std::time::Duration;

use jiff::Timestamp;

use super::{ComputeCase, SnapshotState, is_settled};
use crate::decide::identity::{BeforeRestart, InVain, RestartAnswer, RestartRecord};
use crate::decide::{Action, doubled, later};
use crate::domain::{Compute, ComputeState};

/// The longest pause between two calls without any trace on the compute.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

pub(super) enum RestartOutcome {
    /// The compute has stopped or started since the call.
    Made,
    /// It was certainly not carried out: it was refused, or never sent.
    NotMade,
    /// The settle time is over, and the compute shows no trace of the call.
    InVain,
    /// It may still be carried out until this time.
    Open(Timestamp),
    /// The settle time is over, and the trace on the compute may have another cause.
    Unclear,
}

/// The trace on the compute since a call.
#[derive(PartialEq, Eq)]
enum Trace {
    /// It has stopped, is stopping, or was started.
    Restart,
    /// It has changed, which can have many causes.
    Change,
    Nothing,
    /// It shows no time that is evidence, or one that cannot be read.
    Unreadable,
}

/// The answer to the call, from the record or from the memory of this process.
pub(super) fn answered(
    case: &ComputeCase,
    record: &RestartRecord,
    before: &BeforeRestart,
) -> Option<RestartAnswer> {
    if before.answered.is_some() {
        return before.answered;
    }
    let (at, answered) = case.observed.memory.restart_answered?;
    (at == record.at).then_some(answered)
}

pub(super) fn outcome(
    case: &ComputeCase,
    record: &RestartRecord,
    before: &BeforeRestart,
    compute: &Compute,
) -> RestartOutcome {
    let memory = &case.observed.memory;
    if [Action::Restart, Action::Change]
        .iter()
        .any(|action| memory.not_done(*action, record.at))
    {
        return RestartOutcome::NotMade;
    }
    let until = memory.settles_at(record.at, case.observed.limits.settle);
    let is_over = matches!(case.observed.snapshot, SnapshotState::Taken { at, .. } if at >= until)
        && is_settled(compute);
    let trace = trace(before, compute);
    let answered = answered(case, record, before);
    // The platform has accepted the call, and the compute has changed since.
    let is_accepted_change = trace == Trace::Change
        && answered.is_some()
        && is_settled(compute)
        && compute.unknown_state().is_none()
        && before.started_at.is_none();
    if trace == Trace::Restart || is_accepted_change {
        RestartOutcome::Made
    } else if before.unclear {
        RestartOutcome::Unclear
    } else if !is_over {
        RestartOutcome::Open(until)
    } else if trace == Trace::Nothing && answered != Some(RestartAnswer::ForCompute) {
        RestartOutcome::InVain
    } else {
        RestartOutcome::Unclear
    }
}

/// Compares the compute with its state before the call, when it was settled and active.
fn trace(before: &BeforeRestart, compute: &Compute) -> Trace {
    let states = [Some(&compute.current_state), compute.pending_state.as_ref()];
    let stops = states
        .into_iter()
        .flatten()
        .any(|state| matches!(state, ComputeState::Idle | ComputeState::Init));
    if stops {
        return Trace::Restart;
    }
    if let (Some(then), Some(now)) = (before.started_at, compute.started_at) {
        return if then == now {
            Trace::Nothing
        } else {
            Trace::Restart
        };
    }
    if before.was_changed(compute) {
        return Trace::Restart;
    }
    match (before.updated_at, compute.updated_at) {
        (Some(then), Some(now)) if then == now => Trace::Nothing,
        (Some(_), Some(_)) => Trace::Change,
        _ => Trace::Unreadable,
    }
}

/// The record from before the call, which is in force again. The call counts as one in vain.
pub(super) fn after_in_vain(record: &RestartRecord, before: &RestartRecord) -> RestartRecord {
    let known = before.in_vain.as_ref().map_or(0, |known| known.calls);
    RestartRecord {
        in_vain: Some(InVain {
            calls: known.saturating_add(1),
            at: record.at,
        }),
        ..before.clone()
    }
}

/// The time of the next call after calls in vain. After the first it is at once, because the settle
/// time is over by then.
pub(super) fn call_again_at(in_vain: &InVain, settle: Duration) -> Timestamp {
    later(
        in_vain.at,
        doubled(
            settle,
            in_vain.calls.saturating_sub(1),
            LONGEST_PAUSE.max(settle),
        ),
    )
}
