//! A bound Compute: keeps its compute as declared, and restarts it on request.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::conflict::{claimed, contradiction, wrong_role};
use super::connection::{connection, incomplete, meanwhile};
use super::create::adopt_or_create;
use super::sight::missing_since;
use super::snapshot::unclear;
use super::status::to_the_second;
use super::unfollowed::{reported, unfollowed};
use super::update::update;
use super::{
    ComputeCase, ComputeDecision, ComputeSnapshot, ComputeStep, is_settled, maintenance,
    operations, restart, twin,
};
use crate::api::{Management, OnMissing};
use crate::decide::drift::{self, Difference};
use crate::decide::identity::{Binding, Origin};
use crate::decide::memory::ExistenceAnswer;
use crate::decide::{Action, Decision, Health, Reason, Report, Sync, later};
use crate::domain::{Compute, ComputeState, Shown};

pub(super) fn decide(
    case: &ComputeCase,
    binding: &Binding,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    if let Some(claim) = case.observed.claims.bound.get(&binding.id)
        && claim.first
    {
        let what = format!("compute {}", binding.id);
        return Decision::rest(claimed(case, &what, &claim.by));
    }
    let contradiction = contradiction(case, binding);
    let compute = match (snapshot.find(&binding.id), &contradiction) {
        (Shown::Entry(compute), _) => compute,
        (_, Some(mistake)) => return Decision::rest(case.observed.meta.unlooked(mistake.clone())),
        (Shown::Unclear(entry), None) => {
            return meanwhile(
                case,
                unclear(case, entry, &format!("how compute {} is", binding.id)),
            );
        }
        (Shown::Absent, None) => return missing(case, binding, snapshot),
    };
    if compute.role != case.role() {
        return Decision::rest(wrong_role(case, compute));
    }
    if let Some(mistake) = contradiction {
        return Decision::rest(health(case, binding, compute).beside(mistake));
    }
    twin::report_strays(
        case,
        compute,
        snapshot,
        keep_or_observe(case, binding, compute),
    )
}

fn keep_or_observe(case: &ComputeCase, binding: &Binding, compute: &Compute) -> ComputeDecision {
    // Bindings of earlier versions have no branch, and stay as they are.
    if binding
        .branch
        .as_ref()
        .is_some_and(|branch| *branch != compute.branch_id)
    {
        let moved = Binding {
            branch: Some(compute.branch_id.clone()),
            ..binding.clone()
        };
        return Decision::act(
            ComputeStep::RecordBinding { binding: moved },
            health(case, binding, compute),
        );
    }
    let choice = match case.spec.management {
        Management::Observe => observe(case, binding, compute),
        Management::Full => keep(case, binding, compute),
    };
    let unfollowed = case.agenda.map_or_else(
        || Cow::Owned(unfollowed(case.spec, "spec")),
        |agenda| agenda.unfollowed().into(),
    );
    let choice = Decision {
        report: choice.report.map(|report| reported(&unfollowed, report)),
        ..choice
    };
    operations::beside(case, binding, compute, choice)
}

/// A successful snapshot lacks the compute. After the settle time, the compute counts as deleted by
/// someone else.
pub(super) fn missing(
    case: &ComputeCase,
    binding: &Binding,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    let since = missing_since(case, binding);
    let gone = later(since, case.observed.limits.settle);
    if snapshot.at < gone {
        let report = Report::unknown(
            Reason::ComputeNotFound,
            format!(
                "Compute {} is not in the project's list. dbplane reads the list again.",
                binding.id
            ),
        );
        return Decision::wait(report, gone);
    }
    if case.spec.management == Management::Full
        && let Some(choice) = unproven(case, binding, since)
    {
        return choice;
    }
    let ours = matches!(binding.origin, Origin::Created | Origin::Adopted)
        && case.spec.compute_id.is_none();
    if ours && case.spec.management == Management::Full {
        return match case.spec.on_missing {
            // The branch may have another primary by now, which is handled as for a new resource.
            OnMissing::Recreate => adopt_or_create(case, snapshot),
            OnMissing::Report => Decision::rest(not_recreated(case, binding)),
        };
    }
    Decision::rest(Report::stalled(
        Reason::ComputeNotFound,
        format!(
            "Compute {} no longer exists on the platform, and dbplane did not create it. Delete this resource. For a \
             new compute, create another resource without spec.computeID.",
            binding.id
        ),
    ))
}

fn not_recreated(case: &ComputeCase, binding: &Binding) -> Report {
    let meta = &case.observed.meta;
    Report::stalled(
        Reason::ComputeNotFound,
        format!(
            "Compute {} no longer exists on the platform, and spec.onMissing is Report. To have another one created: {}.",
            binding.id,
            meta.correction("compute", &json!({"onMissing": "Recreate"}))
        ),
    )
}

