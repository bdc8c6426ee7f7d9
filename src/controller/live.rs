//! The environment of the running operator: the real clock, API server, platform and watches.

pub mod census;
pub mod guarded;
pub mod stores;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};
use secrecy::SecretString;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::stores::Stores;
use super::access;
use super::environment::{
    AdmittedCall, Environment, Kind, ListFaults, Lists, Objects, Occurrence, PassSettings,
};
use super::index::Key;
use super::labels;
use super::object::{AccountName, Managed, namespace, reference, uid};
use super::registry::AllKinds;
use super::state::{AccountConnection, ProcessState};
use crate::api::{Compute, Known, ObjectMeta, PlatformAccess, ProjectKey, Uid};
use crate::cluster::{ApiServer, resource_version};
use crate::config::OperatorSettings;
use crate::decide::account::KeyCount;
use crate::decide::key::list_interval;
use crate::domain::{Fault, OrganizationId, Unreadable};
use crate::leadership::Leadership;
use crate::platform::{
    ComputeInterest, Connect, ConnectError, ConnectOptions, Endpoint, KeyInterest, Keys,
    LatestKeys, LatestSnapshot, Listing, Observers, Organizations, OverHttp, ProjectComputes, Rate,
    RateLimited, Room, Rooms, Source, Tick, Ticks,
};
use crate::telemetry::Metrics;

/// The environment of the running operator, which all passes share.
pub struct Live {
    pub settings: OperatorSettings,
    pub pass_settings: PassSettings,
    pub cluster: ApiServer,
    pub stores: Stores,
    /// The labels of namespaces, for the selectors of ClusterAccounts.
    pub namespaces: Store<PartialObjectMeta<Namespace>>,
    /// The clock of all observers.
    pub ticks: Ticks,
    pub observers: Observers<ObjectRef<Known<Compute>>, ProjectComputes>,
    pub key_observers: Observers<ObjectRef<Known<ProjectKey>>, Keys>,
    pub state: ProcessState<RateLimited>,
    /// The budgets that accounts of one organization share.
    pub organizations: Organizations,
    /// Makes the clients of all accounts.
    pub over: OverHttp,
    /// The memory limits for the lists of each namespace's Accounts.
    pub rooms: Rooms,
    pub metrics: Arc<Metrics>,
    pub leadership: Leadership,
    /// The clock of decisions.
    pub clock: fn() -> Timestamp,
    /// A weak reference to this environment, for tasks that outlive the call that starts them.
    pub this: std::sync::Weak<Live>,
    /// Cancelled once all stores are filled; nothing is decided before.
    pub synced: CancellationToken,
    /// Sends the namespaces in which the API server has refused a request.
    pub refused: UnboundedSender<String>,
    /// Sends the UIDs of resources whose cached version may differ from storage.
    pub doubted: UnboundedSender<Uid>,
    /// Makes every watch list again.
    pub list_again: watch::Sender<()>,
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Live {
    /// Reports that the API server refused a request in this namespace. An operator of all
    /// namespaces has the same rights everywhere and reports nothing.
    pub fn is_refused_in(&self, namespace: Option<&str>) {
        if let Some(namespace) = namespace
            && !self.settings.watch_namespaces.is_empty()
        {
            // The receiver is gone while the operator stops.
            let _ = self.refused.send(namespace.to_owned());
        }
    }

    /// Has storage checked if the cache keeps showing this version of the object for a while.
    pub fn is_doubted<K: Managed>(&self, shown: &K) {
        if self
            .state
            .doubt(uid(shown), resource_version(shown))
            .is_some()
        {
            // The receiver is gone while the operator stops.
            let _ = self.doubted.send(uid(shown).clone());
        }
    }

    /// The output of `wait`, or `None` if the operator stops first.
    async fn unless_stopped<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            outcome = wait => Some(outcome),
            () = self.stop.cancelled() => None,
        }
    }

    /// The source of the key list of the account's organization.
    fn keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
    ) -> Option<Source<OrganizationId>> {
        let of = connection.access.organization_id.clone()?;
        let account = AccountName::of(&object.spec.account_ref, object);
        let keys = self
            .count_keys(&account, connection)
            .map_or(0, |counted| counted.what);
        let interval = list_interval(
            keys,
            connection.requests_per_minute(),
            self.settings.limits.key_check,
        );
        Some(self.source(&account, connection, of, interval))
    }

    /// The source of a list of project or organization `of`, read through an account.
    fn source<Of>(
        &self,
        account: &AccountName,
        connection: &AccountConnection<RateLimited>,
        of: Of,
        poll_interval: Duration,
    ) -> Source<Of> {
        let (account, room) = (account.to_string(), self.room(account));
        Source {
            account,
            of,
            platform: Arc::new(connection.platform.clone()),
            poll_interval,
            room,
        }
    }

    /// The memory limit for the lists of an account. The lists of a ClusterAccount have none, since
    /// an administrator has chosen its platform.
    fn room(&self, account: &AccountName) -> Arc<Room> {
        account
            .namespace
            .as_ref()
            .map(|namespace| self.rooms.of(namespace))
            .unwrap_or_default()
    }

    /// Requeues an account when the platform starts or stops refusing its key. The task ends with
    /// the client.
    fn wake_when_gate_moves(&self, client: &RateLimited, name: AccountName) {
        let mut gate = client.watch_gate();
        let this = self.this.clone();
        tokio::spawn(async move {
            while gate.changed().await.is_ok() {
                let Some(env) = this.upgrade() else { return };
                access::wake(env.as_ref(), &name);
            }
        });
    }
}

