//! The connection Secret.

use super::{created, delete};
use crate::stage::{Stage, compute};

const DECLARED: &str = "  connection: {secretName: orders-db}\n";

async fn entry(stage: &Stage, key: &str) -> String {
    stage.entry("orders-db", key).await.unwrap_or_default()
}

#[tokio::test]
async fn it_holds_what_a_client_needs_and_goes_with_its_owner() {
    let (stage, id) = created("connection", DECLARED).await;
    let seen = stage.get("compute/orders").await.unwrap();
    let secret = stage.until("secret/orders-db", "written", |secret| !secret.is_null()).await;
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], seen["metadata"]["uid"]);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(entry(&stage, "host").await, seen["status"]["host"].as_str().unwrap());
    assert_eq!((entry(&stage, "port").await, entry(&stage, "sslmode").await), ("5432".into(), "require".into()));
    assert_eq!(entry(&stage, "computeID").await, id);

    delete(&stage, "secret/orders-db").await;
    let before = secret["metadata"]["uid"].clone();
    let again = |secret: &serde_json::Value| !secret.is_null() && secret["metadata"]["uid"] != before;
    stage.until("secret/orders-db", "written again", again).await;
    stage
        .kubectl(&["patch", "secret", "orders-db", "-p", r#"{"stringData": {"host": "elsewhere", "mine": "kept"}}"#])
        .await;
    let host = seen["status"]["host"].as_str().unwrap();
    stage.wait_until("the host to be restored", async || entry(&stage, "host").await == host).await;
    assert_eq!(entry(&stage, "mine").await, "kept");

    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    stage.until_gone("secret/orders-db").await;
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_never_written_over() {
    let stage = Stage::new("foreign").await;
    stage.secret("orders-db", "theirs").await;
    let before = stage.get("secret/orders-db").await.unwrap();
    stage.apply(&compute("orders", "br-main-42", DECLARED)).await;
    stage.until_condition("compute/orders", "Stalled", "True", "SecretNotOurs").await;
    // Its compute is kept as declared all the same.
    stage.patch("compute/orders", serde_json::json!({"size": {"fixed": 2}})).await;
    stage.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    assert_eq!(stage.get("secret/orders-db").await.unwrap(), before);
    delete(&stage, "secret/orders-db").await;
    stage.until_ready("compute/orders").await;
    stage
        .until("secret/orders-db", "ours", |secret| secret["metadata"]["ownerReferences"][0]["name"] == "orders")
        .await;
}
