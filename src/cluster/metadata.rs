//! Patches of finalizers and annotations, which go together and only onto the version that the
//! decision was based on.

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

    /// The merge patch for this version of `object`.
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
    let others = object
        .finalizers()
        .iter()
        .filter(|finalizer| *finalizer != name)
        .cloned();
    others.chain(present.then(|| name.to_owned())).collect()
}

/// The merge patch (RFC 7386) that turns `from` into `to`.
pub fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let removed = from
        .keys()
        .filter(|name| !to.contains_key(*name))
        .map(|name| (name.clone(), Value::Null));
    let changed = to
        .iter()
        .filter(|(name, value)| from.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| {
        (
            name.clone(),
            merge_patch(from.get(name).unwrap_or(&Value::Null), value),
        )
    });
    Value::Object(removed.chain(changed).collect())
}

/// Applies a merge patch (RFC 7386).
pub fn merge(object: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in members {
        match value {
            Value::Null => drop(object.as_object_mut().map(|fields| fields.remove(name))),
            value => merge(&mut object[name.as_str()], value),
        }
    }
}

/// The version of an object as a number that increases with each write, if it has one.
pub fn resource_version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_holds_what_differs() {
        let from = json!({"size": {"fixed": 2}, "settings": {"a": "1", "b": "2"}, "branchID": "br-1", "list": [1, 2]});
        let to = json!({"size": {"autoscaling": {"min": 1}}, "settings": {"a": "1", "c": "3"}, "branchID": "br-1", "list": [2]});
        let patch = json!({
            "size": {"fixed": null, "autoscaling": {"min": 1}}, "settings": {"b": null, "c": "3"}, "list": [2],
        });
        assert_eq!(merge_patch(&from, &to), patch);
        assert_eq!(merge_patch(&from, &from), json!({}));
        assert_eq!(
            merge_patch(&json!({"pooler": {"enabled": true}}), &json!({})),
            json!({"pooler": null})
        );
    }
}
