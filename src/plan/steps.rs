//! The content of a plan, as plain data.

use jiff::Timestamp;
use serde::Serialize;

use super::id::Id;
use crate::domain::{BranchId, ComputeId, ProjectId};

/// A step of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "action",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum PlannedStep {
    CreateCompute {
        project: ProjectId,
        branch: BranchId,
        #[serde(rename = "type")]
        type_: String,
        /// A placeholder for the compute, which has no identifier yet.
        compute: ComputeId,
        fields: Vec<FieldChange>,
    },
    ChangeCompute {
        project: ProjectId,
        compute: ComputeId,
        fields: Vec<FieldChange>,
        interrupts: bool,
    },
    RestartCompute {
        project: ProjectId,
        compute: ComputeId,
    },
    DeleteCompute {
        project: ProjectId,
        compute: ComputeId,
    },
    /// The resource is bound to an existing compute.
    LinkCompute {
        compute: ComputeId,
    },
    CreateKey {
        project: ProjectId,
    },
    RevokeKey {
        /// The platform's ID of the key, or a placeholder for a planned key.
        key: String,
    },
    WriteSecret {
        name: String,
        /// True if the Secret does not exist yet.
        new: bool,
        /// Names of the entries that are written or removed.
        entries: Vec<String>,
    },
    CreateObject {
        kind: String,
        name: String,
    },
    ChangeObject {
        kind: String,
        name: String,
    },
    DeleteObject {
        kind: String,
        name: String,
    },
}

impl PlannedStep {
    /// True if the step interrupts connections.
    pub fn interrupts(&self) -> bool {
        match self {
            Self::ChangeCompute { interrupts, .. } => *interrupts,
            Self::RestartCompute { .. } | Self::DeleteCompute { .. } => true,
            _ => false,
        }
    }
}

/// An attribute of a compute, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    pub field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub after: String,
}

/// How a manifest relates to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ManifestChange {
    /// No object with this name exists.
    New,
    /// It differs from the object in the cluster.
    Changed,
    Unchanged,
}

/// A condition of the planned status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedCondition {
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// The reason and the time limit of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedWait {
    pub reason: String,
    pub message: String,
    /// The latest time of the next decision; absent if only a change ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The plan for one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    #[serde(flatten)]
    pub id: Id,
    /// Absent for a resource that exists only in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestChange>,
    /// In this order.
    pub steps: Vec<PlannedStep>,
    /// True if the resource is gone in the end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<PlannedCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced: Option<PlannedCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<PlannedWait>,
    /// The time of the next pass without another cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// The reason why the plan is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// Compute units of all computes of the planned resources together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Units {
    pub min: f64,
    pub max: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    pub before: Units,
    pub after: Units,
}

/// Number of resources and of steps of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub resources: usize,
    pub computes_created: usize,
    pub computes_changed: usize,
    pub computes_restarted: usize,
    pub computes_deleted: usize,
    pub computes_linked: usize,
    pub keys_created: usize,
    pub keys_revoked: usize,
    pub secrets_written: usize,
    pub replicas_created: usize,
    pub replicas_deleted: usize,
    pub interruptions: usize,
    pub waiting: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub at: Timestamp,
    pub resources: Vec<Planned>,
    pub counts: Counts,
    /// Absent if the size of a compute is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Parts that could not be read, and the assumptions instead.
    pub not_read: Vec<String>,
}

impl Planned {
    /// True if a step is planned, or waits.
    pub fn has_changes(&self) -> bool {
        !self.steps.is_empty() || self.gone || self.waits.is_some()
    }
}

impl Plan {
    pub fn has_changes(&self) -> bool {
        self.resources.iter().any(Planned::has_changes)
    }

    /// True if a planned resource has an unknown part.
    pub fn is_incomplete(&self) -> bool {
        self.resources
            .iter()
            .any(|planned| planned.unknown.is_some())
    }
}

impl Counts {
    pub fn of(resources: &[Planned]) -> Self {
        let mut counts = Self {
            resources: resources.len(),
            ..Self::default()
        };
        for step in resources.iter().flat_map(|planned| &planned.steps) {
            counts.add(step);
        }
        counts.waiting = resources
            .iter()
            .filter(|planned| planned.waits.is_some())
            .count();
        counts
    }

    fn add(&mut self, step: &PlannedStep) {
        let counted = match step {
            PlannedStep::CreateCompute { .. } => &mut self.computes_created,
            PlannedStep::ChangeCompute { .. } => &mut self.computes_changed,
            PlannedStep::RestartCompute { .. } => &mut self.computes_restarted,
            PlannedStep::DeleteCompute { .. } => &mut self.computes_deleted,
            PlannedStep::LinkCompute { .. } => &mut self.computes_linked,
            PlannedStep::CreateKey { .. } => &mut self.keys_created,
            PlannedStep::RevokeKey { .. } => &mut self.keys_revoked,
            PlannedStep::WriteSecret { .. } => &mut self.secrets_written,
            PlannedStep::CreateObject { .. } => &mut self.replicas_created,
            PlannedStep::DeleteObject { .. } => &mut self.replicas_deleted,
            PlannedStep::ChangeObject { .. } => return,
        };
        *counted += 1;
        self.interruptions += usize::from(step.interrupts());
    }
}
