//! All kinds, once. Whatever does something with every kind visits them here: the stores and watches, the wake-ups, what
//! start-up waits for, the dependents of an account, the brake, the definitions that are installed, the tests.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::account::Accounts;
use super::compute::Computes;
use super::environment::{Kind, KindVisitor, Kinds};
use super::key::ProjectKeys;
use super::replica_set::ReadReplicaSets;
use crate::api::{Account, ClusterAccount};

/// The kinds that the operator reconciles.
#[derive(Debug)]
pub struct AllKinds;

impl Kinds for AllKinds {
    fn each<V: KindVisitor>(visitor: &mut V) {
        visitor.visit::<Accounts<Account>>();
        visitor.visit::<Accounts<ClusterAccount>>();
        visitor.visit::<Computes>();
        visitor.visit::<ProjectKeys>();
        visitor.visit::<ReadReplicaSets>();
    }
}

/// The definitions of all kinds, as they are installed.
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
