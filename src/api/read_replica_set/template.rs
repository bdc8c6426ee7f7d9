//! The template of a replica: a Compute without the fields that the set decides for it.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::api::compute::{ComputeSpec, ComputeType};
use crate::api::{rules, schema};

/// The template for each replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaTemplate {
    /// Labels and annotations of each Compute.
    #[serde(default)]
    pub metadata: ReplicaMetadata,
    /// The Compute, always of type ReadOnly. Changing projectID or branchID replaces the replicas; dbplane makes any other change to each of them in turn.
    pub spec: ReplicaSpec,
}

/// Labels and annotations of each Compute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaMetadata {
    /// Labels, at most 32, including those of spec.selector. Keys under dbplane.dev/ are reserved. Removing a label here does not remove it from existing Computes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys(), validation = rules::label_values())]
    pub labels: BTreeMap<String, String>,
    /// Annotations, at most 32. Keys under dbplane.dev/ are reserved. Removing an annotation here does not remove it from existing Computes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    #[x_kube(validation = rules::metadata_keys(), validation = rules::unreserved_keys())]
    pub annotations: BTreeMap<String, String>,
}

/// The spec of a Compute of type ReadOnly, without the fields that the set decides and those that concern only one Compute.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSpec(ComputeSpec);

/// The fields of a Compute that a template does not have.
const APART: [&str; 6] = [
    "type",
    "existing",
    "computeID",
    "management",
    "deletionProtection",
    "connection",
];

impl ReplicaSpec {
    pub fn compute(&self) -> &ComputeSpec {
        &self.0
    }

    /// True if a replica with this spec matches the template.
    pub fn is_of(&self, stands: &ComputeSpec) -> bool {
        templated(&self.0) == templated(stands)
    }

    /// The new spec of a replica with this spec. Fields outside the template keep the values that users set.
    pub fn of(&self, stands: &ComputeSpec) -> ComputeSpec {
        ComputeSpec {
            existing: stands.existing,
            compute_id: stands.compute_id.clone(),
            management: stands.management,
            deletion_protection: stands.deletion_protection,
            connection: stands.connection.clone(),
            ..self.0.clone()
        }
    }
}

/// The fields of a spec that a template has. Each pass compares all replicas of a set, so nothing is copied.
fn templated(spec: &ComputeSpec) -> impl PartialEq {
    let ComputeSpec {
        account_ref,
        project_id,
        branch_id,
        type_,
        size,
        scale_to_zero,
        pooler,
        postgres_settings,
        passwordless_access,
        disabled,
        existing: _,
        compute_id: _,
        on_missing,
        ignore,
        management: _,
        deletion,
        deletion_protection: _,
        disruption,
        maintenance,
        schedules,
        restart_token,
        connection: _,
    } = spec;
    let place = (account_ref, project_id, branch_id, type_);
    let settings = (
        size,
        scale_to_zero,
        pooler,
        postgres_settings,
        passwordless_access,
        disabled,
    );
    let times = (disruption, maintenance, schedules, restart_token);
    (place, settings, times, on_missing, ignore, deletion)
}

impl Serialize for ReplicaSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = json!(self.0);
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| !APART.contains(&name.as_str()));
        }
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReplicaSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        fields.retain(|name, _| !APART.contains(&name.as_str()));
        fields.insert("type".to_owned(), json!(ComputeType::ReadOnly));
        serde_json::from_value(Value::Object(fields))
            .map(Self)
            .map_err(D::Error::custom)
    }
}

impl JsonSchema for ReplicaSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReplicaSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ComputeSpec::json_schema(generator);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|name, _| !APART.contains(&name.as_str()));
            describe(properties, "projectID", PROJECT);
            describe(properties, "branchID", BRANCH);
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !APART.contains(&name)));
        }
        if let Some(Value::Array(rules)) = schema.get_mut(RULES) {
            rules.retain(|rule| !APART.iter().any(|field| names(rule, field)));
        }
        schema
    }
}

const RULES: &str = "x-kubernetes-validations";
const PROJECT: &str = "The platform's identifier of the project that the replicas belong to. After a change, replicas of that project are created, and those of the former one deleted as these become ready.";
const BRANCH: &str = "The platform's identifier of the branch that the replicas read. After a change, replicas of that branch are created, and those of the former one deleted as these become ready.";

fn describe(properties: &mut Map<String, Value>, field: &str, text: &str) {
    if let Some(field) = properties.get_mut(field) {
        field["description"] = json!(text);
    }
}

/// True if a rule concerns this field.
fn names(rule: &Value, field: &str) -> bool {
    rule["rule"]
        .as_str()
        .is_some_and(|text| text.contains(&format!("elf.{field}")))
}
