//! The identity of a resource in a plan.

use std::fmt;

use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;

use crate::in_memory::{self, full_name, kind_named};

/// Identifies a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Id {
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

impl Id {
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self {
            kind: K::kind(&()).into_owned(),
            namespace: object.namespace(),
            name: object.name_any(),
        }
    }

    /// The identity of an object as JSON, or `None` if it has no kind or name.
    pub fn of_value(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let metadata = &value["metadata"];
        Some(Self {
            kind: text(&value["kind"])?,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"])?,
        })
    }

    /// Its key in the cluster in memory, if its kind is one of dbplane's.
    pub(super) fn resource(&self) -> Option<in_memory::Resource> {
        let name = full_name(self.namespace.as_deref(), &self.name);
        Some((kind_named(&self.kind)?, name))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
