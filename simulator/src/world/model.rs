//! What the world holds: plain records, no behaviour but small questions about themselves.

mod projects;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::secret::Token;
use super::sizes::{Plan, Range};
pub use projects::{
    Branch, ComputeDefaults, Database, DeletedProject, Expiry, Maintenance, MaintenanceWindow, Origin, Owner, Project,
};

/// An organization and its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Organization {
    pub id: String,
    pub name: String,
    pub plan: Plan,
    pub members: BTreeMap<String, Role>,
    pub created_at: Timestamp,
}

/// What a member may do in an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Admin,
    Member,
}

/// A person with an account of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub id: String,
    pub name: String,
    pub email: String,
    pub plan: Plan,
}

/// Which of the two kinds a compute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComputeKind {
    ReadWrite,
    ReadOnly,
}

/// What a compute does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Init,
    Idle,
    Active,
}

/// Settings of the database server, as given.
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

/// What a person can set on a compute.
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

/// A compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compute {
    pub id: String,
    pub project_id: String,
    pub host: String,
    pub region_id: String,
    pub kind: ComputeKind,
    pub config: ComputeConfig,
    pub state: State,
    /// What happens next, in order of time.
    pub steps: Vec<Step>,
    /// The size within the range that the load asks for; moves without a restart.
    pub current_size: super::sizes::Size,
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
    /// The state that the change under way leads to next, if one is under way.
    pub fn pending_state(&self) -> Option<State> {
        let settles = || self.steps.last().map(|_| if self.state == State::Init { State::Active } else { self.state });
        self.steps.iter().find_map(|step| step.effect.leads_to()).or_else(settles)
    }
}

/// One thing that happens to a compute at a known time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub at: Timestamp,
    pub effect: Effect,
    /// The number of the operation that this step ends.
    pub operation: u64,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The compute runs; this counts as activity.
    Started,
    Suspended,
    /// A configuration was applied; the state stays.
    Applied,
    /// The platform looked whether the compute starts; not activity.
    Checked,
    /// The platform gave up an operation that failed; nothing was done.
    GaveUp,
}

impl Effect {
    /// The state in which the step leaves the compute, if it changes it.
    pub(super) fn leads_to(self) -> Option<State> {
        match self {
            Effect::Started | Effect::Checked => Some(State::Active),
            Effect::Suspended => Some(State::Idle),
            Effect::Applied | Effect::GaveUp => None,
        }
    }
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    StartCompute,
    SuspendCompute,
    ApplyConfig,
    CheckAvailability,
}

/// An operation. Its status follows from the time: its course is known when it is made, unless it is cancelled.
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
    /// Where people have ordered that it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
}

/// The course of an operation that fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failing {
    /// When each of its tries fails; after the last one it is given up.
    pub at: Vec<Timestamp>,
    pub error: String,
}

/// An order that operations fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureOrder {
    pub action: Action,
    /// How many operations fail.
    #[serde(default = "once")]
    pub operations: u32,
    /// How often each is tried before it is given up.
    #[serde(default = "once")]
    pub tries: u32,
    #[serde(default)]
    pub error: String,
}

fn once() -> u32 {
    1
}

/// An API key.
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

/// The three types of key and what each one is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// A personal key: what its owner's account reaches.
    Personal { user: String },
    /// Every project of one organization.
    Organization { organization: String },
    /// One project, as long as it is in the organization.
    Project { organization: String, project: String },
}

impl Reach {
    /// The account that the key belongs to: its rate is counted there, and in the public profile its names are unique there.
    pub fn account(&self) -> &str {
        match self {
            Reach::Personal { user } => user,
            Reach::Organization { organization } | Reach::Project { organization, .. } => organization,
        }
    }

    /// The project that the key is confined to.
    pub fn project(&self) -> Option<&str> {
        match self {
            Reach::Project { project, .. } => Some(project),
            Reach::Personal { .. } | Reach::Organization { .. } => None,
        }
    }
}
