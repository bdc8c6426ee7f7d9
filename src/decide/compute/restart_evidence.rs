//! What became of a restart that was called, as the compute shows it afterwards. A status of 200 proves nothing: whatever is in front
//! of the platform may have given it.

use std::time::Duration;

use jiff::Timestamp;

use super::super::identity::{Answered, BeforeRestart, InVain, RestartRecord};
use super::super::{Action, doubled, later};
use super::{Case, SnapshotState, is_settled};
use crate::domain::{Compute, ComputeState};

/// The longest pause between two calls that the compute shows nothing of.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// What became of the call.
pub(super) enum Outcome {
    /// The compute has stopped or started since.
    Made,
    /// It was certainly not carried out: it was refused, or never sent.
    NotMade,
    /// The compute shows nothing of it, although the settle time is over.
    InVain,
    /// It may still be carried out until then.
    Open(Timestamp),
    /// The settle time is over, and what the compute shows may have another cause.
    Unclear,
}

/// What a compute shows since a call.
enum Trace {
    /// It has stopped, is stopping, or was started.
    Restart,
    /// It has changed, which has many causes.
    Change,
    Nothing,
    /// It shows no time that tells, or one that cannot be read.
    Unreadable,
}

pub(super) fn outcome(case: &Case, record: &RestartRecord, before: &BeforeRestart, compute: &Compute) -> Outcome {
    let memory = &case.observed.memory;
    if [Action::Restart, Action::Change].iter().any(|action| memory.not_done(*action, record.at)) {
        return Outcome::NotMade;
    }
    let until = memory.settles_at(record.at, case.observed.limits.settle);
    let is_over =
        matches!(case.observed.snapshot, SnapshotState::Taken { at, .. } if at >= until) && is_settled(compute);
    let is_known = compute.unknown_state().is_none();
    match (trace(before, compute), before.answered) {
        (Trace::Restart, _) => Outcome::Made,
        // The platform says that it carries the call out, and then the compute changes.
        (Trace::Change, Some(_)) if is_settled(compute) && is_known && before.started_at.is_none() => Outcome::Made,
        _ if before.unclear => Outcome::Unclear,
        _ if !is_over => Outcome::Open(until),
        (Trace::Nothing, None | Some(Answered::Plainly)) => Outcome::InVain,
        (Trace::Change | Trace::Unreadable, _) | (Trace::Nothing, Some(Answered::ForCompute)) => Outcome::Unclear,
    }
}

/// The compute was settled and active before the call.
fn trace(before: &BeforeRestart, compute: &Compute) -> Trace {
    let states = [Some(&compute.current_state), compute.pending_state.as_ref()];
    let stops = states.into_iter().flatten().any(|state| matches!(state, ComputeState::Idle | ComputeState::Init));
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

/// The record before the call, which applies again. Earlier versions did not keep it.
pub(super) fn applying_again(before: &BeforeRestart) -> Option<RestartRecord> {
    before.record.as_deref().cloned()
}

/// The same after a call that the compute shows nothing of.
pub(super) fn after_in_vain(record: &RestartRecord, before: RestartRecord) -> RestartRecord {
    let calls = before.in_vain.map_or(0, |known| known.calls).saturating_add(1);
    RestartRecord { in_vain: Some(InVain { calls, at: record.at }), ..before }
}

/// When it may be called again after calls in vain: at once after the first, since its settle time is over by then.
pub(super) fn call_again_at(in_vain: &InVain, settle: Duration) -> Timestamp {
    later(in_vain.at, doubled(settle, in_vain.calls.saturating_sub(1), LONGEST_PAUSE.max(settle)))
}
