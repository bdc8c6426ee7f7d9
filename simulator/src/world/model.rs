//! The records of the world.

mod projects;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::world::computes::sizes::{Plan, Range};
use crate::world::keys::secret::Token;
pub use projects::{
    Branch, ComputeDefaults, Database, DeletedProject, Expiry, Maintenance, MaintenanceWindow,
    Origin, Owner, Project,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Organization {
    pub id: String,
    pub name: String,
    pub plan: Plan,
    pub members: BTreeMap<String, Role>,
    pub created_at: Timestamp,
}

/// A member's role in an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Admin,
    Member,
}

/// A user account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: String,
    pub name: String,
    pub email: String,
    pub plan: Plan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComputeKind {
    ReadWrite,
    ReadOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Init,
    Idle,
    Active,
}

/// Settings of the database server, as the request gave them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComputeSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pg_settings: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pgbouncer_settings: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload_libraries: Option<PreloadLibraries>,
}

/// Libraries loaded when the database server starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PreloadLibraries {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_defaults: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_libraries: Option<Vec<String>>,
}

/// The configurable part of a compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComputeConfig {
    pub branch_id: String,
    pub range: Range,
    pub settings: ComputeSettings,
    pub pooler_enabled: bool,
    pub disabled: bool,
    pub passwordless_access: bool,
    /// Seconds; 0 is the default, -1 is never.
    pub suspend_timeout_seconds: i64,
    pub provisioner: String,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compute {
    pub id: String,
    pub project_id: String,
    pub host: String,
    pub region_id: String,
    pub kind: ComputeKind,
    pub config: ComputeConfig,
    pub state: State,
    /// Pending steps, in order of time.
    pub steps: Vec<Step>,
    /// The size that the load asks for, within the range. It changes without a restart.
    pub current_size: crate::world::computes::sizes::Size,
    /// How often running connections were interrupted.
    pub interruptions: u64,
    pub creation_source: String,
    pub last_active: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub suspended_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Compute {
    /// The next state of a compute with pending steps.
    pub fn pending_state(&self) -> Option<State> {
        let settles = || {
            self.steps.last().map(|_| {
                if self.state == State::Init {
                    State::Active
                } else {
                    self.state
                }
            })
        };
        self.steps
            .iter()
            .find_map(|step| step.effect.leads_to())
            .or_else(settles)
    }
}

/// A scheduled change of a compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub at: Timestamp,
    pub effect: Effect,
    /// The number of the operation that ends with this step.
    pub operation: u64,
}

/// The effect of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The compute runs; counts as activity.
    Started,
    Suspended,
    /// A configuration was applied; the state is unchanged.
    Applied,
    /// The platform checked that the compute can start; no activity.
    Checked,
    /// The platform gave up a failed operation without any effect.
    GaveUp,
}

impl Effect {
    /// The state after the step, if it changes the state.
    pub(super) fn leads_to(self) -> Option<State> {
        match self {
            Effect::Started | Effect::Checked => Some(State::Active),
            Effect::Suspended => Some(State::Idle),
            Effect::Applied | Effect::GaveUp => None,
        }
    }
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    StartCompute,
    SuspendCompute,
    ApplyConfig,
    CheckAvailability,
}

/// An operation. Its course is fixed at creation unless it is cancelled, so its status follows from
/// the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    pub id: String,
    pub number: u64,
    pub project_id: String,
    pub branch_id: String,
    pub endpoint_id: String,
    pub action: Action,
    pub created_at: Timestamp,
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
    pub cancelled_at: Option<Timestamp>,
    /// Set if the operation was ordered to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
}

/// The course of a failing operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failing {
    /// The time of each failed try; the platform gives up after the last one.
    pub at: Vec<Timestamp>,
    pub error: String,
}

/// An order for failing operations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureOrder {
    pub action: Action,
    /// Number of operations that fail.
    #[serde(default = "once")]
    pub operations: u32,
    /// Number of tries of each operation.
    #[serde(default = "once")]
    pub tries: u32,
    #[serde(default)]
    pub error: String,
}

fn once() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Key {
    pub id: i64,
    pub token: Token,
    pub name: String,
    pub reach: Reach,
    pub created_by: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub last_used_from_addr: String,
    pub revoked_at: Option<Timestamp>,
}

/// The three types of key with their scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// A personal key: everything that its user has access to.
    Personal { user: String },
    /// Every project of an organization.
    Organization { organization: String },
    /// One project, as long as it belongs to the organization.
    Project {
        organization: String,
        project: String,
    },
}

impl Reach {
    /// The account that owns the key. Rate limits count per account; in the public profile, names
    /// are unique per account.
    pub fn account(&self) -> &str {
        match self {
            Reach::Personal { user } => user,
            Reach::Organization { organization } | Reach::Project { organization, .. } => {
                organization
            }
        }
    }

    /// The project that the key is limited to.
    pub fn project(&self) -> Option<&str> {
        match self {
            Reach::Project { project, .. } => Some(project),
            Reach::Personal { .. } | Reach::Organization { .. } => None,
        }
    }
}
