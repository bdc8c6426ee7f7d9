//! Reports of contradictions between a resource and another resource or the compute.

use serde_json::json;

use super::ComputeCase;
use super::claims::Holder;
use crate::decide::identity::Binding;
use crate::decide::{Health, Reason, Report};
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

/// The spec contradicts the binding. dbplane neither changes nor deletes anything then.
pub(super) fn contradiction(case: &ComputeCase, binding: &Binding) -> Option<Health> {
    let meta = &case.observed.meta;
    let Binding { id, project, .. } = binding;
    let message = if *project != case.spec.project_id {
        let correct = meta.correction("compute", &json!({"projectID": project}));
        format!(
            "This resource has compute {id} of project {project}, not of spec.projectID, so dbplane neither changes nor deletes anything. For a \
             compute of another project, create another Compute. To go on with {id}: {correct}"
        )
    } else {
        let named = case.spec.compute_id.as_ref().filter(|named| *named != id)?;
        let correct = meta.correction("compute", &json!({"computeID": id}));
        format!(
            "This resource has compute {id}, but spec.computeID is {named}, so dbplane neither changes nor deletes anything. For {named}, \
             create another Compute. To go on with {id}, remove spec.computeID, or: {correct}"
        )
    };
    Some(Health::Stalled(Reason::BindingConflict, message))
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
