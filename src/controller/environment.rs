//! What a pass needs: a kind, which says what is done, and an environment, in which it is done. The controller has one, the
//! model checker and the property tests have their own, and all run the same passes.

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
use crate::decide::memory::Problem;
use crate::decide::names::{AccountFinalizers, ClusterId};
use crate::decide::repairs::Repair;
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{AccountView, Action, Brake, Decision, Limits, Memory, Meta, Report};
use crate::domain::Fault;
use crate::platform::{
    ComputeInterest, ConnectError, KeyInterest, LatestKeys, LatestSnapshot, PlatformClient, Platforms, Tick,
};
use crate::telemetry::metrics::{CreateOutcome, KeyChange};

/// Everything outside of a pass: time, chance, the cluster, the platform, what this process remembers, and other objects.
pub trait Environment: Send + Sync + 'static {
    type Client: PlatformClient;
    type Cluster: Cluster;
    type Kinds: Kinds;

    fn now(&self) -> Timestamp;
    /// A random number, for unique names.
    fn draw(&self) -> u32;
    /// A moment that snapshots which are to show what was just done begin after.
    fn tick(&self) -> Tick;
    fn settings(&self) -> &PassSettings;
    fn state(&self) -> &ProcessState<Self::Client>;
    fn cluster(&self) -> &Self::Cluster;

    /// The object as the process knows it, which may be out of date.
    fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>>;
    /// All objects of a kind.
    fn objects<K: Kind>(&self) -> Vec<Arc<K::Object>>;
    /// Those that have this key.
    fn objects_by<K: Kind>(&self, key: &Key) -> Vec<Arc<K::Object>>;
    /// The metadata of the objects of a kind that cannot be read.
    fn unreadable<K: Managed>(&self) -> Vec<Arc<kube::core::ObjectMeta>>;
    /// The labels of a namespace, where they are known.
    fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>>;

    /// A client of the platform with this API key. `name` tells which account it is for.
    fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Self::Client, ConnectError>;
    /// What was last seen of a Compute's project. The Compute is woken when something changes that it is interested in.
    fn latest_snapshot(
        &self,
        object: &Compute,
        connection: &Connection<Self::Client>,
        interest: ComputeInterest,
    ) -> LatestSnapshot;
    /// The project is no longer read for this Compute.
    fn stop_observing(&self, object: &Compute);
    /// What was last seen of the keys of the account's organization: one list for all ProjectKeys. The ProjectKey is woken when
    /// something changes that it is interested in.
    fn latest_keys(
        &self,
        object: &ProjectKey,
        connection: &Connection<Self::Client>,
        interest: KeyInterest,
    ) -> LatestKeys;
    /// The same once a list has been read, or could not be, that was begun after this call.
    fn read_keys(
        &self,
        object: &ProjectKey,
        connection: &Connection<Self::Client>,
        interest: KeyInterest,
    ) -> impl Future<Output = LatestKeys> + Send;
    /// Why a list that is read through the account is not kept, where there is one that is too large.
    fn too_large(&self, _account: &AccountName) -> Option<String> {
        None
    }

    /// The entries that cannot be read of the lists that are read through the account, each list with what it is of.
    fn unreadable_entries(&self, _account: &AccountName) -> Vec<String> {
        Vec::new()
    }

    /// How many keys the organization of an account had when ProjectKeys last saw them.
    fn count_keys(&self, _account: &AccountName, _connection: &Connection<Self::Client>) -> Option<KeyCount> {
        None
    }
    /// The organization's keys are no longer read for this ProjectKey.
    fn stop_listing(&self, object: &ProjectKey);
    /// Room in the account's budget for one change, to be made through what is returned; `None` where the process stops
    /// meanwhile.
    fn admit_change(&self, client: &Self::Client) -> impl Future<Output = Result<Option<Self::Client>, Fault>> + Send;
    /// The same for the creation of one key.
    fn admit_key_creation(
        &self,
        client: &Self::Client,
    ) -> impl Future<Output = Result<Option<Self::Client>, Fault>> + Send;

    /// Has an object decided on anew.
    fn wake<K: Managed>(&self, reference: ObjectRef<K>);

    /// A step is performed for the resource with this UID.
    fn note_step(&self, _uid: &str, _step: &dyn Debug) {}
    /// What came of a create on the platform for a resource of `kind`.
    fn count_create(&self, _kind: &str, _outcome: CreateOutcome) {}
    /// A deletion on the platform is made for a resource of `kind`.
    fn count_deletion(&self, _kind: &str) {}
    /// Somebody else had changed a field that is declared, and it was corrected.
    fn count_corrected(&self, _field: &str) {}
    /// What became of an API key.
    fn count_key(&self, _change: KeyChange) {}
    /// A step for a resource of `kind` failed.
    fn count_failure(&self, _kind: &str, _action: Action, _problem: &Problem) {}
}

