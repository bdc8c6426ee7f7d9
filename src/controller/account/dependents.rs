//! Finds the resources of an account, and the accounts of a Secret.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use crate::api::Uid;
use crate::cluster::resource_version;
use crate::controller::access::is_granted;
use crate::controller::environment::{Environment, Kind, KindVisitor, Kinds, wake_by};
use crate::controller::index::Key;
use crate::controller::object::{AccountName, Managed, is_recorded, uid};
use crate::controller::pass::label;
use crate::decide::released::has_finalizer;
use crate::domain::ProjectId;

/// A resource that refers to an account.
#[derive(Clone, Debug)]
pub struct Dependent {
    pub kind: String,
    pub namespace: String,
    /// Kind and namespace/name, for users.
    pub label: String,
    /// True if it has something on the platform, or may have because a write is in progress.
    pub needs_it: bool,
    /// Its record has something on the platform.
    pub has_something: bool,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// Its project on the platform.
    pub project: Option<ProjectId>,
}

/// The resources that refer to an account, without deleted ones that no longer need it.
pub fn of<E: Environment>(env: &E, account: &AccountName) -> Vec<Dependent> {
    let mut search = DependentSearch {
        env,
        account,
        found: Vec::new(),
    };
    E::Kinds::each(&mut search);
    search
        .found
        .sort_by(|one, other| one.label.cmp(&other.label));
    search.found
}

/// A project that a resource of the account names and may use the account for.
pub fn project<E: Environment>(env: &E, account: &AccountName) -> Option<ProjectId> {
    let dependents = of(env, account);
    let granted = uses(&dependents)
        .into_iter()
        .find(|(project, namespace)| is_granted(env, account, namespace, project));
    granted.map(|(project, _)| project.clone())
}

/// The projects that these resources name and may use the account for.
pub fn named<E: Environment>(
    env: &E,
    account: &AccountName,
    dependents: &[Dependent],
) -> BTreeSet<ProjectId> {
    let granted = uses(dependents)
        .into_iter()
        .filter(|(project, namespace)| is_granted(env, account, namespace, project));
    granted.map(|(project, _)| project.clone()).collect()
}

/// The projects that resources name, each with the namespaces of those resources.
fn uses(dependents: &[Dependent]) -> BTreeSet<(&ProjectId, &str)> {
    dependents
        .iter()
        .filter_map(|it| Some((it.project.as_ref()?, it.namespace.as_str())))
        .collect()
}

/// The projects of resources that are being deleted, each with its newest deletion time.
pub fn leaving<E: Environment>(
    env: &E,
    account: &AccountName,
    dependents: &[Dependent],
) -> BTreeMap<ProjectId, Timestamp> {
    let of = dependents
        .iter()
        .filter_map(|it| Some((it.deleting?, it.namespace.as_str(), it.project.as_ref()?)));
    let of: BTreeSet<_> = of.collect();
    // The map keeps the last value of a key, which is the newest.
    let newest: BTreeMap<_, _> = of
        .into_iter()
        .map(|(since, namespace, project)| ((project, namespace), since))
        .collect();
    let granted = newest
        .into_iter()
        .filter(|((project, namespace), _)| is_granted(env, account, namespace, project));
    let granted: BTreeSet<_> = granted
        .map(|((project, _), since)| (since, project.clone()))
        .collect();
    granted
        .into_iter()
        .map(|(since, project)| (project, since))
        .collect()
}

struct DependentSearch<'a, E> {
    env: &'a E,
    account: &'a AccountName,
    found: Vec<Dependent>,
}

impl<E: Environment> KindVisitor for DependentSearch<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let objects = self
            .env
            .objects_by::<K>(&Key::Account(self.account.clone()));
        let dependents = objects
            .iter()
            .map(|object| dependent::<K, E>(self.env, object));
        self.found.extend(
            dependents.filter(|dependent| dependent.needs_it || dependent.deleting.is_none()),
        );
        if K::USES_ACCOUNT {
            self.found
                .extend(unreadable::<K, E>(self.env, self.account));
        }
    }
}

