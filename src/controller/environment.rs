//! The two traits that a pass uses: `Kind` defines the work for one kind of resource, `Environment`
//! provides everything outside of it. The operator, `dbplane plan`, the model checker and the
//! property tests have their own environments and run the same passes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use secrecy::SecretString;
use thiserror::Error;

use super::index::Key;
use super::labels;
use super::object::{AccountName, Managed, uid};
use super::state::{Connection, ProcessState};
use crate::api::{AccountKind, AccountRef, Compute, PlatformAccess, ProjectKey};
use crate::cluster::{Cluster, explained};
use crate::decide::account::KeyCount;
use crate::decide::memory::ActionProblem;
use crate::decide::names::{AccountFinalizers, ClusterId};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::Repair;
use crate::decide::{AccountView, Action, Brake, Decision, Limits, Memory, Meta, Report};
use crate::domain::Fault;
use crate::platform::{
    ComputeInterest, ConnectError, KeyInterest, LatestKeys, LatestSnapshot, PlatformClient,
    Platforms, Tick,
};
use crate::telemetry::metrics::{CreateOutcome, KeyChange};

/// Everything outside of a pass: time, randomness, the cluster, the platform, the memory of this
/// process, and other objects.
pub trait Environment: Send + Sync + 'static {
    type Client: PlatformClient;
    type Cluster: Cluster;
    type Kinds: Kinds;

    fn now(&self) -> Timestamp;
    /// A random number, for unique names.
    fn random(&self) -> u32;
    /// The current tick. A snapshot shows a write only if it began after the write's tick.
    fn tick(&self) -> Tick;
    fn settings(&self) -> &PassSettings;
    fn state(&self) -> &ProcessState<Self::Client>;
    fn cluster(&self) -> &Self::Cluster;

    /// The object from the cache, which may be stale.
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>>;
    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>>;
    /// The objects with this index key.
    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>>;
    /// The metadata of the objects of a kind that this version cannot parse.
    fn unreadable<K: Managed>(&self) -> Vec<Arc<kube::core::ObjectMeta>>;
    /// The labels of a namespace, if the cache has it.
    fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>>;

    /// A client of the platform with this API key. `name` is the account that it belongs to.
    fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Self::Client, ConnectError>;
    /// The latest snapshot of a Compute's project. A change that matches `interest` wakes the
    /// Compute.
    fn latest_snapshot(
        &self,
        object: &Compute,
        connection: &Connection<Self::Client>,
        interest: ComputeInterest,
    ) -> LatestSnapshot;
    /// Stops observing the project for this Compute.
    fn stop_observing(&self, object: &Compute);
    /// The latest list of the keys of the account's organization; all its ProjectKeys share it. A
    /// change that matches `interest` wakes the ProjectKey.
    fn latest_keys(
        &self,
        object: &ProjectKey,
        connection: &Connection<Self::Client>,
        interest: KeyInterest,
    ) -> LatestKeys;
    /// Like `latest_keys`, but waits until a read that began after this call has succeeded or
    /// failed.
    fn read_keys(
        &self,
        object: &ProjectKey,
        connection: &Connection<Self::Client>,
        interest: KeyInterest,
    ) -> impl Future<Output = LatestKeys> + Send;
    /// Why a list that is read through the account was dropped as too large, if one was.
    fn too_large(&self, _account: &AccountName) -> Option<String> {
        None
    }

    /// The unreadable entries in the lists that are read through the account, with the name of each
    /// list.
    fn unreadable_entries(&self, _account: &AccountName) -> Vec<String> {
        Vec::new()
    }

    /// How many keys the account's organization had in the latest list.
    fn count_keys(
        &self,
        _account: &AccountName,
        _connection: &Connection<Self::Client>,
    ) -> Option<KeyCount> {
        None
    }
    /// Stops reading the organization's keys for this ProjectKey.
    fn stop_listing(&self, object: &ProjectKey);
    /// Waits for room in the account's budget for one change, and returns a client for that change.
    /// `None` if the process stops first.
    fn admit_change(
        &self,
        client: &Self::Client,
    ) -> impl Future<Output = Result<Option<Self::Client>, Fault>> + Send;
    /// Like `admit_change`, for the creation of one key.
    fn admit_key_creation(
        &self,
        client: &Self::Client,
    ) -> impl Future<Output = Result<Option<Self::Client>, Fault>> + Send;

    /// Requeues an object.
    fn wake<K: Managed>(&self, reference: ObjectRef<K>);

    /// Records that a step is performed for the resource with this UID.
    fn note_step(&self, _uid: &str, _step: &dyn Debug) {}
    /// Counts the outcome of a create on the platform for a resource of `kind`.
    fn count_create(&self, _kind: &str, _outcome: CreateOutcome) {}
    /// Counts a deletion on the platform for a resource of `kind`.
    fn count_deletion(&self, _kind: &str) {}
    /// Counts a correction of a declared field that something else had changed.
    fn count_corrected(&self, _field: &str) {}
    /// Counts a change of an API key.
    fn count_key(&self, _change: KeyChange) {}
    /// Counts a failed step of a resource of `kind`.
    fn count_failure(&self, _kind: &str, _action: Action, _problem: &ActionProblem) {}
}

