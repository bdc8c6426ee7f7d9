//! A Compute that has its compute: keep it as declared, restart it when asked.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::disruption::{Permit, permit};
use super::super::drift::{self, Difference};
use super::super::identity::{BeforeRestart, Binding, Origin, RestartRecord};
use super::super::{Action, Decision, Health, Reason, Report, Sync, later};
use super::birth::{claimed, create, wrong_role};
use super::{Case, Choice, ComputeStep, Reading, SecretView};
use crate::api::Management;
use crate::platform::Compute;

/// The port that the platform's computes serve.
const POSTGRES_PORT: &str = "5432";

pub(super) fn decide(case: &Case, binding: &Binding, reading: &Reading) -> Choice {
    if let Some(conflict) = conflict(case, binding) {
        return Decision::rest(conflict);
    }
    let Some(compute) = reading.find(&binding.id) else {
        return missing(case, binding, reading);
    };
    if compute.role != case.role() {
        return Decision::rest(wrong_role(case, compute));
    }
    if case.spec.management == Management::Observe {
        return observe(case, binding, compute);
    }
    if !case.observed.meta.finalized {
        return Decision::act(ComputeStep::AddFinalizer, standing(case, binding, compute));
    }
    keep(case, binding, compute, reading)
}

/// A link that does not fit the resource is never acted on.
fn conflict(case: &Case, binding: &Binding) -> Option<Report> {
    if binding.project != case.spec.project_id {
        return Some(Report::stalled(
            Reason::BindingConflict,
            format!(
                "The resource is linked to compute {} of project {}, not of spec.projectId.",
                binding.id, binding.project
            ),
        ));
    }
    if let Some(id) = case.spec.compute_id.as_ref().filter(|id| **id != binding.id) {
        return Some(Report::stalled(
            Reason::BindingConflict,
            format!(
                "The resource is linked to compute {}, and spec.computeId is {id}. Create another resource for that one.",
                binding.id
            ),
        ));
    }
    let claim = case.observed.claims.bound.get(&binding.id).filter(|claim| claim.older)?;
    Some(claimed(&format!("compute {}", binding.id), &claim.by))
}