/// The settings of passes.
#[derive(Clone, Debug)]
pub struct PassSettings {
    pub limits: Limits,
    /// How long one request to the platform may take.
    pub request_timeout: Duration,
    /// Which base URLs lead to one platform.
    pub platforms: Platforms,
    /// Which cluster this is, in the names of keys and computes.
    pub cluster: ClusterId,
    /// The namespaces that are watched; all where there are none.
    pub namespaces: Vec<String>,
    /// Whether ClusterAccounts are read.
    pub cluster_accounts: bool,
}

impl PassSettings {
    /// The platform that a connection leads to, as it is recorded.
    pub fn platform<P>(&self, connection: &Connection<P>) -> String {
        self.platforms.of(&connection.access.base_url)
    }

    /// How long after it was recorded a call may still be made.
    pub fn slack(&self) -> Duration {
        self.limits.settle.saturating_sub(self.request_timeout)
    }

    /// Whether other operators may work with an object as well: each knows only of the resources in its own namespaces.
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

/// All kinds.
pub trait Kinds: Send + Sync + 'static {
    /// Visits every kind.
    fn each<V: KindVisitor>(visitor: &mut V);
}

/// Does something with every kind.
pub trait KindVisitor {
    fn visit<K: Kind>(&mut self);
}

/// Has all objects of whatever kind decided on anew that have this key.
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

