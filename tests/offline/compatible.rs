//! Valid objects of a released version must stay valid with the same meaning; `released/` contains
//! the old definitions. Clusters contain objects written under older definitions, and users have
//! manifests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dbplane::api::choices;
use dbplane::controller::definitions;
use serde_json::{Value, json};

#[test]
fn objects_valid_in_a_released_version_are_valid_now() {
    let now: Vec<Value> = definitions()
        .iter()
        .map(|definition| serde_json::to_value(definition).unwrap())
        .collect();
    let mut compared = 0;
    for version in children(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline/released")) {
        for file in children(&version) {
            let before: Value =
                serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            let name = before["metadata"]["name"].as_str().unwrap();
            let now = now
                .iter()
                .find(|definition| definition["metadata"]["name"] == name);
            let now = now.unwrap_or_else(|| panic!("{name} of {} is gone", version.display()));
            assert_eq!(
                broken_definition(&before, now),
                [""; 0],
                "{}",
                file.display()
            );
            compared += 1;
        }
    }
    assert!(compared >= 5, "{compared} definitions were compared");
}

fn children(folder: &Path) -> BTreeSet<std::path::PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// The incompatible differences between two versions of a definition.
fn broken_definition(before: &Value, now: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    for part in [
        "/spec/group",
        "/spec/scope",
        "/spec/names/kind",
        "/spec/names/plural",
    ] {
        if before.pointer(part) != now.pointer(part) {
            broken.push(format!("{part} has changed"));
        }
    }
    for old in before["spec"]["versions"].as_array().unwrap() {
        let name = old["name"].as_str().unwrap();
        let new = now["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|version| version["name"] == name);
        match new.filter(|version| version["served"] == true) {
            Some(new) => {
                let kept = ["storage", "subresources", "selectableFields"].into_iter();
                let changed = kept.filter(|part| !old[*part].is_null() && old[*part] != new[*part]);
                broken.extend(changed.map(|part| format!("{name}: {part} has changed")));
                let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
                broken.extend(broken_schema(name, &schema(old), &schema(new)));
            }
            None => broken.push(format!("{name} is not served any more")),
        }
    }
    broken
}

/// Bounds: raising an upper bound or lowering a lower bound allows more.
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
/// These must not change: they affect how values are decoded, defaulted and merged.
const SAME: [&str; 9] = [
    "type",
    "format",
    "default",
    "nullable",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];

fn broken_schema(at: &str, before: &Value, now: &Value) -> Vec<String> {
    // The API server drops `nullable: false`, which is the default.
    let value = |schema: &Value, part: &str| match (part, &schema[part]) {
        ("nullable", Value::Bool(false)) => Value::Null,
        (_, value) => value.clone(),
    };
    let mut broken: Vec<String> = SAME
        .iter()
        .filter(|part| value(before, part) != value(now, part))
        .map(|part| format!("{at}: {part} was {}, and is {}", before[*part], now[*part]))
        .collect();
    broken.extend(restricted(at, before, now));
    let properties = before["properties"].as_object().into_iter().flatten();
    for (name, old) in properties {
        match now["properties"].get(name) {
            Some(new) => broken.extend(broken_schema(&format!("{at}.{name}"), old, new)),
            None => broken.push(format!("{at}.{name} is gone")),
        }
    }
    for part in ["items", "additionalProperties"] {
        if before[part].is_object() {
            broken.extend(broken_schema(&format!("{at}[]"), &before[part], &now[part]));
        }
    }
    broken
}

/// Rules that admit more than the released ones that they replace: those do not look at a value
/// that its own rule refuses.
const WEAKER: [&str; 4] = [
    "!(self.policy in ['Immediate', 'WhenIdle']) || !has(self.window)",
    "!(self.policy in ['Immediate', 'Window']) || !has(self.deadline)",
    "self.revokePrevious != 'AfterOverlap' || !has(self.unusedFor)",
    "has(e.values) && e.values.size() > 0 ? !(e.operator in ['Exists', 'DoesNotExist'])",
];

/// A list of values is compared by itself.
fn is_weaker(rule: &str) -> bool {
    let is_list = ["\"self in [", "\"double(self) in ["]
        .iter()
        .any(|list| rule.starts_with(list));
    is_list || WEAKER.iter().any(|known| rule.contains(known))
}

fn texts(values: Option<&Vec<Value>>) -> BTreeSet<String> {
    values.into_iter().flatten().map(Value::to_string).collect()
}

/// The rules that compare with the stored status replace stricter ones, which never asked it.
fn new_rules(at: &str, before: &Value, now: &Value) -> Vec<String> {
    let rules = |schema: &Value| -> BTreeSet<String> {
        let rules = schema["x-kubernetes-validations"].as_array();
        let rules = rules.into_iter().flatten();
        rules.map(|rule| rule["rule"].to_string()).collect()
    };
    rules(now)
        .difference(&rules(before))
        .filter(|rule| !rule.contains("oldSelf.status") && !is_weaker(rule))
        .map(|rule| format!("{at}: a new rule: {rule}"))
        .collect()
}

/// Restrictions that the old schema did not have.
fn restricted(at: &str, before: &Value, now: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let required = |schema: &Value| texts(schema["required"].as_array());
    broken.extend(
        required(now)
            .difference(&required(before))
            .map(|name| format!("{at}: {name} is required now")),
    );
    broken.extend(new_rules(at, before, now));
    if let Some(allowed) = choices(now) {
        let allowed = texts(Some(&allowed));
        match choices(before) {
            None => broken.push(format!("{at}: only {allowed:?} are allowed now")),
            Some(values) => broken.extend(
                texts(Some(&values))
                    .difference(&allowed)
                    .map(|value| format!("{at}: {value} is not allowed any more")),
            ),
        }
    }
    if now["pattern"].is_string() && now["pattern"] != before["pattern"] {
        broken.push(format!("{at}: the pattern is another one"));
    }
    // A list of values bounds their length.
    let longest = choices(before).and_then(|values| {
        let lengths = values
            .iter()
            .filter_map(|value| Some(value.as_str()?.len()));
        lengths.max().map(|length| length as f64)
    });
    let narrower = |part: &&str, by: fn(f64, f64) -> bool| {
        let listed = longest.filter(|_| *part == "maxLength");
        let (old, new) = (before[*part].as_f64().or(listed), now[*part].as_f64());
        new.is_some_and(|new| old.is_none_or(|old| by(new, old)))
    };
    let narrower = UPPER
        .iter()
        .filter(|part| narrower(part, |new, old| new < old))
        .chain(
            LOWER
                .iter()
                .filter(|part| narrower(part, |new, old| new > old)),
        );
    broken.extend(narrower.map(|part| format!("{at}: {part} is {} now", now[*part])));
    broken
}

#[test]
fn each_way_to_break_a_version_is_found() {
    let definition = serde_json::to_value(&definitions()[0]).unwrap();
    for (part, value, complaint) in [
        ("storage", json!(false), "storage has changed"),
        ("subresources", json!({}), "subresources has changed"),
        ("served", json!(false), "is not served any more"),
    ] {
        let mut changed = definition.clone();
        changed["spec"]["versions"][0][part] = value;
        let broken = broken_definition(&definition, &changed);
        assert!(
            broken.len() == 1 && broken[0].contains(complaint),
            "{part}: {broken:?}"
        );
    }
}

fn sample() -> Value {
    json!({
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "string", "enum": ["small", "large"], "maxLength": 9},
            "count": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    })
}

