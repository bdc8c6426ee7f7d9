//! A Compute without a compute: take one over, create one, or find out what an earlier create did.

use std::collections::BTreeSet;

use super::super::identity::{Binding, CreateIntent, Origin};
use super::super::{Action, Decision, Reason, Report, drift, later, names};
use super::{Case, Choice, ComputeStep, Reading};
use crate::api::{Existing, Management};
use crate::platform::{Compute, NewCompute, Role};

/// No binding and no intent: nothing was ever asked for.
pub(super) fn first_contact(case: &Case, reading: &Reading) -> Choice {
    if let Some(id) = &case.spec.compute_id {
        return import(case, reading, id);
    }
    if case.role() == Role::Replica {
        return create(case, reading);
    }
    if let Some(other) = &case.observed.claims.primary {
        return Decision::rest(claimed(&format!("the primary compute of branch {}", case.spec.branch_id), other));
    }
    let primary = reading.computes.iter().find(|compute| on_branch(compute, &case.spec.branch_id, Role::Primary));
    if let Some((found, claim)) = primary.and_then(|found| Some((found, case.observed.claims.bound.get(&found.id)?))) {
        return Decision::rest(claimed(
            &format!("compute {}, the primary of branch {}", found.id, case.spec.branch_id),
            &claim.by,
        ));
    }
    match (primary, case.spec.management, case.spec.existing) {
        (Some(found), Management::Observe, _) => bind(case, found, Origin::Observed),
        (Some(found), Management::Full, Existing::Adopt) => bind(case, found, Origin::Adopted),
        (Some(found), Management::Full, Existing::Refuse) => Decision::rest(Report::stalled(
            Reason::PrimaryExists,
            format!(
                "Branch {} already has the primary compute {}. Set spec.existing to Adopt to take it over, or choose another branch.",
                case.spec.branch_id, found.id
            ),
        )),
        (None, Management::Observe, _) => Decision::rest(Report::stalled(
            Reason::ComputeNotFound,
            format!("Branch {} has no primary compute to observe.", case.spec.branch_id),
        )),
        (None, Management::Full, _) => create(case, reading),
    }
}

/// An intent without a binding: the create may have happened.
pub(super) fn recover(case: &Case, intent: &CreateIntent, reading: &Reading) -> Choice {
    if let Some(id) = &case.spec.compute_id {
        return import(case, reading, id);
    }
    match outcome(case, intent, reading) {
        Outcome::Created(found) => bind(case, found, Origin::Created),
        Outcome::NotCreated => Decision::act(
            ComputeStep::DropIntent,
            Report::progressing(Reason::Creating, "An earlier create was not carried out; it is tried again."),
        ),
        Outcome::NotKnownYet(until) => Decision::wait(
            Report::progressing(
                Reason::ConfirmingCreate,
                "A create was sent and not answered; whether it was carried out is being found out.",
            ),
            until,
        ),
        Outcome::Unclear(candidates) => Decision::rest(unclear(case, &candidates)),
    }
}

/// What became of a create that was intended.
pub(super) enum Outcome<'a> {
    Created(&'a Compute),
    NotCreated,
    NotKnownYet(jiff::Timestamp),
    Unclear(Vec<&'a Compute>),
}

/// What became of a create: by the answer where it is remembered, by its mark where the platform shows names, by the
/// baseline where not.
pub(super) fn outcome<'a>(case: &Case, intent: &CreateIntent, reading: &'a Reading) -> Outcome<'a> {
    if case.observed.memory.not_done(Action::Create) {
        return Outcome::NotCreated;
    }
    if let Some(created) = case.observed.memory.created.as_ref().and_then(|id| reading.find(id)) {
        return Outcome::Created(created);
    }
    let candidates: Vec<&Compute> = reading
        .computes
        .iter()
        .filter(|compute| on_branch(compute, &intent.branch, case.role()))
        .filter(|compute| {
            !intent.baseline.contains(&compute.id) && !case.observed.claims.bound.contains_key(&compute.id)
        })
        .collect();
    let settled = later(intent.at, case.observed.limits.settle);
    let too_early = reading.at < settled;
    let plausible: Vec<&Compute> = match &intent.mark {
        Some(_) => {
            candidates.iter().copied().filter(|compute| compute.name.is_none() || compute.name == intent.mark).collect()
        }
        None => candidates,
    };
    let marked = plausible.iter().find(|compute| intent.mark.is_some() && compute.name == intent.mark);
    match (marked, plausible.as_slice()) {
        (Some(one), _) => Outcome::Created(one),
        (None, [one]) if intent.mark.is_none() && matches(case, one) => Outcome::Created(one),
        (None, []) if !too_early => Outcome::NotCreated,
        (None, []) => Outcome::NotKnownYet(settled),
        // Ours would carry its mark, unless the platform drops it; what carries no name at all is not passed over.
        (None, _) if intent.mark.is_some() && too_early => Outcome::NotKnownYet(settled),
        (None, _) => Outcome::Unclear(plausible),
    }
}

