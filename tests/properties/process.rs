//! One simulated operator process: its memory, its observations of the platform, and the
//! environment of its passes. The passes are the operator's own.

mod visits;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};

use dbplane::api::{Compute, Known, ObjectMeta, PlatformAccess, ProjectKey};
use dbplane::controller::environment::{
    AdmittedCall, Environment, Kind, Kinds, Lists, Objects, Occurrence, PassSettings,
};
use dbplane::controller::index::Key;
use dbplane::controller::object::{AccountName, Managed};
use dbplane::controller::registry::AllKinds;
use dbplane::controller::state::{AccountConnection, ProcessState};
use dbplane::decide::Limits;
use dbplane::decide::account::KeyCount;
use dbplane::platform::{
    Budget, ComputeInterest, ConnectError, Endpoint, HttpOptions, HttpPlatform, KeyInterest,
    LatestKeys, LatestSnapshot, NoMeter, Platform, Platforms, RateLimited, Reach, Tick,
};
use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use secrecy::SecretString;
use tokio::runtime::{Builder, Runtime};

use self::visits::{Gone, One};
use self::wire::Wire;
pub use self::wire::translated;
use super::faults::Fault;
use super::in_memory::cluster::full_name;
use super::in_memory::{self, Carrier, Port, Resource, Response, refused};
use super::injector;
use super::listing::{SeenKeys, read_well};
use super::mistakes;
use super::run::AT_ONCE;
use super::simulation::{PROJECT, REQUEST_TIMEOUT, Shared, Simulation};

pub struct Process {
    pub simulation: Shared,
    state: ProcessState<RateLimited>,
    cluster: Port<Carried>,
    settings: PassSettings,
    ticks: AtomicU64,
    /// The objects in its cache.
    known: BTreeMap<Resource, in_memory::Print<in_memory::cluster::Stored>>,
    /// The latest snapshot of the project through each connection.
    seen: Mutex<BTreeMap<u64, LatestSnapshot>>,
    /// The latest list of the organization's keys through each connection.
    pub keys: Mutex<BTreeMap<u64, SeenKeys>>,
    woken: Mutex<BTreeSet<Resource>>,
}

/// The id of the operator's cluster.
pub const CLUSTER: &str = "c1u57e";

const KINDS: [&str; 4] = ["Account", "ClusterAccount", "Compute", "ProjectKey"];

/// The outcome of a pass.
pub enum End {
    /// Something was done or failed: another pass is due.
    Again,
    /// Nothing to do until this time.
    Rest(Option<Timestamp>),
    Died,
}

impl Process {
    pub fn new(simulation: &Shared, deletes_per_minute: u32) -> Self {
        let limits = Limits {
            deletes_per_minute,
            ..Limits::default()
        };
        Self {
            simulation: simulation.clone(),
            state: ProcessState::default(),
            cluster: Port(Carried(simulation.clone())),
            settings: PassSettings {
                limits,
                request_timeout: REQUEST_TIMEOUT,
                cluster: CLUSTER.parse().unwrap(),
                namespaces: Vec::new(),
                cluster_accounts: true,
                platforms: Platforms::default(),
            },
            ticks: AtomicU64::new(0),
            known: BTreeMap::new(),
            seen: Mutex::default(),
            keys: Mutex::default(),
            woken: Mutex::default(),
        }
    }

    /// Restricts the process to these namespaces.
    pub fn confined_to(mut self, namespaces: &[String]) -> Self {
        self.settings.namespaces = namespaces.to_vec();
        self
    }

    /// The names of the keys that are only in its memory.
    pub fn unsaved_keys(&self) -> Vec<String> {
        self.state
            .unsaved_keys()
            .into_iter()
            .map(|(_, key)| key.key.name)
            .collect()
    }

    /// Handles deletions of objects since the last call.
    pub fn handle_deletions(&mut self) {
        let there = (*self.simulation.lock().cluster.objects).clone();
        let still = |resource: &Resource, stored: &in_memory::Print<in_memory::cluster::Stored>| {
            there
                .get(resource)
                .is_some_and(|now| now.uid() == stored.uid())
        };
        let before = std::mem::take(&mut self.known);
        for (resource, stored) in before
            .iter()
            .filter(|(resource, stored)| !still(resource, stored))
        {
            AllKinds::each(&mut Gone {
                process: self,
                resource,
                stored,
            });
        }
        self.known = there;
    }

