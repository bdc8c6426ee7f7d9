//! The status of a Compute.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ComputeType;
use crate::api::common::Condition;
use crate::api::schema;
use crate::domain::ComputeId;

/// The last observed state of the compute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::status)]
pub struct ComputeStatus {
    /// The platform's identifier of the compute.
    #[serde(rename = "computeID", default, skip_serializing_if = "Option::is_none")]
    pub compute_id: Option<ComputeId>,
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
    /// init, idle or active, as the platform reports it. An idle compute is healthy: it starts when a client connects. With any other value, Ready is Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The state that the compute is changing to; absent when it is not changing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_state: Option<String>,
    /// true if the compute could serve clients when dbplane last observed it, so if it was active or idle. The value is kept while dbplane cannot read the compute, or the platform shows an unknown state. Absent until the first observation. A ReadReplicaSet counts a replica as serving unless this is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_serving: Option<bool>,
    /// Since when dbplane cannot read the compute, or the platform does not list it; absent while dbplane can read it. Meanwhile this status describes the last observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub unseen_since: Option<Timestamp>,
    /// The current size in CU: one number, or a range such as 0.25-4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The resources that this size provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Box<Capacity>>,
    /// When the compute was last active. While it is active, the time is rounded down to the hour, so that use of the compute does not cause writes here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_active: Option<Timestamp>,
    /// The operation that the last change started on the platform. If a change takes long or fails, dbplane reads the list of operations and shows the failed one, or else the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// The last restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Box<RestartStatus>>,
    /// The regular restarts of spec.maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Box<MaintenanceStatus>>,
    /// The current effect of spec.schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Box<ScheduleStatus>>,
    /// Changes that interrupt connections and wait until spec.disruption allows them; absent when nothing waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitingChanges>>,
    /// Settings that the platform accepted but does not show as applied. dbplane sends them again, at growing intervals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<NotApplied>,
    /// The Secret with the connection parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_secret: Option<String>,
    /// The same Secret, in the field that the Service Binding specification defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<ServiceBinding>,
    /// Secrets of this resource that spec.connection named earlier and that still exist. dbplane no longer updates them: delete them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_secrets: Vec<String>,
    /// Ready, Synced; Reconciling and Stalled are present only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// dbplane's record: the compute that this resource is bound to, and creates and restarts with an unknown outcome. The annotation dbplane.dev/record is a copy, for backups without status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The last value of the annotation dbplane.dev/reconcile-requested-at that dbplane has handled by reading the platform again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation of the spec that this status describes; -1 until dbplane has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The Secret to bind workloads to, as the Service Binding specification requires from a provisioned service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceBinding {
    /// Name of the Secret, in this namespace.
    pub name: String,
}

/// The resources that a size provides, from the platform's table of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// vCPUs at the largest size of the range.
    pub vcpu: String,
    /// Memory at the largest size, such as 16GB.
    pub memory: String,
    /// Local file cache at the largest size: 80 percent of memory.
    pub local_file_cache: String,
    /// max_connections of the database; determined by the smallest size of the range.
    pub max_connections: u32,
}

/// One operation of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// The platform's identifier of the operation.
    pub id: String,
    /// The action of the operation, such as start_compute.
    pub action: String,
    /// The status of the operation when dbplane last read it, such as running.
    pub status: String,
    /// Number of failures by then; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// The platform's message about the failure, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A setting that the platform does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotApplied {
    /// The field of the spec, such as scaleToZero.
    pub setting: String,
    /// The declared value, such as after 600s. For database settings only their names.
    pub declared: String,
    /// When dbplane first sent it.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
}

/// Changes that wait. dbplane makes them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingChanges {
    /// The changes, such as size is 1, declared is 2.
    pub changes: String,
    /// Since when changes have been waiting without interruption.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
    /// When dbplane makes them at the latest: the next window, or the deadline. Absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub until: Option<Timestamp>,
}

/// A restart that a user or spec.maintenance requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestartStatus {
    /// The request: spec.restartToken and the value of the annotation dbplane.dev/restart, or the scheduled time of a regular restart. Empty if there was no request yet.
    #[serde(default)]
    pub token: String,
    /// When dbplane first saw the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub requested_at: Option<Timestamp>,
    /// When dbplane first observed the compute as ready after the restart; absent while the restart waits or is in progress. If the compute was idle: when dbplane left the restart to the next connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub completed_at: Option<Timestamp>,
}

/// Regular restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceStatus {
    /// When the next restart is due, including this compute's own delay (see jitter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub next_restart: Option<Timestamp>,
    /// The last scheduled time whose restart was not possible before its deadline; absent after a later restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub missed: Option<Timestamp>,
}

/// The current effect of spec.schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleStatus {
    /// The entries that apply now; none while spec.size and spec.scaleToZero apply.
    pub applies: String,
    /// Active entries without an effect, because earlier entries in the list set the same fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<String>,
    /// The next change, such as 2026-11-23T07:00:00Z size 4 (office-hours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
