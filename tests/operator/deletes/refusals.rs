//! Refusals and read failures of the platform during a deletion: they must not remove the
//! finalizer.

use serde_json::{Value, json};

use super::{is_reported, message};
use crate::fixture::{Fixture, ORGANIZATION_KEY, compute, condition};

const LISTS: &str = "/endpoints$";

#[tokio::test]
async fn no_finalizer_is_removed_because_of_a_failed_read() {
    let not_allowed =
        json!({"status": 404, "body": {"message": "not allowed to see this project"}});
    tokio::join!(
        unseen(
            "unseen-403",
            json!({"status": 403, "body": {"message": "no"}}),
            "Forbidden"
        ),
        unseen("unseen-404", not_allowed, "Forbidden"),
        unseen(
            "unseen-gone",
            json!({"status": 404, "body": {"message": "project not found"}}),
            "Refused"
        ),
        unseen("unseen-500", json!({"status": 500}), "PlatformUnreachable"),
        unseen(
            "unseen-drop",
            json!({"kind": "drop"}),
            "PlatformUnreachable"
        ),
        a_key_refused_during_the_deletion_of_a_compute(),
        a_protected_compute_is_deleted_once_unprotected(),
    );
}

/// The platform deletes the compute and fails all later reads.
async fn unseen(name: &str, fault: Value, reason: &str) {
    let fixture = Fixture::new(name).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    let mut order = json!({"method": "GET", "path": LISTS, "times": 1_000_000});
    order
        .as_object_mut()
        .unwrap()
        .extend(fault.as_object().unwrap().clone());
    fixture.fault(order);
    fixture.delete("compute/orders").await;
    let reported = fixture
        .until("compute/orders", reason, |seen| {
            condition(seen, "Ready").is_some_and(|ready| ready["reason"] == reason)
        })
        .await;
    let reads = fixture.count("GET");
    fixture
        .wait_until("more to be read in vain", async || {
            fixture.count("GET") >= reads + 2
        })
        .await;
    let still = fixture
        .get("compute/orders")
        .await
        .unwrap_or_else(|| panic!("{name}: the finalizer was removed after {reported}"));
    assert!(
        still["metadata"]["finalizers"]
            .to_string()
            .contains("dbplane.dev/finalizer"),
        "{still}"
    );
    fixture.platform.clear_faults();
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
}

async fn a_key_refused_during_the_deletion_of_a_compute() {
    let fixture = Fixture::new("unseen-401").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    fixture.fault(json!({"status": 401, "times": 1_000_000}));
    fixture.delete("compute/orders").await;
    fixture
        .until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady")
        .await;
    fixture.platform.clear_faults();
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (1, 1)
    );
    fixture.secret("platform-api-key", ORGANIZATION_KEY).await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
}

/// The operator must retry without a change to the resource.
async fn a_protected_compute_is_deleted_once_unprotected() {
    let fixture = Fixture::new("protected-once").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    let body = json!({"code": "", "message": "endpoints of a protected branch cannot be deleted"});
    fixture.fault(json!({"method": "DELETE", "status": 422, "body": body}));
    fixture.delete("compute/orders").await;
    let reported = fixture
        .until("compute/orders", "refused", |seen| {
            is_reported(seen, "Refused")
        })
        .await;
    assert!(
        message(&reported, "Stalled").contains("protected branch"),
        "{reported}"
    );
    fixture.until_gone("compute/orders").await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (2, 0)
    );
}

#[tokio::test]
async fn a_namespace_waits_for_a_compute_that_its_spec_protects() {
    let fixture = Fixture::new("kept").await;
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            "  deletionProtection: true\n",
        ))
        .await;
    fixture.until_ready("compute/orders").await;
    let cluster = &fixture.shared.cluster;
    cluster
        .kubectl(&["delete", "namespace", "kept", "--wait=false"])
        .await
        .unwrap();
    let waiting = fixture
        .until_condition("compute/orders", "Stalled", "True", "DeletionProtected")
        .await;
    let text = message(&waiting, "Stalled");
    let command = text
        .split_once("kubectl -n kept ")
        .unwrap()
        .1
        .split_once("'. ")
        .unwrap()
        .0;
    the_wait_is_counted(&fixture).await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (0, 1)
    );
    let words: Vec<String> = command
        .split(' ')
        .map(|word| word.trim_matches('\'').to_owned())
        .collect();
    fixture
        .kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let gone = async || {
        let left = cluster
            .kubectl(&["get", "namespace", "kept", "--ignore-not-found"])
            .await
            .unwrap();
        left.trim().is_empty()
    };
    fixture.wait_until("the namespace to be gone", gone).await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (1, 0)
    );
}

async fn the_wait_is_counted(fixture: &Fixture) {
    let metrics = reqwest::get(&fixture.shared.metrics)
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let counted = format!(
        r#"dbplane_waiting_resources{{namespace="{}",kind="Compute",reason="DeletionProtected"}}"#,
        fixture.namespace
    );
    assert!(
        metrics
            .lines()
            .any(|line| line.starts_with(&counted) && !line.ends_with(" 0")),
        "{metrics}"
    );
}