    /// Reads a snapshot of the project through each usable account. Returns false if the process
    /// died.
    pub fn read(&self) -> bool {
        self.connections()
            .all(|connection| self.read_through(&connection))
    }

    fn read_through(&self, connection: &AccountConnection<RateLimited>) -> bool {
        let (began, at) = (self.tick(), self.now());
        self.simulation.lock().acting = None;
        let Poll::Ready(read) = poll(connection.platform.list_computes(&PROJECT.into())) else {
            return false;
        };
        let mut seen = self.seen.lock().unwrap();
        let latest = seen.entry(connection.number).or_default();
        match read {
            Ok(computes) => *latest = read_well(began, at, self.now(), computes),
            Err(fault) => (latest.fault, latest.attempted) = (Some(fault), Some(began)),
        }
        true
    }

    /// Resources that were woken since the last call.
    pub fn woken(&self) -> BTreeSet<Resource> {
        std::mem::take(&mut self.woken.lock().unwrap())
    }

    /// The project's computes in the latest snapshot.
    pub fn computes(&self) -> Vec<dbplane::domain::Compute> {
        let latest = self
            .connection()
            .map(|connection| self.seen_through(&connection));
        latest
            .and_then(|latest| latest.snapshot)
            .map(|snapshot| snapshot.items.clone())
            .unwrap_or_default()
    }

    /// Reconciles an account that was just switched in the middle of another pass.
    fn look_at_moved(&self) {
        let Some((account, acting)) = self.simulation.lock().move_due() else {
            return;
        };
        // The first pass finds the new credentials, and the next ones check them.
        for _ in 0..AT_ONCE {
            self.pass(&account);
        }
        self.simulation.lock().acting = acting;
    }

    fn seen_through(&self, connection: &AccountConnection<RateLimited>) -> LatestSnapshot {
        self.seen
            .lock()
            .unwrap()
            .get(&connection.number)
            .cloned()
            .unwrap_or_default()
    }

    fn connections(&self) -> impl Iterator<Item = Arc<AccountConnection<RateLimited>>> {
        self.state
            .contents()
            .accounts
            .into_values()
            .filter_map(|entry| entry.connection)
    }

    pub fn connection(&self) -> Option<Arc<AccountConnection<RateLimited>>> {
        self.connections().next()
    }

    /// Runs one pass over the current version of an object.
    pub fn pass(&self, resource: &Resource) -> End {
        self.simulation.lock().acting = Some(resource.clone());
        let mut one = One {
            process: self,
            resource,
            end: End::Rest(None),
        };
        AllKinds::each(&mut one);
        one.end
    }
}

impl Environment for Process {
    type Client = RateLimited;

    type Cluster = Port<Carried>;

    type Kinds = AllKinds;

    fn now(&self) -> Timestamp {
        self.simulation.lock().now
    }

    /// The clock advances between passes, so each pass gets another number.
    fn random(&self) -> u32 {
        u32::try_from(self.now().as_millisecond().rem_euclid(i64::from(u32::MAX))).unwrap()
    }

