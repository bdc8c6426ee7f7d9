//! Compute: one compute (an endpoint of the platform's API) of one branch.

mod connection;
mod status;
mod times;

use std::collections::{BTreeMap, BTreeSet};

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connection::{Connection, CredentialsFrom};
pub use status::{
    Capacity, ComputeStatus, LastOperation, MaintenanceStatus, NotApplied, RestartStatus,
    ScheduleStatus, ServiceBinding, WaitingChanges,
};
pub use times::{
    Disruption, DisruptionPolicy, Maintenance, MaintenanceRestart, Schedule, ScheduledDisruption,
    Window,
};

use super::common::{AccountRef, Duration};
use super::units::autoscaling_sizes;
use super::{rules, schema};
use crate::domain::{BranchId, ComputeId, ComputeUnits, ProjectId};

/// One compute of one branch. The platform chooses the values of fields that are not set, and dbplane does not enforce them.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "dbplane.dev",
    version = "v1alpha1",
    kind = "Compute",
    doc = "One compute (an endpoint of the platform's API) of one branch.",
    plural = "computes",
    shortname = "dbc",
    category = "dbplane",
    namespaced,
    status = "ComputeStatus",
    derive = "PartialEq",
    selectable = ".spec.projectID",
    selectable = ".spec.branchID",
    validation = rules::own_compute(),
    validation = rules::fixed_while(
        &rules::recorded(&RECORDED),
        "projectID",
        "create another Compute for another project",
    ),
    validation = rules::fixed_while(
        &rules::recorded(&RECORDED),
        "type",
        "create another Compute of the other type",
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Size", type_ = "string", json_path = ".status.size"),
    printcolumn(name = "Compute", type_ = "string", json_path = ".status.computeID"),
    printcolumn(name = "Branch", type_ = "string", json_path = ".spec.branchID"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Schedule",
        type_ = "string",
        priority = 1,
        json_path = ".status.schedule.applies"
    ),
    printcolumn(
        name = "Next",
        type_ = "string",
        priority = 1,
        json_path = ".status.schedule.next"
    ),
    printcolumn(
        name = "Waiting",
        type_ = "string",
        priority = 1,
        json_path = ".status.waiting.changes"
    ),
    printcolumn(
        name = "Host",
        type_ = "string",
        priority = 1,
        json_path = ".status.host"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Ready\")].message"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
#[x_kube(validation = rules::demand(
    "self.type != 'ReadOnly' || self.existing != 'Adopt' || has(self.computeID)",
    "existing: Adopt finds the primary compute of a branch; to adopt a read replica, name it in computeID",
))]
#[x_kube(validation = rules::demand(
    "self.type != 'ReadOnly' || self.management != 'Observe' || has(self.computeID)",
    "a branch can have several read replicas; name the one to observe in computeID",
))]
#[x_kube(validation = rules::scheduled("size"))]
#[x_kube(validation = rules::scheduled("scaleToZero"))]
pub struct ComputeSpec {
    /// The account whose credentials dbplane uses.
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub account_ref: AccountRef,
    /// The platform's identifier of the project that the compute belongs to. Cannot be changed once dbplane has a compute for this resource, or has asked for one.
    #[schemars(length(max = 60))]
    #[x_kube(validation = rules::identifier())]
    #[serde(rename = "projectID")]
    pub project_id: ProjectId,
    /// The platform's identifier of the branch that the compute serves. Changing it moves the compute to that branch, which interrupts connections. That branch must not have a primary compute yet.
    #[schemars(length(max = 60))]
    #[x_kube(validation = rules::identifier())]
    #[serde(rename = "branchID")]
    pub branch_id: BranchId,
    /// ReadWrite for the primary compute (at most one per branch), ReadOnly for a read replica. Cannot be changed once dbplane has a compute for this resource, or has asked for one.
    #[serde(rename = "type")]
    pub type_: ComputeType,
    /// A fixed size or an autoscaling range: exactly one of fixed and autoscaling. When absent, the platform chooses the size and dbplane does not change it. Changing the size or the range restarts the compute, which interrupts connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::exactly_one_of("fixed", "autoscaling"), merge_strategy = MapMerge::Atomic)]
    pub size: Option<Size>,
    /// The time after which an inactive compute suspends: exactly one of after and never. When absent, the platform chooses (usually 5 minutes) and dbplane does not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::exactly_one_of("after", "never"), merge_strategy = MapMerge::Atomic)]
    pub scale_to_zero: Option<ScaleToZero>,
    /// Connection pooling in front of the compute. When absent, the platform chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Pooler>,
    /// Database settings by name, such as work_mem: 64MB; at most 128. Values are text: quote numbers. dbplane does not change settings that are not named here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::settings")]
    #[x_kube(validation = rules::setting_names(), validation = rules::setting_values())]
    pub postgres_settings: BTreeMap<String, String>,
    /// Allow connections without a password. When absent, the platform chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passwordless_access: Option<bool>,
    /// Refuse all connections to the compute. When absent, the platform chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// How to handle a primary compute of the branch that this resource did not create. Refuse (the default) reports it and changes nothing. Adopt manages it from then on.
    #[serde(default)]
    pub existing: Existing,
    /// The platform's identifier (ep-...) of an existing compute to import instead of creating one. It can be added later. While this resource has a compute, it can only name that one, or be removed.
    #[serde(rename = "computeID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 60))]
    #[x_kube(validation = rules::compute_id())]
    pub compute_id: Option<ComputeId>,
    /// How to handle a compute that was deleted on the platform while this resource still exists. Recreate (the default) creates another one, which has a different host. Report changes nothing and reports it. A compute that was imported with computeID is never recreated.
    #[serde(default)]
    pub on_missing: OnMissing,
    /// Fields that dbplane sets when it creates the compute and never changes afterwards, so that users or another controller can: size, scaleToZero, pooler, postgresSettings, passwordlessAccess, disabled.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(length(max = 6))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub ignore: BTreeSet<IgnoredField>,
    /// Full (the default) creates, changes, restarts and deletes the compute to match this resource. Observe changes nothing on the platform and reports differences in the status.
    #[serde(default)]
    pub management: Management,
    /// How to handle the compute when this resource is deleted: Delete (the default) deletes it, Orphan keeps it running.
    #[serde(default)]
    pub deletion: Deletion,
    /// true: a deletion of this resource waits until this is false, so that the compute is not deleted. It can be changed while the deletion waits. With deletion: Orphan this field has no effect.
    #[serde(default)]
    pub deletion_protection: bool,
    /// When dbplane may make changes that interrupt connections (size, branch, restart). When absent, it makes them at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub disruption: Option<Box<Disruption>>,
    /// Regular maintenance of the compute; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub maintenance: Option<Box<Maintenance>>,
    /// Sizes and suspension at recurring times. If several active entries set the same field, the first in this list wins. While no entry is active, size and scaleToZero apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(validation = rules::distinct_names(), merge_strategy = ListMerge::Atomic)]
    pub schedules: Vec<Schedule>,
    /// Any change of this text restarts the compute once, when disruption allows it; removing the text does not. 1 to 128 characters, such as a date. dbplane does not wake an idle compute for a restart: the next connection starts it anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub restart_token: Option<String>,
    /// A Secret that dbplane writes with the parameters for connecting; none when absent. User and password come from the Secret in credentialsFrom, because the platform's API does not return them to dbplane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Box<Connection>>,
}

