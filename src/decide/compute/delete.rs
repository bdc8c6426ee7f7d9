//! A Compute that is being deleted: its compute is deleted first. It counts as deleted once the
//! platform has confirmed the delete and a successful snapshot lacks the compute.

use jiff::Timestamp;
use serde_json::json;

use super::conflict::contradiction;
use super::create::{self, await_turn, bind, create_outcome};
use super::evidence::CreateResult;
use super::record::elsewhere;
use super::snapshot::{OR_KEEP, cannot_be_seen, unclear};
use super::stray::{advice_on_deletion, hidden, strays};
use super::{
    ComputeCase, ComputeDecision, ComputeObserved, ComputeSnapshot, ComputeStep, SnapshotState,
    is_orphaned, remove_finalizer, unreadable, wish,
};
use crate::decide::identity::{Binding, ComputeIdentity, CreateIntent, Origin};
use crate::decide::released::gone_with_its_project;
use crate::decide::{AccountView, Action, Decision, Health, Reason, Report, later, paused};
use crate::domain::{Compute, Fault, Shown, UnreadableEntry};

const NOT_CHECKED: &str =
    "There is no compute. Whether an unanswered create has created one late cannot be checked.";

pub(super) fn decide(case: &ComputeCase) -> ComputeDecision {
    if !case.observed.meta.has_finalizer {
        return Decision::rest(Report::progressing(
            Reason::Deleting,
            "Nothing remains to be done.",
        ));
    }
    if let Some(paused) = paused(&case.observed.meta) {
        return Decision::rest(paused);
    }
    if is_orphaned(case.spec) {
        return remove_finalizer("The compute, if there is one, stays on the platform.");
    }
    let begun = case.identity.binding.is_some() || case.identity.intent.is_some();
    if begun && case.spec.deletion_protection {
        return Decision::rest(protected(case));
    }
    let wish = wish::of(case);
    let has_twins = !case.identity.twins.is_empty()
        || case
            .identity
            .made
            .iter()
            .any(|create| create.mark.is_some());
    if !begun && case.identity.unanswered.is_empty() && !has_twins && wish.is_none() {
        return remove_finalizer("There is no compute.");
    }
    let certain = begun || wish.is_some();
    if case.observed.account == AccountView::Pending {
        return Decision::silent();
    }
    if let Some(obstacle) = case.observed.account.obstacle() {
        return if certain {
            Decision::rest(blocked(case, obstacle))
        } else {
            remove_finalizer(NOT_CHECKED)
        };
    }
    match &case.observed.snapshot {
        SnapshotState::Pending => Decision::silent(),
        SnapshotState::Failed(_) if !certain => remove_finalizer(NOT_CHECKED),
        SnapshotState::Failed(Fault::NotFound { .. }) if is_gone_with_its_project(case) => {
            release(case)
        }
        SnapshotState::Failed(fault) => {
            Decision::rest(Report::of(advised(unreadable(case.spec, fault))))
        }
        SnapshotState::Taken { at, computes } => {
            with_snapshot(case, wish, &ComputeSnapshot::new(*at, computes))
        }
    }
}

fn with_snapshot(
    case: &ComputeCase,
    wish: Option<&ComputeIdentity>,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    if let Some(report) = elsewhere(case) {
        return Decision::rest(report);
    }
    match (&case.identity.binding, &case.identity.intent) {
        (Some(binding), _) => remove(case, binding, snapshot),
        (None, Some(intent)) => unresolved(case, intent, snapshot),
        (None, None) => match wish {
            Some(wish) => wish::delete(case, wish, snapshot),
            None => finish(case, snapshot, "There is no compute."),
        },
    }
}

/// True if a deleted resource waits for a project that the platform does not know.
pub fn misses_its_project(observed: &ComputeObserved) -> bool {
    observed.meta.deleting
        && matches!(
            observed.snapshot,
            SnapshotState::Failed(Fault::NotFound { .. })
        )
}

fn is_gone_with_its_project(case: &ComputeCase) -> bool {
    let is_there = |binding: &Binding| binding.project == case.spec.project_id;
    case.observed.project_gone
        && elsewhere(case).is_none()
        && case.identity.binding.as_ref().is_none_or(is_there)
}

