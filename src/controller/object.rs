//! The custom resources as every part of the controller sees them.

use std::any::TypeId;
use std::fmt;
use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::core::object::HasStatus;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use serde::Serialize;

use crate::api::{AccountKind, AccountRef, Condition, ObjectMeta};
use crate::cluster::Object;
use crate::decide::identity::Record;
use crate::decide::released::has_finalizer;
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{Brake, Meta, Report, names};
use crate::text::line;

const LONGEST_REQUEST: usize = 256;

/// The status of a custom resource of ours.
pub trait Status: Clone + Default + PartialEq + Serialize + Send + Sync {
    fn conditions(&self) -> &[Condition];

    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    fn observed_generation_mut(&mut self) -> &mut Option<i64>;

    /// The object was looked at, if only now. What else the status says stays that of the generation that it was written for.
    fn observed_first(&mut self, generation: Option<i64>) {
        let observed = self.observed_generation_mut();
        if observed.is_none_or(|observed| observed < 0) {
            *observed = generation;
        }
    }

    /// The last request to look at the platform anew that was carried out.
    fn handled_reconcile(&self) -> Option<&String>;

    /// Where the status has the record.
    fn record_mut(&mut self) -> Option<&mut Option<String>> {
        None
    }

    /// Says this in the conditions, where it is said while a call is made.
    fn tell(&mut self, _report: &Report, _generation: i64, _now: Timestamp) {}
}

/// A custom resource of ours.
pub trait Managed: Object + CustomResourceExt + HasStatus<Status: Status> {
    /// The objects of one namespace, or all, read as `O`.
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>;

    fn is_namespaced() -> bool {
        TypeId::of::<Self::Scope>() != TypeId::of::<ClusterResourceScope>()
    }

    /// What every observation says of the object itself.
    fn meta_observed(&self) -> Meta {
        Meta {
            namespace: self.namespace().unwrap_or_default(),
            name: self.name_any(),
            generation: self.meta().generation.unwrap_or_default(),
            deleting: self.meta().deletion_timestamp.is_some(),
            has_finalizer: has_finalizer(self.meta()),
            record: None,
            record_lost: false,
            paused: self.is_annotated(names::PAUSED),
            ready: self.status().is_some_and(|status| status.conditions().iter().any(is_ready)),
            reconcile: self.request(names::RECONCILE),
            brake: Brake::of(
                self.annotations().get(names::CONFIRM_DELETION).map(String::as_str),
                self.meta().deletion_timestamp.as_ref().map(|time| time.0),
                self.status().map(Status::conditions).unwrap_or_default(),
            ),
        }
    }

    /// Whether what is declared is done, as its status says, and nobody has asked for anything since.
    fn stands(&self) -> bool {
        let Some(status) = self.status() else { return false };
        let of_this = |condition: &Condition| condition.observed_generation == self.meta().generation;
        self.meta().deletion_timestamp.is_none()
            && status.conditions().iter().any(|it| is_ready(it) && of_this(it))
            && self.request(names::RECONCILE).as_ref() == status.handled_reconcile()
    }

    /// The value of a request annotation. It is bounded, because the status keeps it.
    fn request(&self, annotation: &str) -> Option<String> {
        self.annotations().get(annotation).map(|text| line(text, LONGEST_REQUEST).into_owned())
    }

    /// Whether people have set an annotation to "true".
    fn is_annotated(&self, annotation: &str) -> bool {
        self.annotations().get(annotation).is_some_and(|value| value == "true")
    }
}

fn is_ready(condition: &Condition) -> bool {
    condition.type_ == "Ready" && condition.status == "True"
}

/// The same with the object's record.
pub fn meta_observed<K: Managed, T>(object: &K, record: Result<&Record<T>, &InvalidAnnotation>) -> Meta {
    let (record, record_lost) = match record {
        Ok(record) => (record.text.clone(), !record.is_annotated),
        Err(_) => (None, false),
    };
    Meta { record, record_lost, ..object.meta_observed() }
}

/// The API of a namespaced kind.
pub fn namespaced<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    namespace.map_or_else(|| Api::all(client.clone()), |namespace| Api::namespaced(client.clone(), namespace))
}

/// The stable identity of an object.
pub fn uid<K: Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// An object by its name. Without its version, so that not as much is kept where one is kept for each.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectRef<K> {
    let reference = ObjectRef::new(&object.name_any());
    match &object.meta().namespace {
        Some(namespace) => reference.within(namespace),
        None => reference,
    }
}

/// The older resource comes first; two of one second are ordered by their names.
pub type Rank = (Option<Timestamp>, String);

pub fn rank<K: Resource>(object: &K) -> Rank {
    (object.meta().creation_timestamp.as_ref().map(|time| time.0), object.name_any())
}

/// Whether the status of an object that cannot be read has a record, which is all that is kept of its annotations.
pub fn is_recorded(meta: &ObjectMeta) -> bool {
    meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(names::RECORD))
}

/// Which account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountName {
    pub kind: AccountKind,
    /// `None` for a ClusterAccount.
    pub namespace: Option<String>,
    pub name: String,
}

impl AccountName {
    /// The account that a resource in `namespace` refers to.
    pub fn referred(reference: &AccountRef, namespace: &str) -> Self {
        let namespace = (reference.kind == AccountKind::Account).then(|| namespace.to_owned());
        Self { kind: reference.kind, namespace, name: reference.name.clone() }
    }

    /// The account that `object` refers to by `reference`.
    pub fn of<K: Resource>(reference: &AccountRef, object: &K) -> Self {
        Self::referred(reference, object.meta().namespace.as_deref().unwrap_or_default())
    }

    /// The object of this name, where `K` is the account's kind.
    pub fn object_ref<K: Resource<DynamicType = ()>>(&self) -> ObjectRef<K> {
        let reference = ObjectRef::new(&self.name);
        match &self.namespace {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}
