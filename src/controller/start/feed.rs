//! The watch of one kind in one namespace: fills the store, starts passes, and reports what is
//! gone. An unreadable object does not stop the others. Its metadata is kept, and it is logged,
//! counted and, where possible, reported in its own condition.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use futures::{Stream, StreamExt};
use kube::Resource;
use kube::core::object::HasStatus;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use tokio::sync::watch::Receiver;
use tracing::{debug, warn};

use super::unreadable;
use super::wake;
use super::watched::watched;
use super::withdrawn::is_watch_forbidden;
use crate::api::ObjectMeta;
use crate::cluster::{explained, resource_version};
use crate::controller::environment::{Environment, Kind, Objects, keys};
use crate::controller::index::Index;
use crate::controller::live::Live;
use crate::controller::live::guarded::{Guarded, Invalid};
use crate::controller::live::stores::{UnreadableObjects, has};
use crate::controller::object::{Managed, Status, uid};
use crate::decide::kept;
use crate::decide::released::{has_finalizer, is_released};

pub type Changes<K> = Pin<Box<dyn Stream<Item = Result<K, watcher::Error>> + Send>>;

/// The environment, for tasks that are made before it.
pub type Later = Arc<OnceLock<Arc<Live>>>;

/// A stream that fills a store and starts passes, with the store.
pub struct Feed<K: Managed> {
    pub namespace: Option<String>,
    pub changes: Changes<K>,
    pub store: Store<K>,
}

/// The events of a kind in `namespace`, or everywhere.
pub fn events<K: Kind>(
    client: &kube::Client,
    namespace: Option<&str>,
    list_again: Receiver<()>,
) -> impl Stream<Item = watcher::Result<watcher::Event<Guarded<K::Object>>>> + Send + use<K> {
    let api = K::Object::api::<Guarded<K::Object>>(client, namespace);
    let config = watcher::Config::default().page_size(PAGE);
    watched(api, config, list_again).modify(trimmed::<K>)
}

/// Fills a store from the watch of a kind in `namespace`, or everywhere.
pub fn feed<K: Kind>(
    namespace: Option<&str>,
    watched: impl Stream<Item = watcher::Result<watcher::Event<Guarded<K::Object>>>> + Send + 'static,
    index: &Arc<Index<K::Object>>,
    unreadable: &UnreadableObjects,
    env: &Later,
) -> Feed<K::Object> {
    let (store, writer) = reflector::store();
    let (refused, scope) = (env.clone(), namespace.map(str::to_owned));
    let watched = watched.inspect(move |event| {
        let Err(error) = event else { return };
        debug!(error = explained(error), watch = %K::Object::plural(&()), "the watch failed; it is begun anew");
        if is_watch_forbidden(error)
            && let Some(env) = refused.get()
        {
            env.is_refused_in(scope.as_deref());
        }
    });
    // After an error kube-runtime would delay all triggers of passes, longer each time. The watch
    // has its own pauses.
    let watched = watched.filter_map(|event| std::future::ready(event.ok()));
    let mut reader = Reader::<K>::new(namespace, writer, index, unreadable, env);
    let read = watched.filter_map(move |event| std::future::ready(reader.read(event).map(Ok)));
    let later = env.clone();
    let changes = read.applied_objects().inspect(move |object| {
        if let (Ok(object), Some(env)) = (object, later.get()) {
            wake::owner(env.as_ref(), object);
        }
    });
    Feed {
        namespace: namespace.map(str::to_owned),
        changes: changes.boxed(),
        store,
    }
}

/// How many objects of a list are decoded at once; unneeded parts are dropped right after. An
/// object may have a MiB.
pub const PAGE: u32 = 50;

/// Drops the unneeded parts of an object. If its metadata is still too large, the object counts as
/// unreadable.
fn trimmed<K: Kind>(object: &mut Guarded<K::Object>) {
    let meta = object.meta_mut();
    kept::trim(meta, K::SELECTED);
    let Err(error) = kept::fits(meta) else { return };
    let meta = std::mem::take(meta);
    let record = match &mut object.0 {
        Ok(object) => object
            .status_mut()
            .as_mut()
            .and_then(Status::record_mut)
            .and_then(Option::take),
        Err(invalid) => invalid.record().cloned(),
    };
    object.0 = Err(Invalid::new(meta, record, &error));
}

/// Fills the store with readable objects. Reports objects that are gone, cannot be read, or can be
/// read again.
struct Reader<K: Kind> {
    namespace: Option<String>,
    store: Store<K::Object>,
    writer: Writer<K::Object>,
    index: Arc<Index<K::Object>>,
    unreadable: UnreadableObjects,
    /// The content of the store before the list in progress. A watch that was interrupted for too
    /// long starts with a list, which does not show what was deleted meanwhile.
    before: Vec<Arc<K::Object>>,
    /// The unreadable objects in the list in progress.
    listed: Vec<Invalid>,
    env: Later,
}

