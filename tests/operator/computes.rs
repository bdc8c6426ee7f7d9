//! Computes, end to end.

use serde_json::json;

use crate::stage::{Stage, compute};

#[tokio::test]
async fn a_compute_is_created_once_and_becomes_ready() {
    let stage = Stage::new("create").await;
    stage
        .apply(&compute(
            "orders",
            "br-main-42",
            "  size: {autoscaling: {min: 0.25, max: 2}}\n  scaleToZero: {after: 5m}\n",
        ))
        .await;
    let ready = stage.until_ready("compute/orders").await;
    assert_eq!(ready["status"]["size"], "0.25-2");
    assert_eq!(ready["status"]["capacity"]["maxConnections"], 112);
    assert_eq!(ready["status"]["observedGeneration"], 1);
    let id = ready["status"]["computeId"].as_str().unwrap();
    assert!(id.starts_with("ep-"), "{id}");
    let computes = stage.computes().await;
    assert_eq!(computes.len(), 1);
    assert_eq!(computes[0]["id"], id);
    assert_eq!(stage.count("POST"), 1);
}

#[tokio::test]
async fn a_deleted_compute_is_gone_on_the_platform() {
    let stage = Stage::new("delete").await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_ready("compute/orders").await;
    stage.kubectl(&["delete", "compute", "orders", "--wait=false"]).await;
    stage.until_gone("compute/orders").await;
    assert!(stage.computes().await.is_empty());
    assert_eq!(stage.count("DELETE"), 1);
}

#[tokio::test]
async fn only_what_differs_is_patched() {
    let stage = Stage::new("resize").await;
    stage.apply(&compute("orders", "br-main-42", "  size: {fixed: 1}\n")).await;
    stage.until_ready("compute/orders").await;
    stage.patch("compute/orders", json!({"size": {"fixed": 2}})).await;
    stage
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == "2" && seen["status"]["observedGeneration"] == 2
        })
        .await;
    stage.until_ready("compute/orders").await;
    assert_eq!(stage.count("PATCH"), 1);
}
