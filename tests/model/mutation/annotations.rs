//! A process that trusts annotations.

use dbplane::decide::names::RECORD;
use dbplane::decide::seal::{InvalidAnnotation, ObjectKey, open, seal};
use serde_json::Value;

use crate::model::in_memory::Print;
use crate::model::in_memory::cluster::{NAMESPACE, Stored};

/// A resource as seen by a process that trusts any annotation, even a copied one.
pub fn as_if_its_own(stored: &Print<Stored>) -> Print<Stored> {
    let text = stored.value["metadata"]["annotations"][RECORD].as_str();
    let name = stored.value["metadata"]["name"].as_str().unwrap();
    let other = text.and_then(|text| {
        match open::<Value>(
            RECORD,
            text,
            ObjectKey {
                namespace: NAMESPACE,
                name,
            },
        ) {
            Err(InvalidAnnotation::CopiedFrom(other)) => Some((text, other)),
            _ => None,
        }
    });
    let Some((text, other)) = other else {
        return stored.clone();
    };
    let of = ObjectKey {
        namespace: NAMESPACE,
        name: other.rsplit('/').next().unwrap(),
    };
    let mut record: Value = open(RECORD, text, of).unwrap();
    let mut seen = stored.value.clone();
    record["uid"] = seen["metadata"]["uid"].clone();
    let sealed = Value::from(seal(
        RECORD,
        &record,
        ObjectKey {
            namespace: NAMESPACE,
            name,
        },
    ));
    seen["metadata"]["annotations"][RECORD] = sealed.clone();
    seen["status"]["record"] = sealed;
    Stored::read(seen).unwrap()
}