/// The complaints about the sample after the part at this JSON pointer is set.
fn broken_by(pointer: &str, value: Value) -> Vec<String> {
    let before = sample();
    let mut changed = before.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    changed.pointer_mut(parent).unwrap()[name] = value;
    broken_schema("it", &before, &changed)
}

/// The pointers, values and complaints of changes that break an object.
fn ways_to_break() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "/properties/count/type",
            json!("string"),
            "it.count: type was",
        ),
        (
            "/properties/count/minimum",
            json!(2),
            "it.count: minimum is 2 now",
        ),
        (
            "/properties/count/maximum",
            json!(5),
            "it.count: maximum is 5 now",
        ),
        (
            "/properties/count/default",
            json!(1),
            "it.count: default was",
        ),
        (
            "/properties/size/enum",
            json!(["large"]),
            "\"small\" is not allowed any more",
        ),
        (
            "/properties/size",
            json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self in [\"large\"]"}]}),
            "\"small\" is not allowed any more",
        ),
        (
            "/properties/tags/items/enum",
            json!(["a"]),
            "it.tags[]: only",
        ),
        (
            "/properties/tags/items/pattern",
            json!("^a"),
            "it.tags[]: the pattern",
        ),
        (
            "/required",
            json!(["size", "count"]),
            "\"count\" is required now",
        ),
        (
            "/properties",
            json!({"size": sample()["properties"]["size"]}),
            "it.count is gone",
        ),
    ]
}

#[test]
fn each_way_to_break_an_object_is_found() {
    for (pointer, value, complaint) in ways_to_break() {
        let broken = broken_by(pointer, value).join("\n");
        assert!(broken.contains(complaint), "{pointer}: {broken:?}");
    }
}

#[test]
fn a_new_rule_breaks_an_object() {
    for rule in ["self.count > 1", "self.count >= oldSelf.count"] {
        let broken = broken_by("/x-kubernetes-validations", json!([{"rule": rule}]));
        assert!(
            broken.join("\n").contains("a new rule"),
            "{rule}: {broken:?}"
        );
    }
}

#[test]
fn additions_break_nothing() {
    for (pointer, value) in [
        ("/properties/size/enum", json!(["small", "large", "huge"])),
        ("/properties/size/maxLength", json!(20)),
        (
            "/properties/size",
            json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self in [\"small\", \"large\"]"}]}),
        ),
        ("/properties/count/minimum", json!(0)),
        ("/properties/more", json!({"type": "string"})),
        ("/properties/size/description", json!("how large")),
        ("/required", json!([])),
        (
            "/x-kubernetes-validations",
            json!([{"rule": "!has(oldSelf.status) || self.count >= oldSelf.count"}]),
        ),
    ] {
        assert_eq!(broken_by(pointer, value), [""; 0], "{pointer}");
    }
}