/// A successful reading lacks the compute: it was deleted elsewhere, once enough readings agree.
fn missing(case: &Case, binding: &Binding, reading: &Reading) -> Choice {
    let gone = match case.observed.memory.missing_since {
        Some(since) => later(since, case.observed.limits.settle),
        None => later(case.now, case.observed.limits.settle),
    };
    let recreate = matches!(binding.origin, Origin::Created | Origin::Adopted)
        && case.spec.management == Management::Full
        && case.spec.compute_id.is_none();
    if !recreate {
        return Decision::rest(Report::stalled(
            Reason::ComputeNotFound,
            format!("Compute {} no longer exists on the platform.", binding.id),
        ));
    }
    if reading.at < gone {
        let report = Report::unknown(
            Reason::ComputeNotFound,
            format!("Compute {} is not in the project's list; looking again.", binding.id),
        );
        return Decision::wait(report, gone);
    }
    create(case, reading)
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

/// Declared fields first, then the restart that is asked for, then the connection Secret.
fn keep(case: &Case, binding: &Binding, compute: &Compute, reading: &Reading) -> Choice {
    let differences = drift::differences(case.spec, compute);
    let settled = compute.pending_state.is_none() && compute.current_state != "init";
    let report = standing(case, binding, compute);
    if let Some(choice) = connection(case, compute, &report) {
        return choice;
    }
    if !differences.is_empty() && !settled {
        let text = drift::text(&differences.iter().collect::<Vec<_>>());
        let waiting = Sync::OutOfSync(Reason::Updating, format!("Waiting for the compute to settle: {text}."));
        return starting(case, binding, compute, report.with_sync(waiting));
    }
    if !differences.is_empty() {
        return mend(case, compute, &differences, report);
    }
    if let Some(choice) = restart(case, compute, reading, &report) {
        return choice;
    }
    starting(case, binding, compute, report)
}

/// Waits; while the compute starts, not longer than a start may take.
fn starting(case: &Case, binding: &Binding, compute: &Compute, report: Report) -> Choice {
    let deadline = later(binding.at, case.observed.limits.start);
    match compute.current_state.as_str() {
        "init" if case.now < deadline => Decision::wait(report, deadline),
        _ => Decision::rest(report),
    }
}

/// Changes what may be changed now, and says what has to wait.
fn mend(case: &Case, compute: &Compute, differences: &[Difference], report: Report) -> Choice {
    let idle = compute.current_state == "idle";
    let permit = permit(case.spec.disruption.as_ref(), idle, case.now);
    let (now, held): (Vec<&Difference>, Vec<&Difference>) =
        differences.iter().partition(|difference| !difference.disruptive || permit == Permit::Now);
    if now.is_empty() {
        return postponed(&permit, &drift::text(&held), report);
    }
    let change = drift::change(&now);
    let text = drift::text(&now);
    match case.observed.memory.repeated(&change, case.now) {
        Some((reason, until)) => {
            let said = match reason {
                Reason::DriftPersists => format!("Changed back again and again by someone else: {text}."),
                _ => format!("The platform accepted the change and does not apply it: {text}."),
            };
            Decision::wait(report.with_sync(Sync::OutOfSync(reason, said)), until)
        }
        None => {
            let step = ComputeStep::Change { id: compute.id.clone(), change, because: text };
            case.act(Action::Change, step, report)
        }
    }
}

fn postponed(permit: &Permit, what: &str, report: Report) -> Choice {
    let waiting = |when: &str| Sync::OutOfSync(Reason::WaitingForDisruption, format!("Waiting {when}: {what}."));
    match permit {
        Permit::At(opening) => {
            Decision::wait(report.with_sync(waiting(&format!("for the window that opens at {opening}"))), *opening)
        }
        Permit::Never(error) => Decision::rest(Report::stalled(
            Reason::WaitingForDisruption,
            format!("spec.disruption never allows the change, since {error}. Waiting: {what}."),
        )),
        Permit::WhenIdle | Permit::Now => Decision::rest(report.with_sync(waiting("until the compute is idle"))),
    }
}

/// The restart that is asked for, once for each token.
fn restart(case: &Case, compute: &Compute, reading: &Reading, report: &Report) -> Option<Choice> {
    let token = case.restart_token();
    let record = case.identity.restart.as_ref();
    let due = match record {
        // A compute that was bound before restarts were recorded has none due.
        None => {
            return Some(Decision::act(ComputeStep::NoteRestart { record: case.no_restart_due() }, report.clone()));
        }
        Some(RestartRecord { calling: Some(before), at, .. }) => {
            unfinished(case, compute, before, later(*at, case.observed.limits.settle))
        }
        Some(record) => {
            if record.token == token {
                Due::No
            } else {
                Due::Yes
            }
        }
    };
    let done = |at| RestartRecord { token: token.clone(), at, calling: None };
    match due {
        Due::No => None,
        Due::Done => {
            let record = record.map(|record| RestartRecord { calling: None, ..record.clone() })?;
            Some(Decision::act(ComputeStep::NoteRestart { record }, report.clone()))
        }
        Due::Unknown(until) if reading.at < until => {
            let report = Report::progressing(
                Reason::Restarting,
                "A restart was sent and not answered; whether it was carried out is being found out.",
            );
            Some(Decision::wait(report, until))
        }
        // Waking an idle compute would cost the user; it starts anew by itself.
        Due::Yes if compute.current_state != "active" => (compute.current_state == "idle")
            .then(|| Decision::act(ComputeStep::NoteRestart { record: done(case.now) }, report.clone())),
        Due::Yes | Due::Unknown(_) if compute.pending_state.is_some() => Some(Decision::rest(report.clone())),
        Due::Yes | Due::Unknown(_) => Some(call_restart(case, compute, token, report)),
    }
}

enum Due {
    No,
    Yes,
    /// It was asked for and has happened.
    Done,
    /// It was asked for, and until then a reading that shows no sign of it proves nothing.
    Unknown(Timestamp),
}

fn unfinished(case: &Case, compute: &Compute, before: &BeforeRestart, settled: Timestamp) -> Due {
    if case.observed.memory.not_done(Action::Restart) {
        return Due::Yes;
    }
    let unchanged = before.updated_at == compute.updated_at && before.started_at == compute.started_at;
    if unchanged && compute.pending_state.is_none() && compute.current_state == "active" {
        return Due::Unknown(settled);
    }
    Due::Done
}

fn call_restart(case: &Case, compute: &Compute, token: String, report: &Report) -> Choice {
    match permit(case.spec.disruption.as_ref(), false, case.now) {
        Permit::Now => {
            let before = BeforeRestart { updated_at: compute.updated_at, started_at: compute.started_at };
            let record = RestartRecord { token, at: case.now, calling: Some(before) };
            let step = ComputeStep::Restart { id: compute.id.clone(), record };
            case.act(Action::Restart, step, Report::progressing(Reason::Restarting, "The compute is being restarted."))
        }
        other => postponed(&other, "the restart that was asked for", report.clone()),
    }
}

/// The connection Secret, where one is declared and differs.
fn connection(case: &Case, compute: &Compute, report: &Report) -> Option<Choice> {
    let name = &case.spec.connection.as_ref()?.secret_name;
    let data = connection_data(compute)?;
    match &case.observed.secret {
        SecretView::NotWanted => None,
        SecretView::Foreign(owner) => Some(Decision::rest(Report::stalled(
            Reason::SecretNotOurs,
            format!(
                "Secret {name} exists and is {owner}; it is left alone. Delete it, or choose another spec.connection.secretName."
            ),
        ))),
        SecretView::Ours(stands) if data.iter().all(|(key, value)| stands.get(key) == Some(value)) => None,
        SecretView::Absent | SecretView::Ours(_) => {
            Some(case.act(Action::WriteSecret, ComputeStep::WriteConnection { data }, report.clone()))
        }
    }
}

/// What a client needs to connect.
fn connection_data(compute: &Compute) -> Option<BTreeMap<String, String>> {
    let host = compute.host.clone()?;
    let entries = [
        ("host", host),
        ("port", POSTGRES_PORT.to_owned()),
        ("sslmode", "require".to_owned()),
        ("computeId", compute.id.clone()),
    ];
    Some(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// How the compute stands, whatever is declared.
fn standing(case: &Case, binding: &Binding, compute: &Compute) -> Report {
    let health = match (compute.current_state.as_str(), &compute.pending_state) {
        ("init", _) if case.now >= later(binding.at, case.observed.limits.start) => Health::Stalled(
            Reason::StartTimeout,
            format!("Compute {} has not started; see its operations in the platform's console.", compute.id),
        ),
        ("init", _) => Health::Progressing(Reason::Starting, format!("Compute {} is starting.", compute.id)),
        (_, Some(_)) if under_our_change(case) => {
            Health::Progressing(Reason::Updating, format!("Compute {} is being changed.", compute.id))
        }
        ("idle", _) => Health::Ready(Reason::Available, "Idle: the compute starts when a client connects.".into()),
        _ => Health::Ready(Reason::Available, "The compute can be used.".into()),
    };
    let in_sync = matches!(health, Health::Ready(..));
    let report = Report::of(health);
    if in_sync { report } else { report.with_sync(Sync::InSync) }
}

/// Whether the platform may still be carrying out what we asked for.
fn under_our_change(case: &Case) -> bool {
    let limit = case.observed.limits.start;
    let change = case.observed.memory.sent.as_ref().map(|sent| sent.at);
    let restart = case.identity.restart.as_ref().map(|record| record.at);
    [change, restart].into_iter().flatten().any(|at| case.now < later(at, limit))
}
