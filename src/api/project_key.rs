//! ProjectKey: one project-scoped API key of an organization, and its Secret.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::account::default_secret_key;
use super::common::{AccountRef, Condition, Duration};
use super::{rules, schema};
use crate::domain::{KeyId, ProjectId};

/// One project-scoped API key of the account's organization, and the Secret for it.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "dbplane.dev",
    version = "v1alpha1",
    kind = "ProjectKey",
    doc = "One project-scoped API key of the account's organization, and the Secret for it.",
    plural = "projectkeys",
    shortname = "dbkey",
    category = "dbplane",
    namespaced,
    status = "ProjectKeyStatus",
    derive = "PartialEq",
    validation = rules::fixed_while(&rules::recorded(&RECORDED), "projectID", ANOTHER_KEY),
    validation = rules::fixed_while(&rules::recorded(&RECORDED), "keyName", ANOTHER_KEY),
    validation = rules::fixed_while(&rules::recorded(&RECORDED), "secret.name", ANOTHER_KEY),
    validation = rules::fixed_while(&rules::recorded(&RECORDED), "secret.key", ANOTHER_KEY),
    selectable = ".spec.projectID",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Key", type_ = "integer", json_path = ".status.keyID"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secretName"),
    printcolumn(name = "Project", type_ = "string", json_path = ".spec.projectID"),
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
        name = "Key-Name",
        type_ = "string",
        priority = 1,
        json_path = ".status.keyName"
    ),
    printcolumn(
        name = "Last-Used",
        type_ = "date",
        priority = 1,
        json_path = ".status.lastUsedAt"
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
pub struct ProjectKeySpec {
    /// The account whose credentials create the key. Its API key must be a personal one of an administrator of its organization.
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub account_ref: AccountRef,
    /// The platform's identifier of the project that the key is scoped to. Cannot be changed once there is a key, or dbplane has asked for one.
    #[schemars(length(max = 60))]
    #[x_kube(validation = rules::identifier())]
    #[serde(rename = "projectID")]
    pub project_id: ProjectId,
    /// The beginning of the key's name in the platform's console, 1 to 32 characters. dbplane appends a unique part. When absent: the name of this resource, shortened if necessary. Cannot be changed once there is a key, or dbplane has asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::key_name())]
    pub key_name: Option<String>,
    /// The Secret that receives the key, in this namespace.
    pub secret: KeySecret,
    /// Regular replacement of the key; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub rotation: Option<Rotation>,
    /// How to handle a key that the platform no longer accepts: Recreate (the default) creates another key and writes it to the Secret, Report only reports it.
    #[serde(default)]
    pub on_revoked: OnRevoked,
    /// How to handle the key when this resource is deleted. Revoke (the default) revokes it. If the platform offers no call for that, the deletion waits until a user has revoked the key in the console. Orphan keeps the key valid.
    #[serde(default)]
    pub deletion: KeyDeletion,
}

/// The parts of the record in which a ProjectKey has keys, or may have some.
const RECORDED: [&str; 4] = ["current", "previous", "lost", "intent"];

const ANOTHER_KEY: &str =
    "create another ProjectKey, and delete this one when nothing uses its key any more";

/// The Secret that receives a key. The ProjectKey creates and owns it. dbplane never writes to an existing Secret of another owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::demand(
    "!has(self.template) || !(self.key in self.template)",
    "the entry named by key is the API key itself: give the entry in template another name",
).field_path(".template"))]
#[x_kube(validation = rules::demand(
    "!has(self.previousKey) || self.previousKey != self.key && (!has(self.template) || !(self.previousKey in self.template))",
    "name an entry that neither key nor template names",
).field_path(".previousKey"))]
pub struct KeySecret {
    /// Name of the Secret. This resource creates and owns it. dbplane never writes to an existing Secret of another owner. Cannot be changed once there is a key, or dbplane has asked for one.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Key within its data for the API key; api-key when absent. Cannot be changed once there is a key, or dbplane has asked for one.
    #[serde(default = "default_secret_key")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_data_key())]
    pub key: String,
    /// Key within its data for the previous API key, as long as the replaced key is valid. When absent, the Secret does not keep the previous key. Applies from the next rotation on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_data_key())]
    pub previous_key: Option<String>,
    /// The type of the Secret; Opaque when absent. Kubernetes' own types are rejected: they require entries that the Secret does not have before the key exists. Cannot be changed.
    #[serde(rename = "type", default = "opaque")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_type())]
    #[x_kube(validation = rules::immutable(ANOTHER_KEY))]
    pub type_: String,
    /// Labels for the Secret, at most 32. Keys under dbplane.dev/ are reserved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys(), validation = rules::label_values())]
    pub labels: BTreeMap<String, String>,
    /// Annotations for the Secret, at most 32. Keys under dbplane.dev/ are reserved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys())]
    pub annotations: BTreeMap<String, String>,
    /// Further entries of the Secret's data, at most 32, by name. In their text, dbplane replaces {{ key }}, {{ keyID }}, {{ keyName }}, {{ projectID }} and {{ baseURL }}.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    #[x_kube(validation = rules::secret_data_keys(), validation = rules::placeholders(&["key", "keyID", "keyName", "projectID", "baseURL"]))]
    pub template: BTreeMap<String, String>,
}

