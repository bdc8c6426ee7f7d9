//! Account and ClusterAccount: the platform's address and the credentials for it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Condition, Duration};
use super::{rules, schema};
use crate::domain::{OrganizationId, ProjectId};

/// The platform's address and the credentials for the resources of this namespace: base URL, organization, API key and rate limit.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "dbplane.dev",
    version = "v1alpha1",
    kind = "Account",
    doc = "The platform's address and the credentials that the resources of this namespace use.",
    plural = "accounts",
    shortname = "dbacct",
    category = "dbplane",
    namespaced,
    status = "AccountStatus",
    derive = "PartialEq",
    validation = rules::fixed_while(rules::ACCOUNT_IN_USE, "baseURL", ANOTHER_ACCOUNT),
    validation = rules::fixed_while(&organization_in_use(), "organizationID", ANOTHER_ACCOUNT),
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
        name = "Projects",
        type_ = "integer",
        json_path = ".status.projectCount"
    ),
    printcolumn(name = "Platform", type_ = "string", json_path = ".spec.baseURL"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
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
pub struct AccountSpec {
    /// The platform, its organization and the limits for calls to it.
    #[serde(flatten)]
    pub platform: PlatformAccess,
    /// The Secret in this namespace with the platform's API key. When its content changes, dbplane uses the new key at once.
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub api_key_secret_ref: SecretKeyRef,
}

/// An Account for several namespaces, which `namespaces` selects.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "dbplane.dev",
    version = "v1alpha1",
    kind = "ClusterAccount",
    doc = "An Account for several namespaces: those that it admits.",
    plural = "clusteraccounts",
    shortname = "dbcacct",
    category = "dbplane",
    status = "AccountStatus",
    derive = "PartialEq",
    validation = rules::fixed_while(rules::ACCOUNT_IN_USE, "baseURL", ANOTHER_ACCOUNT),
    validation = rules::fixed_while(&organization_in_use(), "organizationID", ANOTHER_ACCOUNT),
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
        name = "Projects",
        type_ = "integer",
        json_path = ".status.projectCount"
    ),
    printcolumn(name = "Platform", type_ = "string", json_path = ".spec.baseURL"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
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
pub struct ClusterAccountSpec {
    /// The platform, its organization and the limits for calls to it.
    #[serde(flatten)]
    pub platform: PlatformAccess,
    /// The Secret with the platform's API key, and its namespace. When its content changes, dbplane uses the new key at once.
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub api_key_secret_ref: ClusterSecretKeyRef,
    /// The namespaces whose resources may use this account: all that names lists or selector matches. When empty, no namespace may use it.
    #[serde(default)]
    pub namespaces: NamespaceAccess,
    /// How dbplane handles a mass deletion: more than four times --deletes-per-minute deletions of resources within a minute, in all namespaces of this account together. Slow (the default) makes one deletion every two seconds, each namespace in turn. Pause keeps them waiting until a user confirms them. In both cases each namespace also has its own limit, and dbplane pauses the deletions beyond it.
    #[serde(default)]
    pub mass_deletion_policy: MassDeletionPolicy,
}

/// How dbplane handles deletions beyond the limit of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MassDeletionPolicy {
    /// Make one deletion at a time, each namespace in turn.
    #[default]
    Slow,
    /// Keep them waiting until a user confirms them.
    Pause,
}

/// The platform, the organization and the rate limit: the fields that Account and ClusterAccount share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformAccess {
    /// Base URL of the platform's API, ending with the version segment, for instance https://platform.example/api/v2. It must be https unless the operator runs with --allow-insecure-platform. Cannot be changed while status.inUse is true.
    #[schemars(length(max = 512))]
    #[x_kube(validation = rules::base_url(), validation = rules::base_url_alone(), validation = rules::base_url_version())]
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// The platform's identifier of the organization. ProjectKeys need it. A personal API key needs it to see the organization's projects. It can be added at any time; once set it cannot be changed while status.inUse is true.
    #[serde(
        rename = "organizationID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 60))]
    #[x_kube(validation = rules::identifier())]
    pub organization_id: Option<OrganizationId>,
    /// The rate limit for requests that dbplane sends to the platform for this account; 600 a minute and 20 at once when absent. All resources of the account share this budget, and their namespaces take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// The time between two reads of each project while nothing changes, from 5s to 1h, such as 1m30s; 30s when absent. While a change is in progress, dbplane reads more often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = rules::duration("5s", "1h"))]
    pub poll_interval: Option<Duration>,
}

