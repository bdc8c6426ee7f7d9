//! Compares files of deploy/ with what they are generated from: the chart's README with its values,
//! and the rules for the Prometheus operator with those for Prometheus. `make reference` writes
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use super::WRITE;

const README: &str = "# The chart of dbplane

A Kubernetes operator for Neon, a hosted Postgres platform, and for other servers of its management API v2. You declare computes and API keys as resources.
dbplane creates them on the platform, keeps them as declared, and deletes them with their resources.

```sh
helm install dbplane CHART --namespace dbplane-system --create-namespace --set image.repository=registry.example/dbplane
```

`CHART` is this folder, or its package. It needs Kubernetes 1.33 or newer, and is tested with Helm 4. No image is published: build one, and name your registry.

## Values

`make reference` writes this table from `values.yaml`. `values.schema.json` refuses other names.

| value | default | description |
|---|---|---|
";

const RULE: &str = "# `make reference` writes this file from deploy/chart/monitoring/rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: dbplane
  namespace: dbplane-system
  labels:
    app.kubernetes.io/name: dbplane
    app.kubernetes.io/part-of: dbplane
spec:
";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_default()
}

/// A value of the chart as a path such as `/image/tag`, and the comment above it.
fn commented_values() -> Vec<(String, String)> {
    let key = Regex::new("^( *)([A-Za-z]+):").unwrap();
    let (mut found, mut comment) = (Vec::new(), Vec::new());
    let mut parents = Vec::<(usize, String)>::new();
    for line in read("deploy/chart/values.yaml").lines() {
        if let Some(text) = line.trim_start().strip_prefix("# ") {
            comment.push(text.to_owned());
            continue;
        }
        if let Some(key) = key.captures(line) {
            parents.retain(|(depth, _)| *depth < key[1].len());
            let parent = parents.last().map_or("", |(_, path)| path);
            let path = format!("{parent}/{}", &key[2]);
            parents.push((key[1].len(), path.clone()));
            found.push((path, comment.join(" ")));
        }
        comment.clear();
    }
    found
}

/// The values that the schema describes, as paths. What it leaves to Kubernetes is one value.
fn settings(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    match schema["properties"].as_object() {
        Some(fields) => fields
            .iter()
            .for_each(|(name, field)| settings(field, &format!("{path}/{name}"), found)),
        None => {
            found.insert(path.to_owned());
        }
    }
}

fn all_settings() -> BTreeSet<String> {
    let schema = serde_json::from_str(&read("deploy/chart/values.schema.json")).unwrap();
    let mut found = BTreeSet::new();
    settings(&schema, "", &mut found);
    // Helm adds it for charts of charts.
    assert!(found.remove("/global"));
    found
}

fn values() -> Value {
    serde_saphyr::from_str(&read("deploy/chart/values.yaml")).unwrap()
}

/// A map with a comment has a row of its own, and all that can be set has one.
fn readme() -> String {
    let (values, mut rows) = (values(), README.to_owned());
    for (path, comment) in commented_values() {
        // Fields within a list are no values of their own.
        let Some(value) = values.pointer(&path) else {
            continue;
        };
        let is_map = value.as_object().is_some_and(|fields| !fields.is_empty());
        if is_map && comment.is_empty() && !is_inline(&path) {
            continue;
        }
        let default = match value.to_string() {
            _ if is_map && !is_inline(&path) => String::new(),
            long if long.len() > 100 => "see `values.yaml`".to_owned(),
            short => format!("`{short}`"),
        };
        let name = path[1..].replace('/', ".");
        rows += &format!(
            "| `{name}` | {default} | {} |\n",
            comment.replace('|', "\\|")
        );
    }
    rows
}

/// True if the fields of a map are on its own line.
fn is_inline(path: &str) -> bool {
    let below = format!("{path}/");
    !commented_values()
        .iter()
        .any(|(other, _)| other.starts_with(&below))
}

fn rule() -> String {
    let rules = read("deploy/chart/monitoring/rules.yaml");
    let indented = rules.lines().filter(|line| !line.starts_with('#'));
    let indented = indented.map(|line| format!("  {line}").trim_end().to_owned() + "\n");
    RULE.to_owned() + &indented.collect::<String>()
}

#[test]
fn the_files_match_their_sources() {
    let files = [
        ("deploy/chart/README.md", readme()),
        ("deploy/prometheus/prometheus-rule.yaml", rule()),
    ];
    for (path, text) in files {
        if std::env::var_os(WRITE).is_some() {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &text).unwrap();
        }
        assert!(
            read(path) == text,
            "{path} is not up to date, run make reference"
        );
    }
}

#[test]
fn every_value_of_the_chart_has_a_default_and_a_row() {
    let (values, readme, all) = (values(), readme(), all_settings());
    let described = Regex::new(r"(?m)^\| `([^`]+)` \| .*\| \S.* \|$").unwrap();
    let described: Vec<&str> = described
        .captures_iter(&readme)
        .map(|row| row.extract::<1>().1[0])
        .collect();
    for path in &all {
        assert!(values.pointer(path).is_some(), "values.yaml lacks {path}");
        let name = path[1..].replace('/', ".");
        assert!(
            readme.contains(&format!("\n| `{name}` |")),
            "no row for {name}"
        );
        let parent = name.rsplit_once('.').map(|(parent, _)| parent);
        let is_described = |name: &str| described.contains(&name);
        assert!(
            is_described(&name) || parent.is_some_and(is_described),
            "values.yaml says nothing about {name}"
        );
    }
    assert!(all.len() > 50, "{}", all.len());
}

/// Set to something else than its default, so that a mistake in a template shows.
#[test]
fn every_value_of_the_chart_is_set_by_an_example() {
    let (defaults, mut unset) = (values(), all_settings());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/chart/ci");
    for example in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(example.unwrap().path()).unwrap();
        let example: Value = serde_saphyr::from_str(&text).unwrap();
        let is_set = |path: &str| {
            let value = example.pointer(path);
            value.is_some() && value != defaults.pointer(path)
        };
        unset.retain(|path| !is_set(path));
    }
    assert!(unset.is_empty(), "no file of ci/ sets {unset:#?}");
}