fn release(case: &ComputeCase) -> ComputeDecision {
    let project = &case.spec.project_id;
    let which = case
        .identity
        .binding
        .as_ref()
        .map_or("what the resource had".to_owned(), |it| {
            format!("compute {}", it.id)
        });
    let event = gone_with_its_project(project, &which);
    let report = Report::progressing(
        Reason::Deleting,
        format!("Project {project} does not exist any more."),
    );
    Decision::act(ComputeStep::ReleaseWithProject { event }, report)
}

fn protected(case: &ComputeCase) -> Report {
    let meta = &case.observed.meta;
    let which = case.identity.binding.as_ref().map_or_else(
        || "a compute".to_owned(),
        |binding| format!("compute {}", binding.id),
    );
    Report::stalled(
        Reason::DeletionProtected,
        format!(
            "spec.deletionProtection keeps {which}. To have it deleted: {}. Or {OR_KEEP}.",
            meta.correction("compute", &json!({"deletionProtection": false}))
        ),
    )
}

/// A create was begun, so its outcome is determined first.
fn unresolved(
    case: &ComputeCase,
    intent: &CreateIntent,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    let named = case.spec.compute_id.as_ref().map(|id| snapshot.find(id));
    if let Some(Shown::Entry(found)) = named
        && !case.observed.claims.bound.contains_key(&found.id)
    {
        return bind(case, snapshot, found, Origin::Imported);
    }
    match create_outcome(case, intent, snapshot) {
        CreateResult::Created(found) if case.observed.claims.bound.contains_key(&found.id) => {
            finish(case, snapshot, "Another resource has the compute.")
        }
        CreateResult::Created(found) => bind(case, snapshot, found, Origin::Created),
        CreateResult::NotCreated => finish(case, snapshot, "No compute was created."),
        CreateResult::Behind(other) => {
            await_turn(case, Reason::ConfirmingCreate, other, &intent.branch)
        }
        CreateResult::NotKnownYet(until) => confirming(until),
        CreateResult::Unclear(entry) => cannot_be_seen(create::unresolved(case, entry)),
        CreateResult::Ambiguous(found) => {
            let settled = case
                .observed
                .memory
                .settles_at(intent.at, case.observed.limits.settle);
            if snapshot.at < settled {
                confirming(settled)
            } else {
                let why = "What a create has made cannot be determined.";
                leave(case, snapshot, why, &found)
            }
        }
    }
}

/// The compute stays because another resource has it as well.
fn kept_for_another(
    case: &ComputeCase,
    binding: &Binding,
    snapshot: &ComputeSnapshot,
) -> Option<ComputeDecision> {
    let claims = &case.observed.claims;
    let namespace = &case.observed.meta.namespace;
    if let Some(claim) = claims.bound.get(&binding.id).filter(|claim| claim.first) {
        let belongs = format!(
            "Compute {} belongs to {}.",
            binding.id,
            claim.by.told_in(namespace)
        );
        return Some(finish(case, snapshot, &belongs));
    }
    // The other resource may be admitted again. Until then no resource deletes the compute, so an
    // event reports it.
    let by = claims.outside.get(&binding.id)?;
    let event = format!(
        "Compute {} is not deleted, and is billed: {}, which its account does not admit at present, is bound to it as well. If nobody \
         needs it, delete it in the platform's console.",
        binding.id,
        by.told_in(namespace)
    );
    Some(Decision::act(
        ComputeStep::RemoveFinalizerReportingStrays { event },
        Report::progressing(Reason::Deleting, "The compute stays on the platform."),
    ))
}

