//! What a Compute's status shows.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::common::Condition;
use super::super::schema;
use super::ComputeType;

/// The last observed state of the compute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::status)]
pub struct ComputeStatus {
    /// The platform's identifier of the compute.
    #[serde(rename = "computeID", default, skip_serializing_if = "Option::is_none")]
    pub compute_id: Option<String>,
    /// ReadWrite, which the platform's console calls Primary, or ReadOnly, which it calls Read Replica.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<ComputeType>,
    /// The platform's identifier of the region that the compute runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// When the compute was created on the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    /// Host name for connecting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Host name of the connection pooler, where the platform shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooled_host: Option<String>,
    /// init, idle or active, as the platform reports it. An idle compute is healthy: it starts when a client connects. With any other word, Ready is Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The state that the compute is changing to; absent when it is not changing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_state: Option<String>,
    /// Whether the compute could serve clients when it was last seen: it was active, or idle. Kept while the platform cannot be asked about it, or shows a state that dbplane does not know; absent until dbplane has seen it. A ReadReplicaSet counts a replica as serving unless this is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_serving: Option<bool>,
    /// Since when the platform cannot be asked about the compute, or does not list it; absent while it can. Until then this status describes what was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub unseen_since: Option<Timestamp>,
    /// The size in force in CU: one number, or a range such as 0.25-4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// What that size provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Box<Capacity>>,
    /// When the compute was last active. While it is active, this is rounded down to the hour, so that use causes no writes here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_active: Option<Timestamp>,
    /// The operation that the last change started on the platform. Where operations are asked for because something takes long or failed: the one that failed, or else the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// The last restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Box<RestartStatus>>,
    /// The regular restarts of spec.maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Box<MaintenanceStatus>>,
    /// What spec.schedules comes to at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Box<ScheduleStatus>>,
    /// What interrupts connections and waits until spec.disruption allows it; absent when nothing waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitingChanges>>,
    /// Settings that the platform has accepted and does not show in force. They are sent again after longer and longer pauses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<NotApplied>,
    /// The Secret with the connection parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_secret: Option<String>,
    /// The same Secret where the Service Binding specification looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<ServiceBinding>,
    /// Secrets of this resource that spec.connection named before, and that still exist. They are not updated any more: delete them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_secrets: Vec<String>,
    /// Ready, Synced; Reconciling and Stalled are present only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What dbplane has recorded of this resource: the compute that it is bound to, and creates and restarts whose outcome is not known. The annotation dbplane.dev/record is a copy of it, for backups without status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The last value of the annotation dbplane.dev/reconcile-requested-at for which the platform was looked at anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation of the spec that this status describes; -1 until dbplane has looked at the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// A Secret to bind workloads to, as the Service Binding specification asks of a provisioned service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceBinding {
    /// Name of the Secret, in this namespace.
    pub name: String,
}

/// What a size provides, from the platform's table of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// vCPUs at the largest size of the range.
    pub vcpu: String,
    /// Memory at the largest size, such as 16GB.
    pub memory: String,
    /// Local file cache at the largest size: 80 percent of memory.
    pub local_file_cache: String,
    /// max_connections of the database; set by the smallest size of the range.
    pub max_connections: u32,
}

/// One operation of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// The platform's identifier of the operation.
    pub id: String,
    /// What it does, such as start_compute.
    pub action: String,
    /// Its status when the platform showed it last, such as running.
    pub status: String,
    /// How often it had failed by then; absent where it had not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// What the platform says of the failure, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A setting that the platform does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotApplied {
    /// The field of the spec, such as scaleToZero.
    pub setting: String,
    /// What is declared, such as after 600s. Of database settings only their names.
    pub declared: String,
    /// When it was sent first.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
}

/// Changes that wait; they are made together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingChanges {
    /// Each of them, such as size is 1, declared is 2.
    pub changes: String,
    /// Since when something waits without a break.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
    /// When they are made at the latest: the next window, or the deadline. Absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub until: Option<Timestamp>,
}

/// A restart that people asked for, or that spec.maintenance did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartStatus {
    /// What asked for it: spec.restartToken and the value of the annotation dbplane.dev/restart, and for a regular one its time. Empty where nothing has asked yet.
    #[serde(default)]
    pub token: String,
    /// When dbplane first saw that it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub requested_at: Option<Timestamp>,
    /// When the compute was seen to be ready after it; absent while it waits or is being made. Where the compute was idle, when it was left to the next connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub completed_at: Option<Timestamp>,
}

/// The regular restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceStatus {
    /// When the next one is due, with the length by which this compute is later than the schedule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_restart: Option<Timestamp>,
    /// The last time of the schedule for which no restart could be made before its deadline; absent once a later one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub missed: Option<Timestamp>,
}

/// What spec.schedules comes to at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleStatus {
    /// The entries that apply now; none where spec.size and spec.scaleToZero apply.
    pub applies: String,
    /// Entries whose time it is and that set nothing, since entries before them in the list set the same fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<String>,
    /// What changes next, such as 2026-11-23T07:00:00Z size 4 (office-hours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
