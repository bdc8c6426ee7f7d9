//! Putting it together: watches, stores, and one controller for each kind and namespace.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use futures::future::join_all;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::controller::{Config, Controller};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::Context;
use super::account::Accounts as AccountsKind;
use super::accounts::Accounts;
use super::brake::Deletions;
use super::compute::Computes;
use super::creating::Creating;
use super::key::ProjectKeys;
use super::kind::{Kind, Managed, uid};
use super::reconcile::{error_policy, reconcile};
use super::relay::{self, Gone};
use super::stores::{Scoped, Stores};
use super::traces::{Traces, Unsaved};
use super::triggers::{Fan, Triggered, channels};
use super::under_way::UnderWay;
use crate::api::{Account, ClusterAccount, Compute, ProjectKey};
use crate::clock;
use crate::cluster::{Events, Secrets};
use crate::config::Settings;
use crate::decide::names::ClusterId;
use crate::platform::Observers;
use crate::telemetry::{Metrics, Readiness};

/// What readiness says until the stores are filled.
const CACHES: &str = "the first list of all resources";

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type Changes<K> = Pin<Box<dyn Stream<Item = Result<K, watcher::Error>> + Send>>;

/// Everything that runs, before it runs.
pub struct Assembly {
    pub context: Arc<Context>,
    running: Vec<Task>,
    /// Ends when every store is filled.
    filled: Vec<Task>,
}

/// The stream that fills a store and starts passes, with the store.
struct Feed<K: Resource<DynamicType = ()> + Clone + 'static> {
    namespace: Option<String>,
    changes: Changes<K>,
    store: Store<K>,
}

/// The context, for those who are made before it.
type Later = Arc<OnceLock<Arc<Context>>>;

struct Feeds {
    accounts: Vec<Feed<Account>>,
    cluster_accounts: Vec<Feed<ClusterAccount>>,
    computes: Vec<Feed<Compute>>,
    keys: Vec<Feed<ProjectKey>>,
}

impl Assembly {
    pub fn new(
        client: Client,
        settings: Settings,
        cluster: ClusterId,
        metrics: Arc<Metrics>,
        stop: &CancellationToken,
    ) -> Self {
        let scopes: Vec<Option<String>> = match settings.watch_namespaces.as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
        let later = Later::default();
        let feeds = Feeds {
            accounts: feeds(&client, &scopes, &later),
            cluster_accounts: vec![feed(Api::all(client.clone()), None, &later)],
            computes: feeds(&client, &scopes, &later),
            keys: feeds(&client, &scopes, &later),
        };
        let (namespaces, namespaces_writer) = reflector::store();
        let (triggers, triggered) = channels();
        let context = Arc::new(Context {
            secrets: Secrets::new(client.clone()),
            cluster,
            events: Events::new(client.clone(), &settings.identity),
            stores: feeds.stores(namespaces),
            accounts: Accounts::default(),
            observers: Observers::new(triggers.for_observers(), clock::now, rand::random::<f64>),
            metrics,
            traces: Traces::default(),
            unsaved: Unsaved::default(),
            creating: Creating::default(),
            under_way: UnderWay::default(),
            deletions: Deletions::default(),
            triggers,
            synced: CancellationToken::new(),
            stop: stop.clone(),
            client,
            settings,
        });
        // Set once, right here.
        let _ = later.set(context.clone());
        let mut assembly = Self { context, running: Vec::new(), filled: Vec::new() };
        assembly.add_controllers(feeds, triggered, stop);
        assembly.add_relays(&scopes, namespaces_writer, stop);
        assembly
    }

    /// Runs until `stop`, and until every pass that was running then has ended.
    pub async fn run(self, readiness: &Readiness, stop: &CancellationToken) {
        readiness.lacks(CACHES);
        let filled = async {
            join_all(self.filled).await;
            readiness.has(CACHES);
            self.context.synced.cancel();
            info!("all resources are known; beginning");
        };
        let begin = async {
            tokio::select! {
                () = filled => {}
                () = stop.cancelled() => {}
            }
        };
        tokio::join!(join_all(self.running), begin);
    }

    fn add_controllers(&mut self, feeds: Feeds, triggered: Triggered, stop: &CancellationToken) {
        self.add::<AccountsKind<Account>>(feeds.accounts, &Fan::of(triggered.accounts), stop);
        self.add::<AccountsKind<ClusterAccount>>(feeds.cluster_accounts, &Fan::of(triggered.cluster_accounts), stop);
        self.add::<Computes>(feeds.computes, &Fan::of(triggered.computes), stop);
        self.add::<ProjectKeys>(feeds.keys, &Fan::of(triggered.keys), stop);
    }

    fn add<K: Kind>(&mut self, feeds: Vec<Feed<K::Object>>, triggers: &Fan<K::Object>, stop: &CancellationToken) {
        for Feed { namespace, changes, store } in feeds {
            self.filled.push(filled(&store));
            let controller = Controller::for_stream(changes, store)
                .with_config(Config::default().concurrency(self.context.settings.concurrency))
                .reconcile_on(triggers.outlet(namespace))
                .graceful_shutdown_on(stop.clone().cancelled_owned())
                .run(reconcile::<K>, error_policy::<K>, self.context.clone());
            let log = controller.for_each(|result| async move {
                if let Err(error) = result {
                    debug!(%error, "a pass could not be made");
                }
            });
            self.running.push(log.boxed());
        }
    }

