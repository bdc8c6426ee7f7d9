//! The JSON schema for editors: it judges manifests as the API server does, without its rules.

use std::fs;
use std::path::{Path, PathBuf};

use dbplane::api::choices;
use dbplane::validate::{Check, Checker, ManifestProblem, objects};
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use crate::crds::walk_schemas;
use crate::table::{Case, cases};

const SCHEMA: &str = "crds/dbplane.schema.json";
const COMMENT: &str = "# yaml-language-server: $schema=";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn validator() -> Validator {
    let text = fs::read_to_string(root().join(SCHEMA)).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    Validator::options()
        .with_draft(Draft::Draft7)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .build(&schema)
        .unwrap()
}

fn mistakes(validator: &Validator, manifest: &Value) -> Vec<String> {
    let errors = validator.iter_errors(manifest);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// The messages of the rules that list values.
fn messages_of_lists() -> Vec<String> {
    let mut messages = Vec::new();
    walk_schemas(&mut |_, schema| {
        if choices(schema).is_some() {
            let rules = schema["x-kubernetes-validations"].as_array().unwrap();
            let texts = rules.iter().filter_map(|rule| rule["message"].as_str());
            messages.extend(texts.map(str::to_owned));
        }
    });
    messages
}

#[test]
fn what_the_api_server_accepts_is_accepted() {
    let validator = validator();
    let mut seen = 0;
    for case in cases().iter().filter(|case| case.refusal.is_none()) {
        let found = mistakes(&validator, &case.manifest);
        assert!(found.is_empty(), "{}: {found:#?}", case.name);
        seen += 1;
    }
    assert!(seen >= 60, "{seen} manifests");
}

#[test]
fn what_structure_or_a_list_of_values_refuses_is_refused() {
    let (validator, checker, lists) = (validator(), Checker::new().unwrap(), messages_of_lists());
    let is_known = |problem: &ManifestProblem| match problem.check {
        Check::Kind | Check::UnknownField => true,
        // The form of names and labels is a rule of the API server's code.
        Check::Schema => !problem.path.starts_with("metadata."),
        Check::Rule => lists.iter().any(|list| problem.message.ends_with(list)),
        Check::Yaml | Check::Schedule => false,
    };
    let refused = |case: &Case| {
        let problems = checker
            .check(&case.manifest, None)
            .err()
            .unwrap_or_default();
        problems.iter().any(is_known)
    };
    let mut seen = 0;
    for case in cases().iter().filter(|case| refused(case)) {
        assert!(!validator.is_valid(&case.manifest), "{}", case.name);
        seen += 1;
    }
    assert!(seen >= 40, "{seen} manifests");
}

#[test]
fn kinds_are_told_apart() {
    let validator = validator();
    let ours = |kind: &str, version: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {"colour": "blue"}});
    let list = |item: Value| json!({"apiVersion": "v1", "kind": "List", "items": [item]});
    let wrong = ours("Compute", "dbplane.dev/v1alpha1");
    for (manifest, accepted) in [
        (Value::Null, true),
        (json!("text"), true),
        (json!([{"kind": "Compute"}]), true),
        (json!({"kind": 1}), true),
        (json!({"kind": "Namespace", "apiVersion": "v1"}), true),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}}),
            true,
        ),
        (ours("Account", "example.org/v1"), true),
        (wrong.clone(), false),
        (list(wrong), false),
        (list(json!({"apiVersion": "v1", "kind": "Secret"})), true),
        (ours("Compute", "dbplane.dev/v2"), false),
        (ours("Computer", "dbplane.dev/v1alpha1"), false),
        (json!({"apiVersion": "dbplane.dev/v1alpha1"}), false),
        (json!({"kind": "Compute"}), false),
    ] {
        assert_eq!(validator.is_valid(&manifest), accepted, "{manifest}");
    }
}

#[test]
fn metadata_and_a_status_are_known() {
    let validator = validator();
    let mut key = json!({
        "apiVersion": "dbplane.dev/v1alpha1", "kind": "ProjectKey",
        "metadata": {"generateName": "a-", "uid": "b", "labels": {"a": "b"}},
        "spec": {"accountRef": {"name": "a"}, "projectID": "b", "secret": {"name": "c"}},
        "status": {"observedGeneration": 1},
    });
    assert_eq!(mistakes(&validator, &key), [""; 0]);
    for (field, value) in [
        ("labels", json!({"a": 1})),
        ("lables", json!({})),
        ("name", json!(1)),
        ("annotations", json!("a")),
    ] {
        let mut wrong = key.clone();
        wrong["metadata"][field] = value;
        assert!(!validator.is_valid(&wrong), "{field}");
    }
    key["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("generateName");
    assert!(!validator.is_valid(&key), "it has no name");
}

/// Language servers offer what `enum`, `default` and `description` have.
#[test]
fn fields_keep_their_descriptions_defaults_and_values() {
    let text = fs::read_to_string(root().join(SCHEMA)).unwrap();
    assert!(!text.contains("x-kubernetes-") && !text.contains("nullable"));
    let schema: Value = serde_json::from_str(&text).unwrap();
    let spec = &schema["definitions"]["Compute"]["properties"]["spec"]["properties"];
    assert_eq!(spec["type"]["enum"], json!(["ReadWrite", "ReadOnly"]));
    assert_eq!(spec["management"]["default"], "Full");
    assert!(spec["size"]["description"].as_str().unwrap().ends_with('.'));
}

/// Manifests that people edit.
fn examples() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["deploy", "examples"] {
        walk(&root().join(folder), &mut files);
    }
    files.retain(|file| text(file).contains("\nkind: ") && !of_dbplane(&text(file)).is_empty());
    files
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|name| name == "yaml") {
            files.push(path);
        }
    }
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

fn of_dbplane(text: &str) -> Vec<Value> {
    let mut objects = objects(text);
    objects.retain(|object| object["apiVersion"] == "dbplane.dev/v1alpha1");
    objects
}

/// The language server reads the comment at the head of each document.
#[test]
fn each_document_of_the_examples_names_the_schema() {
    let examples = examples();
    assert!(examples.len() >= 9, "{examples:?}");
    let schema = root().join(SCHEMA).canonicalize().unwrap();
    for file in examples {
        let text = text(&file);
        for document in text.split("\n---\n") {
            if of_dbplane(document).is_empty() {
                continue;
            }
            let head = document.lines().take_while(|line| line.starts_with('#'));
            let named: Vec<&str> = head.filter_map(|line| line.strip_prefix(COMMENT)).collect();
            let [named] = named[..] else {
                panic!("{}: {named:?} in {document}", file.display());
            };
            let found = file.parent().unwrap().join(named).canonicalize().unwrap();
            assert_eq!(found, schema, "{}", file.display());
        }
    }
}

#[test]
fn the_examples_are_accepted_and_the_wrong_one_is_not() {
    let validator = validator();
    for file in examples() {
        let of_dbplane = of_dbplane(&text(&file));
        let found: Vec<String> = of_dbplane
            .iter()
            .flat_map(|manifest| mistakes(&validator, manifest))
            .collect();
        let is_wrong = file.ends_with("bad-compute.yaml");
        assert_eq!(!found.is_empty(), is_wrong, "{}: {found:?}", file.display());
    }
}
