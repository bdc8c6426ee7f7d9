//! What is known of the custom resources: the reflectors' stores, over all watched namespaces.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::{Lookup, ObjectRef, Store};

use crate::api::{Account, ClusterAccount, Compute, ProjectKey};

/// One store for each watched namespace, or one for all.
#[derive(Clone, Debug)]
pub struct Scoped<K: Lookup<DynamicType = ()> + Clone + 'static>(Vec<Store<K>>);

impl<K: Lookup<DynamicType = ()> + Clone + 'static> Scoped<K> {
    pub fn new(stores: Vec<Store<K>>) -> Self {
        Self(stores)
    }

    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.0.iter().find_map(|store| store.get(reference))
    }

    pub fn filter(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.0.iter().flat_map(|store| store.state_filter(&wanted)).collect()
    }
}

/// All stores.
#[derive(Clone, Debug)]
pub struct Stores {
    pub accounts: Scoped<Account>,
    pub cluster_accounts: Scoped<ClusterAccount>,
    pub computes: Scoped<Compute>,
    pub keys: Scoped<ProjectKey>,
    /// Labels of namespaces, for the selectors of ClusterAccounts.
    pub namespaces: Store<PartialObjectMeta<Namespace>>,
}
