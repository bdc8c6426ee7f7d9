//! Nothing without a cause; and nothing left behind.

use std::collections::BTreeMap;
use std::time::Duration;

use dbplane::simulator::world::Profile;
use serde_json::{Value, json};

use super::{create, created, delete, polls, writes};
use crate::stage::{Stage, compute};

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
    let (stage, id) = created("quiet", more).await;
    stage.apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
    stage.until_ready("compute/reader").await;
    polls(&stage, 1).await;
    let (before, asked) = (versions(&stage).await, stage.requests().len());
    // Use of the compute is not a cause.
    stage.console(reqwest::Method::POST, &format!("/computes/{id}/activity"), json!({})).await;
    polls(&stage, 3).await;
    assert_eq!(versions(&stage).await, before);
    let since = stage.requests().split_off(asked);
    assert!(since.iter().all(|request| request == "GET /projects/aged-wind-123456/endpoints"), "{since:?}");
    assert!(since.len() <= 4, "{since:?}");
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
    let stage = Stage::on("minimal", |options| options.profile = Profile::Minimal).await;
    stage.account().await;
    let id = create(&stage, "  size: {fixed: 1}\n").await;
    stage.patch("compute/orders", json!({"size": {"fixed": 2}, "pooler": {"enabled": true}})).await;
    stage.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    stage.until_condition("compute/orders", "Synced", "True", "InSync").await;
    stage.until_ready("compute/orders").await;
    stage.patch("compute/orders", json!({"restartToken": "now"})).await;
    stage.until("compute/orders", "restarted", |seen| seen["status"]["restart"]["token"] == "now").await;
    let ready = stage.until_ready("compute/orders").await;
    assert_eq!(ready["status"]["computeId"], *id);
    assert_eq!((stage.count("POST"), stage.count("PATCH")), (2, 1));
    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    assert!(stage.computes().await.is_empty());
    assert_eq!(stage.count("DELETE"), 1);
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it_and_on_the_platform() {
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
