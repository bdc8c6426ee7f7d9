//! Nothing without a cause; and nothing left behind.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{create, created, delete, polls, writes};
use crate::stage::{Stage, compute};

/// What the operator has written in the namespace so far, as the API server noted it.
fn written(stage: &Stage) -> Vec<String> {
    let log = std::fs::read_to_string(&stage.shared.audit_log).unwrap();
    let mut written = Vec::new();
    for line in log.lines() {
        // The last line may be half written.
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let verb = entry["verb"].as_str().unwrap_or_default();
        let object = &entry["objectRef"];
        if object["namespace"] == stage.namespace.as_str() && !["get", "list", "watch"].contains(&verb) {
            written.push(format!("{verb} {} {}", object["resource"], object["name"]));
        }
    }
    written
}

/// The version of everything in the namespace.
async fn versions(stage: &Stage) -> BTreeMap<String, String> {
    let text = stage.kubectl(&["get", "computes,accounts,secrets,events", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&text).unwrap();
    let version = |object: &Value| {
        let metadata = &object["metadata"];
        (format!("{} {}", object["kind"], metadata["name"]), metadata["resourceVersion"].to_string())
    };
    list["items"].as_array().unwrap().iter().map(version).collect()
}

#[tokio::test]
async fn a_settled_operator_writes_nothing_and_reads_one_list_a_poll() {
    let more = "  size: {fixed: 1}\n  connection: {secretName: orders-db}\n";
    let (stage, id) = created("compute-quiet", more).await;
    stage.apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
    stage.until_ready("compute/reader").await;
    polls(&stage, 1).await;
    let (before, wrote, asked) = (versions(&stage).await, written(&stage), stage.requests().len());
    assert!(wrote.len() > 8, "the audit log tells nothing: {wrote:?}");
    // Use of the compute is not a cause.
    stage.console(reqwest::Method::POST, &format!("/computes/{id}/activity"), json!({})).await;
    polls(&stage, 3).await;
    assert_eq!(versions(&stage).await, before);
    assert_eq!(written(&stage)[wrote.len()..], [] as [String; 0]);
    let since = stage.requests().split_off(asked);
    assert!(since.iter().all(|request| request == "GET /projects/aged-wind-123456/endpoints"), "{since:?}");
    assert!(since.len() <= 4, "{since:?}");
}

#[tokio::test]
async fn calls_of_the_platform_are_counted() {
    let (stage, _) = created("metrics", "").await;
    let text = reqwest::get(&stage.shared.metrics).await.unwrap().text().await.unwrap();
    assert!(text.lines().any(|line| line.contains("create_compute") && line.contains("ok")), "{text}");
    assert!(!text.contains(crate::stage::ADMIN), "a token");
}

#[tokio::test]
async fn an_idle_compute_is_ready_and_nothing_wakes_it() {
    let (stage, id) = created("idle", "  size: {fixed: 1}\n").await;
    stage.platform.advance(Duration::from_secs(600)).unwrap();
    let seen = stage.until("compute/orders", "idle", |seen| seen["status"]["state"] == "idle").await;
    assert_eq!(seen["status"]["conditions"][0]["status"], "True", "{seen}");
    for _ in 0..2 {
        stage.platform.advance(Duration::from_secs(600)).unwrap();
        polls(&stage, 1).await;
    }
    let line = super::line(&stage, &id).await;
    assert_eq!((&line["status"], writes(&stage).len()), (&json!("Idle"), 1), "{line}");
    stage.until_ready("compute/orders").await;
}

#[tokio::test]
async fn a_platform_that_offers_the_least_is_enough() {
    let stage = Stage::minimal("minimal").await;
    let id = create(&stage, "  size: {fixed: 1}\n").await;
    stage.patch("compute/orders", json!({"size": {"fixed": 2}, "pooler": {"enabled": true}})).await;
    stage.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    stage.until_condition("compute/orders", "Synced", "True", "InSync").await;
    stage.until_ready("compute/orders").await;
    stage.patch("compute/orders", json!({"restartToken": "now"})).await;
    stage.until("compute/orders", "restarted", |seen| seen["status"]["restart"]["token"] == "now").await;
    let ready = stage.until_ready("compute/orders").await;
    assert_eq!(ready["status"]["computeID"], *id);
    assert_eq!((stage.count("POST"), stage.count("PATCH")), (2, 1));
    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    assert!(stage.computes().await.is_empty());
    assert_eq!(stage.count("DELETE"), 1);
}

#[tokio::test]
async fn a_namespace_is_deleted_with_everything_in_it_and_on_the_platform() {
    let (stage, _) = created("whole", "  connection: {secretName: orders-db}\n").await;
    for name in ["reader-1", "reader-2"] {
        stage.apply(&compute(name, "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
        stage.until_ready(&format!("compute/{name}")).await;
    }
    let cluster = &stage.shared.cluster;
    cluster.kubectl(&["delete", "namespace", "whole", "--wait=false"]).await.unwrap();
    let gone = async || {
        let left = cluster.kubectl(&["get", "namespace", "whole", "--ignore-not-found"]).await.unwrap();
        left.trim().is_empty()
    };
    stage.wait_until("the namespace to be gone", gone).await;
    assert!(stage.computes().await.is_empty());
    assert_eq!(stage.count("DELETE"), 3);
}
