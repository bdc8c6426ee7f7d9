//! ReadReplicaSet: a number of read replicas of one branch, each a Compute.

mod template;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use template::{ReplicaMetadata, ReplicaSpec, ReplicaTemplate};

use super::common::Condition;
use super::compute::{Connection, ServiceBinding};
use super::{rules, schema};

/// A number of read replicas of one branch, each a Compute.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "dbplane.dev",
    version = "v1alpha1",
    kind = "ReadReplicaSet",
    doc = "A number of read replicas of one branch, each a Compute that this resource creates and owns.",
    plural = "readreplicasets",
    shortname = "dbrrs",
    category = "dbplane",
    namespaced,
    status = "ReadReplicaSetStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(
        name = "Up-To-Date",
        type_ = "integer",
        json_path = ".status.updatedReplicas"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.readyReplicas"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
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
        name = "Branch",
        type_ = "string",
        priority = 1,
        json_path = ".spec.template.spec.branchID"
    ),
    printcolumn(
        name = "Hosts",
        type_ = "integer",
        priority = 1,
        json_path = ".status.hosts"
    ),
    printcolumn(
        name = "Secret",
        type_ = "string",
        priority = 1,
        json_path = ".status.connectionSecret"
    ),
    printcolumn(
        name = "Selector",
        type_ = "string",
        priority = 1,
        json_path = ".status.selector"
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
    "self.selector.matchLabels.all(key, has(self.template.metadata.labels) && key in self.template.metadata.labels \
     && self.template.metadata.labels[key] == self.selector.matchLabels[key])",
    "add the labels of spec.selector.matchLabels to spec.template.metadata.labels: otherwise the set would not find its own replicas",
).field_path(".template.metadata.labels"))]
pub struct ReadReplicaSetSpec {
    /// Number of read replicas, 0 to 100; 1 when absent. If an autoscaler sets it, leave it out of manifests in Git.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: u32,
    /// Selects the Computes of this set. Besides those that it created, the set adopts ReadOnly Computes of the same project with these labels that no other resource controls. Cannot be changed.
    #[x_kube(validation = rules::immutable("create another ReadReplicaSet"))]
    pub selector: ReplicaSelector,
    /// The template for each replica.
    pub template: ReplicaTemplate,
    /// How dbplane changes replicas.
    #[serde(default)]
    pub strategy: ReplicaStrategy,
    /// A Secret with the hosts of all replicas, for clients that distribute their connections; none when absent. Its entries host and uri list every replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
}

fn one() -> u32 {
    1
}

/// Selects Computes by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSelector {
    /// Labels that each Compute of the set has, 1 to 32.
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys(), validation = rules::label_values())]
    #[x_kube(validation = rules::demand("self.size() > 0", "name at least one label: an empty selector would select every Compute"))]
    pub match_labels: BTreeMap<String, String>,
}

/// How dbplane changes replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStrategy {
    /// Maximum number of replicas beyond spec.replicas while dbplane replaces replicas after a change of branchID: a number, or a percentage of spec.replicas, rounded up; 1 when absent. With 0, dbplane deletes an old replica before it creates a new one. It deletes an old replica that it cannot observe once spec.replicas other replicas are ready.
    #[serde(default = "Share::one")]
    #[x_kube(validation = rules::share(0))]
    pub max_surge: Share,
    /// Maximum number of replicas that dbplane changes at the same time: a number, or a percentage of spec.replicas, rounded down and at least 1; 1 when absent. Replicas that are not ready count. A replica that dbplane cannot observe counts too and is not changed. A replica that was last observed as not serving is changed at once. Changes that interrupt connections also wait for the disruption of the template.
    #[serde(default = "Share::one")]
    #[x_kube(validation = rules::share(1))]
    pub max_unavailable: Share,
}

impl Default for ReplicaStrategy {
    fn default() -> Self {
        Self {
            max_surge: Share::one(),
            max_unavailable: Share::one(),
        }
    }
}

/// A number, or a percentage such as 25%.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub IntOrString);

impl Share {
    fn one() -> Self {
        Self(IntOrString::Int(1))
    }
}

impl JsonSchema for Share {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // kube treats a field that may be left out as nullable, unless this says otherwise.
        // `definitions` removes it again.
        json_schema!({"x-kubernetes-int-or-string": true, "maxLength": 8, "nullable": false})
    }
}

/// The last observed state of the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::status)]
pub struct ReadReplicaSetStatus {
    /// Number of Computes of the set, without those that are being deleted.
    #[serde(default)]
    pub replicas: u32,
    /// Number of Computes that are Ready.
    #[serde(default)]
    pub ready_replicas: u32,
    /// Number of Computes that match spec.template, on the platform too.
    #[serde(default)]
    pub updated_replicas: u32,
    /// Number of Computes that have a host to connect to.
    #[serde(default)]
    pub hosts: u32,
    /// The selector as text, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
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
    /// The last value of the annotation dbplane.dev/reconcile-requested-at that dbplane has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation of the spec that this status describes; -1 until dbplane has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
