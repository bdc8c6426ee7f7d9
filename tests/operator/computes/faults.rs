//! A platform that fails: what is tried again, when, and what is said meanwhile.

use std::time::{Duration, Instant};

use dbplane_simulator::{self as simulator, Options};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{created, delete, message, polls, writes};
use crate::stage::{ADMIN, Stage, compute};

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_found_and_not_made_twice() {
    let stage = Stage::new("create-lost").await;
    stage.fault(json!({"method": "POST", "kind": "lose_answer"}));
    stage.apply(&compute("orders", "br-main-42", "  size: {fixed: 2}\n")).await;
    let ready = stage.until_ready("compute/orders").await;
    let computes = stage.computes().await;
    assert_eq!((computes.len(), stage.count("POST")), (1, 1));
    assert_eq!(ready["status"]["computeID"], computes[0]["id"]);
    assert!(ready["metadata"]["annotations"]["dbplane.dev/create-intent"].is_null(), "{ready}");
    assert!(stage.event("compute/orders", "Linked").await.contains("interrupted create"));
}

#[tokio::test]
async fn a_replica_whose_answer_was_cut_is_distinguished_from_its_siblings() {
    let stage = Stage::new("replica-lost").await;
    let others = [
        super::by_hand(&stage, "br-main-42", "read_only").await,
        super::by_hand(&stage, "br-main-42", "read_only").await,
    ];
    stage.fault(json!({"method": "POST", "kind": "cut_body"}));
    stage.apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
    let ready = stage.until_ready("compute/reader").await;
    assert!(others.iter().all(|other| ready["status"]["computeID"] != **other));
    assert_eq!((stage.computes().await.len(), stage.count("POST")), (3, 1));
}

#[tokio::test]
async fn a_busy_platform_is_asked_again() {
    let stage = Stage::new("busy").await;
    stage.fault(json!({"method": "POST", "status": 423, "times": 2}));
    stage.fault(json!({"method": "DELETE", "status": 423}));
    stage.fault(json!({"method": "DELETE", "status": 502, "body": "<html>bad gateway</html>"}));
    stage.fault(json!({"method": "DELETE", "kind": "lose_answer"}));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_ready("compute/orders").await;
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (3, 1));
    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    assert_eq!(stage.count("DELETE"), 3, "the list shows that the last was carried out");
    assert!(stage.computes().await.is_empty());
}

#[tokio::test]
async fn the_time_that_the_platform_asks_for_is_obeyed() {
    let stage = Stage::new("throttled").await;
    // The account has made its own calls before.
    stage.until_ready("account/prod").await;
    stage.fault(json!({"method": "POST", "status": 429, "retry_after": 4}));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.wait_until("the first try", async || stage.count("POST") == 1).await;
    let (refused, asked) = (Instant::now(), stage.requests().len());
    stage.wait_until("the next request", async || stage.requests().len() > asked).await;
    assert!(refused.elapsed() >= Duration::from_millis(3500), "after {:?}", refused.elapsed());
    stage.until_ready("compute/orders").await;
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 1));
}

#[tokio::test]
async fn a_platform_that_is_not_there_yet_is_waited_for() {
    let stage = Stage::bare("late").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    stage.secret("platform-api-key", ADMIN).await;
    let url = format!("http://{address}/api/v2");
    stage.account_at(&url).await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    let waiting = stage.until_condition("compute/orders", "Ready", "Unknown", "PlatformUnreachable").await;
    assert!(message(&waiting, "Ready").contains("cannot be reached"), "{waiting}");
    let platform =
        simulator::serve(TcpListener::bind(address).await.unwrap(), Options::new(Stage::world())).await.unwrap();
    stage.until_ready("compute/orders").await;
    platform.stop().await;
}

#[tokio::test]
async fn a_key_that_is_revoked_stops_every_call_until_there_is_another() {
    let (stage, _) = created("compute-revoked", "  size: {fixed: 1}\n").await;
    let keys = stage.keys().await;
    let key = keys
        .iter()
        .find(|key| key["name"] == "laptop" && key["owner"] == "user-ada")
        .unwrap_or_else(|| panic!("{keys:?}"));
    stage.console(Method::POST, &format!("/api_keys/{}/revoke", key["id"]), json!({})).await;
    let told = stage.until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady").await;
    assert!(message(&told, "Ready").contains("401"), "{told}");
    let asked = stage.requests().len();
    stage.patch("compute/orders", json!({"size": {"fixed": 2}})).await;
    stage.until("compute/orders", "seen", |seen| seen["status"]["observedGeneration"] == 2).await;
    assert_eq!(stage.requests().len(), asked, "{:?}", stage.requests());

    let form = json!({"key_name": "another"});
    let minted = stage.console(Method::POST, "/users/user-ada/api_keys", form).await;
    stage.secret("platform-api-key", token(&minted)).await;
    stage.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    stage.until_ready("compute/orders").await;
    assert_eq!(writes(&stage).len(), 2);
    polls(&stage, 1).await;
}

fn token(minted: &Value) -> &str {
    minted["key"].as_str().unwrap_or_else(|| panic!("{minted}"))
}