fn opaque() -> String {
    "Opaque".to_owned()
}

/// Regular replacement of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::shorter_than("overlap", "every"))]
#[x_kube(validation = rules::shorter_than("overlap", "deadline"))]
#[x_kube(validation = rules::shorter_than("unusedFor", "deadline"))]
#[x_kube(validation = rules::shorter_than("deadline", "every"))]
#[x_kube(validation = rules::demand(
    "self.revokePrevious != 'WhenUnused' || has(self.unusedFor) && has(self.deadline)",
    "set unusedFor and deadline: with WhenUnused the replaced key is revoked once it was not used for unusedFor, and at the deadline at the latest",
).field_path(".revokePrevious"))]
#[x_kube(validation = rules::demand(
    "self.revokePrevious != 'AfterOverlap' || !has(self.unusedFor) && !has(self.deadline)",
    "set revokePrevious to WhenUnused, or remove unusedFor and deadline: they have no effect without it",
).field_path(".revokePrevious"))]
pub struct Rotation {
    /// How long a key is used before it is replaced, 1h to 8760h, such as 720h.
    #[x_kube(validation = rules::duration("1h", "8760h"))]
    pub every: Duration,
    /// How long a replaced key stays valid at least, from 0s; shorter than every.
    #[x_kube(validation = rules::duration("0s", "8760h"))]
    pub overlap: Duration,
    /// When to revoke a replaced key. AfterOverlap (the default): at the end of overlap. WhenUnused: when the platform's key lists have also shown the same last use for unusedFor, and at the deadline at the latest. If the platform does not show when keys were last used, WhenUnused waits for the deadline.
    #[serde(default)]
    pub revoke_previous: RevokePrevious,
    /// With WhenUnused: how long the platform's key lists must show the same last use of a replaced key before dbplane revokes it, from 1h; shorter than deadline. The operator's clock measures it, and it takes up to an eighth longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1h", "8760h"))]
    pub unused_for: Option<Duration>,
    /// With WhenUnused: the time after its replacement at which dbplane revokes a key even if it may still be in use. Longer than overlap and unusedFor, and shorter than every.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("1h", "8760h"))]
    pub deadline: Option<Duration>,
}

/// When to revoke a replaced key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RevokePrevious {
    /// At the end of the overlap.
    #[default]
    AfterOverlap,
    /// When the key is no longer used, and at the deadline at the latest.
    WhenUnused,
}

/// How to handle a key that the platform no longer accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnRevoked {
    /// Create another key.
    #[default]
    Recreate,
    /// Report it and wait.
    Report,
}

/// How to handle the platform's key when the resource is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeyDeletion {
    /// Revoke the key. If the platform offers no call for that, the deletion waits until a user has revoked it in the console.
    #[default]
    Revoke,
    /// Keep the key valid.
    Orphan,
}

/// The last observed state of the key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::status)]
pub struct ProjectKeyStatus {
    /// The platform's identifier of the key in use.
    #[serde(rename = "keyID", default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<KeyId>,
    /// The name of the key in the platform's console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// When the key was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub created_at: Option<Timestamp>,
    /// The platform's identifier of the user who created the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The Secret that contains the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// When the key in use was last used, to the hour; absent if the platform does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub last_used_at: Option<Timestamp>,
    /// The origin of the last use: one or more addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_from: Option<String>,
    /// When the key last replaced another key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub rotated_at: Option<Timestamp>,
    /// The last value of the annotation dbplane.dev/rotate for which dbplane replaced the key. A value of more than 64 characters is shown as a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_rotate: Option<String>,
    /// Keys that were replaced and are still valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous_keys: Vec<KeyRecord>,
    /// Keys that may exist on the platform although dbplane never received their secret, and keys that it cannot revoke. Revoke them in the console by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_keys: Vec<KeyRecord>,
    /// Keys that dbplane considers revoked because the annotation dbplane.dev/revoked-keys currently names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged_keys: Vec<String>,
    /// Ready, Synced; Reconciling and Stalled are present only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// dbplane's record: the keys of this resource, and the create of a key with an unknown outcome. The annotation dbplane.dev/record is a copy, for backups without status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The last value of the annotation dbplane.dev/reconcile-requested-at that dbplane has handled by reading the platform again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation of the spec that this status describes; -1 until dbplane has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// A key other than the one in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRecord {
    /// The platform's identifier of the key, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<KeyId>,
    /// The name of the key in the platform's console.
    pub name: String,
    /// When the key was replaced, or when dbplane attempted to create it.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Timestamp,
    /// When dbplane revokes a replaced key at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub revoke_at: Option<Timestamp>,
}
