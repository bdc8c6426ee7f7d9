//! Computes, end to end.

mod changes;
mod connection;
pub mod existing;
mod faults;
mod quiet;
mod refusals;
mod restarts;
mod slow;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::stage::{PROJECT, Stage, compute, condition};

/// Where a test plays that has nothing to do with profiles and plans: with the Account `prod`.
pub async fn created(name: &str, more: &str) -> (Stage, String) {
    let stage = Stage::new(name).await;
    let id = create(&stage, more).await;
    (stage, id)
}

/// Creates the Compute `orders` on br-main-42 and waits until it can be used.
pub async fn create(stage: &Stage, more: &str) -> String {
    stage.apply(&compute("orders", "br-main-42", more)).await;
    let ready = stage.until_ready("compute/orders").await;
    ready["status"]["computeID"].as_str().unwrap().to_owned()
}

/// A compute that somebody created in the console some time ago.
pub async fn by_hand(stage: &Stage, branch: &str, kind: &str) -> String {
    let form = json!({"project_id": PROJECT, "branch_id": branch, "type": kind});
    let line = stage.console(Method::POST, "/computes", form).await;
    stage.platform.advance(Duration::from_secs(10)).unwrap();
    line["id"].as_str().unwrap().to_owned()
}

/// What the console shows of a compute.
async fn line(stage: &Stage, id: &str) -> Value {
    let computes = stage.computes().await;
    computes.into_iter().find(|compute| compute["id"] == id).unwrap_or_else(|| panic!("there is no compute {id}"))
}

/// Requests so far that ask for a change.
pub fn writes(stage: &Stage) -> Vec<String> {
    stage.requests().into_iter().filter(|request| !request.starts_with("GET ")).collect()
}

pub async fn delete(stage: &Stage, object: &str) {
    stage.kubectl(&["delete", object, "--wait=false"]).await;
}

async fn annotate(stage: &Stage, name: &str, annotation: &str) {
    stage.kubectl(&["annotate", "--overwrite", "compute", name, annotation]).await;
}

/// Waits until the platform was read that many times more.
pub async fn polls(stage: &Stage, times: usize) {
    let wanted = stage.count("GET") + times;
    stage.wait_until("the platform to be read", async || stage.count("GET") >= wanted).await;
}

pub fn message(object: &Value, kind: &str) -> String {
    condition(object, kind).and_then(|condition| condition["message"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_compute_is_created_once_and_becomes_ready() {
    let stage = Stage::new("create").await;
    let more = "  size: {autoscaling: {min: 0.25, max: 2}}\n  scaleToZero: {after: 5m}\n";
    let id = create(&stage, more).await;
    let ready = stage.get("compute/orders").await.unwrap();
    assert_eq!(ready["status"]["size"], "0.25-2");
    assert_eq!(ready["status"]["capacity"]["maxConnections"], 112);
    assert_eq!(ready["status"]["observedGeneration"], 1);
    assert_eq!(ready["status"]["state"], "active");
    assert!(condition(&ready, "Reconciling").is_none() && condition(&ready, "Stalled").is_none(), "{ready}");
    assert!(id.starts_with("ep-"), "{id}");
    let computes = stage.computes().await;
    assert_eq!(computes.len(), 1);
    assert_eq!(computes[0]["id"], id);
    assert_eq!(writes(&stage).len(), 1);
    assert!(stage.event("compute/orders", "Created").await.contains(&id));
}

#[tokio::test]
async fn a_deleted_compute_is_gone_on_the_platform() {
    let (stage, _) = created("delete", "").await;
    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    assert!(stage.computes().await.is_empty());
    assert_eq!(stage.count("DELETE"), 1);
}

#[tokio::test]
async fn a_branch_has_as_many_replicas_as_are_declared() {
    let stage = Stage::new("replicas").await;
    let primary = by_hand(&stage, "br-main-42", "read_write").await;
    let names = ["reader-1", "reader-2", "reader-3"];
    for name in names {
        stage.apply(&compute(name, "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
    }
    let mut ids = std::collections::BTreeSet::new();
    for name in names {
        let ready = stage.until_ready(&format!("compute/{name}")).await;
        ids.insert(ready["status"]["computeID"].as_str().unwrap().to_owned());
    }
    assert_eq!((ids.len(), stage.computes().await.len(), stage.count("POST")), (3, 4, 3));
    assert!(!ids.contains(&primary));
    delete(&stage, "compute/reader-2").await;
    stage.until_gone("compute/reader-2").await;
    assert_eq!((stage.computes().await.len(), stage.count("DELETE")), (3, 1));
}

#[tokio::test]
async fn a_project_that_does_not_exist_is_reported() {
    let stage = Stage::new("no-project").await;
    stage.apply(&compute("orders", "br-main-42", "").replace(PROJECT, "no-such-project")).await;
    let stalled = stage.until_condition("compute/orders", "Stalled", "True", "Refused").await;
    assert!(message(&stalled, "Stalled").contains("no-such-project"), "{stalled}");
    assert_eq!(writes(&stage).len(), 0);
}
