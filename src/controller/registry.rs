//! The list of all kinds. Code that handles every kind visits them here: the stores and watches,
//! wake-ups, start-up, dependents of accounts, the brake, installed definitions, tests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
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
        self.0.push(K::Object::crd());
    }
}
