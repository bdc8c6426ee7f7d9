//! What the process knows of the custom resources, kind by kind, and how each kind is woken.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::UnboundedSender;

use super::super::object::{Managed, uid};
use crate::api::ObjectMeta;

/// One entry for each kind.
#[derive(Debug, Default)]
pub struct Stores(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

/// What belongs to one kind.
#[derive(Debug)]
pub struct Entry<K: Managed> {
    /// One for each watched namespace, or one for all.
    pub stores: Vec<Store<K>>,
    pub unreadable: Unreadable,
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
        self.entry::<K>()?.stores.iter().find_map(|store| store.get(reference))
    }

    pub fn filter<K: Managed>(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let stores = self.entry::<K>().map(|entry| entry.stores.as_slice()).unwrap_or_default();
        stores.iter().flat_map(|store| store.state_filter(&wanted)).collect()
    }

    pub fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.entry::<K>().map(|entry| entry.unreadable.all()).unwrap_or_default()
    }

    pub fn wake<K: Managed>(&self, reference: ObjectRef<K>) {
        if let Some(entry) = self.entry::<K>() {
            // A receiver that is gone means that the process is stopping; then nothing has to be decided on any more.
            let _ = entry.wake.send(reference);
        }
    }
}

/// The metadata of the objects of a kind that cannot be read, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Unreadable(Arc<Mutex<BTreeMap<Key, Arc<ObjectMeta>>>>);

type Key = (Option<String>, Option<String>);

fn key(meta: &ObjectMeta) -> Key {
    (meta.namespace.clone(), meta.name.clone())
}

impl Unreadable {
    pub fn all(&self) -> Vec<Arc<ObjectMeta>> {
        self.with(|metas| metas.values().cloned().collect())
    }

    /// Whether this very object cannot be read.
    pub fn has<K: Managed>(&self, object: &K) -> bool {
        self.with(|metas| metas.get(&key(object.meta())).is_some_and(|meta| meta.uid == object.meta().uid))
    }

    pub fn insert(&self, meta: ObjectMeta) {
        self.with(|metas| metas.insert(key(&meta), Arc::new(meta)));
    }

    /// The object can be read, or is gone; what was known of it where it could not be read before.
    pub fn remove(&self, meta: &ObjectMeta) -> Option<Arc<ObjectMeta>> {
        self.with(|metas| metas.remove(&key(meta)))
    }

    /// These alone of the namespace, or of all, cannot be read; what was known of the others.
    pub fn replace(&self, namespace: Option<&str>, found: Vec<ObjectMeta>) -> Vec<Arc<ObjectMeta>> {
        self.with(|metas| {
            let concerned = |key: &Key| namespace.is_none() || key.0.as_deref() == namespace;
            let keys: Vec<Key> = metas.keys().filter(|key| concerned(key)).cloned().collect();
            let before: Vec<_> = keys.iter().filter_map(|key| metas.remove(key)).collect();
            metas.extend(found.into_iter().map(|meta| (key(&meta), Arc::new(meta))));
            before
        })
    }

    fn with<T>(&self, run: impl FnOnce(&mut BTreeMap<Key, Arc<ObjectMeta>>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The reference to an object.
pub fn reference<K: Managed>(object: &K) -> ObjectRef<K> {
    ObjectRef::from_obj(object)
}

/// Whether a store still has this very object.
pub fn has<K: Managed>(store: &Store<K>, object: &K) -> bool {
    store.get(&reference(object)).is_some_and(|now| uid(now.as_ref()) == uid(object))
}
