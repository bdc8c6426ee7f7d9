//! The record of a Compute: restores the finalizer and the copy, and checks that the account is
//! still for the recorded platform.

use super::{
    ComputeCase, ComputeDecision, ComputeObserved, ComputeStep, is_orphaned, remove_finalizer,
};
use crate::api::{ComputeSpec, Management};
use crate::decide::identity::ComputeIdentity;
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{Decision, Health, Reason, Report};

/// The finalizer holds a resource that has, or may have, a compute. Replacing the resource by its
/// manifest removes the finalizer and the copy of the record.
pub(super) fn restore(case: &ComputeCase) -> Option<ComputeDecision> {
    let meta = &case.observed.meta;
    if meta.has_finalizer || !is_held(case.spec, case.identity) {
        return None;
    }
    let step = ComputeStep::Restore {
        record: meta.lost_record(),
    };
    let message = "The record of this resource is being restored.";
    Some(Decision::act(
        step,
        Report::progressing(Reason::Updating, message),
    ))
}

/// The account is now for another platform. That platform says nothing about the compute, nor about
/// an open create.
pub(super) fn elsewhere(case: &ComputeCase) -> Option<Report> {
    let (recorded, here) = (
        case.identity.platform()?,
        case.observed.platform.as_deref()?,
    );
    if recorded == here {
        return None;
    }
    let what = case.identity.binding.as_ref().map_or(
        "A create of this resource that is not resolved".to_owned(),
        |binding| format!("Compute {}", binding.id),
    );
    let (name, meta) = (&case.spec.account_ref.name, &case.observed.meta);
    let mistake = format!(
        "{what} is on the platform at {recorded}, but {name} is for {here}. Set spec.accountRef to an account for {recorded}. For a compute on the \
         other platform, create another Compute. To delete this one and keep what it has, set spec.deletion to Orphan. Where both are one \
         platform, whoever administers the cluster says so by --platform-aliases. {}",
        meta.other_account("compute")
    );
    Some(meta.unlooked(Health::Stalled(Reason::BindingConflict, mistake)))
}

/// True if the finalizer keeps the resource, because dbplane has, or may have, created something
/// for it.
pub fn is_held(spec: &ComputeSpec, identity: &ComputeIdentity) -> bool {
    spec.management == Management::Full && has_something(identity)
}

/// True if dbplane has, or may have, created something for the resource.
pub(super) fn has_something(identity: &ComputeIdentity) -> bool {
    identity.binding.is_some() || identity.intent.is_some() || !identity.unanswered.is_empty()
}

/// An invalid record blocks every step, except for removing the finalizer if the compute stays on
/// the platform anyway.
pub(super) fn invalid(
    spec: &ComputeSpec,
    observed: &ComputeObserved,
    invalid: &InvalidAnnotation,
) -> ComputeDecision {
    let meta = &observed.meta;
    if meta.deleting
        && meta.has_finalizer
        && !meta.paused
        && (is_orphaned(spec) || invalid.is_copy())
    {
        return remove_finalizer("The compute, if there is one, stays on the platform.");
    }
    Decision::rest(Report::stalled(
        Reason::BindingConflict,
        invalid.explain("compute", meta.object_key()),
    ))
}
