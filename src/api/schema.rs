//! Turns derived schemas into the structural schemas without nulls that Kubernetes requires.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::transform::transform_subschemas;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::common::Condition;
use super::rules;

/// For `#[schemars(transform = ...)]` on a spec or status.
///
/// An optional field may be left out, but may not be null. The API server then drops an explicit
/// null, and rules need not check for it. Unsigned integers get the formats that Kubernetes knows.
/// A list of values becomes a rule, because the API server's message about an `enum` gives no
/// advice, and no rule is evaluated beside it.
pub(super) fn plain(schema: &mut Schema) {
    transform_subschemas(&mut plain, schema);
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    hoist_option(object);
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(texts) = variants(object) {
        object.remove("oneOf");
        object.extend(choice(&texts));
    }
    let format = match object.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16" | "uint32") => "int32",
        Some("uint64" | "uint") => "int64",
        _ => return,
    };
    object.insert("format".into(), format.into());
}

/// The names of an enum's variants, each of which has a description.
fn variants(object: &Map<String, Value>) -> Option<Vec<String>> {
    let variants = object.get("oneOf")?.as_array()?.iter();
    variants
        .map(|variant| variant.get("const")?.as_str().map(str::to_owned))
        .collect()
}

/// The schema of one of these texts. Rules that read it need the bound.
fn choice<T: AsRef<str>>(texts: &[T]) -> Map<String, Value> {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    Map::from_iter([
        ("type".to_owned(), json!("string")),
        ("maxLength".to_owned(), json!(64)),
        (
            "x-kubernetes-validations".to_owned(),
            json!([rules::one_of(&texts)]),
        ),
    ])
}

/// For `#[schemars(transform = ...)]` on the status of a kind.
///
/// Until the operator has observed an object, its status has a generation that does not exist.
/// Tools such as kstatus then report that the state is not known yet.
pub(super) fn status(schema: &mut Schema) {
    plain(schema);
    schema.insert(
        "default".into(),
        json!({"observedGeneration": NOT_OBSERVED}),
    );
}

const NOT_OBSERVED: i64 = -1;

/// `anyOf: [T, null]` becomes T, with the description of the field instead of the one of T.
fn hoist_option(object: &mut Map<String, Value>) {
    let inner = match object
        .get("anyOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([inner, null]) if null.get("type").is_some_and(|name| name == "null") => {
            inner.as_object().cloned()
        }
        _ => None,
    };
    if let Some(inner) = inner {
        object.remove("anyOf");
        for (key, value) in inner {
            object.entry(key).or_insert(value);
        }
    }
}

/// The conditions of every kind: a list keyed by type.
pub(super) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<Vec<Condition>>();
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), json!(["type"]));
    schema
}

/// A map from text to text with at most `entries` entries of at most `length` characters.
fn text_map(generator: &mut SchemaGenerator, entries: u32, length: u32) -> Schema {
    let mut schema = generator.subschema_for::<BTreeMap<String, String>>();
    schema.insert("maxProperties".into(), entries.into());
    schema.insert(
        "additionalProperties".into(),
        json!({"type": "string", "maxLength": length}),
    );
    schema
}

pub(super) fn settings(generator: &mut SchemaGenerator) -> Schema {
    text_map(generator, 128, 1024)
}

/// Labels of an object that dbplane writes.
pub(super) fn labels(generator: &mut SchemaGenerator) -> Schema {
    text_map(generator, 32, 63)
}

/// Annotations of an object that dbplane writes, or entries of a Secret.
pub(super) fn texts(generator: &mut SchemaGenerator) -> Schema {
    text_map(generator, 32, 4096)
}

/// A list of at most 256 texts of at most `length` characters, each at most once.
fn text_set(generator: &mut SchemaGenerator, length: u32) -> Schema {
    let mut schema = generator.subschema_for::<Vec<String>>();
    schema.insert("maxItems".into(), 256.into());
    schema.insert(
        "items".into(),
        json!({"type": "string", "maxLength": length}),
    );
    schema.insert("x-kubernetes-list-type".into(), "set".into());
    schema
}

pub(super) fn namespace_names(generator: &mut SchemaGenerator) -> Schema {
    text_set(generator, 63)
}

/// The platform's identifiers of projects. An empty list could mean every project or none, so it is
/// invalid.
pub(super) fn project_ids(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = text_set(generator, 60);
    schema.insert("minItems".into(), 1.into());
    schema
}

/// A label selector with the bounds that its CEL rules need.
pub(super) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<LabelSelector>();
    plain(&mut schema);
    bound(
        &mut schema,
        "/properties/matchLabels",
        json!({"maxProperties": 32}),
    );
    bound(
        &mut schema,
        "/properties/matchLabels/additionalProperties",
        json!({"maxLength": 63}),
    );
    let expressions = "/properties/matchExpressions";
    bound(&mut schema, expressions, json!({"maxItems": 32}));
    let fields = format!("{expressions}/items/properties");
    bound(
        &mut schema,
        &format!("{fields}/key"),
        json!({"maxLength": 317}),
    );
    bound(
        &mut schema,
        &format!("{fields}/operator"),
        Value::Object(choice(&["In", "NotIn", "Exists", "DoesNotExist"])),
    );
    bound(
        &mut schema,
        &format!("{fields}/values"),
        json!({"maxItems": 64}),
    );
    bound(
        &mut schema,
        &format!("{fields}/values/items"),
        json!({"maxLength": 63}),
    );
    schema
}

fn bound(schema: &mut Schema, pointer: &str, bounds: Value) {
    let part = schema.pointer_mut(pointer).and_then(Value::as_object_mut);
    if let (Some(part), Value::Object(bounds)) = (part, bounds) {
        part.extend(bounds);
    }
}