impl Environment for Live {
    type Client = RateLimited;

    type Cluster = ApiServer;

    type Kinds = AllKinds;

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn random(&self) -> u32 {
        rand::random()
    }

    fn tick(&self) -> Tick {
        self.ticks.now()
    }

    fn settings(&self) -> &PassSettings {
        &self.pass_settings
    }

    fn state(&self) -> &ProcessState<RateLimited> {
        &self.state
    }

    fn cluster(&self) -> &ApiServer {
        &self.cluster
    }

    fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<RateLimited, ConnectError> {
        let standard = Rate::default();
        let access = ConnectOptions {
            endpoint: Endpoint {
                base_url: access.base_url.clone(),
                organization_id: access.organization_id.clone(),
                reach: self.settings.reach.clone(),
            },
            request_timeout: self.settings.request_timeout,
            rate: access.rate_limit.map_or(standard, |limit| Rate {
                requests_per_minute: limit.requests_per_minute,
                burst: limit.burst.unwrap_or(standard.burst),
            }),
            leadership: self.leadership.clone(),
            room: self.room(name),
        };
        let meter = self.metrics.requests.of_account(census::labels(name));
        let client = self.over.connect(&access, key, meter)?;
        let client = match &access.endpoint.organization_id {
            Some(id) => client.of_organization(self.organizations.candidate(
                &self.pass_settings.platforms.of(&access.endpoint.base_url),
                id,
                access.rate,
            )),
            None => client,
        };
        self.wake_when_gate_moves(&client, name.clone());
        Ok(client)
    }

    fn record<K: Managed>(&self, object: &K, occurrence: Occurrence<'_>) {
        let steps = &self.metrics.steps;
        let (namespace, kind) = (namespace(object), K::kind(&()));
        match occurrence {
            Occurrence::Create(outcome) => steps.created(namespace, &kind, outcome),
            Occurrence::Deletion => steps.deletes(namespace, &kind),
            Occurrence::Corrected { field } => steps.corrected(namespace, field),
            Occurrence::KeyChanged(change) => steps.key(namespace, change),
            Occurrence::StepFailed { action, problem } => {
                let (action, reason) = (labels::action(action), labels::problem(problem));
                steps.failed(namespace, &kind, action, reason);
            }
        }
    }

    async fn admit(
        &self,
        client: &RateLimited,
        call: AdmittedCall,
    ) -> Result<Option<RateLimited>, Fault> {
        match call {
            AdmittedCall::Change => self.unless_stopped(client.admit_change()).await.transpose(),
            AdmittedCall::KeyCreation => self
                .unless_stopped(client.admit_key_creation())
                .await
                .transpose(),
        }
    }
}

impl Objects for Live {
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.stores.get(reference)
    }

    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>> {
        self.stores.all()
    }

    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>> {
        self.stores.find(key)
    }

    fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.stores.unreadable::<K>()
    }

    fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.namespaces
            .get(&ObjectRef::new(name))
            .map(|namespace| namespace.labels().clone())
    }

    fn wake<K: Managed>(&self, reference: ObjectRef<K>) {
        self.stores.wake(reference);
    }
}

impl Lists<RateLimited> for Live {
    fn latest_snapshot(
        &self,
        object: &Known<Compute>,
        connection: &AccountConnection<RateLimited>,
        interest: ComputeInterest,
    ) -> LatestSnapshot {
        let account = AccountName::of(&object.spec.account_ref, object);
        let source = self.source(
            &account,
            connection,
            object.spec.project_id.clone(),
            connection.poll_interval,
        );
        self.observers.read(&source, &reference(object), interest)
    }

    fn stop_observing(&self, object: &Known<Compute>) {
        self.observers.forget(&ObjectRef::from_obj(object));
    }

    fn latest_keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        interest: KeyInterest,
    ) -> LatestKeys {
        let Some(source) = self.keys(object, connection) else {
            return LatestKeys::default();
        };
        self.key_observers
            .read(&source, &reference(object), interest)
    }

    async fn read_keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        interest: KeyInterest,
    ) -> LatestKeys {
        let Some(source) = self.keys(object, connection) else {
            return LatestKeys::default();
        };
        let subscriber = reference(object);
        let read = self
            .key_observers
            .read_again(&source, &subscriber, interest);
        self.unless_stopped(read).await.unwrap_or_default()
    }

    fn list_faults(&self, account: &AccountName) -> ListFaults {
        let account = account.to_string();
        let (computes, keys) = (&self.observers, &self.key_observers);
        let unreadable = |list: &'static str, entries: BTreeMap<String, Unreadable>| {
            entries
                .into_iter()
                .map(move |(of, entries)| format!("of {list} {of}: {entries}"))
        };
        ListFaults {
            too_large: computes
                .too_large(&account)
                .or_else(|| keys.too_large(&account)),
            unreadable: unreadable(ProjectComputes::OF, computes.unreadable(&account))
                .chain(unreadable(Keys::OF, keys.unreadable(&account)))
                .collect(),
        }
    }

    fn count_keys(
        &self,
        account: &AccountName,
        connection: &AccountConnection<RateLimited>,
    ) -> Option<KeyCount> {
        let organization = connection.access.organization_id.as_ref()?;
        let known = self.key_observers.known(&account.to_string(), organization);
        known.snapshot.map(|list| KeyCount {
            what: list.count(),
            at: list.at,
        })
    }

    fn stop_listing(&self, object: &Known<ProjectKey>) {
        self.key_observers.forget(&ObjectRef::from_obj(object));
    }
}
