//! Parses objects so that one that this version cannot read does not stop the others.

use std::borrow::Cow;
use std::sync::Arc;

use kube::Resource;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api::ObjectMeta;
use crate::decide::names::RECORD;

const LONGEST_ERROR: usize = 1024;

/// An object that cannot be read, and the error.
#[derive(Clone, Debug)]
pub struct Invalid {
    /// Its only annotation is the record from the status. The object's own annotations are dropped,
    /// because anybody can write them.
    pub meta: Arc<ObjectMeta>,
    pub error: String,
}

impl Invalid {
    pub fn new(meta: ObjectMeta, record: Option<String>, error: &str) -> Self {
        let annotations = record.map(|text| [(RECORD.to_owned(), text)].into());
        // The error quotes the unreadable part, which may be a MiB.
        let error = error.chars().take(LONGEST_ERROR).collect();
        Self {
            meta: Arc::new(ObjectMeta {
                annotations,
                ..meta
            }),
            error,
        }
    }

    pub fn record(&self) -> Option<&String> {
        self.meta.annotations.as_ref()?.get(RECORD)
    }
}

/// Parses an object, or keeps the metadata, the record and the error if that fails. The kube
/// crate's own guard keeps no status.
#[derive(Clone, Debug)]
pub struct Guarded<K>(pub Result<K, Invalid>);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let error = match K::deserialize(&value) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        let meta = ObjectMeta::deserialize(&value["metadata"]).map_err(D::Error::custom)?;
        let record = value["status"]["record"].as_str().map(str::to_owned);
        Ok(Self(Err(Invalid::new(meta, record, &error.to_string()))))
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0
            .as_ref()
            .map_or_else(|invalid| invalid.meta.as_ref(), K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0
            .as_mut()
            .map_or_else(|invalid| Arc::make_mut(&mut invalid.meta), K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::Compute;

    #[test]
    fn of_an_object_that_cannot_be_read_the_record_in_the_status_is_kept_and_no_annotation() {
        let read = |object: Value| {
            serde_json::from_value::<Guarded<Compute>>(object)
                .unwrap()
                .0
        };
        let annotations = json!({"dbplane.dev/record": "forged", "dbplane.dev/paused": "true"});
        let metadata = json!({"name": "a", "uid": "1", "annotations": annotations});
        let spec = json!({"accountRef": {"name": "prod"}, "projectID": "p", "branchID": "b", "type": "ReadOnly"});
        let object = |spec: &Value, status: Value| json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": spec, "status": status});
        assert!(read(object(&spec, json!({"record": "r"}))).is_ok());
        for (status, record) in [
            (json!({"record": "r"}), Some("r")),
            (json!({"record": 7}), None),
            (json!("odd"), None),
            (Value::Null, None),
        ] {
            let invalid = read(object(&json!({"type": 7}), status.clone())).unwrap_err();
            assert_eq!(invalid.record().map(String::as_str), record, "{status}");
            assert!(
                invalid
                    .meta
                    .annotations
                    .as_ref()
                    .is_none_or(|all| all.len() == 1),
                "{invalid:?}"
            );
            assert_eq!(
                (invalid.meta.uid.as_deref(), invalid.error.is_empty()),
                (Some("1"), false)
            );
        }
    }
}
