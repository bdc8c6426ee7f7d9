//! A Compute that is being deleted: its compute goes first, and is gone only when a successful snapshot lacks it.

use std::time::Duration;

use super::super::identity::{Binding, CreateIntent, Origin};
use super::super::{AccountView, Action, Decision, Health, Reason, Report, later};
use super::create::{bind, create_outcome, in_turn};
use super::evidence::CreateOutcome;
use super::stray::strays;
use super::{Case, Choice, ComputeStep, Snapshot, SnapshotState, is_left, undecided, unread};

/// How long a compute whose delete the platform confirmed may stay in its list before it is deleted again.
const DELETE_AGAIN: Duration = Duration::from_secs(60);
const NOT_LOOKED: &str = "There is no compute; whether unanswered creates brought one forth late cannot be looked at.";
const LEAVE_IT: &str = "set spec.deletion to Orphan to leave the compute on the platform";

pub(super) fn decide(case: &Case) -> Choice {
    if !case.observed.meta.has_finalizer {
        return Decision::rest(Report::progressing(Reason::Deleting, "Nothing is left to do."));
    }
    if case.observed.meta.paused {
        return Decision::rest(Report::unknown(
            Reason::Paused,
            "Paused by the annotation dbplane.dev/paused; the deletion waits.",
        ));
    }
    if is_left(case.spec) {
        return release("The compute, if there is one, is left as it is.");
    }
    let begun = case.identity.binding.is_some() || case.identity.intent.is_some();
    if !begun && case.identity.unanswered.is_empty() {
        return release("There is no compute.");
    }
    if case.observed.account == AccountView::Pending {
        return Decision::silent();
    }
    if let Some(obstacle) = case.observed.account.obstacle() {
        return match begun {
            true => Decision::rest(blocked(case, obstacle)),
            false => release(NOT_LOOKED),
        };
    }
    match &case.observed.snapshot {
        SnapshotState::Pending => Decision::silent(),
        SnapshotState::Failed(_) if !begun => release(NOT_LOOKED),
        SnapshotState::Failed(fault) => Decision::rest(Report::of(advised(unread(case.spec, fault)))),
        SnapshotState::Taken { at, computes } => {
            let snapshot = Snapshot { at: *at, computes };
            match (&case.identity.binding, &case.identity.intent) {
                (Some(binding), _) => remove(case, binding, &snapshot),
                (None, Some(intent)) => unresolved(case, intent, &snapshot),
                (None, None) => leave(case, &snapshot, "There is no compute."),
            }
        }
    }
}

/// A create was begun: what it brought forth is found out first.
fn unresolved(case: &Case, intent: &CreateIntent, snapshot: &Snapshot) -> Choice {
    if let Some(id) = &case.spec.compute_id {
        return match snapshot.find(id).filter(|found| !case.observed.claims.bound.contains_key(&found.id)) {
            Some(found) => bind(case, found, Origin::Imported),
            None => release("The compute that spec.computeID names does not exist, or belongs to another resource."),
        };
    }
    match create_outcome(case, intent, snapshot) {
        CreateOutcome::Created(found) => bind(case, found, Origin::Created),
        CreateOutcome::NotCreated => leave(case, snapshot, "No compute was created."),
        CreateOutcome::Behind(other) => in_turn(case, Reason::ConfirmingCreate, other, &intent.branch),
        CreateOutcome::NotKnownYet(until) => Decision::wait(
            Report::progressing(Reason::ConfirmingCreate, "Finding out whether an unanswered create was carried out."),
            until,
        ),
        CreateOutcome::Unclear(found) => {
            let ids: Vec<&str> = found.iter().map(|compute| compute.id.as_str()).collect();
            undecided(
                case,
                Report::stalled(
                    Reason::AmbiguousCreate,
                    format!(
                        "One of {} may be this resource's. Set spec.computeID to it to have it deleted, or {LEAVE_IT}.",
                        ids.join(", ")
                    ),
                ),
            )
        }
    }
}

fn remove(case: &Case, binding: &Binding, snapshot: &Snapshot) -> Choice {
    if let Some(claim) = case.observed.claims.bound.get(&binding.id).filter(|claim| claim.older) {
        return release(&format!("Compute {} belongs to {}.", binding.id, claim.by));
    }
    let deleting = Report::progressing(Reason::Deleting, format!("Compute {} is being deleted.", binding.id));
    // What was deleted before this one was bound was another.
    let deleted = case.observed.memory.deleted.filter(|deleted| *deleted >= binding.at);
    let again = deleted.map(|deleted| later(deleted, DELETE_AGAIN));
    let listed_from = later(binding.at, case.observed.limits.settle);
    match (snapshot.find(&binding.id), again) {
        (Some(_), Some(again)) if case.now < again => Decision::wait(deleting, again),
        (Some(_), _) => delete(case, binding, deleting),
        // A list that lags behind a create that was just made proves nothing.
        (None, None) if snapshot.at < listed_from => Decision::wait(deleting, listed_from),
        (None, _) => leave(case, snapshot, &format!("Compute {} is gone.", binding.id)),
    }
}

/// Lets the resource go. What carries its own mark is its beyond doubt and goes first; what only fits is told and left.
fn leave(case: &Case, snapshot: &Snapshot, why: &str) -> Choice {
    let strays = strays(case, snapshot);
    match (strays.marked.first(), strays.ids()) {
        (Some(ours), _) => bind(case, ours, Origin::Created),
        (None, ids) if ids.is_empty() => release(why),
        (None, strays) => Decision::act(
            ComputeStep::RemoveFinalizerReportingStrays { strays },
            Report::progressing(Reason::Deleting, why),
        ),
    }
}

fn delete(case: &Case, binding: &Binding, deleting: Report) -> Choice {
    let step = ComputeStep::Delete { id: binding.id.clone() };
    match case.observed.memory.backoff(Action::Delete, case.generation(), case.now) {
        Some(backoff) => Decision::wait(Report::of(advised(backoff.health)), backoff.until),
        None => Decision::act(step, deleting),
    }
}

/// The account is needed to delete the compute; what to do without one.
fn blocked(case: &Case, obstacle: Health) -> Report {
    let advice = format!("Restore the account, or {LEAVE_IT}.");
    match (&case.observed.account, obstacle) {
        (AccountView::NotReady { .. }, Health::Unknown(reason, message)) => {
            Report::unknown(reason, format!("{message} {advice}"))
        }
        (_, Health::Stalled(reason, message)) => Report::stalled(reason, format!("{message} {advice}")),
        (_, other) => Report::of(other),
    }
}

/// What the platform refuses now it may allow later.
fn advised(health: Health) -> Health {
    match health {
        Health::Stalled(reason, message) => {
            let stop = if message.ends_with('.') { "" } else { "." };
            Health::Stalled(reason, format!("{message}{stop} The deletion is tried again; or {LEAVE_IT}."))
        }
        other => other,
    }
}

pub(super) fn release(why: &str) -> Choice {
    Decision::act(ComputeStep::RemoveFinalizer, Report::progressing(Reason::Deleting, why))
}