const ANOTHER_ACCOUNT: &str = "resources have something on the platform through this account; create another account for another platform or organization";

/// An organization can be added to an account in use.
fn organization_in_use() -> String {
    format!(
        "{} && has(oldSelf.spec.organizationID)",
        rules::ACCOUNT_IN_USE
    )
}

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// Requests in any minute, 1 to 100000. Use the platform's limit, minus the share of other clients of the same account.
    #[schemars(range(min = 1, max = 100_000))]
    pub requests_per_minute: u32,
    /// How many of these requests dbplane may send at once after a pause, 1 to 10000; 20 when absent. dbplane never sends more than half of requestsPerMinute at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub burst: Option<u32>,
}

/// One key of a Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Key within its data; api-key when absent.
    #[serde(default = "default_secret_key")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_data_key())]
    pub key: String,
}

/// One key of a Secret in a named namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSecretKeyRef {
    /// Namespace of the Secret.
    #[schemars(length(max = 63))]
    #[x_kube(validation = rules::namespace_name())]
    pub namespace: String,
    /// Name of the Secret.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Key within its data; api-key when absent.
    #[serde(default = "default_secret_key")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::secret_data_key())]
    pub key: String,
}

pub(super) fn default_secret_key() -> String {
    "api-key".to_owned()
}

/// The namespaces that may use a ClusterAccount, by name and by label, and the projects that they may use it for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceAccess {
    /// Names of namespaces, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::namespace_names")]
    #[x_kube(validation = rules::namespace_names())]
    pub names: Vec<String>,
    /// Labels of namespaces. An empty selector ({}) matches every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    #[x_kube(validation = rules::selector_expressions(), validation = rules::selector_labels())]
    #[x_kube(merge_strategy = MapMerge::Atomic)]
    pub selector: Option<LabelSelector>,
    /// The platform's identifiers of the projects that these namespaces may use this account for, 1 to 256. When absent, they may use every project that the API key can access. To give groups of namespaces different projects, create a ClusterAccount for each group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::project_ids")]
    #[x_kube(validation = rules::identifiers())]
    pub projects: Option<Vec<ProjectId>>,
}

/// The observed state of the account: the projects and features that its credentials give access to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::status)]
pub struct AccountStatus {
    /// Number of projects that the credentials can list; absent if they may not list projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_count: Option<u32>,
    /// Identifiers of those projects, sorted; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<ProjectId>,
    /// Projects that resources name and that the credentials could list. If one of them is missing from a later list, dbplane knows that it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_projects: Option<SeenProjects>,
    /// When dbplane first observed this result. The time changes only when the result changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub checked_at: Option<Timestamp>,
    /// Number of API keys of the organization, of all kinds, if the platform lists them. The platform recommends fewer than 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_keys: Option<u32>,
    /// When dbplane first counted this number of keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub organization_keys_at: Option<Timestamp>,
    /// true while resources have something on the platform through this account, or may have. Meanwhile baseURL and organizationID cannot be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_use: bool,
    /// Optional features of this platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<AccountCapabilities>,
    /// Ready: whether the platform accepts the credentials. Reconciling and Stalled are present only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The last value of the annotation dbplane.dev/reconcile-requested-at that dbplane has handled by reading the platform again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation of the spec that this status describes; -1 until dbplane has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Projects that were listed on the same platform with the same credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeenProjects {
    /// The base URL of the platform that listed them.
    #[serde(rename = "baseURL", default, skip_serializing_if = "String::is_empty")]
    pub base_url: String,
    /// The organization whose projects were listed.
    #[serde(
        rename = "organizationID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub organization_id: Option<OrganizationId>,
    /// The UID of the Secret with the API key.
    #[serde(rename = "secretUID")]
    pub secret_uid: String,
    /// The version of that Secret.
    pub secret_version: String,
    /// Identifiers of the projects, sorted; at most 200.
    pub projects: Vec<ProjectId>,
}

/// Optional calls and fields that the platform offers. dbplane detects them with reads only, never with a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountCapabilities {
    /// true if the platform lists the organization's API keys.
    #[serde(default)]
    pub key_listing: bool,
    /// true if a client can choose the name of a compute. dbplane recognizes the result of a create by this name.
    #[serde(default)]
    pub compute_names: bool,
    /// true if computes report their scale-to-zero setting.
    #[serde(default)]
    pub scale_to_zero: bool,
}
