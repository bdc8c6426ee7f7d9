//! Validates the table of manifests with the schema and the rules as this program evaluates them.

use dbplane::api::{Account, ClusterAccount, Compute, Duration, ProjectKey, ReadReplicaSet};
use dbplane::decide::cron::Cron;
use dbplane::validate::Checker;
use serde_json::{Value, json};

use crate::table::{Case, cases};

#[test]
fn the_table_is_large_enough() {
    let (mut good, mut bad) = (0, 0);
    for case in cases() {
        match case.refusal {
            None => good += 1,
            Some(_) => bad += 1,
        }
    }
    assert!(good >= 40 && bad >= 60, "{good} good and {bad} bad");
}

#[test]
fn names_of_cases_are_unique() {
    let mut names: Vec<String> = cases().into_iter().map(|case| case.name).collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_manifest_is_judged_as_in_the_table() {
    let checker = Checker::new().unwrap();
    let wrong: Vec<String> = cases()
        .iter()
        .filter_map(|case| misjudged(&checker, case))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} misjudged:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn misjudged(checker: &Checker, case: &Case) -> Option<String> {
    let problems: Vec<String> = match checker.check(&case.manifest, case.old.as_ref()) {
        Ok(()) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    };
    let as_expected = match &case.refusal {
        None => problems.is_empty(),
        // A mistake must give exactly one message, so that users need not guess the cause.
        Some(refusal) => problems.len() == 1 && refusal.is_told_by(&problems.concat()),
    };
    (!as_expected).then(|| {
        format!(
            "{}: {problems:?}\n  expected: {:?}",
            case.name, case.refusal
        )
    })
}

/// An accepted manifest that cannot be decoded would stop its controller.
#[test]
fn accepted_manifests_can_be_decoded() {
    for case in cases().into_iter().filter(|case| case.refusal.is_none()) {
        let mut manifest = case.manifest;
        drop_nulls(&mut manifest);
        let read = match manifest["kind"].as_str() {
            Some("Account") => serde_json::from_value::<Account>(manifest.clone()).map(drop),
            Some("ClusterAccount") => {
                serde_json::from_value::<ClusterAccount>(manifest.clone()).map(drop)
            }
            Some("Compute") => serde_json::from_value::<Compute>(manifest.clone()).map(drop),
            Some("ProjectKey") => serde_json::from_value::<ProjectKey>(manifest.clone()).map(drop),
            Some("ReadReplicaSet") => {
                serde_json::from_value::<ReadReplicaSet>(manifest.clone()).map(drop)
            }
            kind => panic!("{}: {kind:?}", case.name),
        };
        read.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        readable_times(&case.name, &manifest);
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(object) = value {
        object.retain(|_, value| !value.is_null());
        object.values_mut().for_each(drop_nulls);
    }
}

fn readable_times(name: &str, manifest: &Value) {
    for pointer in [
        "/spec/pollInterval",
        "/spec/scaleToZero/after",
        "/spec/rotation/every",
        "/spec/rotation/overlap",
        "/spec/disruption/window/duration",
    ] {
        if let Some(text) = manifest.pointer(pointer).and_then(Value::as_str) {
            assert!(
                Duration(text.to_owned()).value().is_some(),
                "{name}: {text}"
            );
        }
    }
    let window = &manifest["spec"]["disruption"]["window"];
    if let Some(schedule) = window["schedule"].as_str() {
        let zone = window["timeZone"].as_str().unwrap_or("UTC");
        Cron::parse(schedule, Some(zone)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn several_mistakes_are_reported_together() {
    let manifest = json!({
        "apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": {"name": "a"},
        "spec": {
            "accountRef": {"name": "A"}, "projectID": "A", "branchID": "b", "type": "ReadWrite",
            "size": {}, "colour": "blue",
        },
    });
    let problems = Checker::new().unwrap().check(&manifest, None).unwrap_err();
    let mut paths: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "spec.accountRef.name",
            "spec.colour",
            "spec.projectID",
            "spec.size"
        ],
        "{problems:?}"
    );
}

#[test]
fn another_kind_is_reported_as_such() {
    let checker = Checker::new().unwrap();
    for (manifest, expected) in [
        (
            json!({"apiVersion": "v1", "kind": "Secret"}),
            "kind: \"Secret\" is not a kind of dbplane; it has Account",
        ),
        (
            json!({"apiVersion": "dbplane.dev/v1", "kind": "Compute"}),
            "apiVersion: \"dbplane.dev/v1\" is not a version",
        ),
        (json!("text"), "kind: \"\" is not a kind of dbplane"),
    ] {
        let problems = checker.check(&manifest, None).unwrap_err();
        assert!(
            problems[0].to_string().starts_with(expected),
            "{problems:?}"
        );
    }
}
