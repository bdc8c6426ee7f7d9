//! What the process knows of the custom resources, kind by kind, and how each kind is woken.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::super::index::{Index, Key};
use super::super::object::{Managed, uid};
use super::guarded::Invalid;
use crate::api::ObjectMeta;

/// One entry for each kind.
#[derive(Debug, Default)]
pub struct Stores(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

/// What belongs to one kind.
#[derive(Debug)]
pub struct Entry<K: Managed> {
    /// One for each watched namespace, or one for all.
    pub stores: Vec<Store<K>>,
    pub index: Arc<Index<K>>,
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

    pub fn all<K: Managed>(&self) -> Vec<Arc<K>> {
        let stores = self.entry::<K>().map(|entry| entry.stores.as_slice()).unwrap_or_default();
        stores.iter().flat_map(Store::state).collect()
    }

    pub fn find<K: Managed>(&self, key: &Key) -> Vec<Arc<K>> {
        let Some(entry) = self.entry::<K>() else { return Vec::new() };
        let found = entry.index.find(key).into_iter();
        found.filter_map(|reference| entry.stores.iter().find_map(|store| store.get(&reference))).collect()
    }

    pub fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.entry::<K>().map(|entry| entry.unreadable.all()).unwrap_or_default()
    }

    /// Where objects of a kind are sent that are to be decided on anew; for a kind that is not registered nobody listens.
    pub fn waker<K: Managed>(&self) -> UnboundedSender<ObjectRef<K>> {
        self.entry::<K>().map_or_else(|| unbounded_channel().0, |entry| entry.wake.clone())
    }

    pub fn wake<K: Managed>(&self, reference: ObjectRef<K>) {
        // A receiver that is gone means that the process is stopping; then nothing has to be decided on any more.
        let _ = self.waker().send(reference);
    }
}

/// The objects of a kind that cannot be read, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Unreadable(Arc<Mutex<BTreeMap<Place, Invalid>>>);

impl Invalid {
    /// Whether the same is wrong with the same object, which nobody has edited in between.
    fn is_as_before(&self, before: Option<&Self>) -> bool {
        let facts = |it: &Self| (it.meta.uid.clone(), it.meta.generation, it.error.clone());
        before.is_some_and(|before| facts(before) == facts(self))
    }
}

/// Namespace and name.
type Place = (Option<String>, Option<String>);

fn key(meta: &ObjectMeta) -> Place {
    (meta.namespace.clone(), meta.name.clone())
}

impl Unreadable {
    pub fn all(&self) -> Vec<Arc<ObjectMeta>> {
        self.with(|known| known.values().map(|invalid| invalid.meta.clone()).collect())
    }

    pub fn count(&self) -> usize {
        self.with(|known| known.len())
    }

    /// Whether this very object cannot be read.
    pub fn has<K: Managed>(&self, object: &K) -> bool {
        self.with(|known| known.get(&key(object.meta())).is_some_and(|invalid| invalid.meta.uid == object.meta().uid))
    }

    /// Whether that is still wrong with the object.
    pub fn still(&self, invalid: &Invalid) -> bool {
        self.with(|known| invalid.is_as_before(known.get(&key(&invalid.meta))))
    }

    /// Whether it is news.
    pub fn insert(&self, invalid: Invalid) -> bool {
        self.with(|known| {
            let before = known.insert(key(&invalid.meta), invalid.clone());
            !invalid.is_as_before(before.as_ref())
        })
    }

    /// The object can be read, or is gone; what was known of it where it could not be read before.
    pub fn remove(&self, meta: &ObjectMeta) -> Option<Arc<ObjectMeta>> {
        self.with(|known| Some(known.remove(&key(meta))?.meta))
    }

    /// These alone of the namespace, or of all, cannot be read. Which of them are news, and which others were known before.
    pub fn replace(&self, namespace: Option<&str>, found: Vec<Invalid>) -> (Vec<Invalid>, Vec<Arc<ObjectMeta>>) {
        self.with(|known| {
            let concerned = |key: &Place| namespace.is_none() || key.0.as_deref() == namespace;
            let mut before: BTreeMap<_, _> = known.extract_if(.., |key, _| concerned(key)).collect();
            known.extend(found.iter().map(|invalid| (key(&invalid.meta), invalid.clone())));
            let news = |invalid: &Invalid| !invalid.is_as_before(before.get(&key(&invalid.meta)));
            let news = found.iter().filter(|invalid| news(invalid)).cloned().collect();
            before.retain(|key, before| known.get(key).is_none_or(|now| now.meta.uid != before.meta.uid));
            (news, before.into_values().map(|invalid| invalid.meta).collect())
        })
    }

    fn with<T>(&self, run: impl FnOnce(&mut BTreeMap<Place, Invalid>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a store still has this very object.
pub fn has<K: Managed>(store: &Store<K>, object: &K) -> bool {
    store.get(&ObjectRef::from_obj(object)).is_some_and(|now| uid(now.as_ref()) == uid(object))
}
