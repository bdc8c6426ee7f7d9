//! The two sides of a hand-over: what one resource has on the platform becomes another's.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::rules;

/// The resource of the same kind that takes over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandOverTo {
    /// Name of the resource that takes over.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Its namespace; that of this resource when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = rules::namespace_name())]
    pub namespace: Option<String>,
    /// The cluster that it is in: the beginning of the UID of its namespace kube-system, 6 characters, or its --cluster-id. This cluster when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 6))]
    #[x_kube(validation = rules::cluster())]
    pub cluster: Option<String>,
}

/// The resource of the same kind that hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakeOverFrom {
    /// Name of the resource that hands over.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Its namespace; that of this resource when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(validation = rules::namespace_name())]
    pub namespace: Option<String>,
    /// For a resource of another cluster: the text in its status.release, which shows that it writes nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub release: Option<String>,
}
