//! The parts of a key's name.

use super::KeyCase;
use crate::api::ProjectKeySpec;
use crate::decide::names::{self, ClusterId};
use crate::decide::seal::ObjectKey;

/// The part of a key's name that users choose.
pub(super) fn readable(case: &KeyCase) -> String {
    chosen(case.spec, &case.observed.meta.name)
}

fn chosen(spec: &ProjectKeySpec, name: &str) -> String {
    spec.key_name
        .clone()
        .unwrap_or_else(|| names::shortened(name))
}

/// The common beginning of the names of all keys that a resource may have created in this cluster.
pub fn attempts(spec: &ProjectKeySpec, object_key: ObjectKey, cluster: &ClusterId) -> String {
    names::attempts(&chosen(spec, object_key.name), cluster, object_key)
}
