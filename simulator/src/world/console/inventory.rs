//! The console's lists of projects with their branches, and of operations.

use crate::world::World;
use crate::world::api::shapes::{OperationStatus, Stamp};
use crate::world::model::{Action, Operation, Project};

/// A project as the console shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLine {
    pub id: String,
    pub name: String,
    /// The id of a user or of an organization.
    pub owner: String,
    /// True if it belongs to an organization; only such projects can have keys.
    pub of_organization: bool,
    pub region_id: String,
    pub pg_version: u32,
    pub created_at: String,
    pub branches: Vec<BranchLine>,
}

/// A branch as the console shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchLine {
    pub id: String,
    pub name: String,
    pub parent: Option<String>,
    pub default: bool,
    pub protected: bool,
    pub computes: usize,
    pub created_at: String,
}

/// An operation as the console shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationLine {
    pub id: String,
    pub project_id: String,
    pub branch_id: String,
    pub endpoint_id: String,
    /// e.g. `start_compute`.
    pub action: &'static str,
    /// e.g. `running`.
    pub status: &'static str,
    pub under_way: bool,
    pub failures: usize,
    pub error: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

impl Action {
    /// The action as the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            Action::StartCompute => "start_compute",
            Action::SuspendCompute => "suspend_compute",
            Action::ApplyConfig => "apply_config",
            Action::CheckAvailability => "check_availability",
        }
    }
}

impl World {
    pub fn console_projects(&self) -> Vec<ProjectLine> {
        self.projects
            .iter()
            .map(|(_, project)| self.project_line(project))
            .collect()
    }

    /// The latest operations of all projects, newest first.
    pub fn console_operations(&self, most: usize) -> Vec<OperationLine> {
        let mut all: Vec<&Operation> = self
            .operations
            .iter()
            .map(|(_, operation)| operation)
            .collect();
        all.sort_unstable_by_key(|operation| std::cmp::Reverse(operation.number));
        all.into_iter()
            .take(most)
            .map(|operation| self.operation_line(operation))
            .collect()
    }

    fn project_line(&self, project: &Project) -> ProjectLine {
        let computes_on = |branch: &str| {
            let of_project = self.computes_of(&project.id);
            of_project
                .filter(|compute| compute.config.branch_id == branch)
                .count()
        };
        let branches = project.branches.values().map(|branch| BranchLine {
            id: branch.id.clone(),
            name: branch.name.clone(),
            parent: branch.parent.clone(),
            default: branch.default,
            protected: branch.protected,
            computes: computes_on(&branch.id),
            created_at: Stamp(branch.created_at).to_string(),
        });
        ProjectLine {
            id: project.id.clone(),
            name: project.name.clone(),
            owner: project.owner.id().to_owned(),
            of_organization: matches!(project.owner, crate::world::model::Owner::Organization(_)),
            region_id: project.region_id.clone(),
            pg_version: project.pg_version,
            created_at: Stamp(project.created_at).to_string(),
            branches: branches.collect(),
        }
    }

    fn operation_line(&self, operation: &Operation) -> OperationLine {
        let shape = self.operation_shape(operation, self.now);
        OperationLine {
            id: operation.id.clone(),
            project_id: operation.project_id.clone(),
            branch_id: operation.branch_id.clone(),
            endpoint_id: operation.endpoint_id.clone(),
            action: operation.action.name(),
            status: status(shape.status),
            under_way: matches!(
                shape.status,
                OperationStatus::Scheduling | OperationStatus::Running | OperationStatus::Failed
            ),
            failures: shape.failures_count,
            error: if shape.failures_count > 0 {
                operation
                    .failing
                    .as_ref()
                    .map(|failing| failing.error.clone())
            } else {
                None
            },
            created_at: shape.created_at.to_string(),
            updated_at: shape.updated_at.to_string(),
        }
    }
}

fn status(status: OperationStatus) -> &'static str {
    match status {
        OperationStatus::Scheduling => "scheduling",
        OperationStatus::Running => "running",
        OperationStatus::Finished => "finished",
        OperationStatus::Failed => "failed",
        OperationStatus::Error => "error",
        OperationStatus::Cancelled => "cancelled",
    }
}
