//! The list of all kinds. Code that handles every kind visits them here: the stores and watches,
//! wake-ups, start-up, dependents of accounts, the brake, installed definitions, tests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use super::account::Accounts;
use super::compute::Computes;
use super::environment::{Kind, KindVisitor, Kinds};
use super::key::ProjectKeys;
use super::replica_set::ReadReplicaSets;
use crate::api::{Account, ClusterAccount, Known};

#[derive(Debug)]
pub struct AllKinds;

impl Kinds for AllKinds {
    fn each<V: KindVisitor>(visitor: &mut V) {
        visitor.visit::<Accounts<Known<Account>>>();
        visitor.visit::<Accounts<Known<ClusterAccount>>>();
        visitor.visit::<Computes>();
        visitor.visit::<ProjectKeys>();
        visitor.visit::<ReadReplicaSets>();
    }
}

/// The CustomResourceDefinitions of all kinds, as they are installed.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut definitions = Definitions(Vec::new());
    AllKinds::each(&mut definitions);
    definitions.0
}

struct Definitions(Vec<CustomResourceDefinition>);

impl KindVisitor for Definitions {
    fn visit<K: Kind>(&mut self) {
        let mut definition = K::Object::crd();
        for version in &mut definition.spec.versions {
            let schema = version.schema.as_mut();
            if let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
                leave_out_nullable_false(schema);
            }
        }
        self.0.push(definition);
    }
}

/// The API server does not store `nullable: false`, so every `kubectl apply` would write it again.
fn leave_out_nullable_false(schema: &mut JSONSchemaProps) {
    schema.nullable = schema.nullable.filter(|nullable| *nullable);
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|all| all.values_mut())
    {
        leave_out_nullable_false(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        leave_out_nullable_false(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        leave_out_nullable_false(values);
    }
}