/// How one kind of resource is observed, decided on and acted on.
pub trait Kind: Send + Sync + Sized + 'static {
    type Object: Managed;
    /// What was looked at.
    type Facts<E: Environment>: Send + Sync;
    /// What a decision rests on.
    type Observed: Send + Sync;
    type Step: Debug + Send + Sync;

    /// Whether objects of this kind refer to an account.
    const USES_ACCOUNT: bool = false;
    /// Whether objects of this kind are accounts.
    const IS_ACCOUNT: bool = false;
    /// Whether objects of this kind are selected by their labels.
    const SELECTED: bool = false;

    /// Looks at everything that matters.
    fn gather<E: Environment>(
        env: &E,
        object: &Self::Object,
        now: Timestamp,
    ) -> impl Future<Output = Result<Self::Facts<E>, kube::Error>> + Send;

    /// What a decision rests on. Pure.
    fn assemble<E: Environment>(object: &Self::Object, facts: &Self::Facts<E>) -> Self::Observed;

    /// Takes what was seen into the memory of the process, and puts what is remembered into the observation.
    fn learn<E: Environment>(
        _env: &E,
        _object: &Self::Object,
        _facts: &Self::Facts<E>,
        _observed: &mut Self::Observed,
        _now: Timestamp,
    ) {
    }

    fn decide(object: &Self::Object, observed: &Self::Observed, now: Timestamp) -> Decision<Self::Step>;

    /// From now on nothing counts that was seen of the platform before.
    fn look_again<E: Environment>(env: &E, object: &Self::Object) {
        env.state().look_again(&uid(object), env.tick());
    }

    /// Wakes others whom it concerns what was seen.
    fn announce<E: Environment>(_env: &E, _object: &Self::Object, _facts: &Self::Facts<E>, _observed: &Self::Observed) {
    }

    /// Performs a step. Whatever the decision rested on, the step says all that follows from it.
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

    /// Replaces what is remembered of the object in an observation.
    fn set_memory(_observed: &mut Self::Observed, _memory: Memory) {}

    /// What a step writes again as it was before, because something else has changed it.
    fn repair(_object: &Self::Object, _step: &Self::Step) -> Option<Repair> {
        None
    }

    /// What a step deletes or revokes on the platform.
    fn removes(_step: &Self::Step) -> Option<&str> {
        None
    }

    /// The same of a step that is no part of what a resource declares, and is made while the resource stays.
    fn removes_besides(_step: &Self::Step) -> Option<&str> {
        None
    }

    /// Puts the state of the brake on mass deletion where decisions see it.
    fn set_brake(_observed: &mut Self::Observed, _brake: Brake) {}

    /// The account that an object refers to.
    fn account(_object: &Self::Object) -> Option<&AccountRef> {
        None
    }

    /// The metadata in an observation, for kinds that have a record.
    fn meta(_observed: &Self::Observed) -> Option<&Meta> {
        None
    }

    /// The same as the decision saw it.
    fn account_view(_observed: &Self::Observed) -> Option<&AccountView> {
        None
    }

    /// Whether an object has to keep our finalizer, whether it has it or not.
    fn is_held(_object: &Self::Object) -> bool {
        false
    }

    /// The platform's project that an object is in.
    fn project(_object: &Self::Object) -> Option<&str> {
        None
    }

    /// The name of the Secret that an object writes, in its own namespace.
    fn written_secret(_object: &Self::Object) -> Option<&str> {
        None
    }

    /// The name of a Secret that an object reads in its own namespace, other than an account's credentials.
    fn read_secret(_object: &Self::Object) -> Option<&str> {
        None
    }

    /// Secrets that an object wrote before, and that it still reports.
    fn unused_secrets(_object: &Self::Object) -> &[String] {
        &[]
    }

    /// The Secret that an object reads its credentials from: namespace and name.
    fn credentials(_object: &Self::Object) -> Option<(String, String)> {
        None
    }

    /// What an object has on the platform, as its record says, in words for people.
    ///
    /// # Errors
    /// Where the record is not what dbplane wrote.
    fn has(_object: &Self::Object) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(Vec::new())
    }

    /// By what an object is found, besides its namespace, its account and its Secrets.
    fn keys(_object: &Self::Object) -> Vec<Key> {
        Vec::new()
    }

    /// Whether an object takes this Compute as its own, as far as nobody controls it.
    fn selects(_object: &Self::Object, _compute: &Compute) -> bool {
        false
    }

    /// What others do when an object claims nothing any more, although somebody else's finalizer keeps it.
    fn on_released<E: Environment>(_env: &E, _object: &Self::Object) {}

    /// What others do when an object of this kind is gone.
    fn on_deleted<E: Environment>(env: &E, object: &Self::Object);
}

/// Everything that an object is found by.
pub fn keys<K: Kind>(object: &K::Object) -> BTreeSet<Key> {
    let namespace = object.namespace();
    let mut keys: BTreeSet<Key> = K::keys(object).into_iter().collect();
    let account = K::account(object).map(|reference| AccountName::of(reference, object));
    keys.extend(account.clone().map(Key::Account));
    keys.extend(K::credentials(object).map(|(namespace, name)| Key::Secret(namespace, name)));
    keys.extend((namespace.is_none()).then_some(Key::ClusterScoped));
    let Some(namespace) = namespace else { return keys };
    let unused = K::unused_secrets(object).iter().map(String::as_str);
    let secrets = unused.chain(K::written_secret(object)).chain(K::read_secret(object));
    keys.extend(secrets.map(|name| Key::secret(&namespace, name)));
    keys.extend(account.filter(|_| is_braked(object)).map(|account| Key::Braked(account, namespace.clone())));
    let admitted = K::account(object).is_some_and(|reference| reference.kind == AccountKind::ClusterAccount);
    keys.extend(admitted.then(|| Key::Admitted(namespace.clone())));
    keys.insert(Key::Namespace(namespace));
    keys
}

fn is_braked<K: Managed>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && matches!(object.meta_observed().brake, Brake::Paused(_))
}

/// Why a step could not be performed.
#[derive(Debug, Error)]
pub enum StepError {
    /// It was refused or went wrong; that is remembered, and the next decision rests on it.
    #[error("{}", labels::text(.1))]
    Failed(Action, Problem),
    /// The API server could not be asked, or refuses.
    #[error("the API server: {}", explained(.0))]
    Cluster(kube::Error),
}

impl From<kube::Error> for StepError {
    fn from(error: kube::Error) -> Self {
        Self::Cluster(error)
    }
}
