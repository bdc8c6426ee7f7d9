//! The environment for the passes of a plan: time does not advance, and passes have no effects
//! outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use secrecy::SecretString;

use super::cluster::PlanCluster;
use super::credentials::AccountCredentials;
use super::platform::InMemoryPlatform;
use super::trail::StepTrail;
use crate::api::{Compute, Known, ObjectMeta, PlatformAccess, ProjectKey};
use crate::controller::environment::{
    AdmittedCall, Environment, Kind, Lists, Objects, PassSettings,
};
use crate::controller::index::Key;
use crate::controller::object::{AccountName, Managed};
use crate::controller::registry::AllKinds;
use crate::controller::state::{AccountConnection, ProcessState};
use crate::domain::{Fault, OrganizationId, ProjectId};
use crate::in_memory::Port;
use crate::platform::{
    Budget, ComputeInterest, ConnectError, KeyInterest, LatestKeys, LatestSnapshot, NoMeter,
    Platform, RateLimited, Tick, Ticks,
};

/// A list that a pass needs and that was not read yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WantedList {
    Computes(AccountName, ProjectId),
    Keys(AccountName, OrganizationId),
}

/// The platforms of accounts, each with its address.
type AccountPlatforms = BTreeMap<AccountName, (String, Arc<InMemoryPlatform>)>;

/// The state that all passes of a plan share.
#[derive(Debug)]
pub struct Planner {
    pub now: Timestamp,
    pub settings: PassSettings,
    pub cluster: Port<PlanCluster>,
    pub trail: Arc<StepTrail>,
    pub credentials: AccountCredentials,
    /// The labels of namespaces that may be read.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    state: ProcessState<RateLimited>,
    ticks: Ticks,
    draws: AtomicU32,
    platforms: Mutex<AccountPlatforms>,
    wanted: Mutex<BTreeSet<WantedList>>,
}

impl Planner {
    pub fn new(
        cluster: PlanCluster,
        settings: PassSettings,
        credentials: AccountCredentials,
        namespaces: BTreeMap<String, BTreeMap<String, String>>,
    ) -> Self {
        Self {
            now: cluster.now,
            settings,
            trail: cluster.trail.clone(),
            cluster: Port(cluster),
            credentials,
            namespaces,
            state: ProcessState::default(),
            ticks: Ticks::default(),
            draws: AtomicU32::default(),
            platforms: Mutex::default(),
            wanted: Mutex::default(),
        }
    }

    /// Reads the lists that passes have requested. Returns true if there were any.
    pub async fn read_wanted(&self) -> bool {
        let wanted =
            std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        for want in &wanted {
            // If a list cannot be read, the next pass sees the failure.
            match want {
                WantedList::Computes(account, project) => {
                    if let Some(platform) = self.platform(account) {
                        let _ = platform.list_computes(project).await;
                    }
                }
                WantedList::Keys(account, organization) => {
                    if let Some(platform) = self.platform(account) {
                        let _ = platform.list_keys(organization).await;
                    }
                }
            }
        }
        !wanted.is_empty()
    }

    pub fn platform(&self, account: &AccountName) -> Option<Arc<InMemoryPlatform>> {
        self.with_platforms(|platforms| {
            platforms.get(account).map(|(_, platform)| platform.clone())
        })
    }

    fn with_platforms<T>(&self, run: impl FnOnce(&mut AccountPlatforms) -> T) -> T {
        run(&mut self
            .platforms
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }

    fn want(&self, wanted: WantedList) {
        self.wanted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(wanted);
    }

    fn keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        after: Option<Tick>,
    ) -> LatestKeys {
        let Some(organization) = &connection.access.organization_id else {
            return LatestKeys::default();
        };
        let account = AccountName::of(&object.spec.account_ref, object);
        let known = self
            .platform(&account)
            .and_then(|platform| platform.keys(organization, self.tick(), after));
        known.unwrap_or_else(|| {
            self.want(WantedList::Keys(account, organization.clone()));
            LatestKeys::default()
        })
    }
}

impl Environment for Planner {
    type Client = RateLimited;

    type Cluster = Port<PlanCluster>;

    type Kinds = AllKinds;

    fn now(&self) -> Timestamp {
        self.now
    }

    fn random(&self) -> u32 {
        self.draws.fetch_add(1, Ordering::SeqCst)
    }

    fn tick(&self) -> Tick {
        self.ticks.now()
    }

    fn settings(&self) -> &PassSettings {
        &self.settings
    }

    fn state(&self) -> &ProcessState<RateLimited> {
        &self.state
    }

    fn cluster(&self) -> &Port<PlanCluster> {
        &self.cluster
    }

    /// If an account's key changes during the plan, its platform stays the same and is read with
    /// the previous key.
    fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<RateLimited, ConnectError> {
        let known = self.with_platforms(|platforms| platforms.get(name).cloned());
        let platform = match known.filter(|(base_url, _)| *base_url == access.base_url) {
            Some((_, platform)) => platform,
            None => {
                let source = self
                    .credentials
                    .connect(name, access, key, &self.cluster.0)?;
                Arc::new(InMemoryPlatform::new(source, self.trail.clone(), self.now))
            }
        };
        let named = (access.base_url.clone(), platform.clone());
        self.with_platforms(|platforms| platforms.insert(name.clone(), named));
        Ok(RateLimited::new(
            platform,
            Arc::new(Budget::unlimited()),
            Arc::new(NoMeter),
        ))
    }

    async fn admit(
        &self,
        client: &RateLimited,
        call: AdmittedCall,
    ) -> Result<Option<RateLimited>, Fault> {
        match call {
            AdmittedCall::Change => client.admit_change().await.map(Some),
            AdmittedCall::KeyCreation => client.admit_key_creation().await.map(Some),
        }
    }
}

impl Objects for Planner {
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.cluster.0.object(reference)
    }

    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>> {
        self.cluster.0.stored().all()
    }

    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>> {
        self.cluster.0.stored().all_by(key)
    }

    fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.cluster.0.unreadable::<K>()
    }

    fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.namespaces.get(name).cloned()
    }

    /// Each round runs a pass for everything that is planned.
    fn wake<K: Managed>(&self, _: ObjectRef<K>) {}
}

impl Lists<RateLimited> for Planner {
    fn latest_snapshot(
        &self,
        object: &Known<Compute>,
        _: &AccountConnection<RateLimited>,
        interest: ComputeInterest,
    ) -> LatestSnapshot {
        let account = AccountName::of(&object.spec.account_ref, object);
        let project = &object.spec.project_id;
        let known = self.platform(&account);
        let known =
            known.and_then(|platform| platform.snapshot(project, self.tick(), interest.after));
        known.unwrap_or_else(|| {
            self.want(WantedList::Computes(account, project.clone()));
            LatestSnapshot::default()
        })
    }

    fn stop_observing(&self, _: &Known<Compute>) {}

    fn latest_keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        interest: KeyInterest,
    ) -> LatestKeys {
        self.keys(object, connection, interest.after)
    }

    async fn read_keys(
        &self,
        object: &Known<ProjectKey>,
        connection: &AccountConnection<RateLimited>,
        _: KeyInterest,
    ) -> LatestKeys {
        if let Some(organization) = &connection.access.organization_id {
            let account = AccountName::of(&object.spec.account_ref, object);
            if let Some(platform) = self.platform(&account) {
                let _ = platform.list_keys(organization).await;
            }
        }
        self.keys(object, connection, Some(self.tick()))
    }

    fn stop_listing(&self, _: &Known<ProjectKey>) {}
}
