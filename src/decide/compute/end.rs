//! A Compute that is being deleted: its compute goes first, and is gone only when a successful reading lacks it.

use super::super::identity::Binding;
use super::super::identity::Origin;
use super::super::memory::of_fault;
use super::super::{AccountView, Action, Decision, Health, Reason, Report, later};
use super::birth::{Outcome, bind, outcome};
use super::{Case, Choice, ComputeStep, Listing, Reading};
use crate::api::{Deletion, Management};

pub(super) fn decide(case: &Case) -> Choice {
    if !case.observed.meta.finalized {
        return Decision::rest(Report::progressing(Reason::Deleting, "Nothing is left to do."));
    }
    if case.observed.meta.paused {
        return Decision::rest(Report::unknown(
            Reason::Paused,
            "Paused by the annotation dbplane.dev/paused; the deletion waits.",
        ));
    }
    let leave = case.spec.deletion == Deletion::Orphan || case.spec.management == Management::Observe;
    let nothing = case.identity.binding.is_none() && case.identity.intent.is_none();
    if leave || nothing {
        return release("The compute, if there is one, is left as it is.");
    }
    if case.observed.account == AccountView::Pending {
        return Decision::silent();
    }
    if let Some(obstacle) = case.observed.account.obstacle() {
        return Decision::rest(blocked(case, obstacle));
    }
    match &case.observed.listing {
        Listing::Pending => Decision::silent(),
        Listing::Failed(fault) => Decision::rest(Report::of(of_fault(fault))),
        Listing::Read { at, computes } => {
            let reading = Reading { at: *at, computes };
            match (&case.identity.binding, &case.identity.intent) {
                (Some(binding), _) => remove(case, binding, &reading),
                (None, Some(intent)) => match outcome(case, intent, &reading) {
                    Outcome::Created(found) => bind(case, found, Origin::Created),
                    Outcome::NotCreated => release("No compute was created."),
                    Outcome::NotKnownYet(until) => Decision::wait(
                        Report::progressing(
                            Reason::ConfirmingCreate,
                            "Finding out whether an unanswered create was carried out.",
                        ),
                        until,
                    ),
                    Outcome::Unclear(found) => {
                        let ids: Vec<&str> = found.iter().map(|compute| compute.id.as_str()).collect();
                        Decision::rest(Report::stalled(
                            Reason::AmbiguousCreate,
                            format!(
                                "One of {} may be this resource's. Set spec.computeId to it, or spec.deletion to Orphan.",
                                ids.join(", ")
                            ),
                        ))
                    }
                },
                (None, None) => release("There is no compute."),
            }
        }
    }
}

fn remove(case: &Case, binding: &Binding, reading: &Reading) -> Choice {
    if let Some(claim) = case.observed.claims.bound.get(&binding.id).filter(|claim| claim.older) {
        return release(&format!("Compute {} belongs to {}.", binding.id, claim.by));
    }
    let deleting = Report::progressing(Reason::Deleting, format!("Compute {} is being deleted.", binding.id));
    match reading.find(&binding.id) {
        Some(_) => case.act(Action::Delete, ComputeStep::Delete { id: binding.id.clone() }, deleting),
        // A list that lags behind a create that was just made proves nothing.
        None if !case.observed.memory.deleted && reading.at < later(binding.at, case.observed.limits.settle) => {
            Decision::wait(deleting, later(binding.at, case.observed.limits.settle))
        }
        None => release(&format!("Compute {} is gone.", binding.id)),
    }
}

/// The account is needed to delete the compute; what to do without one.
fn blocked(case: &Case, obstacle: Health) -> Report {
    let advice = "Restore the account, or set spec.deletion to Orphan to leave the compute on the platform.";
    match (&case.observed.account, obstacle) {
        (AccountView::NotReady { .. }, Health::Unknown(reason, message)) => {
            Report::unknown(reason, format!("{message} {advice}"))
        }
        (_, Health::Stalled(reason, message)) => Report::stalled(reason, format!("{message} {advice}")),
        (_, other) => Report::of(other),
    }
}

fn release(why: &str) -> Choice {
    Decision::act(ComputeStep::Release, Report::progressing(Reason::Deleting, why))
}
