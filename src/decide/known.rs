//! A resource as the operator knows it: checked when it comes in, with its record parsed once.

use std::any::TypeId;
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::ApiResource;
use kube::core::object::HasStatus;
use kube::{CustomResourceExt, Resource};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::identity::{ComputeIdentity, ProjectKeyIdentity, Record, RecordedIdentity, read};
use super::seal::InvalidAnnotation;
use crate::api::{Account, ClusterAccount, Compute, ObjectMeta, ProjectKey, ReadReplicaSet};

/// The UID of a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

impl Uid {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A kind whose status may hold a record.
pub trait Recorded: Resource<DynamicType = (), Scope: 'static> {
    /// What the record says; `()` for a kind without a record.
    type Identity: RecordedIdentity;

    /// The text of the record in the status.
    fn record_text(&self) -> Option<&str> {
        None
    }
}

impl Recorded for Compute {
    type Identity = ComputeIdentity;

    fn record_text(&self) -> Option<&str> {
        self.status.as_ref()?.record.as_deref()
    }
}

impl Recorded for ProjectKey {
    type Identity = ProjectKeyIdentity;

    fn record_text(&self) -> Option<&str> {
        self.status.as_ref()?.record.as_deref()
    }
}

impl Recorded for ReadReplicaSet {
    type Identity = ();
}

impl Recorded for Account {
    type Identity = ();
}

impl Recorded for ClusterAccount {
    type Identity = ();
}

/// An object of the API server. It has a UID, a name and, if its kind is namespaced, a namespace.
#[derive(Clone, Debug)]
pub struct Known<K: Recorded> {
    object: K,
    uid: Uid,
    /// Parsed when it is first needed.
    record: OnceLock<Box<Result<Record<K::Identity>, InvalidAnnotation>>>,
}

/// The object lacks a part that the API server sets.
#[derive(Debug, thiserror::Error)]
#[error("metadata.{0} is missing")]
pub struct Incomplete(&'static str);

impl<K: Recorded> Known<K> {
    /// # Errors
    /// If the API server did not create the object.
    pub fn new(object: K) -> Result<Self, Incomplete> {
        let meta = object.meta();
        let is_namespaced = TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>();
        if meta.name.is_none() {
            return Err(Incomplete("name"));
        }
        if is_namespaced && meta.namespace.is_none() {
            return Err(Incomplete("namespace"));
        }
        let uid = meta.uid.as_deref().ok_or(Incomplete("uid"))?;
        Ok(Self {
            uid: uid.into(),
            object,
            record: OnceLock::new(),
        })
    }

    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// Empty for a kind without namespaces.
    pub fn namespace(&self) -> &str {
        self.object.meta().namespace.as_deref().unwrap_or_default()
    }

    /// The record of the object.
    ///
    /// # Errors
    /// Like `record_of`.
    pub fn record(&self) -> Result<&Record<K::Identity>, &InvalidAnnotation> {
        let read = || Box::new(record_of(&self.object));
        self.record.get_or_init(read).as_ref().as_ref()
    }

    /// What the record says about the object.
    ///
    /// # Errors
    /// Like `record_of`.
    pub fn identity(&self) -> Result<K::Identity, InvalidAnnotation> {
        self.record().map(K::Identity::of).map_err(Clone::clone)
    }
}

/// Reads the record of an object.
///
/// # Errors
/// If the status has no record, and the annotation is not as dbplane wrote it. Also if another
/// version of dbplane wrote one of the two.
pub fn record_of<K: Recorded>(object: &K) -> Result<Record<K::Identity>, InvalidAnnotation> {
    read(object.meta(), object.record_text())
}

impl<K: Recorded> Deref for Known<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: Recorded> Resource for Known<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.record.take();
        self.object.meta_mut()
    }
}

impl<K: Recorded + HasStatus> HasStatus for Known<K> {
    type Status = K::Status;

    fn status(&self) -> Option<&K::Status> {
        self.object.status()
    }

    fn status_mut(&mut self) -> &mut Option<K::Status> {
        self.record.take();
        self.object.status_mut()
    }
}

impl<K: Recorded + CustomResourceExt> CustomResourceExt for Known<K> {
    fn crd() -> CustomResourceDefinition {
        K::crd()
    }

    fn crd_name() -> &'static str {
        K::crd_name()
    }

    fn api_resource() -> ApiResource {
        K::api_resource()
    }

    fn shortnames() -> &'static [&'static str] {
        K::shortnames()
    }
}

impl<K: Recorded + Serialize> Serialize for Known<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl<'de, K: Recorded + DeserializeOwned> Deserialize<'de> for Known<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(K::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
