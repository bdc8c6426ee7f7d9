//! The watch of one kind in one namespace: it fills the store, starts passes, and tells others of what is gone. An object
//! that cannot be read stops no other one: it is kept by its metadata, logged, counted and, where possible, told itself.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::{Stream, StreamExt};
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Resource, ResourceExt};
use tracing::warn;

use super::super::environment::{Environment, Kind};
use super::super::live::Live;
use super::super::live::stores::{Unreadable, has};
use super::super::object::Managed;
use super::unreadable;
use super::wake;
use crate::api::ObjectMeta;

pub type Changes<K> = Pin<Box<dyn Stream<Item = Result<K, watcher::Error>> + Send>>;

/// The environment, for those who are made before it.
pub type Later = Arc<OnceLock<Arc<Live>>>;

/// A stream that fills a store and starts passes, with the store.
pub struct Feed<K: Managed> {
    pub namespace: Option<String>,
    pub changes: Changes<K>,
    pub store: Store<K>,
}

/// The watch of a kind in `namespace`, or everywhere.
pub fn feed<K: Kind>(
    client: &kube::Client,
    namespace: Option<&str>,
    unreadable: &Unreadable,
    env: &Later,
) -> Feed<K::Object> {
    let (store, writer) = reflector::store();
    let api = K::Object::api::<DeserializeGuard<K::Object>>(client, namespace);
    let watched = watcher(api, watcher::Config::default()).default_backoff().modify(trim);
    let mut split = Split::<K>::new(namespace, store.clone(), unreadable, env);
    let readable =
        watched.filter_map(move |event| std::future::ready(event.map(|event| split.readable(event)).transpose()));
    let mut gone = Departures::<K>::new(store.clone(), unreadable, env);
    let changes = readable.reflect(writer).inspect(move |event| gone.see(event)).applied_objects();
    let later = env.clone();
    let changes = changes.inspect(move |object| {
        if let (Ok(object), Some(env)) = (object, later.get()) {
            wake::owner(env.as_ref(), object);
        }
    });
    Feed { namespace: namespace.map(str::to_owned), changes: changes.boxed(), store }
}

/// Drops what nobody here reads: half of a resource, and with thousands of them half of the memory.
fn trim<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
    object.annotations_mut().remove(LAST_APPLIED);
}

/// What `kubectl apply` keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Parts what can be read from what cannot.
struct Split<K: Kind> {
    namespace: Option<String>,
    store: Store<K::Object>,
    unreadable: Unreadable,
    /// What the list that is being read has shown so far.
    listed: Vec<ObjectMeta>,
    /// The errors that were reported, by UID.
    reported: Mutex<BTreeMap<String, String>>,
    env: Later,
}

