//! The work for one kind of resource.

use std::collections::BTreeSet;
use std::fmt::Debug;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::object::HasStatus;
use kube::runtime::reflector::ObjectRef;

use super::{Environment, Observation, StepError};
use crate::api::{AccountKind, AccountRef, Compute, Connection, Known};
use crate::controller::index::Key;
use crate::controller::object::{AccountName, Managed, uid};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::write_contention::Repair;
use crate::decide::{Brake, Decision, Observed, Report};
use crate::domain::ProjectId;

pub trait Kinds: Send + Sync + 'static {
    fn each<V: KindVisitor>(visitor: &mut V);
}

pub trait KindVisitor {
    fn visit<K: Kind>(&mut self);
}

/// How to observe one kind of resource, decide on it and act on it.
pub trait Kind: Send + Sync + Sized + 'static {
    type Object: Managed;
    /// The part of an observation that only this kind has.
    type Facts: Send + Sync;
    type Step: Debug + Send + Sync;

    /// True if objects of this kind refer to an account.
    const USES_ACCOUNT: bool = false;
    const IS_ACCOUNT: bool = false;
    /// True if objects of this kind are selected by their labels.
    const SELECTED: bool = false;

    /// Reads everything that the decision needs. The last part is read without an await before the
    /// function returns, so that the decision can reserve what it saw.
    fn observe<E: Environment>(
        env: &E,
        object: &Self::Object,
        now: Timestamp,
    ) -> impl Future<Output = Result<Observation<Self::Facts, E::Client>, kube::Error>> + Send;

    fn decide(
        object: &Self::Object,
        observed: &Observed<Self::Facts>,
        now: Timestamp,
    ) -> Decision<Self::Step>;

    /// Performs a step. The step contains everything that follows from the decision.
    fn perform<E: Environment>(
        env: &E,
        object: &Self::Object,
        step: &Self::Step,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    fn status(
        report: &Report,
        object: &Self::Object,
        observed: &Observed<Self::Facts>,
        now: Timestamp,
    ) -> <Self::Object as HasStatus>::Status;

    /// The effect of a step that the brake or the write contention has to know.
    fn change<'a>(_object: &Self::Object, _step: &'a Self::Step) -> Change<'a> {
        Change::Other
    }

    /// From now on only snapshots that begin after this call count.
    fn invalidate<E: Environment>(env: &E, object: &Self::Object) {
        env.state().invalidate(uid(object), env.tick());
    }

    /// The account, the project and the Secrets that an object names.
    fn relations(_object: &Self::Object) -> Relations<'_> {
        Relations::default()
    }

    /// The index keys of an object, except those of its namespace and its relations.
    fn keys(_object: &Self::Object) -> Vec<Key> {
        Vec::new()
    }

    /// True if an object would adopt this Compute if no other object controls it.
    fn selects(_object: &Self::Object, _compute: &Known<Compute>) -> bool {
        false
    }

    /// True if an object has to have our finalizer. It may lack it at present.
    fn needs_finalizer(_object: &Self::Object) -> bool {
        false
    }

    /// The platform objects in the record of an object, as text for users.
    ///
    /// # Errors
    /// If dbplane did not write the record.
    fn platform_objects(_object: &Self::Object) -> Result<Vec<String>, InvalidAnnotation> {
        Ok(Vec::new())
    }

    /// Wakes related objects when an object no longer claims anything, although another finalizer
    /// still keeps it.
    fn on_released<E: Environment>(_env: &E, _object: &Self::Object) {}

    /// Cleans up, and wakes related objects, when an object is gone.
    fn on_deleted<E: Environment>(env: &E, object: &Self::Object);
}

/// The effect of a step, as far as other rules limit it.
#[derive(Debug)]
pub enum Change<'a> {
    /// It restores what something else has altered.
    Repair(Repair),
    /// It deletes or revokes this on the platform.
    Delete(&'a str),
    /// It deletes this compute while the resource stays: the second one of a repeated create.
    DeleteStray(&'a str),
    Other,
}

/// The other objects that an object names.
#[derive(Clone, Debug, Default)]
pub struct Relations<'a> {
    pub account: Option<&'a AccountRef>,
    /// The platform project.
    pub project: Option<&'a ProjectId>,
    pub written_secret: Option<&'a str>,
    /// A Secret that it reads in its own namespace, except an account's credentials.
    pub read_secret: Option<&'a str>,
    /// Secrets that it wrote before and still reports.
    pub unused_secrets: &'a [String],
    /// The namespace and name of the Secret with an account's credentials.
    pub credentials: Option<(String, String)>,
}

impl<'a> Relations<'a> {
    /// Adds the Secrets of spec.connection.
    pub fn with_connection(self, connection: Option<&'a Connection>, unused: &'a [String]) -> Self {
        let from = connection.and_then(|connection| connection.credentials_from.as_ref());
        Self {
            written_secret: connection.map(|connection| connection.secret_name.as_str()),
            read_secret: from.map(|from| from.name.as_str()),
            unused_secrets: unused,
            ..self
        }
    }
}

/// The account that an object refers to.
pub fn account_of<K: Kind>(object: &K::Object) -> Option<AccountName> {
    let account = K::relations(object).account?;
    Some(AccountName::of(account, object))
}

/// All index keys of an object.
pub fn keys<K: Kind>(object: &K::Object) -> BTreeSet<Key> {
    let relations = K::relations(object);
    let mut keys: BTreeSet<Key> = K::keys(object).into_iter().collect();
    let account = account_of::<K>(object);
    keys.extend(account.clone().map(Key::Account));
    keys.extend(
        relations
            .credentials
            .map(|(namespace, name)| Key::Secret(namespace, name)),
    );
    let Some(namespace) = object.namespace() else {
        keys.insert(Key::ClusterScoped);
        return keys;
    };
    let unused = relations.unused_secrets.iter().map(String::as_str);
    let secrets = unused
        .chain(relations.written_secret)
        .chain(relations.read_secret);
    keys.extend(secrets.map(|name| Key::secret(&namespace, name)));
    if let Some(account) = account {
        if account.kind == AccountKind::ClusterAccount {
            keys.insert(Key::Admitted(namespace.clone()));
        }
        if is_braked(object) {
            keys.insert(Key::Braked(account, namespace.clone()));
        }
    }
    keys.insert(Key::Namespace(namespace));
    keys
}

fn is_braked<K: Managed>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
        && matches!(object.meta_observed().brake, Brake::Paused(_))
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
