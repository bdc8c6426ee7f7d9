//! Finalizers and annotations: patched together, and only onto the version that a decision was made on.

use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::decide::names::FINALIZER;
use crate::decide::seal::{ObjectKey, seal};

/// A change of an object's finalizer and annotations.
#[derive(Clone, Debug, Default)]
pub struct MetadataPatch {
    annotations: Map<String, Value>,
    finalizer: Option<bool>,
}

impl MetadataPatch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes an annotation, sealed for the object that is patched.
    #[must_use]
    pub fn set<T: Serialize>(mut self, annotation: &str, value: &T) -> Self {
        // Plain data with text keys always serializes; nothing at all would be refused when it is read.
        self.annotations.insert(annotation.to_owned(), serde_json::to_value(value).unwrap_or_default());
        self
    }

    /// Removes an annotation.
    #[must_use]
    pub fn remove(mut self, annotation: &str) -> Self {
        self.annotations.insert(annotation.to_owned(), Value::Null);
        self
    }

    /// Adds or removes the finalizer.
    #[must_use]
    pub fn finalizer(mut self, present: bool) -> Self {
        self.finalizer = Some(present);
        self
    }

    /// The merge patch for `object` as given.
    pub fn body<K: Resource>(&self, object: &K) -> Value {
        let mut metadata = json!({"resourceVersion": object.resource_version(), "annotations": self.sealed(object)});
        if let Some(present) = self.finalizer {
            metadata["finalizers"] = json!(finalizers(object, present));
        }
        json!({"metadata": metadata})
    }

    /// The annotations as they are written to `object`; null removes one.
    pub fn sealed<K: Resource>(&self, object: &K) -> Map<String, Value> {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let object_key = ObjectKey { namespace: &namespace, name: &name };
        let text = |annotation: &String, value: &Value| match value {
            Value::Null => Value::Null,
            value => Value::String(seal(annotation, value, object_key)),
        };
        self.annotations.iter().map(|(annotation, value)| (annotation.clone(), text(annotation, value))).collect()
    }
}

fn finalizers<K: Resource>(object: &K, present: bool) -> Vec<String> {
    let others = object.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned();
    others.chain(present.then(|| FINALIZER.to_owned())).collect()
}

/// The version of an object as a number that grows with each write; `None` where it has none.
pub fn resource_version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_ref()?.parse().ok()
}
