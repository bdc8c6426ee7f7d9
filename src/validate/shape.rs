//! The API server's checks besides schema and rules: it drops nulls, and rejects unknown fields and
//! duplicate entries of sets.

use serde_json::Value;

use super::{Check, ManifestProblem, metadata};

/// Removes nulls that the schema does not allow, as the API server does before any other check.
pub(super) fn drop_nulls(schema: &Value, value: &mut Value) {
    if let Value::Object(object) = value {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if object.get(name).is_some_and(Value::is_null) {
                object.remove(name);
            } else if let Some(value) = object.get_mut(name) {
                drop_nulls(property, value);
            }
        }
    } else if let (Value::Array(items), Some(schema)) = (value, schema.get("items")) {
        items.iter_mut().for_each(|item| drop_nulls(schema, item));
    }
}

/// The problems with the shape of `object`, the root of a manifest.
pub(super) fn problems(schema: &Value, object: &Value) -> Vec<ManifestProblem> {
    let mut problems = metadata::problems(object);
    for (name, value) in object.as_object().into_iter().flatten() {
        if !["apiVersion", "kind"].contains(&name.as_str()) {
            visit_property(schema, name, value, String::new(), &mut problems);
        }
    }
    problems
}

fn visit_property(
    schema: &Value,
    name: &str,
    value: &Value,
    path: String,
    problems: &mut Vec<ManifestProblem>,
) {
    let property = schema
        .get("properties")
        .and_then(|properties| properties.get(name));
    let path = if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    };
    match property.or_else(|| schema.get("additionalProperties")) {
        Some(property) => visit(property, value, path, problems),
        None => {
            let message = format!("unknown field {path:?}");
            problems.push(ManifestProblem {
                path,
                message,
                help: None,
                check: Check::UnknownField,
            });
        }
    }
}

fn visit(schema: &Value, value: &Value, path: String, problems: &mut Vec<ManifestProblem>) {
    match value {
        // A value of the wrong type is left to the schema.
        Value::Object(_) if schema.get("x-kubernetes-preserve-unknown-fields").is_some() => {}
        Value::Object(object) if schema.get("type").is_some_and(|name| name == "object") => {
            for (name, value) in object {
                visit_property(schema, name, value, path.clone(), problems);
            }
        }
        Value::Array(items) => {
            let is_set = schema
                .get("x-kubernetes-list-type")
                .is_some_and(|kind| kind == "set");
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}[{index}]");
                if is_set && items.iter().take(index).any(|earlier| earlier == item) {
                    let message = format!("Duplicate value: {item}");
                    problems.push(ManifestProblem {
                        path: path.clone(),
                        message,
                        help: None,
                        check: Check::Schema,
                    });
                }
                if let Some(schema) = schema.get("items") {
                    visit(schema, item, path, problems);
                }
            }
        }
        _ => {}
    }
}
