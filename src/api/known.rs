//! A custom resource as the API server returns it: checked when it comes in.

use std::any::TypeId;
use std::borrow::Cow;
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

use super::ObjectMeta;

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

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The type of an object, whose kind and scope are known.
pub trait ApiObject: Resource<DynamicType = (), Scope: 'static> {}

impl<K: Resource<DynamicType = (), Scope: 'static>> ApiObject for K {}

/// An object whose fields hold texts to parse.
pub trait Parsed: ApiObject {
    type Parts: Clone + fmt::Debug + Send + Sync;
    type Invalid;

    /// # Errors
    /// If a text cannot be parsed.
    fn parse(&self) -> Result<Self::Parts, Self::Invalid>;

    /// False if the parts may take much more memory than their texts.
    fn keeps(&self, parts: &Self::Parts) -> bool;
}

/// True if the objects of this type are in namespaces.
pub fn is_namespaced<K: ApiObject>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>()
}

/// An object of the API server. It has a UID, a name and, if its kind is namespaced, a namespace.
#[derive(Clone, Debug)]
pub struct Known<K: Parsed> {
    object: K,
    uid: Uid,
    /// Parsed when they are first needed.
    parts: OnceLock<Box<K::Parts>>,
}

/// The object lacks a part that the API server sets.
#[derive(Debug, thiserror::Error)]
#[error("metadata.{0} is missing")]
pub struct Incomplete(&'static str);

impl<K: Parsed> Known<K> {
    /// # Errors
    /// If the API server did not create the object.
    pub fn new(object: K) -> Result<Self, Incomplete> {
        let meta = object.meta();
        if meta.name.is_none() {
            return Err(Incomplete("name"));
        }
        if is_namespaced::<K>() && meta.namespace.is_none() {
            return Err(Incomplete("namespace"));
        }
        let uid = meta.uid.as_deref().ok_or(Incomplete("uid"))?;
        Ok(Self {
            uid: uid.into(),
            object,
            parts: OnceLock::new(),
        })
    }

    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// Empty for a kind without namespaces.
    pub fn namespace(&self) -> &str {
        self.object.meta().namespace.as_deref().unwrap_or_default()
    }

    /// The parsed texts.
    ///
    /// # Errors
    /// If a text cannot be parsed.
    pub fn parts(&self) -> Result<Cow<'_, K::Parts>, K::Invalid> {
        if let Some(parts) = self.parts.get() {
            return Ok(Cow::Borrowed(parts));
        }
        let parts = self.object.parse()?;
        if !self.object.keeps(&parts) {
            return Ok(Cow::Owned(parts));
        }
        Ok(Cow::Borrowed(self.parts.get_or_init(|| Box::new(parts))))
    }
}

impl<K: Parsed> Deref for Known<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: Parsed> Resource for Known<K> {
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
        self.parts.take();
        self.object.meta_mut()
    }
}

impl<K: Parsed + HasStatus> HasStatus for Known<K> {
    type Status = K::Status;

    fn status(&self) -> Option<&K::Status> {
        self.object.status()
    }

    fn status_mut(&mut self) -> &mut Option<K::Status> {
        self.parts.take();
        self.object.status_mut()
    }
}

impl<K: Parsed + CustomResourceExt> CustomResourceExt for Known<K> {
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

impl<K: Parsed + Serialize> Serialize for Known<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl<'de, K: Parsed + DeserializeOwned> Deserialize<'de> for Known<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(K::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
