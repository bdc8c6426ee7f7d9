//! The traits and helpers by which every part of the controller handles the custom resources.

use std::fmt;
use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::core::object::HasStatus;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use serde::Serialize;

use crate::api::{
    AccountKind, AccountRef, AccountStatus, ComputeStatus, Condition, Known, ObjectMeta,
    ProjectKeyStatus, ReadReplicaSetStatus, Uid, is_namespaced,
};
use crate::cluster::Object;
use crate::decide::released::has_finalizer;
use crate::decide::{Brake, Meta, Recorded, Report, names};
use crate::text::line;

const LONGEST_REQUEST: usize = 256;

/// The status of one of our custom resources.
pub trait Status: Clone + Default + PartialEq + Serialize + Send + Sync {
    fn conditions(&self) -> &[Condition];

    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    fn observed_generation_mut(&mut self) -> &mut Option<i64>;

    /// Sets `observedGeneration` if it was never set. The rest of the status keeps the generation
    /// that it was written for.
    fn observed_first(&mut self, generation: Option<i64>) {
        let observed = self.observed_generation_mut();
        if observed.is_none_or(|observed| observed < 0) {
            *observed = generation;
        }
    }

    /// The last handled request to read the platform again.
    fn handled_reconcile(&self) -> Option<&String>;

    /// The record, for kinds that have one.
    fn record_mut(&mut self) -> Option<&mut Option<String>> {
        None
    }

    /// Sets the conditions that a status shows while a call is in progress.
    fn tell(&mut self, report: &Report, generation: i64, now: Timestamp) {
        *self.conditions_mut() = report.conditions(self.conditions(), generation, now);
        let observed = self.observed_generation_mut();
        *observed = report.observed_generation(*observed, generation);
    }
}

/// Implements [`Status`]. The second argument is the field of the record, if there is one.
macro_rules! implement_status {
    ($status:ty $(, $record:ident)?) => {
        impl Status for $status {
            fn conditions(&self) -> &[Condition] {
                &self.conditions
            }

            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                &mut self.conditions
            }

            fn observed_generation_mut(&mut self) -> &mut Option<i64> {
                &mut self.observed_generation
            }

            fn handled_reconcile(&self) -> Option<&String> {
                self.last_handled_reconcile_at.as_ref()
            }

            $(
                fn record_mut(&mut self) -> Option<&mut Option<String>> {
                    Some(&mut self.$record)
                }
            )?
        }
    };
}

implement_status!(AccountStatus);
implement_status!(ComputeStatus, record);
implement_status!(ProjectKeyStatus, record);
implement_status!(ReadReplicaSetStatus);

/// The scope of a kind, and the API that follows from it.
pub trait ApiScope {
    /// The API of one namespace, or of all, with objects read as `O`.
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self>;
}

impl ApiScope for NamespaceResourceScope {
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }
}

impl ApiScope for ClusterResourceScope {
    fn api<O>(client: &Client, _: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self>,
    {
        Api::all(client.clone())
    }
}

/// A custom resource of dbplane.
pub trait Managed:
    Object + CustomResourceExt + HasStatus<Status: Status> + Resource<Scope: ApiScope>
{
    fn known_uid(&self) -> &Uid;

    /// The text of the record in the status.
    fn recorded_text(&self) -> Option<&str>;

    /// The API of one namespace, or of all, with objects read as `O`.
    fn api<O>(client: &Client, namespace: Option<&str>) -> Api<O>
    where
        O: Resource<DynamicType = (), Scope = Self::Scope>,
    {
        Self::Scope::api(client, namespace)
    }

    fn is_namespaced() -> bool {
        is_namespaced::<Self>()
    }

    /// The part of an observation that is the same for every kind, without the record.
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
            ready: self
                .status()
                .is_some_and(|status| status.conditions().iter().any(is_ready)),
            reconcile: self.request(names::RECONCILE),
            brake: Brake::of(
                self.annotations()
                    .get(names::CONFIRM_DELETION)
                    .map(String::as_str),
                self.meta().deletion_timestamp.as_ref().map(|time| time.0),
                self.status().map(Status::conditions).unwrap_or_default(),
            ),
        }
    }

    /// True if the status says that the spec is applied, and no request is unhandled.
    fn stands(&self) -> bool {
        let Some(status) = self.status() else {
            return false;
        };
        let of_this =
            |condition: &Condition| condition.observed_generation == self.meta().generation;
        self.meta().deletion_timestamp.is_none()
            && status
                .conditions()
                .iter()
                .any(|it| is_ready(it) && of_this(it))
            && self.request(names::RECONCILE).as_ref() == status.handled_reconcile()
    }

    /// The value of a request annotation, truncated because the status keeps it.
    fn request(&self, annotation: &str) -> Option<String> {
        self.annotations()
            .get(annotation)
            .map(|text| line(text, LONGEST_REQUEST).into_owned())
    }

    /// True if an annotation is "true".
    fn is_annotated(&self, annotation: &str) -> bool {
        self.annotations()
            .get(annotation)
            .is_some_and(|value| value == "true")
    }
}

impl<K> Managed for Known<K>
where
    K: Recorded<Scope: ApiScope> + Object + CustomResourceExt + HasStatus<Status: Status>,
{
    fn known_uid(&self) -> &Uid {
        self.uid()
    }

    fn recorded_text(&self) -> Option<&str> {
        self.record_text()
    }
}

fn is_ready(condition: &Condition) -> bool {
    condition.type_ == "Ready" && condition.status == "True"
}

/// The metadata of an observation, with the record.
pub fn meta_observed<K: Recorded>(object: &Known<K>) -> Meta
where
    Known<K>: Managed,
{
    let mut meta = object.meta_observed();
    if let Ok(record) = object.record() {
        meta.record_lost = !record.is_annotated;
        if record.is_recorded {
            meta.record = object.record_text().map(str::to_owned);
        }
    }
    meta
}

pub fn uid<K: Managed>(object: &K) -> &Uid {
    object.known_uid()
}

/// The namespace of an object, or nothing if its kind has none.
pub fn namespace<K: Resource>(object: &K) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

/// A reference by namespace and name. It leaves out the version to save memory: one is kept per
/// object.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectRef<K> {
    let reference = ObjectRef::new(&object.name_any());
    match &object.meta().namespace {
        Some(namespace) => reference.within(namespace),
        None => reference,
    }
}

/// The order of resources: the older one first, then by name if both were created in the same
/// second.
pub type Rank = (Option<Timestamp>, String);

pub fn rank<K: Resource>(object: &K) -> Rank {
    (
        object.meta().creation_timestamp.as_ref().map(|time| time.0),
        object.name_any(),
    )
}

/// True if the status of an unreadable object has a record. Only the record is kept in its
/// annotations.
pub fn is_recorded(meta: &ObjectMeta) -> bool {
    meta.annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key(names::RECORD))
}

/// The kind, namespace and name of an account.
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
        Self {
            kind: reference.kind,
            namespace,
            name: reference.name.clone(),
        }
    }

    /// The account that `object` refers to by `reference`.
    pub fn of<K: Resource>(reference: &AccountRef, object: &K) -> Self {
        Self::referred(reference, namespace(object))
    }

    /// A reference to the account. `K` has to be its kind.
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