/// The parts of the record in which a Compute has a compute, or may have one.
const RECORDED: [&str; 5] = ["binding", "intent", "unanswered", "made", "twins"];

/// The role of a compute on its branch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum ComputeType {
    /// The branch's primary compute.
    ReadWrite,
    /// A read replica.
    ReadOnly,
}

/// Exactly one of fixed and autoscaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// A fixed size in compute units (CU): 0.25, 0.5, 1 to 16, or an even number from 18 to 56. One CU is 1 vCPU and 4 GB of memory. Some platforms never suspend a compute above 16 CU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<ComputeUnits>,
    /// A range within which the platform resizes the compute without interrupting connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
}

/// A range of sizes within 0.25 to 16 CU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::demand("self.min <= self.max", "min is above max: exchange them"))]
pub struct Autoscaling {
    /// The smallest size in compute units (CU), at most max. It also sets the number of connections that the database admits.
    #[schemars(schema_with = "autoscaling_sizes")]
    pub min: ComputeUnits,
    /// The largest size in compute units (CU), at most 16. Some platforms and plans allow less.
    #[schemars(schema_with = "autoscaling_sizes")]
    pub max: ComputeUnits,
}

/// Exactly one of after and never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleToZero {
    /// Suspend after this long without activity, 1m to 168h, such as 5m or 1h30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1m", "168h"))]
    pub after: Option<Duration>,
    /// true: never suspend. Such a compute gets the platform's updates only when it restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::demand("self", "write never: true, or remove never and set after"))]
    pub never: Option<bool>,
}

/// Connection pooling in front of the compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pooler {
    /// true: connections go through the pooler.
    pub enabled: bool,
    /// How the pooler shares connections: Transaction assigns a server connection for one transaction. When absent, the platform chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PoolerMode>,
}

/// How the pooler shares connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PoolerMode {
    /// Assign a server connection for one transaction.
    Transaction,
}

/// How to handle an existing compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Existing {
    /// Report it and change nothing.
    #[default]
    Refuse,
    /// Manage it from then on.
    Adopt,
}

/// How to handle a compute that no longer exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnMissing {
    /// Create another one.
    #[default]
    Recreate,
    /// Report it and change nothing.
    Report,
}

/// A field of the spec that dbplane can leave to others.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum IgnoredField {
    /// spec.size.
    Size,
    /// spec.scaleToZero.
    ScaleToZero,
    /// spec.pooler.
    Pooler,
    /// spec.postgresSettings.
    PostgresSettings,
    /// spec.passwordlessAccess.
    PasswordlessAccess,
    /// spec.disabled.
    Disabled,
}

/// The changes that dbplane may make to the compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Management {
    /// Create, change, restart and delete.
    #[default]
    Full,
    /// Report only.
    Observe,
}

/// How to handle the platform's compute when the resource is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Deletion {
    /// Delete the compute.
    #[default]
    Delete,
    /// Keep the compute running.
    Orphan,
}
