//! The attributes of a project that requests may set, and the call that changes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::world::api::errors::Refusal;
use crate::world::api::message::Reply;
use crate::world::api::shapes::{OperationShape, ProjectShape};
use crate::world::computes::config::{ComputeRequest, Rules, initial_range, parse_json};
use crate::world::model::{Action, MaintenanceWindow, Operation, Project, State};
use crate::world::{ComputeKey, Context, World};

/// Stored settings. Only the first has a simulated effect: it suspends running computes.
const STORED: [&str; 8] = [
    LOGICAL_REPLICATION,
    "allowed_ips",
    "audit_log_level",
    "block_public_connections",
    "block_vpc_connections",
    "hipaa",
    "preload_libraries",
    "quota",
];
const LOGICAL_REPLICATION: &str = "enable_logical_replication";

/// `{"project": {...}}` of a creation or change. Unknown attributes are ignored, and null equals
/// absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::world) struct ProjectRequest {
    pub name: Option<String>,
    pub org_id: Option<String>,
    pub region_id: Option<String>,
    pub pg_version: Option<u32>,
    branch: Option<FirstBranch>,
    /// Sizes and suspend timeout of future computes, named as in a compute.
    default_endpoint_settings: Option<ComputeRequest>,
    settings: Option<Map<String, Value>>,
}

/// The first branch of a new project.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FirstBranch {
    name: Option<String>,
    database_name: Option<String>,
    role_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Wrapped {
    #[serde(default)]
    project: ProjectRequest,
}

#[derive(Debug, Serialize)]
struct UpdatedProject<'a> {
    project: ProjectShape<'a>,
    operations: Vec<OperationShape<'a>>,
}

impl ProjectRequest {
    pub fn parse(body: &[u8]) -> Result<Self, Refusal> {
        parse_json(body).map(|Wrapped { project }| project)
    }

    /// Applies the attributes that creations and changes share, and the names of a new project.
    pub fn apply(&self, project: &mut Project, rules: Rules) -> Result<(), Refusal> {
        if let Some(defaults) = &self.default_endpoint_settings {
            defaults.check(&project.region_id)?;
            let range = defaults.range(initial_range(&project.defaults, rules), rules)?;
            project.defaults.range = defaults
                .has_range()
                .then_some(range)
                .or(project.defaults.range);
            let seconds =
                defaults.suspend_timeout(project.defaults.suspend_timeout_seconds, rules)?;
            project.defaults.suspend_timeout_seconds = seconds;
        }
        if let Some(settings) = &self.settings {
            apply_settings(settings, project)?;
        }
        project.name = self.name.clone().unwrap_or_else(|| project.name.clone());
        Ok(())
    }

    /// Sets the names of the first branch, its database and its role.
    pub fn name_first_branch(&self, project: &mut Project) {
        let Some(first) = &self.branch else { return };
        if let (Some(name), Some(branch)) = (&first.name, project.branches.values_mut().next()) {
            branch.name.clone_from(name);
        }
        if let Some(name) = &first.database_name {
            project.database.role = format!("{name}_owner");
            project.database.name.clone_from(name);
        }
        if let Some(role) = &first.role_name {
            project.database.role.clone_from(role);
        }
    }
}

impl World {
    pub(in crate::world) fn update_project(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Reply, Refusal> {
        let request = ProjectRequest::parse(&context.request.body)?;
        let mut changed = self.project(context)?.clone();
        let (rules, before) = (self.rules(&changed), replicates(&changed));
        request.apply(&mut changed, rules)?;
        let operations = if replicates(&changed) && !before {
            self.suspend_all(context, &changed.id)?
        } else {
            Vec::new()
        };
        changed.updated_at = context.now;
        self.projects.insert(changed.id.clone(), changed);
        let project = self.project(context)?;
        Ok(Reply::ok(&UpdatedProject {
            project: self.project_shape(project, true),
            operations: operations
                .iter()
                .map(|operation| self.operation_shape(operation, context.now))
                .collect(),
        }))
    }

    fn suspend_all(
        &mut self,
        context: &Context<'_>,
        project_id: &str,
    ) -> Result<Vec<Operation>, Refusal> {
        let active = self
            .computes_of(project_id)
            .filter(|compute| compute.state == State::Active);
        let active: Vec<ComputeKey> = active
            .map(|compute| (project_id.to_owned(), compute.id.clone()))
            .collect();
        active
            .iter()
            .try_for_each(|key| self.refuse_when_busy(key))?;
        Ok(active
            .iter()
            .flat_map(|key| self.schedule(key, &[Action::SuspendCompute], context.now))
            .collect())
    }
}

fn replicates(project: &Project) -> bool {
    project.settings.get(LOGICAL_REPLICATION) == Some(&Value::Bool(true))
}

/// Settings that are absent stay unchanged.
fn apply_settings(given: &Map<String, Value>, project: &mut Project) -> Result<(), Refusal> {
    if let Some(window) = given.get("maintenance_window") {
        let window: MaintenanceWindow = serde_json::from_value(window.clone())
            .map_err(|error| Refusal::invalid(format!("settings.maintenance_window: {error}")))?;
        project.maintenance.window = Some(window);
    }
    if replicates(project) && given.get(LOGICAL_REPLICATION) == Some(&Value::Bool(false)) {
        return Err(Refusal::invalid("logical replication cannot be disabled"));
    }
    let stored = given
        .iter()
        .filter(|(name, value)| STORED.contains(&name.as_str()) && !value.is_null());
    project
        .settings
        .extend(stored.map(|(name, value)| (name.clone(), value.clone())));
    Ok(())
}
