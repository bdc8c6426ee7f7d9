//! Types that several kinds share.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::rules;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};

/// The Account or ClusterAccount with the platform's address and credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountRef {
    /// Name of the Account in this namespace, or of the ClusterAccount.
    #[schemars(length(max = 253))]
    #[x_kube(validation = rules::object_name())]
    pub name: String,
    /// Account (the default), in this namespace, or ClusterAccount, which must select this namespace.
    #[serde(default)]
    pub kind: AccountKind,
}

/// The kind of the object in an `accountRef`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum AccountKind {
    /// An Account in the same namespace.
    #[default]
    Account,
    /// A ClusterAccount that selects this namespace.
    ClusterAccount,
}

/// A duration in the format of Kubernetes: hours, minutes and seconds, such as `30s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// The duration as a value, or `None` if the text is malformed.
    pub fn value(&self) -> Option<std::time::Duration> {
        let length: jiff::SignedDuration = self.0.parse().ok()?;
        length.try_into().ok()
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Each field has its own rule for format and range, whose message states the range.
        json_schema!({"type": "string", "maxLength": 32})
    }
}
