//! Failing operations of the platform, and computes that never start.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{create, line, message, polls};
use crate::fixture::{ADMIN, Fixture, compute, condition};

/// Makes the next operation of this action fail this often before the platform gives it up.
async fn fails(fixture: &Fixture, action: &str, tries: u32) {
    let order = json!({"action": action, "tries": tries, "error": "no room"});
    fixture
        .console(Method::POST, "/failing_operations", order)
        .await;
}

/// The number of requests for the project's operations.
fn questions(fixture: &Fixture) -> usize {
    fixture.count(&format!("GET /projects/{}/operations", fixture.project))
}

fn mentions(text: &str, words: &[&str]) {
    words
        .iter()
        .for_each(|word| assert!(text.contains(word), "{word:?} is not in {text:?}"));
}

async fn start_outside_of_dbplane(fixture: &Fixture, compute: &str) {
    let url = format!(
        "{}/projects/{}/endpoints/{compute}/start",
        fixture.platform.base_url(),
        fixture.project
    );
    let started = reqwest::Client::new()
        .post(url)
        .bearer_auth(ADMIN)
        .send()
        .await
        .unwrap();
    assert!(started.status().is_success(), "{}", started.status());
}

fn creation(seen: &Value) -> &str {
    seen["status"]["createdAt"].as_str().unwrap()
}

#[tokio::test]
async fn a_compute_that_never_starts_is_reported_with_its_operations_until_one_succeeds() {
    let fixture = Fixture::public("start-failed").await;
    fails(&fixture, "start_compute", 3).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let starting = fixture
        .until_condition("compute/orders", "Ready", "False", "Starting")
        .await;
    let id = starting["status"]["lastOperation"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        starting["status"]["lastOperation"],
        json!({"id": id, "action": "start_compute", "status": "running"})
    );
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "StartTimeout")
        .await;
    the_failed_start_is_reported(&fixture, &stalled, &id).await;
    let asked = questions(&fixture);
    polls(&fixture, 2).await;
    assert!(
        questions(&fixture) <= asked + 1,
        "it is asked about with pauses"
    );
    assert_eq!(
        (fixture.count("POST"), fixture.count("PATCH")),
        (1, 0),
        "nothing is done because of it"
    );
    let compute = stalled["status"]["computeID"].as_str().unwrap();
    start_outside_of_dbplane(&fixture, compute).await;
    fixture.until_ready("compute/orders").await;
    let over = fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    assert_eq!(
        over["status"]["lastOperation"]["status"], "finished",
        "{over}"
    );
    let asked = questions(&fixture);
    polls(&fixture, 2).await;
    assert_eq!(
        questions(&fixture),
        asked,
        "nothing is asked while all is well"
    );
}

async fn the_failed_start_is_reported(fixture: &Fixture, stalled: &Value, id: &str) {
    let failure = format!("start_compute {id} (error, 3 failures: no room)");
    mentions(&message(stalled, "Stalled"), &[creation(stalled), &failure]);
    assert_eq!(
        condition(stalled, "Synced").unwrap()["reason"],
        "OperationFailed",
        "{stalled}"
    );
    mentions(
        &message(stalled, "Synced"),
        &[&failure, "does not try it again"],
    );
    let expected = json!({"id": id, "action": "start_compute", "status": "error", "failures": 3, "error": "no room"});
    assert_eq!(stalled["status"]["lastOperation"], expected);
    mentions(
        &fixture.event("compute/orders", "OperationFailed").await,
        &[&failure],
    );
}

#[tokio::test]
async fn a_change_whose_operation_fails_is_reported_and_not_repeated() {
    let fixture = Fixture::new("change-failed").await;
    create(&fixture, "  size: {fixed: 1}\n").await;
    fails(&fixture, "apply_config", 100).await;
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    let reported = fixture
        .until_condition("compute/orders", "Synced", "False", "OperationFailed")
        .await;
    let last = &reported["status"]["lastOperation"];
    assert_eq!(
        (&last["action"], &last["status"], &last["error"]),
        (&json!("apply_config"), &json!("failed"), &json!("no room"))
    );
    let failure = format!(
        "apply_config {} (failed, {} failure",
        last["id"].as_str().unwrap(),
        last["failures"]
    );
    mentions(
        &message(&reported, "Synced"),
        &[&failure, "may try it again"],
    );
    mentions(
        &fixture.event("compute/orders", "OperationFailed").await,
        &[&failure],
    );
    let (asked, version) = (
        questions(&fixture),
        reported["metadata"]["resourceVersion"].clone(),
    );
    polls(&fixture, 2).await;
    let still = fixture.get("compute/orders").await.unwrap();
    assert!(
        questions(&fixture) > asked || still["metadata"]["resourceVersion"] == version,
        "it was written without news"
    );
    assert_eq!(fixture.count("PATCH"), 1);
}

#[tokio::test]
async fn operations_are_requested_once_from_a_platform_that_does_not_list_them() {
    let fixture = Fixture::minimal("unlisted-failed").await;
    let id = create(&fixture, "  size: {fixed: 1}\n").await;
    fails(&fixture, "apply_config", 100).await;
    let operation =
        json!({"id": "op-7", "action": "apply_config", "status": "failed", "failures_count": 2});
    let body = json!({"operations": [operation]});
    fixture.fault(
        json!({"method": "PATCH", "kind": "status_after_work", "status": 200, "body": body}),
    );
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    let reported = fixture
        .until_condition("compute/orders", "Synced", "False", "OperationFailed")
        .await;
    mentions(
        &message(&reported, "Synced"),
        &[
            "apply_config op-7 (failed, 2 failures)",
            "answers to changes",
        ],
    );
    let expected =
        json!({"id": "op-7", "action": "apply_config", "status": "failed", "failures": 2});
    assert_eq!(reported["status"]["lastOperation"], expected);
    assert_eq!(line(&fixture, &id).await["size"], "2 CU");
    // The list of computes shows the end of the operation.
    fixture.platform.advance(Duration::from_secs(3000)).unwrap();
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    assert_eq!((questions(&fixture), fixture.count("PATCH")), (1, 1));
}

#[tokio::test]
async fn a_compute_that_never_starts_is_reported_where_operations_are_not_listed() {
    let fixture = Fixture::minimal("unlisted-start").await;
    fails(&fixture, "start_compute", 100).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "StartTimeout")
        .await;
    let id = stalled["status"]["lastOperation"]["id"].as_str().unwrap();
    let failure = format!(
        "answer to the last change showed the operations, newest first: start_compute {id} (running)"
    );
    mentions(
        &message(&stalled, "Stalled"),
        &[creation(&stalled), &failure],
    );
    polls(&fixture, 2).await;
    assert_eq!(questions(&fixture), 1);
}
