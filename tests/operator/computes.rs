//! Computes, end to end.

mod changes;
mod connection;
pub mod existing;
mod faults;
mod operations;
mod quiet;
mod refusals;
mod restarts;
mod slow;
mod unreadable;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::fixture::{Fixture, PROJECT, compute, condition};

/// The usual fixture for tests that do not depend on profiles or plans, with the Account `prod` and
/// a Compute.
pub async fn created(name: &str, more: &str) -> (Fixture, String) {
    let fixture = Fixture::new(name).await;
    let id = create(&fixture, more).await;
    (fixture, id)
}

/// Creates the Compute `orders` on br-main-42 and waits until it is ready.
pub async fn create(fixture: &Fixture, more: &str) -> String {
    fixture.apply(&compute("orders", "br-main-42", more)).await;
    let ready = fixture.until_ready("compute/orders").await;
    ready["status"]["computeID"].as_str().unwrap().to_owned()
}

/// Creates a compute in the console and lets some time pass.
pub async fn by_hand(fixture: &Fixture, branch: &str, kind: &str) -> String {
    let form = json!({"project_id": fixture.project, "branch_id": branch, "type": kind});
    let line = fixture.console(Method::POST, "/computes", form).await;
    fixture.platform.advance(Duration::from_secs(10)).unwrap();
    line["id"].as_str().unwrap().to_owned()
}

/// The compute in the console's list.
async fn line(fixture: &Fixture, id: &str) -> Value {
    let computes = fixture.computes().await;
    computes
        .into_iter()
        .find(|compute| compute["id"] == id)
        .unwrap_or_else(|| panic!("there is no compute {id}"))
}

/// The requests for changes so far.
pub fn writes(fixture: &Fixture) -> Vec<String> {
    fixture
        .requests()
        .into_iter()
        .filter(|request| !request.starts_with("GET "))
        .collect()
}

/// Waits for this many further reads of the platform.
pub async fn polls(fixture: &Fixture, times: usize) {
    let wanted = fixture.count("GET") + times;
    fixture
        .wait_until("the platform to be read", async || {
            fixture.count("GET") >= wanted
        })
        .await;
}

/// True if the restart for this token is done, and the compute was ready afterwards.
pub fn is_restarted(object: &Value, token: &str) -> bool {
    let restart = &object["status"]["restart"];
    restart["token"] == token && restart["completedAt"].is_string()
}

pub fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)
        .and_then(|condition| condition["message"].as_str())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_compute_is_created_once_and_becomes_ready() {
    let fixture = Fixture::new("create").await;
    let more = "  size: {autoscaling: {min: 0.25, max: 2}}\n  scaleToZero: {after: 5m}\n";
    let id = create(&fixture, more).await;
    let ready = fixture.get("compute/orders").await.unwrap();
    assert_eq!(ready["status"]["size"], "0.25-2");
    assert_eq!(ready["status"]["capacity"]["maxConnections"], 112);
    assert_eq!(ready["status"]["observedGeneration"], 1);
    assert_eq!(ready["status"]["state"], "active");
    assert!(
        condition(&ready, "Reconciling").is_none() && condition(&ready, "Stalled").is_none(),
        "{ready}"
    );
    assert!(id.starts_with("ep-"), "{id}");
    let computes = fixture.computes().await;
    assert_eq!(computes.len(), 1);
    assert_eq!(computes[0]["id"], id);
    assert_eq!(writes(&fixture).len(), 1);
    assert!(
        fixture
            .event("compute/orders", "Created")
            .await
            .contains(&id)
    );
}

#[tokio::test]
async fn a_deleted_compute_is_gone_on_the_platform() {
    let (fixture, _) = created("delete", "").await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
    assert_eq!(fixture.count("DELETE"), 1);
}

#[tokio::test]
async fn a_branch_has_all_declared_replicas() {
    let fixture = Fixture::new("replicas").await;
    let primary = by_hand(&fixture, "br-main-42", "read_write").await;
    let names = ["reader-1", "reader-2", "reader-3"];
    for name in names {
        fixture
            .apply(&compute(name, "br-main-42", "").replace("ReadWrite", "ReadOnly"))
            .await;
    }
    let mut ids = std::collections::BTreeSet::new();
    for name in names {
        let ready = fixture.until_ready(&format!("compute/{name}")).await;
        ids.insert(ready["status"]["computeID"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        (
            ids.len(),
            fixture.computes().await.len(),
            fixture.count("POST")
        ),
        (3, 4, 3)
    );
    assert!(!ids.contains(&primary));
    fixture.delete("compute/reader-2").await;
    fixture.until_gone("compute/reader-2").await;
    assert_eq!(
        (fixture.computes().await.len(), fixture.count("DELETE")),
        (3, 1)
    );
}

#[tokio::test]
async fn a_branch_that_does_not_exist_is_named_with_its_field() {
    let fixture = Fixture::new("no-branch").await;
    fixture.apply(&compute("orders", "br-nope-7", "")).await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "Refused")
        .await;
    let expected = format!(
        "Branch br-nope-7 is not in project {}: correct spec.branchID.",
        fixture.project
    );
    assert!(
        message(&stalled, "Stalled").starts_with(&expected),
        "{stalled}"
    );
    let plan = fixture
        .dbplane(&["plan", "--allow-insecure-platform", "--output", "json"])
        .await
        .json();
    let all = plan["resources"].as_array().unwrap();
    let planned = all.iter().find(|it| it["kind"] == "Compute").unwrap();
    assert_eq!(planned["steps"], json!([]), "{plan}");
    assert!(planned.to_string().contains(&expected), "{plan}");
    fixture
        .patch("compute/orders", json!({"branchID": "br-main-42"}))
        .await;
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn a_project_that_does_not_exist_is_reported() {
    let fixture = Fixture::new("no-project").await;
    fixture
        .apply(&compute("orders", "br-main-42", "").replace(PROJECT, "no-such-project"))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "Refused")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("no-such-project"),
        "{stalled}"
    );
    assert_eq!(writes(&fixture).len(), 0);
}
