//! A Compute that hands its compute over to another one, or takes one over.

use super::super::hand_over::{Given, Giver, HandsOver, LOOK_AGAIN, Source, give, needs_record, unnoticed};
use super::super::identity::{self, Binding, ComputeIdentity, HandOverRecord, Predecessor, Record, RestartRecord};
use super::super::seal::InvalidAnnotation;
use super::super::{Decision, Reason, Report, later};
use super::conflict::{claimed, wrong_role};
use super::{Case, Choice, ComputeStep, Snapshot, record, remove_finalizer};
use crate::api::{Compute, HandOverTo, Management, ObjectMeta, TakeOverFrom};

impl HandsOver for Compute {
    const KIND: &'static str = "Compute";
    type Identity = ComputeIdentity;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn hand_over_to(&self) -> Option<&HandOverTo> {
        self.spec.hand_over_to.as_deref()
    }

    fn take_over_from(&self) -> Option<&TakeOverFrom> {
        self.spec.take_over_from.as_deref()
    }

    fn recorded(&self) -> Result<Record<ComputeIdentity>, InvalidAnnotation> {
        identity::of_compute(self)
    }

    fn hand_over(identity: &ComputeIdentity) -> &HandOverRecord {
        &identity.hand_over
    }

    fn hand_over_mut(identity: &mut ComputeIdentity) -> &mut HandOverRecord {
        &mut identity.hand_over
    }

    fn has_something(identity: &ComputeIdentity) -> bool {
        record::has_something(identity) && identity.hand_over.released.is_none()
    }

    fn is_same(one: &ComputeIdentity, other: &ComputeIdentity) -> bool {
        let id = |identity: &ComputeIdentity| identity.binding.as_ref().map(|binding| binding.id.clone());
        id(one).is_some() && id(one) == id(other)
    }

    fn unfit(&self, from: &Self) -> Option<&'static str> {
        let [mine, theirs] = [&self.spec, &from.spec];
        let unfit = [
            (mine.project_id != theirs.project_id, "is for another project"),
            (mine.type_ != theirs.type_, "is of another type"),
            (mine.management == Management::Observe, "only observes"),
        ];
        unfit.into_iter().find_map(|(is_so, what)| is_so.then_some(what))
    }
}

/// What is done about a hand-over to another resource; `None` where the resource is treated as any other.
pub(super) fn given(case: &Case) -> Option<Choice> {
    if needs_record(&case.observed.meta, &case.identity.hand_over) {
        return record::restore(case);
    }
    if let Some(report) = unnoticed::<Compute>(&case.observed.meta, &case.observed.hand_over) {
        return Some(Decision::wait(report, later(case.now, LOOK_AGAIN)));
    }
    if takes_back(case) {
        return None;
    }
    let record = &case.identity.hand_over;
    let bound = case.identity.binding.as_ref().filter(|_| case.spec.management == Management::Full);
    let given = give(&Giver {
        kind: ("Compute", "compute"),
        since: bound.map(|binding| binding.at),
        what: bound.map(|binding| format!("Compute {}", binding.id)),
        meta: &case.observed.meta,
        declared: case.spec.hand_over_to.as_deref(),
        released: record.released.as_ref(),
        cluster: &case.observed.cluster,
        successor: &case.observed.hand_over.successor,
        memory: &case.observed.memory,
        settle: case.observed.limits.settle,
        now: case.now,
    })?;
    let handing_over = || Report::progressing(Reason::HandingOver, "The compute is being handed over.");
    Some(match given {
        Given::Release(released) => Decision::act(ComputeStep::Release { released }, handing_over()),
        Given::TakeBack(place) => Decision::act(ComputeStep::TakeBack { place }, handing_over()),
        Given::Wait(report, until) => Decision::wait(report, until),
        Given::Rest(report) if case.observed.meta.deleting => Decision::wait(report, later(case.now, LOOK_AGAIN)),
        Given::Rest(report) => Decision::rest(report),
        Given::Over(why) => remove_finalizer(&why),
    })
}

/// Whether its deletion waits for another resource.
pub(super) fn waits(case: &Case) -> bool {
    case.observed.meta.deleting && case.observed.hand_over.is_expected()
}

/// It has handed over, and takes over again.
pub(super) fn takes_back(case: &Case) -> bool {
    let (Some(released), Source::Released { predecessor, .. }) =
        (&case.identity.hand_over.released, &case.observed.hand_over.source)
    else {
        return false;
    };
    // What nobody has taken over yet must not be forgotten.
    !case.observed.meta.deleting && (released.taken || released.to == predecessor.place)
}

/// Takes over the compute of another resource; `None` where none is named.
pub(super) fn take(case: &Case, snapshot: &Snapshot) -> Option<Choice> {
    match &case.observed.hand_over.source {
        Source::Unnamed => None,
        Source::Pending(message) => Some(Decision::rest(Report::progressing(Reason::HandingOver, message))),
        Source::Invalid(message) => Some(Decision::rest(Report::stalled(Reason::BindingConflict, message))),
        Source::Released { identity, predecessor, .. } => Some(take_over(case, snapshot, identity, predecessor)),
    }
}

fn take_over(case: &Case, snapshot: &Snapshot, theirs: &ComputeIdentity, predecessor: &Predecessor) -> Choice {
    let Some(binding) = theirs.binding.as_ref() else {
        let message = format!("Compute {} has no compute to hand over.", predecessor.place);
        return Decision::rest(Report::stalled(Reason::BindingConflict, message));
    };
    if binding.project != case.spec.project_id || case.spec.compute_id.as_ref().is_some_and(|id| *id != binding.id) {
        let message = format!(
            "Compute {} hands over compute {} of project {}, which is not what spec.projectID and spec.computeID say.",
            predecessor.place, binding.id, binding.project
        );
        return Decision::rest(Report::stalled(Reason::BindingConflict, message));
    }
    let found = snapshot.find(&binding.id);
    // What is missing is treated as for any resource once it is bound, but only where that is the platform that it was on.
    let theirs_is_here = binding.platform == case.observed.platform;
    match found {
        Some(compute) if compute.role != case.role() => return Decision::rest(wrong_role(case, compute)),
        None if !theirs_is_here => {
            let message = format!(
                "Compute {}, which is handed over, is on the platform at {}, and {} does not show it. Set spec.accountRef to an account \
                 for that platform.",
                binding.id,
                binding.platform.as_deref().unwrap_or_default(),
                case.spec.account_ref.name
            );
            return Decision::rest(Report::stalled(Reason::BindingConflict, message));
        }
        Some(_) | None => {}
    }
    if let Some(claim) = case.observed.claims.bound.get(&binding.id) {
        let report = claimed(&format!("compute {}", binding.id), &claim.by);
        return Decision::wait(report, later(case.now, LOOK_AGAIN));
    }
    let step = ComputeStep::TakeOver {
        binding: Binding { platform: case.observed.platform.clone(), at: case.now, ..binding.clone() },
        restart: restart(case, theirs.restart.as_ref()),
        unanswered: theirs.unanswered.clone(),
        predecessor: predecessor.clone(),
    };
    Decision::act(
        step,
        Report::progressing(Reason::HandingOver, format!("Compute {} is being taken over.", binding.id)),
    )
}

/// A hand-over requests no restart. One that was begun is still to be completed.
fn restart(case: &Case, theirs: Option<&RestartRecord>) -> RestartRecord {
    let calling = theirs.and_then(|record| record.calling.clone());
    let at = theirs.filter(|_| calling.is_some()).map_or(case.now, |record| record.at);
    RestartRecord { at, calling, ..case.restart_after(theirs) }
}