fn dependent<K: Kind, E: Environment>(env: &E, object: &K::Object) -> Dependent {
    let meta = object.meta_observed();
    // An intent whose write was not answered may be in the object, although the cache lacks it.
    let changing = env.state().is_busy(uid(object), resource_version(object));
    let has_something = K::needs_finalizer(object);
    Dependent {
        kind: K::Object::kind(&()).into_owned(),
        namespace: object.namespace().unwrap_or_default(),
        label: label(object),
        needs_it: meta.has_finalizer || changing || !meta.deleting && has_something,
        has_something,
        deleting: object.meta().deletion_timestamp.as_ref().map(|time| time.0),
        project: K::relations(object).project.cloned(),
    }
}

/// An unreadable resource may refer to any account that it could use. It counts if it has our
/// finalizer and its status has a record, since anybody can write the finalizer. Only the record is
/// kept in its annotations.
fn unreadable<K: Kind, E: Environment>(env: &E, account: &AccountName) -> Vec<Dependent> {
    let metas = env.unreadable::<K::Object>();
    let concerned = metas
        .iter()
        .filter(|meta| account.namespace.is_none() || meta.namespace == account.namespace);
    let protected = concerned.filter(|meta| has_finalizer(meta) && is_recorded(meta));
    protected
        .map(|meta| Dependent {
            kind: K::Object::kind(&()).into_owned(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            label: format!(
                "{} {}/{} (cannot be read)",
                K::Object::kind(&()),
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap_or_default()
            ),
            needs_it: true,
            has_something: true,
            deleting: meta.deletion_timestamp.as_ref().map(|time| time.0),
            project: None,
        })
        .collect()
}

/// Requeues the resources of an account.
pub fn wake<E: Environment>(env: &E, account: &AccountName) {
    wake_by(env, &Key::Account(account.clone()));
}

/// An account whose credentials are in a Secret.
#[derive(Clone, Debug)]
pub struct User {
    pub uid: Uid,
    pub finalizers: Vec<String>,
}

/// The accounts whose credentials are in a Secret.
pub fn users_of_secret<E: Environment>(env: &E, namespace: &str, secret: &str) -> Vec<User> {
    let mut search = Users {
        env,
        namespace,
        secret,
        found: Vec::new(),
    };
    E::Kinds::each(&mut search);
    search.found
}

/// True if an account reads this Secret, or may: an unreadable account keeps every Secret that it
/// could name.
pub fn may_be_read_by_an_account<E: Environment>(env: &E, namespace: &str, secret: &str) -> bool {
    let mut unreadable = UnreadableAccounts {
        env,
        namespace,
        found: false,
    };
    E::Kinds::each(&mut unreadable);
    unreadable.found || !users_of_secret(env, namespace, secret).is_empty()
}

struct UnreadableAccounts<'a, E> {
    env: &'a E,
    namespace: &'a str,
    found: bool,
}

impl<E: Environment> KindVisitor for UnreadableAccounts<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let may =
            |namespace: Option<&str>| namespace.is_none_or(|namespace| namespace == self.namespace);
        self.found = self.found
            || K::IS_ACCOUNT
                && self
                    .env
                    .unreadable::<K::Object>()
                    .iter()
                    .any(|meta| may(meta.namespace.as_deref()));
    }
}

struct Users<'a, E> {
    env: &'a E,
    namespace: &'a str,
    secret: &'a str,
    found: Vec<User>,
}

impl<E: Environment> KindVisitor for Users<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let (namespace, name) = (self.namespace, self.secret);
        let objects = self.env.objects_by::<K>(&Key::secret(namespace, name));
        let readers = objects
            .iter()
            .filter(|object| reads_secret::<K>(object, namespace, name));
        let user = |object: &K::Object| User {
            uid: uid(object).clone(),
            finalizers: object.finalizers().to_vec(),
        };
        self.found.extend(readers.map(|object| user(object)));
    }
}

/// True if an object reads its credentials from this Secret.
fn reads_secret<K: Kind>(object: &K::Object, namespace: &str, name: &str) -> bool {
    K::relations(object)
        .credentials
        .is_some_and(|(its_namespace, its_name)| its_namespace == namespace && its_name == name)
}