    fn add_relays(
        &mut self,
        scopes: &[Option<String>],
        writer: Writer<PartialObjectMeta<Namespace>>,
        stop: &CancellationToken,
    ) {
        let client = &self.context.client;
        for scope in scopes {
            let api: Api<PartialObjectMeta<Secret>> = match scope {
                Some(namespace) => Api::namespaced(client.clone(), namespace),
                None => Api::all(client.clone()),
            };
            self.running.push(relay::secrets(self.context.clone(), api, stop.clone()).boxed());
        }
        // An operator that is confined to namespaces may not read those objects themselves.
        if scopes == [None] {
            self.filled.push(filled(&self.context.stores.namespaces));
            let api = Api::all(client.clone());
            self.running.push(relay::namespaces(self.context.clone(), api, writer, stop.clone()).boxed());
        }
    }
}

impl Feeds {
    fn stores(&self, namespaces: Store<PartialObjectMeta<Namespace>>) -> Stores {
        Stores {
            accounts: scoped(&self.accounts),
            cluster_accounts: scoped(&self.cluster_accounts),
            computes: scoped(&self.computes),
            keys: scoped(&self.keys),
            namespaces,
        }
    }
}

fn scoped<K: Managed>(feeds: &[Feed<K>]) -> Scoped<K> {
    Scoped::new(feeds.iter().map(|feed| feed.store.clone()).collect())
}

fn feeds<K>(client: &Client, scopes: &[Option<String>], context: &Later) -> Vec<Feed<K>>
where
    K: Gone + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api = |scope: &Option<String>| match scope {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    scopes.iter().map(|scope| feed(api(scope), scope.clone(), context)).collect()
}

/// Others hear of an object that is gone after the store has let it go.
fn feed<K: Gone>(api: Api<K>, namespace: Option<String>, context: &Later) -> Feed<K> {
    let (store, writer) = reflector::store();
    let context = context.clone();
    let gone = departures(store.clone(), move |object: &K| {
        if let Some(context) = context.get() {
            object.gone(context);
        }
    });
    let changes = watcher(api, watcher::Config::default()).default_backoff().modify(trim).reflect(writer);
    Feed { namespace, changes: changes.inspect(gone).applied_objects().boxed(), store }
}

/// Tells `gone` of objects that are no more. A watch that was interrupted for too long begins with a list, which says nothing
/// of what went meanwhile.
fn departures<K: Managed>(
    store: Store<K>,
    gone: impl Fn(&K),
) -> impl FnMut(&Result<watcher::Event<K>, watcher::Error>) {
    let mut before = Vec::new();
    move |event| match event {
        Ok(watcher::Event::Delete(object)) => gone(object),
        Ok(watcher::Event::Init) => before = store.state(),
        Ok(watcher::Event::InitDone) => {
            let is_gone =
                |object: &K| store.get(&ObjectRef::from_obj(object)).is_none_or(|now| uid(now.as_ref()) != uid(object));
            before.drain(..).filter(|object| is_gone(object.as_ref())).for_each(|object| gone(object.as_ref()));
        }
        _ => {}
    }
}

/// Drops what nobody here reads: half of a resource, and with thousands of them half of the memory.
fn trim<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
    object.annotations_mut().remove(LAST_APPLIED);
}

/// What `kubectl apply` keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Ends when the store holds its first list. A writer that is gone means that the operator is stopping.
fn filled<K>(store: &Store<K>) -> Task
where
    K: reflector::Lookup<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    let store = store.clone();
    async move { drop(store.wait_until_ready().await) }.boxed()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kube::core::ObjectMeta;

    use super::*;
    use crate::api::ProjectKey;

    fn object(name: &str, uid: &str) -> ProjectKey {
        let spec = serde_json::json!({
            "accountRef": {"name": "prod"}, "projectID": "p", "keyName": "ci", "secret": {"name": "ci"},
        });
        let (name, uid) = (Some(name.to_owned()), Some(uid.to_owned()));
        let metadata = ObjectMeta { name, uid, namespace: Some("shop".to_owned()), ..ObjectMeta::default() };
        ProjectKey { metadata, ..ProjectKey::new("", serde_json::from_value(spec).unwrap()) }
    }

    #[test]
    fn what_went_while_nobody_watched_is_told_too() {
        let (store, mut writer) = reflector::store();
        let told = RefCell::new(Vec::new());
        let mut gone = departures(store, |object: &ProjectKey| told.borrow_mut().push(uid(object)));
        let mut happens = |event: watcher::Event<ProjectKey>| {
            writer.apply_watcher_event(&event);
            gone(&Ok(event));
            std::mem::take(&mut *told.borrow_mut())
        };
        let mut listed = |objects: &[(&str, &str)]| {
            let mut heard = happens(watcher::Event::Init);
            for (name, uid) in objects {
                heard.extend(happens(watcher::Event::InitApply(object(name, uid))));
            }
            heard.extend(happens(watcher::Event::InitDone));
            heard.sort();
            heard
        };
        assert!(listed(&[("stays", "1"), ("goes", "2"), ("returns", "3")]).is_empty());
        assert_eq!(listed(&[("stays", "1"), ("returns", "4")]), ["2", "3"]);
        assert!(listed(&[("stays", "1"), ("returns", "4")]).is_empty());
        assert_eq!(happens(watcher::Event::Delete(object("stays", "1"))), ["1"]);
    }
}
