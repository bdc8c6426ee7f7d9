//! The definitions: the committed files match the types and have the documented form.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dbplane::api::choices;
use dbplane::controller::definitions;
use serde_json::Value;

fn dbplane(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .args(args)
        .output()
        .unwrap()
}

fn committed() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"))
}

#[test]
fn the_committed_definitions_are_those_of_the_types() {
    let output = dbplane(&["crds", "--check", "--dir", committed().to_str().unwrap()]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_check_names_each_file_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    assert!(dbplane(&["crds", "--dir", dir]).status.success());
    assert!(dbplane(&["crds", "--dir", dir, "--check"]).status.success());
    fs::write(folder.path().join("dbplane.dev_computes.yaml"), "{}").unwrap();
    fs::remove_file(folder.path().join("dbplane.dev_accounts.yaml")).unwrap();
    fs::write(folder.path().join("dbplane.dev_tables.yaml"), "{}").unwrap();

    let output = dbplane(&["crds", "--dir", dir, "--check"]);

    assert!(!output.status.success());
    let complaint = String::from_utf8_lossy(&output.stderr);
    for line in [
        "differs:    dbplane.dev_computes.yaml",
        "missing:    dbplane.dev_accounts.yaml",
        "unexpected: dbplane.dev_tables.yaml",
    ] {
        assert!(complaint.contains(line), "{complaint}");
    }
    assert!(!complaint.contains("projectkeys"), "{complaint}");
}

#[test]
fn the_printed_schema_is_the_committed_one() {
    let output = dbplane(&["crds", "--schema"]);
    assert!(output.status.success());
    let schema = fs::read(committed().join("dbplane.schema.json")).unwrap();
    assert!(output.stdout == schema);
}

#[test]
fn the_printed_definitions_are_the_committed_ones() {
    let output = dbplane(&["crds"]);
    let printed: Vec<Value> =
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let expected: Vec<Value> = definitions()
        .iter()
        .map(|crd| serde_json::to_value(crd).unwrap())
        .collect();
    assert_eq!(printed, expected);
}

/// Calls `visit` with each part of each schema and its path, such as `Compute.spec.size`.
pub fn walk_schemas(visit: &mut dyn FnMut(&str, &Value)) {
    for crd in definitions() {
        let schema = crd.spec.versions[0]
            .schema
            .as_ref()
            .unwrap()
            .open_api_v3_schema
            .as_ref()
            .unwrap();
        walk(
            &crd.spec.names.kind,
            &serde_json::to_value(schema).unwrap(),
            visit,
        );
    }
}

fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    for (part, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = schema.get(part) {
            walk(&format!("{path}{suffix}"), inner, visit);
        }
    }
}

/// Asserts that no part of any schema satisfies `is_wrong`; failures list the paths.
fn assert_none(is_wrong: impl Fn(&str, &Value) -> bool) {
    let mut wrong = Vec::new();
    walk_schemas(&mut |path, schema| {
        if is_wrong(path, schema) {
            wrong.push(path.to_owned());
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_field_has_a_description() {
    assert_none(|path, schema| {
        let is_field = !path.ends_with("[]") && !path.ends_with("{}");
        is_field
            && schema["description"]
                .as_str()
                .is_none_or(|text| text.len() < 10 || !text.ends_with('.'))
    });
}

#[test]
fn only_the_status_as_a_whole_may_be_null() {
    assert_none(|path, schema| schema["nullable"] == true && !path.ends_with(".status"));
}

/// The API server drops such entries, so that every `kubectl apply` writes them again.
#[test]
fn a_definition_has_nothing_that_says_as_much_as_its_absence() {
    assert_none(|_, schema| {
        let entries = schema.as_object().into_iter().flatten();
        entries
            .filter(|(keyword, _)| *keyword != "default")
            .any(|(_, value)| *value == false || value.is_null() || *value == serde_json::json!([]))
    });
}

#[test]
fn every_type_is_plain_and_every_format_known() {
    let types = ["string", "number", "integer", "boolean", "object", "array"];
    let formats = ["int32", "int64", "date-time"];
    assert_none(|_, schema| {
        let either = schema["x-kubernetes-int-or-string"] == true;
        let plain = either
            || schema["type"]
                .as_str()
                .is_some_and(|name| types.contains(&name));
        let known = schema
            .get("format")
            .is_none_or(|name| formats.iter().any(|format| name == format));
        let union = [
            "anyOf",
            "oneOf",
            "allOf",
            "x-kubernetes-preserve-unknown-fields",
        ];
        !plain || !known || union.iter().any(|keyword| schema.get(keyword).is_some())
    });
}

#[test]
fn all_fields_that_rules_read_are_bounded() {
    assert_none(|path, schema| {
        let bound = match schema["type"].as_str() {
            Some("string") => "maxLength",
            Some("array") => "maxItems",
            Some("object") if schema.get("additionalProperties").is_some() => "maxProperties",
            _ => return false,
        };
        path.contains(".spec.") && schema.get(bound).is_none()
    });
}

/// An `enum` has a message without advice, and no rule is evaluated beside it.
#[test]
fn values_are_listed_by_rules_and_descriptions() {
    assert_none(|_, schema| schema.get("enum").is_some());
    let mut seen = 0;
    walk_schemas(&mut |path, schema| {
        let items = schema.get("items").and_then(choices);
        let own = choices(schema).filter(|_| !path.ends_with("[]"));
        let Some(values) = own.or(items) else { return };
        let text = schema["description"].as_str().unwrap();
        let names: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        seen += names.len();
        assert!(
            names.iter().all(|name| text.contains(name)),
            "{path} is {names:?}: {text}"
        );
    });
    assert!(seen > 50, "{seen} names");
}

#[test]
fn every_rule_has_advice_in_one_line() {
    assert_none(|_, schema| {
        let rules = schema["x-kubernetes-validations"].as_array();
        rules.into_iter().flatten().any(|rule| {
            let message = rule["message"]
                .as_str()
                .or(rule["messageExpression"].as_str());
            let message = message.unwrap_or_default();
            message.len() < 10 || message.contains('\n')
        })
    });
}

#[test]
fn conditions_are_a_map_by_type() {
    let mut seen = 0;
    walk_schemas(&mut |path, schema| {
        if path.ends_with(".status.conditions") {
            seen += 1;
            assert_eq!(schema["x-kubernetes-list-type"], "map", "{path}");
            assert_eq!(
                schema["x-kubernetes-list-map-keys"],
                serde_json::json!(["type"]),
                "{path}"
            );
        }
    });
    assert_eq!(seen, 5);
}

#[test]
fn a_definition_fits_the_annotation_of_a_client_side_apply() {
    for crd in definitions() {
        let size = serde_json::to_string(&crd).unwrap().len();
        assert!(
            size < 256 * 1024,
            "{} has {size} bytes",
            crd.spec.names.kind
        );
    }
}
