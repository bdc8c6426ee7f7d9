use serde_json::{Value, json};

use super::*;
use crate::decide::identity::{Binding, Origin, written};
use crate::decide::names::RECORD;

fn compute() -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": "orders", "uid": "uid-1"},
        "spec": {"accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": "br-1", "type": "ReadOnly"},
    })
}

fn known(object: Value) -> Known<Compute> {
    serde_json::from_value(object).unwrap()
}

/// A record that is bound to this compute.
fn bound(id: &str) -> String {
    let binding = Binding {
        id: id.into(),
        project: "p-1".into(),
        platform: None,
        branch: None,
        origin: Origin::Created,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let identity = ComputeIdentity {
        binding: Some(binding),
        ..ComputeIdentity::default()
    };
    written(&identity, &known(compute()).metadata)
}

#[test]
fn an_object_without_what_the_api_server_sets_is_refused() {
    for field in ["namespace", "name", "uid"] {
        let mut object = compute();
        object["metadata"].as_object_mut().unwrap().remove(field);
        let error = serde_json::from_value::<Known<Compute>>(object).unwrap_err();
        assert_eq!(error.to_string(), format!("metadata.{field} is missing"));
    }
    let spec = json!({
        "baseURL": "https://p.example/v2",
        "apiKeySecretRef": {"namespace": "dbplane", "name": "key"},
        "namespaces": {},
    });
    let shared = json!({"metadata": {"name": "prod", "uid": "uid-2"}, "spec": spec});
    assert!(serde_json::from_value::<Known<ClusterAccount>>(shared).is_ok());
}

#[test]
fn only_a_short_record_of_the_status_is_kept_in_memory() {
    let is_kept = |object: &Known<Compute>| matches!(object.record().unwrap(), Cow::Borrowed(_));
    let mut object = compute();
    assert!(is_kept(&known(object.clone())));
    object["status"] = json!({"record": bound("ep-1")});
    assert!(is_kept(&known(object.clone())));
    object["status"] = json!({"record": bound(&"x".repeat(LONGEST_KEPT))});
    assert!(!is_kept(&known(object)));
    let mut annotated = compute();
    annotated["metadata"]["annotations"] = json!({RECORD: bound("ep-1")});
    assert!(!is_kept(&known(annotated)));
}
