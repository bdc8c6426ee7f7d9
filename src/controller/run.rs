//! Starting and stopping: watches, stores and one controller for each kind and namespace.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::join_all;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::controller::{Config, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::account::Accounts as AccountsKind;
use super::compute::Computes;
use super::key::{ProjectKeys, flush};
use super::kind::{Kind, Managed};
use super::reconcile::{error_policy, reconcile};
use super::relay::{self, Gone};
use super::stores::{Scoped, Stores};
use super::triggers::{Fan, channels};
use super::{Context, leader, startup};
use crate::api::{Account, ClusterAccount, Compute, ProjectKey};
use crate::clock;
use crate::cluster::{Events, Secrets};
use crate::config::Settings;
use crate::platform::Observers;
use crate::telemetry::{Metrics, Readiness};

/// How long keys that are not in their Secrets yet are tried to be saved when the operator stops.
const FLUSH_GRACE: Duration = Duration::from_secs(25);

/// What the operator runs with.
pub struct Operator {
    pub client: Client,
    pub settings: Settings,
    pub leader_elect: bool,
    pub readiness: Readiness,
    pub metrics: Arc<Metrics>,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs until `stop`, or until the lead is lost; whether it ended because it was told to.
pub async fn run(operator: Operator, stop: CancellationToken) -> bool {
    let first = operator.settings.watch_namespaces.first().map(String::as_str);
    if !startup::wait_for_resources(&operator.client, first, &operator.readiness, &stop).await {
        return true;
    }
    if !operator.leader_elect {
        control(operator, stop).await;
        return true;
    }
    let Some(lead) = leader::lead(&operator.client, &operator.settings.identity, &stop).await else { return true };
    // Nothing may be done once another process may lead.
    let lost = stop.child_token();
    let watch = async {
        lead.lost().await;
        lost.cancel();
    };
    let well = {
        let work = control(operator, lost.clone());
        tokio::pin!(work);
        tokio::select! {
            () = &mut work => true,
            () = watch => {
                warn!("the lead is lost");
                work.await;
                false
            }
        }
    };
    lead.release().await;
    well
}

async fn control(operator: Operator, stop: CancellationToken) {
    let Operator { client, settings, readiness, metrics, .. } = operator;
    readiness.lacks(CACHES);
    let scopes: Vec<Option<String>> = match settings.watch_namespaces.as_slice() {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    };
    let (triggers, triggered) = channels();
    let shared: Arc<OnceLock<Arc<Context>>> = Arc::default();
    let accounts = feeds::<Account>(&client, &scopes, &shared);
    let cluster_accounts = vec![feed::<ClusterAccount>(Api::all(client.clone()), None, &shared)];
    let computes = feeds::<Compute>(&client, &scopes, &shared);
    let keys = feeds::<ProjectKey>(&client, &scopes, &shared);
    let (namespaces, namespaces_writer) = reflector::store::<PartialObjectMeta<Namespace>>();
    let stores = Stores {
        accounts: stores(&accounts),
        cluster_accounts: stores(&cluster_accounts),
        computes: stores(&computes),
        keys: stores(&keys),
        namespaces: namespaces.clone(),
    };
    let observers = Observers::new(triggers.for_observers(), clock::now, rand::random::<f64>);
    let context = Arc::new(Context {
        secrets: Secrets::new(client.clone()),
        events: Events::new(client.clone(), &settings.identity),
        stores,
        accounts: super::Accounts::default(),
        observers: observers.clone(),
        metrics,
        traces: super::Traces::default(),
        unsaved: super::Unsaved::default(),
        creating: super::Creating::default(),
        triggers,
        synced: CancellationToken::new(),
        stop: stop.clone(),
        client: client.clone(),
        settings,
    });
    let _ = shared.set(context.clone());
    let mut running: Vec<Running> = Vec::new();
    let mut filled: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    start::<AccountsKind<Account>>(
        accounts,
        &Fan::of(triggered.accounts),
        &context,
        &stop,
        (&mut running, &mut filled),
    );
    start::<AccountsKind<ClusterAccount>>(
        cluster_accounts,
        &Fan::of(triggered.cluster_accounts),
        &context,
        &stop,
        (&mut running, &mut filled),
    );
    start::<Computes>(computes, &Fan::of(triggered.computes), &context, &stop, (&mut running, &mut filled));
    start::<ProjectKeys>(keys, &Fan::of(triggered.keys), &context, &stop, (&mut running, &mut filled));
    for scope in &scopes {
        let api = match scope {
            Some(namespace) => Api::<PartialObjectMeta<Secret>>::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        running.push(relay::secrets(context.clone(), api, stop.clone()).boxed());
    }
    if scopes == [None] {
        filled.push(async move { drop(namespaces.wait_until_ready().await) }.boxed());
        let api = Api::<PartialObjectMeta<Namespace>>::all(client.clone());
        running.push(relay::namespaces(context.clone(), api, namespaces_writer, stop.clone()).boxed());
    }
    let synced = context.synced.clone();
    let when_filled = async move {
        join_all(filled).await;
        readiness.has(CACHES);
        synced.cancel();
        info!("all resources are known; beginning");
    };
    tokio::join!(join_all(running), async {
        tokio::select! {
            () = when_filled => {}
            () = stop.cancelled() => {}
        }
    });
    info!("no pass is running any more");
    flush(&context, FLUSH_GRACE).await;
    observers.shutdown().await;
}

/// What readiness says until the stores are filled.
const CACHES: &str = "the first list of all resources";

type Changes<K> = Pin<Box<dyn Stream<Item = Result<K, watcher::Error>> + Send>>;

/// The stream that fills a store and starts passes, with the store.
struct Feed<K: Resource<DynamicType = ()> + Clone + 'static> {
    namespace: Option<String>,
    changes: Changes<K>,
    store: Store<K>,
}

fn feeds<K>(client: &Client, scopes: &[Option<String>], context: &Arc<OnceLock<Arc<Context>>>) -> Vec<Feed<K>>
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
fn feed<K: Gone>(api: Api<K>, namespace: Option<String>, context: &Arc<OnceLock<Arc<Context>>>) -> Feed<K> {
    let (store, writer) = reflector::store();
    let context = context.clone();
    let changes = watcher(api, watcher::Config::default()).default_backoff().reflect(writer).inspect(move |event| {
        if let (Ok(watcher::Event::Delete(object)), Some(context)) = (event, context.get()) {
            object.gone(context);
        }
    });
    Feed { namespace, changes: changes.applied_objects().boxed(), store }
}

fn stores<K: Managed>(feeds: &[Feed<K>]) -> Scoped<K> {
    Scoped::new(feeds.iter().map(|feed| feed.store.clone()).collect())
}

fn start<K: Kind>(
    feeds: Vec<Feed<K::Object>>,
    triggers: &Fan<K::Object>,
    context: &Arc<Context>,
    stop: &CancellationToken,
    (running, filled): (&mut Vec<Running>, &mut Vec<Running>),
) {
    for Feed { namespace, changes, store } in feeds {
        let ready = store.clone();
        filled.push(async move { drop(ready.wait_until_ready().await) }.boxed());
        let controller = Controller::for_stream(changes, store)
            .with_config(Config::default().concurrency(context.settings.concurrency))
            .reconcile_on(triggers.outlet(namespace))
            .graceful_shutdown_on(stop.clone().cancelled_owned())
            .run(reconcile::<K>, error_policy::<K>, context.clone());
        let log = controller.for_each(|result: Result<(ObjectRef<K::Object>, _), _>| async move {
            if let Err(error) = result {
                debug!(%error, "a pass could not be made");
            }
        });
        running.push(log.boxed());
    }
}
