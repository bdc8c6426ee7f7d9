//! The rules about changes ask the record, whose text the operator writes.

use dbplane::decide::identity::{ComputeIdentity, KeyRecords, ProjectKeyIdentity, written};
use dbplane::validate::Checker;
use serde_json::{Value, json};

use crate::table::cases;

/// A valid manifest.
fn base(kind: &str) -> Value {
    let name = format!("{kind}: nothing but what is required");
    let case = cases().into_iter().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("no case {name}")).manifest
}

/// True if the project of an object with this record may change.
fn may_change(kind: &str, record: &str) -> bool {
    let mut old = base(kind);
    old["status"] = json!({"record": record});
    let mut new = old.clone();
    new["spec"]["projectID"] = json!("other-1");
    Checker::new().unwrap().check(&new, Some(&old)).is_ok()
}

/// The record of a resource with one part, all of whose texts look like other parts.
fn recorded<T: Default + serde::Serialize + serde::de::DeserializeOwned>(part: &Value) -> String {
    let mut all = serde_json::to_value(T::default()).unwrap();
    dbplane::cluster::merge(&mut all, part);
    written(
        &serde_json::from_value::<T>(all).unwrap(),
        &kube::core::ObjectMeta::default(),
    )
}

const AT: &str = "2026-01-01T00:00:00Z";

#[test]
fn every_part_of_a_record_keeps_the_project_of_a_compute() {
    let create = json!({"at": AT, "branch": "b"});
    let binding = json!({"id": "ep-1", "project": "p-1", "origin": "Created", "at": AT});
    for part in [
        json!({"binding": binding}),
        json!({"intent": create}),
        json!({"unanswered": [create]}),
        json!({"made": [create]}),
        json!({"twins": {"ep-2": AT}}),
    ] {
        let record = recorded::<ComputeIdentity>(&part);
        assert!(!may_change("computes", &record), "{record}");
    }
    let restart = json!({"restart": {"token": "\"intent\":", "annotation": "", "at": AT}});
    for part in [json!({}), restart] {
        let record = recorded::<ComputeIdentity>(&part);
        assert!(may_change("computes", &record), "{record}");
    }
}

#[test]
fn every_key_keeps_the_project_of_its_resource() {
    let key = json!({"id": 1, "name": "ci", "at": AT});
    let retired = json!({"id": 1, "name": "ci", "since": AT, "retire_at": AT});
    for part in [
        json!({"records": {"current": key}}),
        json!({"records": {"previous": [retired]}}),
        json!({"records": {"lost": [{"name": "ci", "since": AT}]}}),
        json!({"intent": {"name": "ci", "at": AT}}),
    ] {
        let record = recorded::<ProjectKeyIdentity>(&part);
        assert!(!may_change("projectkeys", &record), "{record}");
    }
    let forgotten = ProjectKeyIdentity {
        records: KeyRecords {
            rotated_for: Some("\"current\":".to_owned()),
            ..KeyRecords::default()
        },
        ..ProjectKeyIdentity::default()
    };
    let record = written(&forgotten, &kube::core::ObjectMeta::default());
    assert!(may_change("projectkeys", &record), "{record}");
}
