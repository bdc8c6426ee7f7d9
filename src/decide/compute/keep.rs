//! A Compute that has its compute: keep it as declared, restart it when asked.

use super::super::drift::{self, Difference};
use super::super::identity::{Binding, Origin};
use super::super::{Decision, Health, Reason, Report, Sync, later};
use super::connection::connection;
use super::create::{claimed, first_contact, wrong_role};
use super::restart::restart;
use super::update::update;
use super::{Case, Choice, ComputeStep, Snapshot, is_settled, stray};
use crate::api::Management;
use crate::domain::{Compute, ComputeState};

pub(super) fn decide(case: &Case, binding: &Binding, snapshot: &Snapshot) -> Choice {
    if let Some(conflict) = conflict(case, binding) {
        return Decision::rest(conflict);
    }
    let Some(compute) = snapshot.find(&binding.id) else {
        return missing(case, binding, snapshot);
    };
    if compute.role != case.role() {
        return Decision::rest(wrong_role(case, compute));
    }
    stray::told(case, snapshot, stand(case, binding, compute, snapshot))
}

fn stand(case: &Case, binding: &Binding, compute: &Compute, snapshot: &Snapshot) -> Choice {
    if case.spec.management == Management::Observe {
        return observe(case, binding, compute);
    }
    if !case.observed.meta.has_finalizer {
        return Decision::act(ComputeStep::AddFinalizer, standing(case, binding, compute));
    }
    keep(case, binding, compute, snapshot)
}

/// A link that does not fit the resource is never acted on.
fn conflict(case: &Case, binding: &Binding) -> Option<Report> {
    if binding.project != case.spec.project_id {
        return Some(Report::stalled(
            Reason::BindingConflict,
            format!(
                "The resource is linked to compute {} of project {}, not of spec.projectID.",
                binding.id, binding.project
            ),
        ));
    }
    if let Some(id) = case.spec.compute_id.as_ref().filter(|id| **id != binding.id) {
        return Some(Report::stalled(
            Reason::BindingConflict,
            format!(
                "The resource is linked to compute {}, and spec.computeID is {id}. Create another resource for that one.",
                binding.id
            ),
        ));
    }
    let claim = case.observed.claims.bound.get(&binding.id).filter(|claim| claim.older)?;
    Some(claimed(&format!("compute {}", binding.id), &claim.by))
}

/// A successful snapshot lacks the compute: it was deleted elsewhere, once enough readings agree.
fn missing(case: &Case, binding: &Binding, snapshot: &Snapshot) -> Choice {
    // What was missing before this one was bound was another.
    let since = case.observed.memory.missing_since.unwrap_or(case.now).max(binding.at);
    let gone = later(since, case.observed.limits.settle);
    if snapshot.at < gone {
        let report = Report::unknown(
            Reason::ComputeNotFound,
            format!("Compute {} is not in the project's list; looking again.", binding.id),
        );
        return Decision::wait(report, gone);
    }
    let ours = matches!(binding.origin, Origin::Created | Origin::Adopted) && case.spec.compute_id.is_none();
    if ours && case.spec.management == Management::Full {
        // The branch may have another primary by now, which is looked at as if for the first time.
        return first_contact(case, snapshot);
    }
    Decision::rest(Report::stalled(
        Reason::ComputeNotFound,
        format!(
            "Compute {} no longer exists on the platform, and dbplane did not create it. Delete this resource; to have a \
             new compute, create another resource without spec.computeID.",
            binding.id
        ),
    ))
}

fn observe(case: &Case, binding: &Binding, compute: &Compute) -> Choice {
    let differences = drift::differences(case.spec, compute);
    let report = standing(case, binding, compute);
    if differences.is_empty() {
        return Decision::rest(report);
    }
    let text = drift::text(&differences.iter().collect::<Vec<_>>());
    Decision::rest(report.with_sync(Sync::OutOfSync(Reason::Drifted, format!("Observed only: {text}."))))
}

/// The first of these that asks for a step; when none does, the first has the word.
fn keep(case: &Case, binding: &Binding, compute: &Compute, snapshot: &Snapshot) -> Choice {
    let report = standing(case, binding, compute);
    let choices = [
        connection(case, compute, &report),
        declared(case, compute, &report),
        restart(case, compute, snapshot, &report),
        Some(starting(case, binding, compute, report)),
    ];
    Decision::foremost(choices.into_iter().flatten())
}

/// The declared fields, where they differ.
fn declared(case: &Case, compute: &Compute, report: &Report) -> Option<Choice> {
    let differences = drift::differences(case.spec, compute);
    if differences.is_empty() {
        return None;
    }
    if is_settled(compute) {
        return Some(update(case, compute, &differences, report));
    }
    let text = drift::text(&differences.iter().collect::<Vec<&Difference>>());
    let waiting = Sync::OutOfSync(Reason::Updating, format!("Waiting for the compute to settle: {text}."));
    Some(Decision::rest(report.clone().with_sync(waiting)))
}

/// Waits; while the compute starts, not longer than a start may take.
fn starting(case: &Case, binding: &Binding, compute: &Compute, report: Report) -> Choice {
    let deadline = later(binding.at, case.observed.limits.start);
    match compute.current_state {
        ComputeState::Init if case.now < deadline => Decision::wait(report, deadline),
        _ => Decision::rest(report),
    }
}

/// How the compute stands, whatever is declared.
fn standing(case: &Case, binding: &Binding, compute: &Compute) -> Report {
    let health = match (&compute.current_state, &compute.pending_state) {
        (ComputeState::Init, _) if case.now >= later(binding.at, case.observed.limits.start) => Health::Stalled(
            Reason::StartTimeout,
            format!("Compute {} has not started; see its operations in the platform's console.", compute.id),
        ),
        (ComputeState::Init, _) => {
            Health::Progressing(Reason::Starting, format!("Compute {} is starting.", compute.id))
        }
        (_, Some(_)) if case.observed.memory.changing => {
            Health::Progressing(Reason::Updating, format!("Compute {} is being changed.", compute.id))
        }
        _ if compute.settings.disabled == Some(true) => {
            Health::Ready(Reason::Available, "Disabled: the compute refuses connections.".into())
        }
        (ComputeState::Idle, _) => {
            Health::Ready(Reason::Available, "Idle: the compute starts when a client connects.".into())
        }
        _ => Health::Ready(Reason::Available, "The compute can be used.".into()),
    };
    Report::of(health).with_sync(Sync::InSync)
}
