//! The cached custom resources of each kind, and the channel that requeues them.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::guarded::Invalid;
use crate::api::ObjectMeta;
use crate::controller::index::{Index, Key};
use crate::controller::object::{Managed, uid};

/// One entry per kind.
#[derive(Debug, Default)]
pub struct Stores(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

/// The parts of one kind.
#[derive(Debug)]
pub struct Entry<K: Managed> {
    /// One per watched namespace, or one for all.
    pub stores: Vec<Store<K>>,
    pub index: Arc<Index<K>>,
    pub unreadable: UnreadableObjects,
    pub wake: UnboundedSender<ObjectRef<K>>,
}

impl Stores {
    pub fn insert<K: Managed>(&mut self, entry: Entry<K>) {
        self.0.insert(TypeId::of::<K>(), Box::new(entry));
    }

    /// `None` for a kind that is not registered.
    fn entry<K: Managed>(&self) -> Option<&Entry<K>> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref()
    }

    pub fn get<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.entry::<K>()?
            .stores
            .iter()
            .find_map(|store| store.get(reference))
    }

    pub fn all<K: Managed>(&self) -> Vec<Arc<K>> {
        let stores = self
            .entry::<K>()
            .map(|entry| entry.stores.as_slice())
            .unwrap_or_default();
        stores.iter().flat_map(Store::state).collect()
    }

    pub fn find<K: Managed>(&self, key: &Key) -> Vec<Arc<K>> {
        let Some(entry) = self.entry::<K>() else {
            return Vec::new();
        };
        let found = entry.index.find(key).into_iter();
        found
            .filter_map(|reference| entry.stores.iter().find_map(|store| store.get(&reference)))
            .collect()
    }

    pub fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.entry::<K>()
            .map(|entry| entry.unreadable.all())
            .unwrap_or_default()
    }

    /// The channel that requeues objects of a kind. For a kind that is not registered, it has no
    /// receiver.
    pub fn waker<K: Managed>(&self) -> UnboundedSender<ObjectRef<K>> {
        self.entry::<K>()
            .map_or_else(|| unbounded_channel().0, |entry| entry.wake.clone())
    }

    pub fn wake<K: Managed>(&self, reference: ObjectRef<K>) {
        // The receiver is gone while the process stops; then nothing has to be reconciled.
        let _ = self.waker().send(reference);
    }
}

#[derive(Clone, Debug, Default)]
pub struct UnreadableObjects(Arc<Mutex<BTreeMap<NamespaceAndName, Invalid>>>);

impl Invalid {
    /// True if this is the same error of the same object, which was not edited in between.
    fn is_as_before(&self, before: Option<&Self>) -> bool {
        let facts = |it: &Self| (it.meta.uid.clone(), it.meta.generation, it.error.clone());
        before.is_some_and(|before| facts(before) == facts(self))
    }
}

/// Namespace and name.
type NamespaceAndName = (Option<String>, Option<String>);

fn key(meta: &ObjectMeta) -> NamespaceAndName {
    (meta.namespace.clone(), meta.name.clone())
}

impl UnreadableObjects {
    pub fn all(&self) -> Vec<Arc<ObjectMeta>> {
        self.with(|known| known.values().map(|invalid| invalid.meta.clone()).collect())
    }

    /// True if this object, with this UID, cannot be read.
    pub fn has<K: Managed>(&self, object: &K) -> bool {
        self.with(|known| {
            known
                .get(&key(object.meta()))
                .is_some_and(|invalid| invalid.meta.uid == object.meta().uid)
        })
    }

    /// True if the object still has this error.
    pub fn still(&self, invalid: &Invalid) -> bool {
        self.with(|known| invalid.is_as_before(known.get(&key(&invalid.meta))))
    }

    /// Adds an unreadable object. Returns whether the error is new.
    pub fn insert(&self, invalid: Invalid) -> bool {
        self.with(|known| {
            let before = known.insert(key(&invalid.meta), invalid.clone());
            !invalid.is_as_before(before.as_ref())
        })
    }

    /// Removes an object that can be read again or is gone. Returns its metadata if it was
    /// unreadable.
    pub fn remove(&self, meta: &ObjectMeta) -> Option<Arc<ObjectMeta>> {
        self.with(|known| Some(known.remove(&key(meta))?.meta))
    }

    /// Replaces the unreadable objects of the namespace, or of all. Returns those with a new error,
    /// and the metadata of those that are no longer unreadable.
    pub fn replace(
        &self,
        namespace: Option<&str>,
        found: Vec<Invalid>,
    ) -> (Vec<Invalid>, Vec<Arc<ObjectMeta>>) {
        self.with(|known| {
            let concerned =
                |key: &NamespaceAndName| namespace.is_none() || key.0.as_deref() == namespace;
            let mut before: BTreeMap<_, _> =
                known.extract_if(.., |key, _| concerned(key)).collect();
            known.extend(
                found
                    .iter()
                    .map(|invalid| (key(&invalid.meta), invalid.clone())),
            );
            let news = |invalid: &Invalid| !invalid.is_as_before(before.get(&key(&invalid.meta)));
            let news = found
                .iter()
                .filter(|invalid| news(invalid))
                .cloned()
                .collect();
            before.retain(|key, before| {
                known
                    .get(key)
                    .is_none_or(|now| now.meta.uid != before.meta.uid)
            });
            (
                news,
                before.into_values().map(|invalid| invalid.meta).collect(),
            )
        })
    }

    fn with<T>(&self, run: impl FnOnce(&mut BTreeMap<NamespaceAndName, Invalid>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// True if a store still has this object, with this UID.
pub fn has<K: Managed>(store: &Store<K>, object: &K) -> bool {
    store
        .get(&ObjectRef::from_obj(object))
        .is_some_and(|now| uid(now.as_ref()) == uid(object))
}
