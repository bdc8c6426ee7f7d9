//! The JSON schema of all kinds, for the language servers of editors.

use serde_json::{Map, Value, json};

use super::{Checker, KindSchema};
use crate::api::{GROUP, choices};

/// The formats that JSON schema and Kubernetes have in common.
const FORMATS: [&str; 1] = ["date-time"];
/// The fields of `metadata` that people write.
const WRITTEN: [&str; 7] = [
    "annotations",
    "finalizers",
    "generateName",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
];

impl Checker {
    /// A JSON schema (draft 7) that checks the objects of dbplane, and accepts any other document.
    ///
    /// It selects the schema of a kind by `if`: language servers then report the mistakes of that
    /// kind, and complete its fields. With `oneOf` they would compare the document with every kind.
    pub fn editor_schema(&self) -> Value {
        let kinds: Vec<&str> = self.kinds.iter().map(|known| &*known.kind).collect();
        let versions: Vec<&str> = self.kinds.iter().map(|known| &*known.api_version).collect();
        let definitions: Map<String, Value> = self
            .kinds
            .iter()
            .map(|known| (known.kind.clone(), definition(known)))
            .collect();
        let mut parts: Vec<Value> = self
            .kinds
            .iter()
            .map(|known| selected(&known.kind))
            .collect();
        parts.push(other_kinds(&kinds));
        parts.push(json!({
            "if": a_list(),
            "then": {"properties": {"items": {"type": "array", "items": {"$ref": "#"}}}},
        }));
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "The resources of dbplane",
            "properties": {
                "apiVersion": {"examples": versions.first().into_iter().collect::<Vec<_>>()},
                "kind": {"examples": kinds},
            },
            "allOf": parts,
            "definitions": definitions,
        })
    }
}

/// The part of the schema that applies to an object of this kind, if its group is dbplane's or
/// missing.
fn selected(kind: &str) -> Value {
    json!({
        "if": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"const": kind},
                "apiVersion": {"pattern": format!("^({}/.*|[^/]*)$", group())},
            },
        },
        "then": {"$ref": format!("#/definitions/{kind}")},
    })
}

/// The part of the schema that refuses a kind that dbplane's group does not have.
fn other_kinds(kinds: &[&str]) -> Value {
    let of_group = json!({
        "type": "object",
        "required": ["apiVersion"],
        "properties": {"apiVersion": {"type": "string", "pattern": format!("^{}/", group())}},
    });
    json!({
        "if": {"allOf": [of_group, {"not": a_list()}]},
        "then": {"required": ["kind"], "properties": {"kind": {"enum": kinds}}},
    })
}

fn a_list() -> Value {
    let kind = json!({"type": "string", "pattern": "List$"});
    json!({"type": "object", "required": ["kind"], "properties": {"kind": kind}})
}

/// The group as a pattern.
fn group() -> String {
    GROUP.replace('.', r"\.")
}

fn definition(known: &KindSchema) -> Value {
    let mut schema = known.schema.clone();
    let properties = &mut schema["properties"];
    properties["apiVersion"] = json!({"const": known.api_version});
    properties["kind"] = json!({"const": known.kind});
    let metadata = &mut properties["metadata"];
    for (name, field) in metadata["properties"].as_object_mut().into_iter().flatten() {
        if !WRITTEN.contains(&&**name) {
            *field = Value::Bool(true);
        }
    }
    metadata["anyOf"] = json!([{"required": ["name"]}, {"required": ["generateName"]}]);
    // An editor does not suggest a field without a schema.
    properties["status"] = Value::Bool(true);
    schema["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    plain(&schema)
}

/// The JSON schema for a schema of Kubernetes. Its objects have only the fields that it names.
fn plain(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else {
        return schema.clone();
    };
    let mut plain = Map::new();
    for (keyword, value) in object {
        if let Some((keyword, value)) = translated(keyword, value) {
            plain.insert(keyword.to_owned(), value);
        }
    }
    if let Some(values) = choices(schema) {
        plain.insert("enum".to_owned(), values.into());
    }
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        let required = object.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let properties = properties.iter().map(|(name, property)| {
            let property = self::plain(property);
            let property = if is_required(name) {
                property
            } else {
                or_null(property)
            };
            (name.clone(), property)
        });
        plain.insert(
            "properties".to_owned(),
            properties.collect::<Map<_, _>>().into(),
        );
    }
    let is_open = object.contains_key("additionalProperties")
        || object.contains_key("x-kubernetes-preserve-unknown-fields");
    if object.get("type").is_some_and(|name| name == "object") && !is_open {
        plain.insert("additionalProperties".to_owned(), false.into());
    }
    Value::Object(plain)
}

/// The keyword and value of JSON schema for a keyword of Kubernetes, other than `properties`.
fn translated<'a>(keyword: &'a str, value: &Value) -> Option<(&'a str, Value)> {
    match keyword {
        "items" | "additionalProperties" => Some((keyword, plain(value))),
        "x-kubernetes-list-type" if value == "set" => Some(("uniqueItems", true.into())),
        "x-kubernetes-int-or-string" => Some(("type", json!(["integer", "string"]))),
        "format" if !FORMATS.iter().any(|known| value == known) => None,
        "properties" | "nullable" => None,
        _ if keyword.starts_with("x-kubernetes-") => None,
        _ => Some((keyword, value.clone())),
    }
}

/// The API server drops an explicit null of a field that may be left out.
fn or_null(mut schema: Value) -> Value {
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push("null".into()),
        Some(only) => *only = json!([only.clone(), "null"]),
        None => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}
