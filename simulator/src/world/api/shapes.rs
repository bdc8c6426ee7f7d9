//! The JSON of the API's answers. Fields that the minimal profile lacks are in structs of their
//! own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::world::computes::sizes::Size;
use crate::world::model::{Action, ComputeKind, ComputeSettings, Key, MaintenanceWindow, State};

/// A time as the API writes it: UTC, whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) struct Stamp(pub Timestamp);

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = Timestamp::from_second(self.0.as_second()).unwrap_or(self.0);
        write!(f, "{seconds}")
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ComputeShape<'a> {
    pub id: &'a str,
    pub host: &'a str,
    pub project_id: &'a str,
    pub branch_id: &'a str,
    pub region_id: &'a str,
    #[serde(rename = "type")]
    pub kind: ComputeKind,
    pub autoscaling_limit_min_cu: Size,
    pub autoscaling_limit_max_cu: Size,
    pub current_state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_state: Option<State>,
    pub settings: ComputeSettings,
    pub pooler_enabled: bool,
    pub pooler_mode: &'static str,
    pub disabled: bool,
    pub passwordless_access: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Stamp>,
    pub created_at: Stamp,
    pub updated_at: Stamp,
    pub proxy_host: String,
    #[serde(flatten)]
    pub more: Option<ComputeMore<'a>>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ComputeMore<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    pub creation_source: &'a str,
    pub provisioner: &'a str,
    pub suspend_timeout_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended_at: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_release_version: Option<String>,
    pub hosts: Hosts<'a>,
    pub slug: &'a str,
    pub branch_slug: &'a str,
    pub project_slug: &'a str,
    pub group: Group,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct Hosts<'a> {
    pub read_write_host: &'a str,
    pub read_write_pooled_host: String,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct Group {
    pub size: u32,
    pub computes: [(); 0],
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ComputeList<'a> {
    pub endpoints: Vec<ComputeShape<'a>>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct OneCompute<'a> {
    pub endpoint: ComputeShape<'a>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ComputeAndOperations<'a> {
    pub endpoint: ComputeShape<'a>,
    pub operations: Vec<OperationShape<'a>>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct OperationShape<'a> {
    pub id: &'a str,
    pub project_id: &'a str,
    pub branch_id: &'a str,
    pub endpoint_id: &'a str,
    pub action: Action,
    pub status: OperationStatus,
    pub failures_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    pub created_at: Stamp,
    pub updated_at: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_duration_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::world) enum OperationStatus {
    Scheduling,
    Running,
    Finished,
    /// It will be retried.
    Failed,
    /// It will not be retried.
    Error,
    Cancelled,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct OperationList<'a> {
    pub operations: Vec<OperationShape<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Cursor>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct OneOperation<'a> {
    pub operation: OperationShape<'a>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct Cursor {
    pub cursor: String,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ProjectShape<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub platform_id: &'a str,
    pub region_id: &'a str,
    pub provisioner: &'a str,
    pub pg_version: u32,
    pub cpu_used_sec: u64,
    pub locked: bool,
    pub created_at: Stamp,
    pub updated_at: Stamp,
    pub proxy_host: String,
    pub branch_logical_size_limit: u64,
    #[serde(flatten)]
    pub more: Option<ProjectMore<'a>>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ProjectMore<'a> {
    pub owner_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_name: Option<&'a str>,
    pub creation_source: &'static str,
    pub store_passwords: bool,
    pub active_time: u64,
    pub branch_logical_size_limit_bytes: u64,
    pub history_retention_seconds: u32,
    pub default_endpoint_settings: EndpointDefaults,
    pub settings: ProjectSettings<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance_scheduled_for: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recoverable_until: Option<Stamp>,
    #[serde(flatten)]
    pub usage: Option<ProjectUsage>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct EndpointDefaults {
    pub autoscaling_limit_min_cu: Size,
    pub autoscaling_limit_max_cu: Size,
    pub suspend_timeout_seconds: i64,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ProjectSettings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance_window: Option<&'a MaintenanceWindow>,
    #[serde(flatten)]
    pub stored: &'a BTreeMap<String, serde_json::Value>,
}

/// Fields of a single project that list items lack.
#[derive(Debug, Serialize)]
pub(in crate::world) struct ProjectUsage {
    pub active_time_seconds: u64,
    pub compute_time_seconds: u64,
    pub written_data_bytes: u64,
    pub data_transfer_bytes: u64,
    pub data_storage_bytes_hour: u64,
    pub consumption_period_start: Stamp,
    pub consumption_period_end: Stamp,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ProjectList<'a> {
    pub projects: Vec<ProjectShape<'a>>,
    #[serde(flatten)]
    pub more: Option<ProjectListMore>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ProjectListMore {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination: Option<Cursor>,
    pub applications: BTreeMap<String, ()>,
    pub integrations: BTreeMap<String, ()>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct OneProject<'a> {
    pub project: ProjectShape<'a>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct BranchShape<'a> {
    pub id: &'a str,
    pub project_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<&'a str>,
    pub name: &'a str,
    pub current_state: &'static str,
    pub state_changed_at: Stamp,
    pub creation_source: &'static str,
    pub primary: bool,
    pub default: bool,
    pub protected: bool,
    pub cpu_used_sec: u64,
    pub compute_time_seconds: u64,
    pub active_time_seconds: u64,
    pub written_data_bytes: u64,
    pub data_transfer_bytes: u64,
    pub created_at: Stamp,
    pub updated_at: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_lsn: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_timestamp: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_interval_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reset_at: Option<Stamp>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct BranchAndOperations<'a> {
    pub branch: BranchShape<'a>,
    pub operations: Vec<OperationShape<'a>>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct BranchList<'a> {
    pub branches: Vec<BranchShape<'a>>,
    pub annotations: BTreeMap<String, ()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination: Option<BranchCursor>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct BranchCursor {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub sort_by: String,
    pub sort_order: String,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct OneBranch<'a> {
    pub branch: BranchShape<'a>,
    pub annotation: Annotation<'a>,
}

/// Annotations are not simulated; this is the annotation of a branch that has none.
#[derive(Debug, Serialize)]
pub(in crate::world) struct Annotation<'a> {
    pub object: AnnotatedObject<'a>,
    pub value: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct AnnotatedObject<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub id: &'a str,
}

/// The answer to a key creation, also in the console. It is the only one with the secret.
#[derive(Serialize)]
pub struct CreatedKey {
    pub id: i64,
    pub key: String,
    pub name: String,
    pub created_at: String,
    pub created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}

impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedKey")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl From<&Key> for CreatedKey {
    fn from(key: &Key) -> Self {
        Self {
            id: key.id,
            key: key.token.reveal().to_owned(),
            name: key.name.clone(),
            created_at: Stamp(key.created_at).to_string(),
            created_by: key.created_by.clone(),
            project_id: key.reach.project().map(str::to_owned),
        }
    }
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct ListedKey<'a> {
    pub id: i64,
    pub name: &'a str,
    pub created_at: Stamp,
    pub created_by: Creator<'a>,
    /// Null until the key is first used.
    pub last_used_at: Option<Stamp>,
    pub last_used_from_addr: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct Creator<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub image: &'static str,
}

#[derive(Debug, Serialize)]
pub(in crate::world) struct RevokedKey<'a> {
    pub id: i64,
    pub name: &'a str,
    pub created_at: Stamp,
    pub created_by: &'a str,
    pub last_used_at: Option<Stamp>,
    pub last_used_from_addr: &'a str,
    pub revoked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<&'a str>,
}
