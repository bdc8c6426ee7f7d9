//! The connection Secret.

use super::{created, delete};
use crate::fixture::{Fixture, compute};

const DECLARED: &str = "  connection: {secretName: orders-db}\n";

async fn entry(fixture: &Fixture, key: &str) -> String {
    fixture.entry("orders-db", key).await.unwrap_or_default()
}

#[tokio::test]
async fn it_holds_what_a_client_needs_and_goes_with_its_owner() {
    let (fixture, id) = created("connection", DECLARED).await;
    let seen = fixture.get("compute/orders").await.unwrap();
    let secret = fixture.until("secret/orders-db", "written", |secret| !secret.is_null()).await;
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], seen["metadata"]["uid"]);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(entry(&fixture, "host").await, seen["status"]["host"].as_str().unwrap());
    assert_eq!((entry(&fixture, "port").await, entry(&fixture, "sslmode").await), ("5432".into(), "require".into()));
    assert_eq!(entry(&fixture, "computeID").await, id);

    delete(&fixture, "secret/orders-db").await;
    let before = secret["metadata"]["uid"].clone();
    let again = |secret: &serde_json::Value| !secret.is_null() && secret["metadata"]["uid"] != before;
    fixture.until("secret/orders-db", "written again", again).await;
    fixture
        .kubectl(&["patch", "secret", "orders-db", "-p", r#"{"stringData": {"host": "elsewhere", "mine": "kept"}}"#])
        .await;
    let host = seen["status"]["host"].as_str().unwrap();
    fixture.wait_until("the host to be restored", async || entry(&fixture, "host").await == host).await;
    assert_eq!(entry(&fixture, "mine").await, "kept");

    delete(&fixture, "compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.until_gone("secret/orders-db").await;
}

#[tokio::test]
async fn a_secret_that_is_named_no_more_is_reported_until_it_is_deleted() {
    let (fixture, _) = created("connection-renamed", DECLARED).await;
    let names = |seen: &serde_json::Value| {
        let status = &seen["status"];
        (status["connectionSecret"].clone(), status["unusedSecrets"].clone())
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let first = (json("\"orders-db\""), serde_json::Value::Null);
    fixture.until("compute/orders", "with its Secret", |seen| names(seen) == first).await;
    fixture.patch("compute/orders", serde_json::json!({"connection": {"secretName": "orders-conn"}})).await;
    let second = (json("\"orders-conn\""), json("[\"orders-db\"]"));
    fixture.until("compute/orders", "with another Secret", |seen| names(seen) == second).await;
    let text = fixture.event("compute/orders", "SecretUnused").await;
    assert!(text.ends_with("kubectl -n connection-renamed delete secret orders-db"), "{text}");
    delete(&fixture, "secret/orders-db").await;
    let third = (json("\"orders-conn\""), serde_json::Value::Null);
    fixture.until("compute/orders", "without the former one", |seen| names(seen) == third).await;
    assert!(fixture.get("secret/orders-db").await.is_none());
    // Without any, it is the same.
    fixture.patch("compute/orders", serde_json::json!({"connection": null})).await;
    let none = (serde_json::Value::Null, json("[\"orders-conn\"]"));
    fixture.until("compute/orders", "without a connection Secret", |seen| names(seen) == none).await;
}

#[tokio::test]
async fn a_secret_of_somebody_else_is_never_written_over() {
    let fixture = Fixture::new("foreign").await;
    fixture.secret("orders-db", "theirs").await;
    let before = fixture.get("secret/orders-db").await.unwrap();
    fixture.apply(&compute("orders", "br-main-42", DECLARED)).await;
    fixture.until_condition("compute/orders", "Stalled", "True", "SecretNotOurs").await;
    // Its compute is kept as declared all the same.
    fixture.patch("compute/orders", serde_json::json!({"size": {"fixed": 2}})).await;
    fixture.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    assert_eq!(fixture.get("secret/orders-db").await.unwrap(), before);
    delete(&fixture, "secret/orders-db").await;
    fixture.until_ready("compute/orders").await;
    fixture
        .until("secret/orders-db", "ours", |secret| secret["metadata"]["ownerReferences"][0]["name"] == "orders")
        .await;
}