/// Whether the compute can be what was asked for. The size may have been declared anew since, the branch was compared
/// before, and what the platform does not report tells nothing.
fn matches(case: &Case, compute: &Compute) -> bool {
    drift::differences(case.spec, compute)
        .iter()
        .all(|difference| !difference.reported || difference.field == "size" || difference.field == "branchId")
}

/// Starts a new life: the intent tells a successor that the create may have happened.
pub(super) fn create(case: &Case, reading: &Reading) -> Choice {
    if let Some(other) = &case.observed.claims.creating {
        let report = Report::progressing(
            Reason::Creating,
            format!("Waiting for {other}, whose create on branch {} comes first.", case.spec.branch_id),
        );
        return Decision::wait(report, later(case.now, CREATE_TURN));
    }
    let observed = case.observed;
    let mark = observed.names_offered.then(|| names::compute_name(&observed.meta.name, &observed.uid, observed.draw));
    let baseline: BTreeSet<String> = reading
        .computes
        .iter()
        .filter(|compute| on_branch(compute, &case.spec.branch_id, case.role()))
        .map(|compute| compute.id.clone())
        .collect();
    let step = ComputeStep::Create {
        intent: CreateIntent { at: case.now, branch: case.spec.branch_id.clone(), baseline, mark: mark.clone() },
        new: NewCompute {
            branch_id: case.spec.branch_id.clone(),
            role: case.role(),
            name: mark,
            settings: drift::declared(case.spec),
        },
        restart: case.restart_asked(),
    };
    case.act(Action::Create, step, Report::progressing(Reason::Creating, "The compute is being created."))
}

/// How soon to look again while another create on the branch comes first.
const CREATE_TURN: std::time::Duration = std::time::Duration::from_secs(2);

fn import(case: &Case, reading: &Reading, id: &str) -> Choice {
    match reading.find(id) {
        None => Decision::rest(Report::stalled(
            Reason::ComputeNotFound,
            format!(
                "Project {} has no compute {id}. Correct spec.computeId, or remove it to create a compute.",
                case.spec.project_id
            ),
        )),
        Some(found) if found.role != case.role() => Decision::rest(wrong_role(case, found)),
        Some(found) if case.spec.management == Management::Observe => bind(case, found, Origin::Observed),
        Some(found) => bind(case, found, Origin::Imported),
    }
}

/// Links the resource to a compute that no other resource has.
pub(super) fn bind(case: &Case, found: &Compute, origin: Origin) -> Choice {
    if let Some(claim) = case.observed.claims.bound.get(&found.id) {
        return Decision::rest(claimed(&format!("compute {}", found.id), &claim.by));
    }
    let binding = Binding { id: found.id.clone(), project: case.spec.project_id.clone(), origin, at: case.now };
    Decision::act(
        ComputeStep::Bind { binding, restart: case.restart_asked() },
        Report::progressing(Reason::Creating, format!("Compute {} is being linked.", found.id)),
    )
}

pub(super) fn claimed(what: &str, other: &str) -> Report {
    Report::stalled(Reason::ClaimedByAnother, format!("{other} already has {what}. Delete one of the two resources."))
}

pub(super) fn wrong_role(case: &Case, found: &Compute) -> Report {
    let (is, declared) = match case.role() {
        Role::Primary => ("a read replica", "ReadWrite"),
        Role::Replica => ("the branch's primary", "ReadOnly"),
    };
    Report::stalled(Reason::BindingConflict, format!("Compute {} is {is}, and spec.type is {declared}.", found.id))
}

fn unclear(case: &Case, candidates: &[&Compute]) -> Report {
    let ids: Vec<&str> = candidates.iter().map(|compute| compute.id.as_str()).collect();
    let meta = &case.observed.meta;
    Report::stalled(
        Reason::AmbiguousCreate,
        format!(
            "A create was sent and not answered, and which of {} it brought forth cannot be told. Name it: kubectl -n {} patch compute {} \
             --type merge -p '{{\"spec\":{{\"computeId\":\"{}\"}}}}'; or, where none of them is it: kubectl -n {} annotate compute {} {}-",
            ids.join(", "),
            meta.namespace,
            meta.name,
            ids.first().unwrap_or(&"ep-..."),
            meta.namespace,
            meta.name,
            names::CREATE_INTENT,
        ),
    )
}

fn on_branch(compute: &Compute, branch: &str, role: Role) -> bool {
    compute.branch_id == branch && compute.role == role
}