/// A list without the compute proves nothing by itself, so the platform is asked for it. `None`
/// once it has answered that the compute does not exist.
pub(super) fn unproven(
    case: &ComputeCase,
    binding: &Binding,
    since: Timestamp,
) -> Option<ComputeDecision> {
    let unknown = |message| Report::unknown(Reason::ComputeNotFound, message);
    match case.observed.memory.asked.filter(|asked| asked.at >= since) {
        Some(ExistenceAnswer { exists: false, .. }) => None,
        Some(ExistenceAnswer { at, .. }) if case.now < later(at, ASK_AGAIN) => {
            let message = format!(
                "Compute {} exists, but is not in the project's list. dbplane waits for the list.",
                binding.id
            );
            Some(Decision::wait(unknown(message), later(at, ASK_AGAIN)))
        }
        _ => {
            let message = format!(
                "Compute {} is not in the project's list. dbplane asks for it.",
                binding.id
            );
            Some(case.act(
                Action::Ask,
                ComputeStep::Ask {
                    id: binding.id.clone(),
                },
                unknown(message),
            ))
        }
    }
}

/// The interval for asking again for a compute that exists but is not listed.
const ASK_AGAIN: Duration = Duration::from_secs(60);

fn observe(case: &ComputeCase, binding: &Binding, compute: &Compute) -> ComputeDecision {
    let differences = drift::differences(case.spec, compute);
    let report = health(case, binding, compute);
    if differences.is_empty() {
        return Decision::rest(report);
    }
    let text = drift::text(&differences.iter().collect::<Vec<_>>());
    Decision::rest(report.with_sync(Sync::OutOfSync(
        Reason::Drifted,
        format!("Observed only: {text}."),
    )))
}

/// Chooses the first candidate with a step, or else the first candidate.
fn keep(case: &ComputeCase, binding: &Binding, compute: &Compute) -> ComputeDecision {
    let report = health(case, binding, compute);
    let connection = connection(case, compute, &report);
    let restart = restart::restart(case, compute, &report);
    let first = if restart::is_open(case, compute) {
        // The effect of another change would look like a trace of the restart.
        vec![restart, connection]
    } else {
        vec![connection, declared(case, compute, &report), restart]
    };
    let last = [
        incomplete(case, compute, &report),
        Some(starting(case, binding, compute, report)),
    ];
    Decision::first_step(first.into_iter().chain(last).flatten())
        .no_later(maintenance::wake(case, compute))
}

/// Corrects the declared fields that differ.
fn declared(case: &ComputeCase, compute: &Compute, report: &Report) -> Option<ComputeDecision> {
    let differences = drift::differences(case.spec, compute);
    if differences.is_empty() {
        return None;
    }
    if is_settled(compute) {
        return Some(update(case, compute, &differences, report));
    }
    let text = drift::text(&differences.iter().collect::<Vec<&Difference>>());
    let waiting = Sync::OutOfSync(
        Reason::Updating,
        format!("Waiting for the compute to settle: {text}."),
    );
    Some(Decision::rest(report.clone().with_sync(waiting)))
}

/// Nothing to do. While the compute starts, decides again at the start deadline.
fn starting(
    case: &ComputeCase,
    binding: &Binding,
    compute: &Compute,
    report: Report,
) -> ComputeDecision {
    let deadline = later(binding.at, case.observed.limits.start);
    match compute.current_state {
        ComputeState::Init if case.now < deadline => Decision::wait(report, deadline),
        _ => Decision::rest(report),
    }
}

/// Reports whether the compute can be used, whatever the spec declares.
fn health(case: &ComputeCase, binding: &Binding, compute: &Compute) -> Report {
    let health = match (&compute.current_state, &compute.pending_state) {
        (ComputeState::Init, _) if operations::is_late(case, binding, compute) => {
            Health::Stalled(Reason::StartTimeout, not_started(case, binding, compute))
        }
        (ComputeState::Init, _) => Health::Progressing(
            Reason::Starting,
            format!("Compute {} is starting.", compute.id),
        ),
        _ if compute.unknown_state().is_some() => {
            Health::Unknown(Reason::StateUnknown, unknown_state(compute))
        }
        (_, Some(_)) if case.observed.memory.changing => Health::Progressing(
            Reason::Updating,
            format!("Compute {} is being changed.", compute.id),
        ),
        _ if compute.settings.disabled == Some(true) => Health::Ready(
            Reason::Available,
            "Disabled: the compute refuses connections.".into(),
        ),
        (ComputeState::Idle, _) => Health::Ready(
            Reason::Available,
            "Idle: the compute starts when a client connects.".into(),
        ),
        _ => Health::Ready(Reason::Available, "The compute can be used.".into()),
    };
    Report::of(health).with_sync(Sync::InSync)
}

fn unknown_state(compute: &Compute) -> String {
    let Compute {
        id,
        current_state,
        pending_state,
        ..
    } = compute;
    let pending = pending_state
        .as_ref()
        .map(|state| format!(", and to be changing to \"{state}\""))
        .unwrap_or_default();
    format!(
        "The platform shows compute {id} to be \"{current_state}\"{pending}. dbplane does not know that state, so it does not know whether the compute \
         can be used. See the platform's console, or ask the platform what the state means."
    )
}

fn not_started(case: &ComputeCase, binding: &Binding, compute: &Compute) -> String {
    let since = compute.created_at.unwrap_or(binding.at);
    let since = to_the_second(since).unwrap_or(since);
    let operations = operations::so_far(case);
    format!(
        "Compute {} has not started since {since}. {operations} Ask the platform, or see its console.",
        compute.id
    )
}