impl<K: Kind> Split<K> {
    fn new(namespace: Option<&str>, store: Store<K::Object>, unreadable: &Unreadable, env: &Later) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            store,
            unreadable: unreadable.clone(),
            listed: Vec::new(),
            reported: Mutex::default(),
            env: env.clone(),
        }
    }

    /// The event, as far as it is one of readable objects.
    fn readable(&mut self, event: watcher::Event<DeserializeGuard<K::Object>>) -> Option<watcher::Event<K::Object>> {
        let readable = self.parted(event);
        self.count();
        readable
    }

    fn parted(&mut self, event: watcher::Event<DeserializeGuard<K::Object>>) -> Option<watcher::Event<K::Object>> {
        match event {
            watcher::Event::Init => {
                self.listed.clear();
                Some(watcher::Event::Init)
            }
            watcher::Event::InitApply(DeserializeGuard(Ok(object))) => Some(watcher::Event::InitApply(object)),
            watcher::Event::InitApply(DeserializeGuard(Err(invalid))) => {
                self.report(&invalid);
                self.listed.push(invalid.metadata);
                None
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let now: Vec<_> = listed.iter().map(|meta| meta.uid.clone()).collect();
                for before in self.unreadable.replace(self.namespace.as_deref(), listed) {
                    if !now.contains(&before.uid) {
                        self.no_longer_unreadable(&before);
                    }
                }
                Some(watcher::Event::InitDone)
            }
            watcher::Event::Apply(DeserializeGuard(Ok(object))) => {
                self.unreadable.remove(object.meta());
                self.reported().remove(object.meta().uid.as_deref().unwrap_or_default());
                Some(watcher::Event::Apply(object))
            }
            watcher::Event::Apply(DeserializeGuard(Err(invalid))) => {
                self.report(&invalid);
                let meta = invalid.metadata;
                let before = self.store.find(|object| object.meta().uid == meta.uid);
                self.unreadable.insert(meta);
                // The store forgets what the object was; nobody takes it for gone.
                before.map(|object| watcher::Event::Delete(object.as_ref().clone()))
            }
            watcher::Event::Delete(DeserializeGuard(Ok(object))) => {
                self.unreadable.remove(object.meta());
                Some(watcher::Event::Delete(object))
            }
            watcher::Event::Delete(DeserializeGuard(Err(invalid))) => {
                if let Some(before) = self.unreadable.remove(&invalid.metadata) {
                    self.no_longer_unreadable(&before);
                }
                None
            }
        }
    }

    /// An object is gone that could not be read, or can be read now.
    fn no_longer_unreadable(&self, meta: &ObjectMeta) {
        let uid = meta.uid.as_deref().unwrap_or_default();
        self.reported().remove(uid);
        let Some(env) = self.env.get() else { return };
        let is_back = self.store.find(|object| object.meta().uid == meta.uid).is_some();
        if !is_back {
            env.state().forget(uid);
        }
        wake::all_in::<Live>(env.as_ref(), meta.namespace.as_deref());
    }

    /// Names the object in the log and, where possible, in its own condition; once for each error.
    fn report(&self, invalid: &InvalidObject) {
        let InvalidObject { error, metadata } = invalid;
        let uid = metadata.uid.clone().unwrap_or_default();
        if self.reported().insert(uid, error.clone()).as_ref() == Some(error) {
            return;
        }
        let kind = K::Object::kind(&());
        let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
        warn!(%kind, namespace, name, error, "a stored object cannot be read; nothing is done for it until it is corrected");
        if let Some(env) = self.env.get() {
            tokio::spawn(unreadable::report::<K::Object>(env.clone(), metadata.clone(), error.clone()));
        }
    }

    fn count(&self) {
        if let Some(env) = self.env.get() {
            env.metrics.unreadable(&K::Object::kind(&()), self.unreadable.all().len());
        }
    }

    fn reported(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells others of objects that are gone, after the store has forgotten them. A watch that was interrupted for too long begins
/// with a list, which says nothing of what went meanwhile.
struct Departures<K: Kind> {
    store: Store<K::Object>,
    unreadable: Unreadable,
    before: Vec<Arc<K::Object>>,
    env: Later,
}

impl<K: Kind> Departures<K> {
    fn new(store: Store<K::Object>, unreadable: &Unreadable, env: &Later) -> Self {
        Self { store, unreadable: unreadable.clone(), before: Vec::new(), env: env.clone() }
    }

    fn see(&mut self, event: &Result<watcher::Event<K::Object>, watcher::Error>) {
        for gone in self.gone(event) {
            if let Some(env) = self.env.get() {
                K::on_deleted(env.as_ref(), gone.as_ref());
                wake::owner(env.as_ref(), gone.as_ref());
            }
        }
    }

    fn gone(&mut self, event: &Result<watcher::Event<K::Object>, watcher::Error>) -> Vec<Arc<K::Object>> {
        let candidates = match event {
            Ok(watcher::Event::Delete(object)) => vec![Arc::new(object.clone())],
            Ok(watcher::Event::Init) => {
                self.before = self.store.state();
                Vec::new()
            }
            Ok(watcher::Event::InitDone) => std::mem::take(&mut self.before),
            _ => Vec::new(),
        };
        let is_gone =
            |object: &Arc<K::Object>| !has(&self.store, object.as_ref()) && !self.unreadable.has(object.as_ref());
        candidates.into_iter().filter(is_gone).collect()
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