#[derive(Clone, Debug)]
pub struct PassSettings {
    pub limits: Limits,
    /// The timeout of one request to the platform.
    pub request_timeout: Duration,
    /// The base URLs that lead to the same platform.
    pub platforms: Platforms,
    /// The ID of this cluster in the names of keys and computes.
    pub cluster: ClusterId,
    /// The watched namespaces; empty means all.
    pub namespaces: Vec<String>,
    pub cluster_accounts: bool,
}

impl PassSettings {
    /// The name of the platform that a connection leads to, as records contain it.
    pub fn platform<P>(&self, connection: &Connection<P>) -> String {
        self.platforms.of(&connection.access.base_url)
    }

    /// How long after it was recorded a call may still be sent.
    pub fn slack(&self) -> Duration {
        self.limits.settle.saturating_sub(self.request_timeout)
    }

    /// True if other operators may manage the object too. Each operator knows only the resources in
    /// its own namespaces.
    pub fn is_shared<K: Resource>(&self, object: &K) -> bool {
        object.meta().namespace.is_none() && !self.namespaces.is_empty()
    }

    pub fn finalizers<K: Resource>(&self, account: &K) -> AccountFinalizers {
        match self.is_shared(account) {
            true => AccountFinalizers::confined_to(&self.namespaces),
            false => AccountFinalizers::whole(),
        }
    }
}

pub trait Kinds: Send + Sync + 'static {
    fn each<V: KindVisitor>(visitor: &mut V);
}

pub trait KindVisitor {
    fn visit<K: Kind>(&mut self);
}

/// Requeues the objects of all kinds with this index key.
pub fn wake_by<E: Environment>(env: &E, key: &Key) {
    E::Kinds::each(&mut Waking { env, key });
}

struct Waking<'a, E> {
    env: &'a E,
    key: &'a Key,
}

impl<E: Environment> KindVisitor for Waking<'_, E> {
    fn visit<K: Kind>(&mut self) {
        for object in self.env.objects_by::<K>(self.key) {
            self.env.wake(ObjectRef::from_obj(object.as_ref()));
        }
    }
}

