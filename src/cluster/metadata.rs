//! Finalizers and annotations: patched together, and only onto the version that a decision was made on.

use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::decide::names::{FINALIZER, RECORD};

/// A change of an object's finalizer and record.
#[derive(Clone, Debug, Default)]
pub struct MetadataPatch {
    record: Option<String>,
    finalizer: Option<(String, bool)>,
}

impl MetadataPatch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the record.
    #[must_use]
    pub fn record(mut self, text: String) -> Self {
        self.record = Some(text);
        self
    }

    /// Adds or removes the finalizer.
    #[must_use]
    pub fn finalizer(self, present: bool) -> Self {
        self.finalizer_named(FINALIZER, present)
    }

    /// Adds or removes a finalizer of this name.
    #[must_use]
    pub fn finalizer_named(mut self, name: &str, present: bool) -> Self {
        self.finalizer = Some((name.to_owned(), present));
        self
    }

    /// The merge patch for `object` as given.
    pub fn body<K: Resource>(&self, object: &K) -> Value {
        let mut metadata = json!({"resourceVersion": object.resource_version()});
        if let Some(record) = &self.record {
            metadata["annotations"] = json!({RECORD: record});
        }
        if let Some((name, present)) = &self.finalizer {
            metadata["finalizers"] = json!(finalizers(object, name, *present));
        }
        json!({"metadata": metadata})
    }
}

fn finalizers<K: Resource>(object: &K, name: &str, present: bool) -> Vec<String> {
    let others = object.finalizers().iter().filter(|finalizer| *finalizer != name).cloned();
    others.chain(present.then(|| name.to_owned())).collect()
}

/// The version of an object as a number that grows with each write; `None` where it has none.
pub fn resource_version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_ref()?.parse().ok()
}
