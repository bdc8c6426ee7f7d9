//! The view of a pass on the cluster's objects, and on the lists of the platform.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;

use super::kind::Kind;
use crate::api::{Compute, Known, ProjectKey};
use crate::controller::index::Key;
use crate::controller::object::{AccountName, Managed};
use crate::controller::state::AccountConnection;
use crate::decide::account::KeyCount;
use crate::platform::{ComputeInterest, KeyInterest, LatestKeys, LatestSnapshot};

/// The objects of the cluster, from caches that may be stale.
pub trait Objects {
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>>;
    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>>;
    /// The objects with this index key.
    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>>;
    /// The metadata of the objects of a kind that this version cannot parse.
    fn unreadable<K: Managed>(&self) -> Vec<Arc<kube::core::ObjectMeta>>;
    /// The labels of a namespace, if the cache has it.
    fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>>;

    /// Requeues an object.
    fn wake<K: Managed>(&self, reference: ObjectRef<K>);
}

/// The lists of the platform, which all resources of a project or an organization share.
pub trait Lists<P> {
    /// The latest snapshot of a Compute's project. A change that matches `interest` wakes the
    /// Compute.
    fn latest_snapshot(
        &self,
        object: &Known<Compute>,
        connection: &AccountConnection<P>,
        interest: ComputeInterest,
    ) -> LatestSnapshot;
    /// Stops observing the project for this Compute.
    fn stop_observing(&self, object: &Known<Compute>);
    /// The latest list of the keys of the account's organization; all its ProjectKeys share it. A
    /// change that matches `interest` wakes the ProjectKey.
    fn latest_keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<P>,
        interest: KeyInterest,
    ) -> LatestKeys;
    /// Like `latest_keys`, but waits until a read that began after this call has succeeded or
    /// failed.
    fn read_keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<P>,
        interest: KeyInterest,
    ) -> impl Future<Output = LatestKeys> + Send;
    /// The faults of the lists that are read through the account.
    fn list_faults(&self, _account: &AccountName) -> ListFaults {
        ListFaults::default()
    }

    /// How many keys the account's organization had in the latest list.
    fn count_keys(
        &self,
        _account: &AccountName,
        _connection: &AccountConnection<P>,
    ) -> Option<KeyCount> {
        None
    }
    /// Stops reading the organization's keys for this ProjectKey.
    fn stop_listing(&self, object: &Known<ProjectKey>);
}

#[derive(Clone, Debug, Default)]
pub struct ListFaults {
    /// Why a list was dropped as too large, if one was.
    pub too_large: Option<String>,
    /// The unreadable entries, with the name of each list.
    pub unreadable: Vec<String>,
}