/// How to observe one kind of resource, decide on it and act on it.
pub trait Kind: Send + Sync + Sized + 'static {
    type Object: Managed;
    /// The result of `gather`.
    type Facts<E: Environment>: Send + Sync;
    /// The input of a decision.
    type Observed: Send + Sync;
    type Step: Debug + Send + Sync;

    /// True if objects of this kind refer to an account.
    const USES_ACCOUNT: bool = false;
    const IS_ACCOUNT: bool = false;
    /// True if objects of this kind are selected by their labels.
    const SELECTED: bool = false;

    /// Reads everything that the decision needs.
    fn gather<E: Environment>(
        env: &E,
        object: &Self::Object,
        now: Timestamp,
    ) -> impl Future<Output = Result<Self::Facts<E>, kube::Error>> + Send;

    /// Makes the input of the decision from the facts. Pure.
    fn assemble<E: Environment>(object: &Self::Object, facts: &Self::Facts<E>) -> Self::Observed;

    /// Updates the memory of the process from the facts, and adds the memory to the observation.
    fn learn<E: Environment>(
        _env: &E,
        _object: &Self::Object,
        _facts: &Self::Facts<E>,
        _observed: &mut Self::Observed,
        _now: Timestamp,
    ) {
    }

    fn decide(
        object: &Self::Object,
        observed: &Self::Observed,
        now: Timestamp,
    ) -> Decision<Self::Step>;

    /// From now on only snapshots that begin after this call count.
    fn invalidate<E: Environment>(env: &E, object: &Self::Object) {
        env.state().invalidate(&uid(object), env.tick());
    }

    /// Wakes the objects that these observations concern.
    fn announce<E: Environment>(
        _env: &E,
        _object: &Self::Object,
        _facts: &Self::Facts<E>,
        _observed: &Self::Observed,
    ) {
    }

    /// Performs a step. The step contains everything that follows from the decision.
    fn perform<E: Environment>(
        env: &E,
        object: &Self::Object,
        step: &Self::Step,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    fn status(
        report: &Report,
        object: &Self::Object,
        observed: &Self::Observed,
        now: Timestamp,
    ) -> <Self::Object as HasStatus>::Status;

    /// Replaces the memory in an observation.
    fn set_memory(_observed: &mut Self::Observed, _memory: Memory) {}

    /// The repair that a step makes, if it restores what something else has altered.
    fn repair(_object: &Self::Object, _step: &Self::Step) -> Option<Repair> {
        None
    }

    /// The thing that a step deletes or revokes on the platform.
    fn removes(_step: &Self::Step) -> Option<&str> {
        None
    }

    /// The thing that a step deletes while the resource stays, such as the second compute of a
    /// repeated create.
    fn removes_besides(_step: &Self::Step) -> Option<&str> {
        None
    }

    /// Puts the state of the brake on mass deletion into the observation.
    fn set_brake(_observed: &mut Self::Observed, _brake: Brake) {}

    fn account(_object: &Self::Object) -> Option<&AccountRef> {
        None
    }

    fn meta(_observed: &Self::Observed) -> Option<&Meta> {
        None
    }

    /// The account, as the decision saw it.
    fn account_view(_observed: &Self::Observed) -> Option<&AccountView> {
        None
    }

    /// True if an object has to have our finalizer. It may lack it at present.
    fn is_held(_object: &Self::Object) -> bool {
        false
    }

    /// The platform project of an object.
    fn project(_object: &Self::Object) -> Option<&str> {
        None
    }

    fn written_secret(_object: &Self::Object) -> Option<&str> {
        None
    }

    /// The name of a Secret that an object reads in its own namespace, except an account's
    /// credentials.
    fn read_secret(_object: &Self::Object) -> Option<&str> {
        None
    }

    /// Secrets that an object wrote before and still reports.
    fn unused_secrets(_object: &Self::Object) -> &[String] {
        &[]
    }

    /// The namespace and name of the Secret with an object's credentials.
    fn credentials(_object: &Self::Object) -> Option<(String, String)> {
        None
    }

    /// The platform objects in the record of an object, as text for users.
    ///
    /// # Errors
    /// If dbplane did not write the record.
    fn has(_object: &Self::Object) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(Vec::new())
    }

    /// The index keys of an object, except those from its namespace, its account and its Secrets.
    fn keys(_object: &Self::Object) -> Vec<Key> {
        Vec::new()
    }

    /// True if an object would adopt this Compute if no other object controls it.
    fn selects(_object: &Self::Object, _compute: &Compute) -> bool {
        false
    }

    /// Wakes related objects when an object no longer claims anything, although another finalizer
    /// still keeps it.
    fn on_released<E: Environment>(_env: &E, _object: &Self::Object) {}

    /// Cleans up, and wakes related objects, when an object is gone.
    fn on_deleted<E: Environment>(env: &E, object: &Self::Object);
}

/// All index keys of an object.
pub fn keys<K: Kind>(object: &K::Object) -> BTreeSet<Key> {
    let namespace = object.namespace();
    let mut keys: BTreeSet<Key> = K::keys(object).into_iter().collect();
    let account = K::account(object).map(|reference| AccountName::of(reference, object));
    keys.extend(account.clone().map(Key::Account));
    keys.extend(K::credentials(object).map(|(namespace, name)| Key::Secret(namespace, name)));
    keys.extend((namespace.is_none()).then_some(Key::ClusterScoped));
    let Some(namespace) = namespace else {
        return keys;
    };
    let unused = K::unused_secrets(object).iter().map(String::as_str);
    let secrets = unused
        .chain(K::written_secret(object))
        .chain(K::read_secret(object));
    keys.extend(secrets.map(|name| Key::secret(&namespace, name)));
    keys.extend(
        account
            .filter(|_| is_braked(object))
            .map(|account| Key::Braked(account, namespace.clone())),
    );
    let admitted =
        K::account(object).is_some_and(|reference| reference.kind == AccountKind::ClusterAccount);
    keys.extend(admitted.then(|| Key::Admitted(namespace.clone())));
    keys.insert(Key::Namespace(namespace));
    keys
}

fn is_braked<K: Managed>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
        && matches!(object.meta_observed().brake, Brake::Paused(_))
}

/// Why a step could not be performed.
#[derive(Debug, Error)]
pub enum StepError {
    /// The step was refused or failed. The failure is remembered, and the next decision uses it.
    #[error("{}", labels::text(.1))]
    Failed(Action, ActionProblem),
    /// The API server was unavailable or refused.
    #[error("the API server: {}", explained(.0))]
    Cluster(kube::Error),
}

impl From<kube::Error> for StepError {
    fn from(error: kube::Error) -> Self {
        Self::Cluster(error)
    }
}
