//! Assembles the operator: watches, stores, and one controller for each kind and namespace.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::controller::{self, Controller};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::{Api, Client};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::feed::{Feed, Later, events, feed};
use super::put_back;
use super::reconcile::{Shared, error_policy, reconcile};
use super::relay;
use super::withdrawn;
use crate::cluster::ApiServer;
use crate::config::OperatorSettings;
use crate::controller::environment::{Kind, KindVisitor, Kinds, PassSettings};
use crate::controller::live::Live;
use crate::controller::live::census::census;
use crate::controller::live::stores::{Entry, Stores, UnreadableObjects};
use crate::controller::object::Managed;
use crate::controller::pass::label_of;
use crate::controller::registry::AllKinds;
use crate::controller::state::ProcessState;
use crate::decide::names::ClusterId;
use crate::leadership::Leadership;
use crate::platform::{Observers, Organizations, OverHttp, Rooms, Ticks};
use crate::telemetry::{Metrics, Readiness};

/// The item that readiness reports as missing until the stores are filled.
const CACHES: &str = "the first list of all resources";

/// All tasks of the operator, before they run.
pub struct Assembly {
    pub env: Arc<Live>,
    running: Vec<BoxFuture<'static, ()>>,
    /// They end when every store is filled.
    filled: Vec<BoxFuture<'static, ()>>,
}

/// The inputs of the environment.
pub struct Inputs {
    pub client: Client,
    pub settings: OperatorSettings,
    pub cluster: ClusterId,
    pub metrics: Arc<Metrics>,
    pub leadership: Leadership,
    pub clock: fn() -> Timestamp,
}

fn pass_settings(settings: &OperatorSettings, cluster: ClusterId) -> PassSettings {
    PassSettings {
        limits: settings.limits,
        request_timeout: settings.request_timeout,
        platforms: settings.platforms.clone(),
        cluster,
        namespaces: settings.watch_namespaces.clone(),
        cluster_accounts: settings.cluster_accounts,
    }
}

/// The namespaces to watch; `None` means all.
fn scopes(settings: &OperatorSettings) -> Vec<Option<String>> {
    match settings.watch_namespaces.as_slice() {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    }
}

/// Lets the metrics count the objects in the stores.
fn count_objects(env: &Arc<Live>) {
    let counted = Arc::downgrade(env);
    env.metrics.counted.by(move || {
        counted
            .upgrade()
            .map(|env| census(env.as_ref()))
            .unwrap_or_default()
    });
}

impl Assembly {
    pub fn new(inputs: Inputs, stop: &CancellationToken) -> Self {
        let Inputs {
            client,
            settings,
            cluster,
            metrics,
            leadership,
            clock,
        } = inputs;
        let scopes = scopes(&settings);
        let list_again = watch::Sender::default();
        let PartsOfKinds {
            later,
            stores,
            controllers,
            filled,
            ..
        } = PartsOfKinds::of_all_kinds(&client, &settings, &scopes, &list_again);
        let (namespaces, namespaces_writer) = reflector::store();
        let ticks = Ticks::default();
        let (refused, refusals) = unbounded_channel();
        let (doubted, doubts) = unbounded_channel();
        let env = Arc::new_cyclic(|this| Live {
            pass_settings: pass_settings(&settings, cluster),
            cluster: ApiServer::new(client, &settings.identity),
            observers: Observers::new(ticks.clone(), stores.waker(), clock, rand::random),
            key_observers: Observers::new(ticks.clone(), stores.waker(), clock, rand::random),
            ticks,
            stores,
            namespaces,
            state: ProcessState::default(),
            over: OverHttp::default(),
            rooms: Rooms::new(settings.list_memory),
            leadership,
            clock,
            organizations: Organizations::default(),
            metrics,
            this: this.clone(),
            synced: CancellationToken::new(),
            refused,
            doubted,
            list_again,
            stop: stop.clone(),
            settings,
        });
        count_objects(&env);
        // This is the only place that sets it.
        let _ = later.set(env.clone());
        let shared = Arc::new(Shared::of(&env));
        let running = controllers.into_iter().map(|start| start(&shared, stop));
        let notices = [
            put_back::notice(env.clone(), doubts, stop.clone()).boxed(),
            withdrawn::notice(env.clone(), refusals, stop.clone()).boxed(),
        ];
        let running = running.chain(notices).collect();
        let mut assembly = Self {
            env,
            running,
            filled,
        };
        assembly.add_relays(&scopes, namespaces_writer, stop);
        assembly
    }