/// The consequences of an event for other objects.
struct News<K: Kind> {
    gone: Vec<Arc<K::Object>>,
    /// The store has a newer version of them than the list in progress.
    newer: Vec<Arc<K::Object>>,
    /// A complete list shows them for the first time, or in another version than the store had.
    listed: Vec<Arc<K::Object>>,
    /// Our finalizer is gone from them, but another one keeps them.
    released: Vec<Arc<K::Object>>,
    invalid: Vec<Invalid>,
    /// They were unreadable, and are gone or readable now.
    no_longer_invalid: Vec<Arc<ObjectMeta>>,
}

impl<K: Kind> Default for News<K> {
    fn default() -> Self {
        Self {
            gone: Vec::new(),
            newer: Vec::new(),
            listed: Vec::new(),
            released: Vec::new(),
            invalid: Vec::new(),
            no_longer_invalid: Vec::new(),
        }
    }
}

impl<K: Kind> Reader<K> {
    fn new(
        namespace: Option<&str>,
        writer: Writer<K::Object>,
        index: &Arc<Index<K::Object>>,
        unreadable: &UnreadableObjects,
        env: &Later,
    ) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            store: writer.as_reader(),
            writer,
            index: index.clone(),
            unreadable: unreadable.clone(),
            before: Vec::new(),
            listed: Vec::new(),
            env: env.clone(),
        }
    }

    /// The event, if it concerns readable objects.
    fn read(
        &mut self,
        event: watcher::Event<Guarded<K::Object>>,
    ) -> Option<watcher::Event<K::Object>> {
        let (event, news) = self.apply(event);
        if let Some(env) = self.env.get() {
            self.tell(env, news);
        }
        event
    }

    /// Updates the store before anything is reported about the event.
    fn apply(
        &mut self,
        event: watcher::Event<Guarded<K::Object>>,
    ) -> (Option<watcher::Event<K::Object>>, News<K>) {
        let mut news = News::default();
        let readable = self.readable(event, &mut news);
        if let Some(event) = &readable {
            let before = self.before(event, &news.gone);
            self.writer.apply_watcher_event(event);
            self.index(event, &news.gone);
            if matches!(event, watcher::Event::InitDone) {
                news.listed = self.changed_since(&news.gone);
            }
            news.released = before
                .iter()
                .filter_map(|before| self.released_since(before))
                .collect();
        }
        news.gone.retain(|object| {
            !has(&self.store, object.as_ref()) && !self.unreadable.has(object.as_ref())
        });
        (readable, news)
    }

    /// The object in the store, if the list in progress has an older version, or one without the
    /// record: storage may have been rolled back, and versions have passed the known one. The store
    /// replaces its content only once the list is complete.
    fn newer(&self, listed: &K::Object) -> Option<Arc<K::Object>> {
        let known = self.store.get(&ObjectRef::from_obj(listed))?;
        let is_newer = resource_version(known.as_ref()) > resource_version(listed);
        let lacks_record = listed.recorded_text().is_none() && known.recorded_text().is_some();
        (uid(known.as_ref()) == uid(listed) && (is_newer || lacks_record)).then_some(known)
    }

    /// The objects that the store lacked in this version before a list.
    fn changed_since(&self, before: &[Arc<K::Object>]) -> Vec<Arc<K::Object>> {
        let version = |object: &K::Object| (uid(object).clone(), resource_version(object));
        let before: HashSet<_> = before.iter().map(|object| version(object)).collect();
        let mut now = self.store.state();
        now.retain(|object| !before.contains(&version(object)));
        now
    }

    /// The objects of this event as the store has them, if they claimed something. `listed` is the
    /// content of the store before a list.
    fn before(
        &self,
        event: &watcher::Event<K::Object>,
        listed: &[Arc<K::Object>],
    ) -> Vec<Arc<K::Object>> {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let mut before = match event {
            Init | InitApply(_) | Delete(_) => Vec::new(),
            Apply(object) => self
                .store
                .get(&ObjectRef::from_obj(object))
                .into_iter()
                .collect(),
            InitDone => listed.to_vec(),
        };
        before.retain(|object| !is_released(object.meta()));
        before
    }

    /// The object as it is now, if it is released.
    fn released_since(&self, before: &K::Object) -> Option<Arc<K::Object>> {
        let now = self.store.get(&ObjectRef::from_obj(before))?;
        (uid(now.as_ref()) == uid(before) && is_released(now.meta())).then_some(now)
    }

    /// Updates the index from the store. `before` is the content of the store before a list.
    fn index(&self, event: &watcher::Event<K::Object>, before: &[Arc<K::Object>]) {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let set = |object: &K::Object| self.index.set(object, &keys::<K>(object));
        match event {
            Init | InitApply(_) => {}
            Apply(object) => set(object),
            Delete(object) => self.index.remove(object),
            InitDone => {
                self.store.state().iter().for_each(|object| set(object));
                let is_gone = |object: &&Arc<K::Object>| {
                    self.store
                        .get(&ObjectRef::from_obj(object.as_ref()))
                        .is_none()
                };
                before
                    .iter()
                    .filter(is_gone)
                    .for_each(|object| self.index.remove(object));
            }
        }
    }

    fn readable(
        &mut self,
        event: watcher::Event<Guarded<K::Object>>,
        news: &mut News<K>,
    ) -> Option<watcher::Event<K::Object>> {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        match event {
            Init => {
                self.before = self.store.state();
                self.listed.clear();
                Some(Init)
            }
            InitApply(Guarded(Ok(object))) => {
                news.newer.extend(self.newer(&object));
                Some(InitApply(object))
            }
            InitApply(Guarded(Err(invalid))) => {
                self.listed.push(invalid);
                None
            }
            InitDone => {
                let listed = std::mem::take(&mut self.listed);
                (news.invalid, news.no_longer_invalid) =
                    self.unreadable.replace(self.namespace.as_deref(), listed);
                news.gone = std::mem::take(&mut self.before);
                Some(InitDone)
            }
            Apply(Guarded(Ok(object))) => {
                news.no_longer_invalid
                    .extend(self.unreadable.remove(object.meta()));
                Some(Apply(object))
            }
            Apply(Guarded(Err(invalid))) => {
                let before = self
                    .store
                    .find(|object| object.meta().uid == invalid.meta.uid);
                if self.unreadable.insert(invalid.clone()) {
                    news.invalid.push(invalid);
                }
                // The store drops the object, but it does not count as gone.
                before.map(|object| Delete(object.as_ref().clone()))
            }
            Delete(Guarded(Ok(object))) => {
                self.unreadable.remove(object.meta());
                news.gone.push(Arc::new(object.clone()));
                Some(Delete(object))
            }
            Delete(Guarded(Err(invalid))) => {
                news.no_longer_invalid
                    .extend(self.unreadable.remove(&invalid.meta));
                None
            }
        }
    }

    fn tell(&self, env: &Arc<Live>, news: News<K>) {
        for object in news.newer {
            env.state().went_back(
                uid(object.as_ref()),
                resource_version(object.as_ref()),
                object.recorded_text().map(str::to_owned),
            );
        }
        // kube-runtime asks for a pass over each listed object while the store still has the
        // previous one.
        if env.synced.is_cancelled() {
            for object in &news.listed {
                env.wake(ObjectRef::from_obj(object.as_ref()));
                wake::owner(env.as_ref(), object.as_ref());
            }
        }
        for object in news.gone {
            if let Some(left) = left_behind::<K>(&object) {
                let (namespace, name) = (
                    object.meta().namespace.as_deref(),
                    object.meta().name.as_deref(),
                );
                warn!(
                    kind = %K::Object::kind(&()), namespace, name,
                    "the resource is gone without its deletion; nothing manages any more what it has on the platform: {left}"
                );
            }
            K::on_deleted(env.as_ref(), object.as_ref());
            wake::owner(env.as_ref(), object.as_ref());
        }
        for object in news.released {
            wake::released::<K, _>(env.as_ref(), object.as_ref());
        }
        for invalid in news.invalid {
            let (namespace, name) = (
                invalid.meta.namespace.as_deref(),
                invalid.meta.name.as_deref(),
            );
            warn!(
                kind = %K::Object::kind(&()), namespace, name, error = invalid.error,
                "a stored object cannot be read; nothing is done for it until it is corrected"
            );
            tokio::spawn(unreadable::report::<K::Object>(
                env.clone(),
                self.unreadable.clone(),
                invalid,
            ));
        }
        for meta in news.no_longer_invalid {
            if self
                .store
                .find(|object| object.meta().uid == meta.uid)
                .is_none()
            {
                let uid = meta.uid.as_deref().unwrap_or_default();
                env.state().forget(&uid.into());
            }
            wake::all_in::<Live>(env.as_ref(), meta.namespace.as_deref());
        }
    }
}

/// The platform objects of a resource that is gone without the deletion that our finalizer waits
/// for. Something else removed the finalizer, or storage was rolled back to before its creation.
fn left_behind<K: Kind>(object: &K::Object) -> Option<String> {
    let is_held = has_finalizer(object.meta()) && object.meta().deletion_timestamp.is_none();
    let has = is_held.then(|| K::platform_objects(object).unwrap_or_default())?;
    (!has.is_empty()).then(|| has.join(", "))
}

#[cfg(test)]
mod tests;
