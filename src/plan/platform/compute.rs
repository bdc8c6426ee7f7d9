//! The compute after a create or a change, and how the plan shows it.

use jiff::Timestamp;

use crate::decide::drift;
use crate::domain::{
    Compute, ComputeChange, ComputeId, ComputeState, NameSupport, NewCompute, ProjectId, Support,
};
use crate::plan::steps::FieldChange;

/// The result of a create beside the `others` of its project. Unknown properties have placeholders.
pub(super) fn created(
    id: ComputeId,
    project: &ProjectId,
    new: &NewCompute,
    others: &[Compute],
    now: Timestamp,
) -> Compute {
    let support = Support::among(others);
    let names = if new.name.is_some() {
        NameSupport::Kept
    } else {
        support.names
    };
    let pooled = others.iter().any(|other| other.pooled_host.is_some());
    Compute {
        project_id: project.clone(),
        branch_id: new.branch_id.clone(),
        region: others.first().and_then(|other| other.region.clone()),
        role: new.role,
        host: Some(format!("{id}.host-known-once-it-is-made")),
        pooled_host: pooled.then(|| format!("{id}-pooler.host-known-once-it-is-made")),
        name: new.name.clone(),
        current_state: ComputeState::Active,
        pending_state: None,
        settings: new.settings.clone(),
        last_active: None,
        created_at: Some(now),
        updated_at: Some(now),
        started_at: Some(now),
        support: Support { names, ..support },
        id,
    }
}

/// Applies a change to a compute.
pub(super) fn apply(compute: &mut Compute, change: &ComputeChange, now: Timestamp) {
    let interrupts = drift::interrupts(change, compute);
    compute.settings.set(&change.settings);
    if let Some(branch) = &change.branch_id {
        compute.branch_id = branch.clone();
    }
    compute.updated_at = Some(now);
    if interrupts {
        compute.started_at = Some(now);
    }
}

/// The fields that a change sets, with their values in `before`.
pub(super) fn changed_fields(change: &ComputeChange, before: Option<&Compute>) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    if let Some(branch) = &change.branch_id {
        fields.push(FieldChange {
            field: "branchID".to_owned(),
            before: before.map(|compute| compute.branch_id.to_string()),
            after: branch.to_string(),
        });
    }
    let old_settings = before
        .map(|compute| drift::shown(&compute.settings))
        .unwrap_or_default();
    for (field, after) in drift::shown(&change.settings) {
        let before = old_settings
            .iter()
            .find(|(known, _)| *known == field)
            .map(|(_, value)| value.clone());
        fields.push(FieldChange {
            field,
            before,
            after,
        });
    }
    // A change sends all database settings, although most stay the same.
    fields.retain(|field| field.before.as_ref() != Some(&field.after));
    fields
}
