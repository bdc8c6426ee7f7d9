//! Checks deploy/chart/monitoring and docs/runbook: all named metrics exist, and each alert has a test
//! and a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dbplane::decide::Reason;
use regex::Regex;
use serde_json::Value;

use crate::reference;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap()
}

/// The pages by the names of their alerts.
fn pages() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbook");
    let pages = fs::read_dir(folder)
        .unwrap()
        .map(|entry| PathBuf::from(entry.unwrap().file_name()));
    let names = pages.map(|page| page.with_extension("").display().to_string());
    names.filter(|name| name != "README").collect()
}

fn alerts() -> BTreeMap<String, Value> {
    let rules = yaml("deploy/chart/monitoring/rules.yaml");
    let rules = rules["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    let rules = rules.filter(|rule| rule["alert"].is_string());
    rules
        .map(|rule| (rule["alert"].as_str().unwrap().to_owned(), rule.clone()))
        .collect()
}

/// The queryable names of all metrics.
fn metrics() -> BTreeSet<String> {
    let page = reference::metrics::page();
    let row = Regex::new(r"(?m)^\| `([a-z_]+)` \| ([a-z]+) ").unwrap();
    let mut names = BTreeSet::new();
    for found in row.captures_iter(&page) {
        let name = found[1].to_owned();
        if &found[2] == "histogram" {
            names.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        }
        names.insert(name);
    }
    assert!(names.len() > 30, "{names:?}");
    names
}

#[tokio::test]
async fn every_named_metric_exists() {
    let metrics = metrics();
    let name = Regex::new(r"\b(dbplane|process|tokio)_[a-z_]+").unwrap();
    let pages = pages()
        .into_iter()
        .map(|page| format!("docs/runbook/{page}.md"));
    let others = [
        "deploy/chart/monitoring/rules.yaml",
        "deploy/chart/monitoring/dashboard.json",
        "tests/ecosystem/alerts.yaml",
    ];
    let guides = [
        "docs/conditions.md",
        "docs/objectives.md",
        "docs/resources.md",
        "docs/guide/drift.md",
        "docs/guide/disruption.md",
    ];
    for path in pages.chain(others.into_iter().chain(guides).map(str::to_owned)) {
        let text = read(&path);
        for found in name.find_iter(&text) {
            assert!(
                metrics.contains(found.as_str()),
                "{path}: there is no metric {}",
                found.as_str()
            );
        }
    }
}

/// Renaming a reason would silently disable its alert.
#[test]
fn every_reason_in_an_alert_exists() {
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let selected = Regex::new(r#"\breason!?=~?"([A-Za-z|]+)""#).unwrap();
    let mut named = BTreeSet::new();
    for (alert, rule) in alerts() {
        for found in selected.captures_iter(rule["expr"].as_str().unwrap()) {
            for reason in found[1].split('|') {
                assert!(
                    reasons.contains(reason),
                    "{alert}: there is no reason {reason}"
                );
                named.insert(reason.to_owned());
            }
        }
    }
    assert!(named.len() >= 8, "{named:?}");
}

#[test]
fn every_alert_has_a_page_and_every_page_an_alert() {
    let alerts = alerts();
    assert_eq!(alerts.keys().cloned().collect::<BTreeSet<_>>(), pages());
    let overview = read("docs/runbook/README.md");
    for (name, rule) in alerts {
        let annotations = &rule["annotations"];
        assert_eq!(
            annotations["runbook_url"],
            format!("docs/runbook/{name}.md")
        );
        for text in [
            &annotations["summary"],
            &annotations["description"],
            &rule["for"],
        ] {
            assert!(text.as_str().is_some_and(|text| !text.is_empty()), "{name}");
        }
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(
            ["critical", "warning"].contains(&severity),
            "{name}: {severity}"
        );
        assert!(
            overview.contains(&format!("| [{name}]({name}.md) | {severity} |")),
            "{name} is not in the overview"
        );
        let page = read(&format!("docs/runbook/{name}.md"));
        let heads: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(
            heads,
            [
                &format!("# {name}"),
                "## What it means",
                "## How to look",
                "## What to do"
            ]
        );
        assert!(page.contains("```sh\n"), "{name} has no command");
    }
}

/// `make ecosystem` runs them.
#[test]
fn every_alert_has_a_case_that_fires_and_one_that_does_not() {
    let tests = yaml("tests/ecosystem/alerts.yaml");
    let cases = tests["tests"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
    let mut tested = BTreeMap::<&str, BTreeSet<bool>>::new();
    for case in cases {
        let fires = !case["exp_alerts"].as_array().unwrap().is_empty();
        tested
            .entry(case["alertname"].as_str().unwrap())
            .or_default()
            .insert(fires);
    }
    let expected = alerts();
    let expected: BTreeMap<&str, BTreeSet<bool>> = expected
        .keys()
        .map(|name| (name.as_str(), [true, false].into()))
        .collect();
    assert_eq!(tested, expected);
}

#[test]
fn every_query_of_the_objectives_is_tested() {
    let page = read("docs/objectives.md");
    let query = Regex::new(r"(?ms)^```promql\n(.+?)\n```$").unwrap();
    let queries: Vec<String> = query
        .captures_iter(&page)
        .map(|found| found[1].to_owned())
        .collect();
    assert_eq!(queries.len(), 3, "{queries:?}");
    let tests = read("tests/ecosystem/alerts.yaml");
    for query in queries {
        assert!(tests.contains(&format!("expr: '{query}'")), "{query}");
    }
}

/// The paths below `path` in a part of the file for kube-state-metrics, as whole paths.
fn paths(part: &Value, base: &[String], found: &mut Vec<Vec<String>>) {
    let path_of = |value: &Value| -> Option<Vec<String>> {
        let parts = value.as_array()?.iter();
        parts.map(|part| part.as_str().map(str::to_owned)).collect()
    };
    let below = path_of(&part["path"]).unwrap_or_default();
    let base = [base, &below].concat();
    let labels = part["labelsFromPath"].as_object().into_iter().flatten();
    let relative = labels.map(|(_, path)| path).chain(part.get("valueFrom"));
    found.extend(
        relative
            .filter_map(path_of)
            .map(|path| [base.as_slice(), &path].concat()),
    );
    found.push(base);
}

fn is_defined(schema: &Value, path: &[String]) -> bool {
    let schema = schema.get("items").unwrap_or(schema);
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    // The definitions do not describe the metadata.
    first == "metadata"
        || schema["properties"]
            .get(first)
            .is_some_and(|inner| is_defined(inner, rest))
}

/// A renamed field would silently remove its metric.
#[test]
fn kube_state_metrics_reads_fields_that_exist_of_every_kind() {
    let file = yaml("deploy/chart/monitoring/kube-state-metrics.yaml");
    let mut kinds = BTreeSet::new();
    for resource in file["spec"]["resources"].as_array().unwrap() {
        let kind = resource["groupVersionKind"]["kind"].as_str().unwrap();
        kinds.insert(kind.to_owned());
        let definition = yaml(&format!("crds/dbplane.dev_{}s.yaml", kind.to_lowercase()));
        let version = &definition["spec"]["versions"][0];
        assert_eq!(resource["groupVersionKind"]["version"], version["name"]);
        let schema = &version["schema"]["openAPIV3Schema"];
        let mut found = Vec::new();
        paths(resource, &[], &mut found);
        let mut names = BTreeSet::new();
        for metric in resource["metrics"].as_array().unwrap() {
            let name = metric["name"].as_str().unwrap();
            assert!(names.insert(name), "{kind}: {name} is there twice");
            assert!(metric["help"].is_string(), "{kind}: {name} has no help");
            let type_ = metric["each"]["type"].as_str().unwrap();
            let before = found.len();
            paths(&metric["each"][type_.to_lowercase()], &[], &mut found);
            assert!(found.len() > before, "{kind}: {name} reads nothing");
        }
        assert!(names.contains("condition"), "{kind}");
        for path in found {
            assert!(is_defined(schema, &path), "{kind} has no {path:?}");
        }
    }
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crds")).unwrap();
    let definitions = files.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("dbplane.dev_")
    });
    assert_eq!(kinds.len(), definitions.count(), "{kinds:?}");
}
