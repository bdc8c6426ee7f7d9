//! Who is decided on anew when another object changes: owners, and whom a Secret or a namespace concerns.

use std::any::Any;

use kube::Resource;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use super::super::account::dependents::{copies_secret, reads_secret, writes_secret};
use super::super::environment::{Environment, Kind, KindVisitor, Kinds, Selector, wake_selected};
use super::super::object::Managed;
use crate::api::{AccountKind, Compute};

/// Wakes the resource of ours that controls `object`, or those that would take it as their own.
pub fn owner<K: Managed, E: Environment>(env: &E, object: &K) {
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    match (controller, (object as &dyn Any).downcast_ref::<Compute>()) {
        (Some(owner), _) => {
            let namespace = object.namespace();
            E::Kinds::each(&mut Owner { env, kind: (&owner.api_version, &owner.kind), name: &owner.name, namespace });
        }
        (None, Some(compute)) => wake_selected(env, Selecting(compute)),
        (None, None) => {}
    }
}

struct Selecting<'a>(&'a Compute);

impl Selector for Selecting<'_> {
    fn selects<K: Kind>(&self, object: &K::Object) -> bool {
        K::selects(object, self.0)
    }
}

struct Owner<'a, E> {
    env: &'a E,
    kind: (&'a str, &'a str),
    name: &'a str,
    namespace: Option<String>,
}

impl<E: Environment> KindVisitor for Owner<'_, E> {
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

/// Wakes the other side of a hand-over.
pub fn partners<K: Kind, E: Environment>(env: &E, object: &K::Object) {
    for place in K::partners(object, &env.settings().cluster) {
        env.wake(ObjectRef::<K::Object>::new(&place.name).within(&place.namespace));
    }
}

struct UsesSecret<'a>(&'a str, &'a str);

impl Selector for UsesSecret<'_> {
    fn selects<K: Kind>(&self, object: &K::Object) -> bool {
        let secret = (self.0, self.1);
        reads_secret::<K>(object, secret) || copies_secret::<K>(object, secret) || writes_secret::<K>(object, secret)
    }
}

/// Wakes whom a Secret concerns: accounts that read it, resources that copy from it, resources that write it.
pub fn users_of_secret<E: Environment>(env: &E, namespace: &str, name: &str) {
    wake_selected(env, UsesSecret(namespace, name));
}

struct Admitted<'a>(&'a str);

impl Selector for Admitted<'_> {
    fn selects<K: Kind>(&self, object: &K::Object) -> bool {
        object.namespace().as_deref() == Some(self.0)
            && K::account(object).is_some_and(|reference| reference.kind == AccountKind::ClusterAccount)
    }
}

/// Wakes the resources of a namespace whose ClusterAccount may admit them by the namespace's labels.
pub fn users_of_cluster_accounts<E: Environment>(env: &E, namespace: &str) {
    wake_selected(env, Admitted(namespace));
}

struct In<'a>(Option<&'a str>);

impl Selector for In<'_> {
    fn selects<K: Kind>(&self, object: &K::Object) -> bool {
        let namespace = object.namespace();
        namespace.is_none() || self.0.is_none() || namespace.as_deref() == self.0
    }
}

/// Wakes all resources that can have to do with one of a namespace.
pub fn all_in<E: Environment>(env: &E, namespace: Option<&str>) {
    wake_selected(env, In(namespace));
}
