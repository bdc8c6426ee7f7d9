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

/// The outcome of the call.
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
    let own = case
        .observed
        .memory
        .restart_answered
        .filter(|(at, _)| *at == record.at);
    before.answered.or(own.map(|(_, answered)| answered))
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
    let is_known = compute.unknown_state().is_none();
    match (trace(before, compute), answered(case, record, before)) {
        (Trace::Restart, _) => RestartOutcome::Made,
        // The platform has accepted the call, and the compute has changed since.
        (Trace::Change, Some(_))
            if is_settled(compute) && is_known && before.started_at.is_none() =>
        {
            RestartOutcome::Made
        }
        _ if before.unclear => RestartOutcome::Unclear,
        _ if !is_over => RestartOutcome::Open(until),
        (Trace::Nothing, None | Some(RestartAnswer::Plainly)) => RestartOutcome::InVain,
        (Trace::Change | Trace::Unreadable, _)
        | (Trace::Nothing, Some(RestartAnswer::ForCompute)) => RestartOutcome::Unclear,
    }
}

/// Compares the compute with its state before the call, when it was settled and active.
fn trace(before: &BeforeRestart, compute: &Compute) -> Trace {
    let states = [Some(&compute.current_state), compute.pending_state.as_ref()];
    let stops = states
        .into_iter()
        .flatten()
        .any(|state| matches!(state, ComputeState::Idle | ComputeState::Init));
    match (before.started_at, compute.started_at) {
        _ if stops => return Trace::Restart,
        (Some(then), Some(now)) if then == now => return Trace::Nothing,
        (Some(_), Some(_)) => return Trace::Restart,
        _ => {}
    }
    if before.was_changed(compute) {
        return Trace::Restart;
    }
    match before.updated_at.zip(compute.updated_at) {
        Some((then, now)) if then == now => Trace::Nothing,
        Some(_) => Trace::Change,
        None => Trace::Unreadable,
    }
}

/// The record from before the call, which is in force again. Earlier versions did not keep it.
pub(super) fn applying_again(before: &BeforeRestart) -> Option<RestartRecord> {
    before.record.as_deref().cloned()
}

/// The record from before the call, with this call counted as one in vain.
pub(super) fn after_in_vain(record: &RestartRecord, before: RestartRecord) -> RestartRecord {
    let calls = before
        .in_vain
        .map_or(0, |known| known.calls)
        .saturating_add(1);
    RestartRecord {
        in_vain: Some(InVain {
            calls,
            at: record.at,
        }),
        ..before
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