    /// Runs until `stop`, and until every pass that was running then has ended.
    pub async fn run(self, readiness: &Readiness, stop: &CancellationToken) {
        readiness.lacks(CACHES);
        let filled = async {
            join_all(self.filled).await;
            readiness.has(CACHES);
            self.env.synced.cancel();
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

    fn add_relays(
        &mut self,
        scopes: &[Option<String>],
        writer: Writer<PartialObjectMeta<Namespace>>,
        stop: &CancellationToken,
    ) {
        let client = self.env.cluster.client();
        let credentials = self
            .env
            .settings
            .credentials_namespaces
            .iter()
            .cloned()
            .map(Some);
        let elsewhere = credentials.filter(|scope| scopes != [None] && !scopes.contains(scope));
        for scope in scopes.iter().cloned().chain(elsewhere) {
            let api: Api<PartialObjectMeta<Secret>> = match scope {
                Some(namespace) => Api::namespaced(client.clone(), &namespace),
                None => Api::all(client.clone()),
            };
            let listed = CancellationToken::new();
            self.filled.push(listed.clone().cancelled_owned().boxed());
            self.running
                .push(relay::secrets(self.env.clone(), api, listed, stop.clone()).boxed());
        }
        // An operator that is confined to namespaces may not read the namespace objects themselves.
        if scopes == [None] {
            self.filled.push(filled(&self.env.namespaces));
            let api = Api::all(client.clone());
            self.running
                .push(relay::namespaces(self.env.clone(), api, writer, stop.clone()).boxed());
        }
    }
}

type StartController = Box<dyn FnOnce(&Arc<Shared>, &CancellationToken) -> BoxFuture<'static, ()>>;

/// The parts of all kinds, which are made before the environment.
struct PartsOfKinds<'a> {
    client: &'a Client,
    scopes: &'a [Option<String>],
    cluster_accounts: bool,
    later: Later,
    list_again: &'a watch::Sender<()>,
    stores: Stores,
    controllers: Vec<StartController>,
    filled: Vec<BoxFuture<'static, ()>>,
}

impl<'a> PartsOfKinds<'a> {
    fn of_all_kinds(
        client: &'a Client,
        settings: &OperatorSettings,
        scopes: &'a [Option<String>],
        list_again: &'a watch::Sender<()>,
    ) -> Self {
        let mut parts = Self {
            client,
            scopes,
            cluster_accounts: settings.cluster_accounts,
            later: Later::default(),
            list_again,
            stores: Stores::default(),
            controllers: Vec::new(),
            filled: Vec::new(),
        };
        AllKinds::each(&mut parts);
        parts
    }
}

impl KindVisitor for PartsOfKinds<'_> {
    fn visit<K: Kind>(&mut self) {
        let (index, unreadable) = (Arc::default(), UnreadableObjects::default());
        let feed = |scope: Option<&str>| {
            let watched = events::<K>(self.client, scope, self.list_again.subscribe());
            feed::<K>(scope, watched, &index, &unreadable, &self.later)
        };
        let feeds: Vec<Feed<K::Object>> = if K::Object::is_namespaced() {
            self.scopes
                .iter()
                .map(|scope| feed(scope.as_deref()))
                .collect()
        } else if !self.cluster_accounts {
            Vec::new()
        } else {
            vec![feed(None)]
        };
        let stores: Vec<_> = feeds.iter().map(|feed| feed.store.clone()).collect();
        self.filled.extend(stores.iter().map(filled));
        let (wake, woken) = unbounded_channel();
        self.stores.insert(Entry {
            stores,
            index,
            unreadable,
            wake,
        });
        let namespaces: Vec<_> = feeds.iter().map(|feed| feed.namespace.clone()).collect();
        let (spread, outlets) = spread(woken, namespaces);
        self.controllers.push(Box::new(move |_, stop| {
            let stop = stop.clone();
            async move {
                stop.run_until_cancelled_owned(spread)
                    .await
                    .unwrap_or_default()
            }
            .boxed()
        }));
        for (feed, woken) in feeds.into_iter().zip(outlets) {
            self.controllers.push(Box::new(move |shared, stop| {
                controller::<K>(feed, woken, shared, stop)
            }));
        }
    }
}

/// The controller of one kind in one namespace.
fn controller<K: Kind>(
    Feed { changes, store, .. }: Feed<K::Object>,
    woken: UnboundedReceiver<ObjectRef<K::Object>>,
    shared: &Arc<Shared>,
    stop: &CancellationToken,
) -> BoxFuture<'static, ()> {
    // The slots limit the concurrency: with one limit for all, passes that wait would hold up the
    // others.
    let controller = Controller::for_stream(changes, store)
        .reconcile_on(received(woken))
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(reconcile::<K>, error_policy::<K>, shared.clone());
    let slots = shared.slots.clone();
    let log = controller.for_each(move |result| {
        if let Err(controller::Error::ObjectNotFound(object)) = &result {
            slots.leave(&label_of::<K::Object>(
                object.namespace.as_deref(),
                &object.name,
            ));
        }
        async move {
            if let Err(error) = result {
                debug!(%error, "a pass could not be made");
            }
        }
    });
    log.boxed()
}

/// Forwards woken objects to the controller of their namespace.
fn spread<K: Managed>(
    mut woken: UnboundedReceiver<ObjectRef<K>>,
    namespaces: Vec<Option<String>>,
) -> (
    impl Future<Output = ()> + Send,
    Vec<UnboundedReceiver<ObjectRef<K>>>,
) {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        namespaces.iter().map(|_| unbounded_channel()).unzip();
    let senders: HashMap<_, _> = namespaces.into_iter().zip(senders).collect();
    let spread = async move {
        while let Some(reference) = woken.recv().await {
            let sender = senders
                .get(&None)
                .or_else(|| senders.get(&reference.namespace));
            if sender.is_some_and(|sender| sender.send(reference).is_err()) {
                return;
            }
        }
    };
    (spread, receivers)
}

fn received<T: Send + 'static>(
    receiver: UnboundedReceiver<T>,
) -> impl Stream<Item = T> + Send + 'static {
    futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    })
}

/// Ends when the store has its first list, or when the writer is gone because the operator stops.
fn filled<K>(store: &Store<K>) -> BoxFuture<'static, ()>
where
    K: reflector::Lookup<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    let store = store.clone();
    async move { drop(store.wait_until_ready().await) }.boxed()
}
