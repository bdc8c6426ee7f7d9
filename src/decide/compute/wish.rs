//! Wishes: records that are not in the status of this resource itself, but come from a backup
//! without status or from a user. A wish has the same power as `spec.computeID` and no more.

use super::conflict::wrong_role;
use super::create::{adopt_or_create, bind, unresolved};
use super::keep::{missing, unproven};
use super::record::has_something;
use super::snapshot::{cannot_be_seen, unclear};
use super::{ComputeCase, ComputeDecision, ComputeSnapshot, ComputeStep, remove_finalizer};
use crate::api::Management;
use crate::decide::identity::{Binding, ComputeIdentity, Origin};
use crate::decide::names::{Mark, RECORD};
use crate::decide::seal::ObjectKey;
use crate::decide::{Decision, Reason, Report};
use crate::domain::{Compute, Shown, UnreadableEntry};

/// The wish, if it asks for something. A record in the status and `spec.computeID` take precedence.
pub(super) fn of<'a>(case: &ComputeCase<'a>) -> Option<&'a ComputeIdentity> {
    if has_something(case.identity) || case.spec.compute_id.is_some() {
        return None;
    }
    case.observed
        .wish
        .as_ref()
        .filter(|wish| has_something(wish))
}

/// Binds the resource to the wished compute, if its own account shows it.
pub(super) fn decide(
    case: &ComputeCase,
    wish: &ComputeIdentity,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    let Some(binding) = &wish.binding else {
        return match (marked(case, wish, snapshot), hidden(case, wish, snapshot)) {
            (Some(found), _) => bind(case, snapshot, found, Origin::Created),
            (None, Some(entry)) => Decision::rest(unresolved(case, entry)),
            (None, None) => adopt_or_create(case, snapshot),
        };
    };
    if !is_of_spec(case, binding) {
        return Decision::rest(elsewhere(case, binding));
    }
    match snapshot.find(&binding.id) {
        Shown::Entry(found) if found.role != case.role() => Decision::rest(wrong_role(case, found)),
        Shown::Entry(found) => bind_again(case, snapshot, found, binding),
        Shown::Unclear(entry) => Decision::rest(unclear(
            case,
            entry,
            &format!("whether there is compute {}", binding.id),
        )),
        Shown::Absent => missing(case, binding, snapshot),
    }
}

/// Deletes the wished compute with the resource, if the account shows it and no other resource has
/// it.
pub(super) fn delete(
    case: &ComputeCase,
    wish: &ComputeIdentity,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    let wished = wish
        .binding
        .as_ref()
        .filter(|binding| is_of_spec(case, binding));
    let (found, hidden) = match wished.map(|binding| snapshot.find(&binding.id)) {
        None => (marked(case, wish, snapshot), hidden(case, wish, snapshot)),
        Some(Shown::Entry(found)) => (Some(found), None),
        Some(Shown::Unclear(entry)) => (None, Some(entry)),
        Some(Shown::Absent) => (None, None),
    };
    if let (None, Some(entry)) = (found, hidden) {
        return cannot_be_seen(unclear(
            case,
            entry,
            "whether there is a compute of this resource",
        ));
    }
    match (found, wished) {
        (Some(found), _) if is_claimed(case, found) => {
            remove_finalizer("Another resource has the compute.")
        }
        (Some(found), Some(binding)) => bind_again(case, snapshot, found, binding),
        (Some(found), None) => bind(case, snapshot, found, Origin::Created),
        (None, Some(binding)) => {
            let since = case.observed.memory.missing_since.unwrap_or(case.now);
            unproven(case, binding, since)
                .unwrap_or_else(|| remove_finalizer("There is no compute."))
        }
        (None, None) => remove_finalizer("There is no compute."),
    }
}

fn is_claimed(case: &ComputeCase, found: &Compute) -> bool {
    case.observed.claims.bound.contains_key(&found.id)
}

fn bind_again(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot,
    found: &Compute,
    binding: &Binding,
) -> ComputeDecision {
    let origin = match (case.spec.management, binding.origin) {
        (Management::Observe, _) => Origin::Observed,
        (Management::Full, Origin::Observed) => Origin::Imported,
        (Management::Full, origin) => origin,
    };
    let mut choice = bind(case, snapshot, found, origin);
    if let Some(ComputeStep::Bind { restored, .. }) = &mut choice.step {
        *restored = true;
    }
    choice
}

/// True if the binding is in the project and on the platform of the spec.
fn is_of_spec(case: &ComputeCase, binding: &Binding) -> bool {
    let platforms = binding
        .platform
        .as_ref()
        .zip(case.observed.platform.as_ref());
    binding.project == case.spec.project_id && platforms.is_none_or(|(wished, here)| wished == here)
}

/// The unreadable entry that may be the result of this resource's own create.
fn hidden<'a>(
    case: &ComputeCase,
    wish: &ComputeIdentity,
    snapshot: &ComputeSnapshot<'a>,
) -> Option<&'a UnreadableEntry> {
    wish.intent
        .iter()
        .chain(&wish.unanswered)
        .find_map(|create| snapshot.hiding(case, create))
}

/// A compute that this resource's own create made, according to its mark. A compute that is only
/// new on the branch may belong to anybody.
fn marked<'a>(
    case: &ComputeCase,
    wish: &ComputeIdentity,
    snapshot: &ComputeSnapshot<'a>,
) -> Option<&'a Compute> {
    let marks = || {
        wish.intent
            .iter()
            .chain(&wish.unanswered)
            .filter_map(|create| create.mark.as_ref())
    };
    let is_own = |compute: &&Compute| {
        let name = compute.name.as_ref();
        name.is_some_and(|name| is_issued_for(case, name) && marks().any(|mark| mark == name))
            && compute.role == case.role()
            && !case.observed.not_created.contains(&compute.id)
            && !is_claimed(case, compute)
    };
    snapshot
        .shown()
        .iter()
        .filter(is_own)
        .min_by_key(|compute| &compute.id)
}

/// True if this cluster issued the name for this resource.
fn is_issued_for(case: &ComputeCase, name: &str) -> bool {
    let observed = case.observed;
    observed.cluster.issued(name)
        && Mark::of(name).is_some_and(|mark| mark.is_for(observed.meta.object_key()))
}

fn elsewhere(case: &ComputeCase, binding: &Binding) -> Report {
    let ObjectKey { namespace, name } = case.observed.meta.object_key();
    let at =
        |platform: Option<&String>| platform.map(|url| format!(" at {url}")).unwrap_or_default();
    Report::stalled(
        Reason::BindingConflict,
        format!(
            "The annotation {RECORD} says that this resource has compute {} of project {}{}, but the spec names project {}{}. Correct \
             spec.projectID or spec.accountRef. Or, for another compute: kubectl -n {namespace} annotate compute {name} {RECORD}-",
            binding.id,
            binding.project,
            at(binding.platform.as_ref()),
            case.spec.project_id,
            at(case.observed.platform.as_ref()),
        ),
    )
}
