//! What a merge patch does. Use it with `#[path = "../support/merge.rs"] mod merge;`.

use serde_json::{Value, json};

/// RFC 7386.
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
