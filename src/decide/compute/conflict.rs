//! Reports of contradictions between a resource and another resource or the compute.

use super::ComputeCase;
use super::claims::Holder;
use crate::decide::{Reason, Report};
use crate::domain::{Compute, Role};

pub(super) fn claimed(case: &ComputeCase, what: &str, by: &Holder) -> Report {
    let message = if by.namespace == case.observed.meta.namespace {
        format!("{by} already has {what}. Delete one of the two resources.")
    } else {
        format!(
            "A resource of another namespace already has {what}. This one goes on once that one is gone. Whoever administers the cluster finds \
             the other resource in the log of dbplane. Or delete this resource."
        )
    };
    Report::stalled(Reason::ClaimedByAnother, message).held_by(by)
}

pub(super) fn wrong_role(case: &ComputeCase, found: &Compute) -> Report {
    let (is, declared) = match case.role() {
        Role::Primary => ("a read replica", "ReadWrite"),
        Role::Replica => ("the branch's primary", "ReadOnly"),
    };
    Report::stalled(
        Reason::BindingConflict,
        format!("Compute {} is {is}, and spec.type is {declared}.", found.id),
    )
}
