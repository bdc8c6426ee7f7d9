//! Requeues related objects when an object changes: owners, and the resources that a Secret or a
//! namespace concerns.

use std::any::Any;

use kube::Resource;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use crate::api::{Compute, Known};
use crate::controller::access;
use crate::controller::environment::{Environment, Kind, KindVisitor, Kinds, account_of, wake_by};
use crate::controller::index::Key;
use crate::controller::object::Managed;

/// Wakes our resource that controls `object`, or those that would adopt it.
pub fn owner<K: Managed, E: Environment>(env: &E, object: &K) {
    let controller = object
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    match (
        controller,
        (object as &dyn Any).downcast_ref::<Known<Compute>>(),
    ) {
        (Some(owner), _) => {
            let namespace = object.namespace();
            E::Kinds::each(&mut OwnerToRequeue {
                env,
                kind: (&owner.api_version, &owner.kind),
                name: &owner.name,
                namespace,
            });
        }
        (None, Some(compute)) => E::Kinds::each(&mut Selecting { env, compute }),
        (None, None) => {}
    }
}

struct Selecting<'a, E> {
    env: &'a E,
    compute: &'a Known<Compute>,
}

impl<E: Environment> KindVisitor for Selecting<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let namespace = self.compute.namespace().to_owned();
        let may_select = self.env.objects_by::<K>(&Key::Selector(namespace));
        for object in may_select
            .iter()
            .filter(|object| K::selects(object, self.compute))
        {
            self.env.wake(ObjectRef::from_obj(object.as_ref()));
        }
    }
}

struct OwnerToRequeue<'a, E> {
    env: &'a E,
    kind: (&'a str, &'a str),
    name: &'a str,
    namespace: Option<String>,
}

impl<E: Environment> KindVisitor for OwnerToRequeue<'_, E> {
    fn visit<K: Kind>(&mut self) {
        let (version, kind) = (K::Object::api_version(&()), K::Object::kind(&()));
        let group = |version: &str| version.split('/').next().map(str::to_owned);
        if kind == self.kind.1 && group(&version) == group(self.kind.0) {
            let reference = ObjectRef::<K::Object>::new(self.name);
            self.env.wake(match &self.namespace {
                Some(namespace) if K::Object::is_namespaced() => reference.within(namespace),
                _ => reference,
            });
        }
    }
}

/// Wakes the resources that may have waited for one that is released now. These are its account,
/// the users of its Secret, and the resources that want what it claimed.
pub fn released<K: Kind, E: Environment>(env: &E, object: &K::Object) {
    if let Some(account) = account_of::<K>(object) {
        access::wake(env, &account);
    }
    let secret = K::relations(object).written_secret;
    if let (Some(secret), Some(namespace)) = (secret, object.namespace()) {
        users_of_secret(env, &namespace, secret);
    }
    K::on_released(env, object);
}

/// Wakes the resources that a Secret concerns: accounts that read it, and resources that copy from
/// it or write it.
pub fn users_of_secret<E: Environment>(env: &E, namespace: &str, name: &str) {
    wake_by(env, &Key::secret(namespace, name));
}

/// Wakes the resources of a namespace that a ClusterAccount may admit by the namespace's labels.
pub fn users_of_cluster_accounts<E: Environment>(env: &E, namespace: &str) {
    wake_by(env, &Key::Admitted(namespace.to_owned()));
}

/// Wakes all resources that a resource of a namespace may concern.
pub fn all_in<E: Environment>(env: &E, namespace: Option<&str>) {
    match namespace {
        Some(namespace) => {
            wake_by(env, &Key::Namespace(namespace.to_owned()));
            wake_by(env, &Key::ClusterScoped);
        }
        None => E::Kinds::each(&mut Everything(env)),
    }
}

struct Everything<'a, E>(&'a E);

impl<E: Environment> KindVisitor for Everything<'_, E> {
    fn visit<K: Kind>(&mut self) {
        self.0
            .objects::<K>()
            .iter()
            .for_each(|object| self.0.wake(ObjectRef::from_obj(object.as_ref())));
    }
}
