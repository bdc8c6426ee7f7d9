//! The platform's operations on a compute: reads and reports them if the compute takes long or an
//! operation has failed.

use super::{ComputeCase, ComputeDecision, ComputeStep, SnapshotState};
use crate::api::LastOperation;
use crate::decide::identity::Binding;
use crate::decide::operations::{is_given_up, text};
use crate::decide::{Action, Decision, Reason, Report, Sync, Wake, later};
use crate::domain::{Compute, ComputeState};

/// Adds the operations to a choice: reports a failed one, and reads them when due. Any other step
/// comes first, because nothing depends on operations.
pub(super) fn beside(
    case: &ComputeCase,
    binding: &Binding,
    compute: &Compute,
    choice: ComputeDecision,
) -> ComputeDecision {
    let known = &case.observed.memory.operations;
    let choice = Decision {
        report: choice.report.map(|report| reported(case, compute, report)),
        ..choice
    };
    let SnapshotState::Taken { at: seen, .. } = case.observed.snapshot else {
        return choice;
    };
    let due = known.ask_at(is_late(case, binding, compute), seen, case.now);
    let (None, Some(due), Some(report)) = (&choice.step, due, &choice.report) else {
        return choice;
    };
    // A failed read of operations says nothing about the compute.
    let backoff = case
        .observed
        .memory
        .backoff(Action::AskOperations, case.generation(), case.now);
    match backoff.map_or(due, |backoff| due.max(backoff.until)) {
        due if case.now < due => choice.no_later(Wake::At(due)),
        _ => Decision::act(
            ComputeStep::AskOperations {
                id: compute.id.clone(),
            },
            report.clone(),
        ),
    }
}

/// True if the start deadline has passed.
pub(super) fn is_late(case: &ComputeCase, binding: &Binding, compute: &Compute) -> bool {
    compute.current_state == ComputeState::Init
        && case.now >= later(binding.at, case.observed.limits.start)
}

/// Adds the failed operation to the report. A difference from the spec that it causes keeps its
/// reason.
fn reported(case: &ComputeCase, compute: &Compute, report: Report) -> Report {
    let Some(failed) = case.observed.memory.operations.failed() else {
        return report;
    };
    let operation = explained(case, compute, failed);
    let sync = match &report.sync {
        Sync::InSync => Sync::OutOfSync(Reason::OperationFailed, operation),
        Sync::OutOfSync(Reason::Updating, text) => {
            Sync::OutOfSync(Reason::OperationFailed, format!("{operation} {text}"))
        }
        Sync::OutOfSync(reason, text) => Sync::OutOfSync(*reason, format!("{text} {operation}")),
        other => other.clone(),
    };
    report.with_sync(sync)
}

fn explained(case: &ComputeCase, compute: &Compute, failed: &LastOperation) -> String {
    let meta = &case.observed.meta;
    let remedy = match (is_given_up(failed), case.observed.memory.operations.are_listed()) {
        // A compute that never ran cannot be restarted.
        (true, _) if compute.current_state == ComputeState::Init => {
            "The platform does not try it again. Start the compute in its console, or ask it about this operation."
                .to_owned()
        }
        (true, _) => format!(
            "The platform does not try it again. Request a restart (kubectl -n {} annotate --overwrite compute {} \
             dbplane.dev/restart=<any new value>), or ask the platform about this operation.",
            meta.namespace, meta.name
        ),
        (false, true) => {
            "The platform may try it again. If it does not succeed, ask the platform about this operation.".to_owned()
        }
        (false, false) => "The platform shows operations only in its answers to changes, so this is what the last one \
             said. If the compute does not settle, ask the platform about this operation."
            .to_owned(),
    };
    format!(
        "An operation of compute {} failed: {}. {remedy}",
        compute.id,
        text(failed)
    )
}

/// The known operations of a compute that does not start.
pub(super) fn so_far(case: &ComputeCase) -> String {
    let known = &case.observed.memory.operations;
    let texts = known
        .newest()
        .iter()
        .map(text)
        .collect::<Vec<_>>()
        .join("; ");
    match (texts.as_str(), known.are_listed()) {
        ("", true) => "No operation of it is known.".to_owned(),
        ("", false) => "This platform shows operations only in its answers to changes.".to_owned(),
        (_, true) => format!("Its operations, newest first: {texts}."),
        (_, false) => {
            format!("The answer to the last change showed the operations, newest first: {texts}.")
        }
    }
}