fn remove(case: &ComputeCase, binding: &Binding, snapshot: &ComputeSnapshot) -> ComputeDecision {
    if let Some(kept) = kept_for_another(case, binding, snapshot) {
        return kept;
    }
    if let Some(mistake) = contradiction(case, binding) {
        return cannot_be_seen(Report::of(mistake));
    }
    let deleting = Report::progressing(
        Reason::Deleting,
        format!("Compute {} is being deleted.", binding.id),
    );
    let again = case.observed.memory.deletes_again(&binding.id);
    let listed_from = later(binding.at, case.observed.limits.settle);
    match (snapshot.find(&binding.id), again) {
        (Shown::Entry(_), Some(again)) if case.now < again => Decision::wait(deleting, again),
        // Soon after a create, parts of the platform may not know the compute yet.
        (Shown::Absent, None) if snapshot.at < listed_from => Decision::wait(deleting, listed_from),
        // A list without the compute proves nothing by itself; the answer to the delete does.
        (Shown::Entry(_), _) | (Shown::Absent | Shown::Unclear(_), None) => {
            delete(case, binding, deleting)
        }
        (Shown::Unclear(UnreadableEntry { id: Some(_), .. }), Some(again)) if again <= case.now => {
            delete(case, binding, deleting)
        }
        (Shown::Unclear(entry), Some(again)) => {
            let report = unclear(
                case,
                entry,
                &format!("whether compute {} is deleted", binding.id),
            );
            if again <= case.now {
                cannot_be_seen(report)
            } else {
                Decision::wait(deleting, again)
            }
        }
        (Shown::Absent, Some(_)) => finish(
            case,
            snapshot,
            &format!("Compute {} is deleted.", binding.id),
        ),
    }
}

fn finish(case: &ComputeCase, snapshot: &ComputeSnapshot, why: &str) -> ComputeDecision {
    leave(case, snapshot, why, &[])
}

/// Removes the finalizer. A compute with the resource's own mark is deleted first, unless another
/// resource declares it. A compute that only matches, or is in `undecided`, is reported and not
/// deleted. If a user named another compute
/// while a create was open, the create may still be carried out. dbplane then waits for its settle
/// time.
fn leave(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot,
    why: &str,
    undecided: &[&Compute],
) -> ComputeDecision {
    let strays = strays(case, snapshot);
    let mut left = strays.ids();
    left.extend(undecided.iter().map(|compute| compute.id.clone()));
    left.sort();
    left.dedup();
    let (memory, settle) = (&case.observed.memory, case.observed.limits.settle);
    let settled = case
        .identity
        .unanswered
        .iter()
        .map(|create| memory.settles_at(create.at, settle))
        .max();
    let open = settled.filter(|settled| snapshot.at < *settled);
    let declared = &case.observed.claims.declared;
    let ours = strays
        .marked
        .iter()
        .find(|compute| !declared.contains(&compute.id));
    match (ours, open, left) {
        (Some(ours), ..) => bind(case, snapshot, ours, Origin::Created),
        (None, Some(until), _) => confirming(until),
        (None, None, _) if let Some(entry) = hidden(case, snapshot, |_| true) => {
            cannot_be_seen(create::unresolved(case, entry))
        }
        (None, None, left) if left.is_empty() => remove_finalizer(why),
        (None, None, left) => Decision::act(
            ComputeStep::RemoveFinalizerReportingStrays {
                event: advice_on_deletion(&left),
            },
            Report::progressing(Reason::Deleting, why),
        ),
    }
}

fn confirming(until: Timestamp) -> ComputeDecision {
    let why = "dbplane checks whether an unanswered create was carried out.";
    Decision::wait(Report::progressing(Reason::ConfirmingCreate, why), until)
}

fn delete(case: &ComputeCase, binding: &Binding, deleting: Report) -> ComputeDecision {
    let step = ComputeStep::Delete {
        id: binding.id.clone(),
    };
    match case
        .observed
        .memory
        .backoff(Action::Delete, case.generation(), case.now)
    {
        Some(backoff) => Decision::wait(Report::of(advised(backoff.health)), backoff.until),
        None => Decision::act(step, deleting),
    }
}

/// The report if the account that is needed for the delete cannot be used.
fn blocked(case: &ComputeCase, obstacle: Health) -> Report {
    let advice = format!("Restore the account, or {OR_KEEP}.");
    match (&case.observed.account, obstacle) {
        (AccountView::NotReady { .. }, Health::Unknown(reason, message)) => {
            Report::unknown(reason, format!("{message} {advice}"))
        }
        (_, Health::Stalled(reason, message)) => {
            Report::stalled(reason, format!("{message} {advice}"))
        }
        (_, other) => Report::of(other),
    }
}

/// Adds the alternatives to a refused delete: the platform may allow it later, or the user keeps
/// the compute.
fn advised(health: Health) -> Health {
    match health {
        Health::Stalled(reason, message) => {
            let stop = if message.ends_with('.') { "" } else { "." };
            Health::Stalled(
                reason,
                format!("{message}{stop} dbplane tries the deletion again. Or {OR_KEEP}."),
            )
        }
        other => other,
    }
}
