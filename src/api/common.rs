//! What several kinds share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The Account or ClusterAccount that says where the platform is and as whom to call it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountRef {
    /// Name of the Account in this namespace, or of the ClusterAccount.
    pub name: String,
    /// Account (the default) or ClusterAccount.
    #[serde(default)]
    pub kind: AccountKind,
}

/// The kind that an `accountRef` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AccountKind {
    /// An Account in the same namespace.
    #[default]
    Account,
    /// A ClusterAccount that admits this namespace.
    ClusterAccount,
}

/// A length of time as Kubernetes writes it: hours, minutes and seconds, such as `30s`, `5m` or `1h30m`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// The same length as a value; `None` where the text is not a duration.
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
        json_schema!({"type": "string", "maxLength": 32, "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"})
    }
}

/// Conditions as every kind carries them: a list keyed by type.
pub(super) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<Vec<Condition>>();
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), serde_json::json!(["type"]));
    schema
}