    fn tick(&self) -> Tick {
        Tick::at(self.ticks.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn settings(&self) -> &PassSettings {
        &self.settings
    }

    /// Reading the state is the point at which an account can be switched in the middle of a pass.
    fn state(&self) -> &ProcessState<RateLimited> {
        self.look_at_moved();
        &self.state
    }

    fn cluster(&self) -> &Port<Carried> {
        &self.cluster
    }

    /// Without limits, because the clock of these tests cannot make a budget wait.
    fn connect(
        &self,
        _: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<RateLimited, ConnectError> {
        let endpoint = Endpoint {
            base_url: access.base_url.clone(),
            organization_id: access.organization_id.clone(),
            // Recordings use a platform at a local address without TLS.
            reach: Reach {
                insecure: true,
                ..Reach::default()
            },
        };
        let wire = Arc::new(Wire(self.simulation.clone()));
        let platform = HttpPlatform::over(wire, endpoint, key, &HttpOptions::default())?;
        Ok(RateLimited::new(
            Arc::new(platform),
            Arc::new(Budget::unlimited()),
            Arc::new(NoMeter),
        ))
    }

    fn record<K: Managed>(&self, _object: &K, occurrence: Occurrence<'_>) {
        if let Occurrence::KeyChanged(change) = occurrence {
            self.simulation.lock().ledger.keys_counted.push(change);
        }
    }

    async fn admit(
        &self,
        client: &RateLimited,
        call: AdmittedCall,
    ) -> Result<Option<RateLimited>, dbplane::domain::Fault> {
        match call {
            AdmittedCall::Change => {
                self.simulation.lock().injected(injector::ADMISSION);
                client.admit_change().await.map(Some)
            }
            AdmittedCall::KeyCreation => client.admit_key_creation().await.map(Some),
        }
    }
}

impl Objects for Process {
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.simulation
            .lock()
            .cluster
            .get(&full_name(reference.namespace.as_deref(), &reference.name))
    }

    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>> {
        self.simulation.lock().cluster.all()
    }

    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>> {
        self.simulation.lock().cluster.all_by(key)
    }

    fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        Vec::new()
    }

    fn namespace_labels(&self, _: &str) -> Option<BTreeMap<String, String>> {
        Some(BTreeMap::new())
    }

    /// Only records the wake-up: most tests reconcile every resource in every round anyway.
    fn wake<K: Managed>(&self, reference: ObjectRef<K>) {
        let kind = KINDS
            .into_iter()
            .find(|kind| *kind == K::kind(&()))
            .unwrap();
        self.woken.lock().unwrap().insert((
            kind,
            full_name(reference.namespace.as_deref(), &reference.name),
        ));
    }
}

impl Lists<RateLimited> for Process {
    fn latest_snapshot(
        &self,
        object: &Known<Compute>,
        connection: &AccountConnection<RateLimited>,
        _: ComputeInterest,
    ) -> LatestSnapshot {
        if object.spec.project_id == PROJECT {
            self.seen_through(connection)
        } else {
            mistakes::unknown_project()
        }
    }

    fn stop_observing(&self, _: &Known<Compute>) {}

    fn latest_keys(
        &self,
        _: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        _: KeyInterest,
    ) -> LatestKeys {
        self.known_keys(connection.number)
    }

    async fn read_keys(
        &self,
        _: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        _: KeyInterest,
    ) -> LatestKeys {
        self.list_keys(connection).await;
        self.known_keys(connection.number)
    }

    fn count_keys(
        &self,
        _: &AccountName,
        connection: &AccountConnection<RateLimited>,
    ) -> Option<KeyCount> {
        let list = self.known_keys(connection.number).snapshot?;
        Some(KeyCount {
            what: list.items.len(),
            at: list.at,
        })
    }

    fn stop_listing(&self, _: &Known<ProjectKey>) {}
}

/// The path to the cluster.
#[derive(Debug)]
pub struct Carried(Shared);

impl Carrier for Carried {
    fn full_name(namespace: Option<&str>, name: &str) -> String {
        full_name(namespace, name)
    }

    async fn carry(&self, request: in_memory::Request) -> Result<Response, kube::Error> {
        if let in_memory::Request::Event {
            resource,
            reason,
            text,
        } = &request
        {
            let mut simulation = self.0.lock();
            simulation
                .ledger
                .events
                .push((resource.1.clone(), reason.clone(), text.clone()));
            simulation.note_event(resource, reason, text);
            // Only these two events ask users to act on the named objects; other events report what
            // was done.
            let named = in_memory::promises::words(text).map(str::to_owned);
            match reason.as_str() {
                "KeyLeft" => simulation.ledger.keys_left.extend(named),
                "StrayCompute" => simulation.ledger.strays.extend(named),
                _ => {}
            }
            return Ok(Response::Done);
        }
        let carry = |simulation: &mut Simulation| {
            if !request.writes() {
                return simulation.cluster.handle(&request);
            }
            let before = simulation.cluster.standing(&request);
            let answer = simulation.cluster.handle(&request);
            simulation.note_write(&request);
            if simulation.cluster.standing(&request) != before {
                simulation.ledger.writes.push(format!("{request:?}"));
            }
            answer
        };
        let late = |simulation: &mut Simulation, _| drop(carry(simulation));
        match self
            .0
            .effect(|| injector::name_of(&request), carry, late)
            .await
        {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(code)) => Err(refused(code, "the API server says no")),
            Err(Fault::Denied) => Err(refused(422, "a policy denies it")),
            Err(Fault::Refused(409)) => Err(refused(409, "somebody else was faster")),
            Err(fault) => Err(refused(500, &format!("{fault:?}"))),
        }
    }
}

/// Reading a large answer sets a timeout, which needs a timer even though it never fires.
static CLOCK: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());

/// Polls a future once. All effects are immediate, so `Pending` means that the process died.
pub fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    let _clock = CLOCK.enter();
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}
