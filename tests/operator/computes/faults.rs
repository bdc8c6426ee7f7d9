//! Faults of the platform: retries, their timing, and the reports in the meantime.

use std::time::{Duration, Instant};

use dbplane_simulator::{self as simulator, Options};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{created, message, polls, writes};
use crate::fixture::{ADMIN, Fixture, compute, free_address, world};

#[tokio::test]
async fn a_create_with_a_lost_answer_is_found_and_not_repeated() {
    let fixture = Fixture::new("create-lost").await;
    fixture.fault(json!({"method": "POST", "kind": "lose_answer"}));
    fixture
        .apply(&compute("orders", "br-main-42", "  size: {fixed: 2}\n"))
        .await;
    let ready = fixture.until_ready("compute/orders").await;
    let computes = fixture.computes().await;
    assert_eq!((computes.len(), fixture.count("POST")), (1, 1));
    assert_eq!(ready["status"]["computeID"], computes[0]["id"]);
    assert!(
        !ready["status"]["record"]
            .as_str()
            .unwrap()
            .contains("intent"),
        "{ready}"
    );
    assert!(
        fixture
            .event("compute/orders", "Linked")
            .await
            .contains("interrupted create")
    );
}

#[tokio::test]
async fn a_replica_with_a_truncated_answer_is_distinguished_from_its_siblings() {
    let fixture = Fixture::new("replica-lost").await;
    let others = [
        super::by_hand(&fixture, "br-main-42", "read_only").await,
        super::by_hand(&fixture, "br-main-42", "read_only").await,
    ];
    fixture.fault(json!({"method": "POST", "kind": "cut_body"}));
    fixture
        .apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    let ready = fixture.until_ready("compute/reader").await;
    assert!(
        others
            .iter()
            .all(|other| ready["status"]["computeID"] != **other)
    );
    assert_eq!(
        (fixture.computes().await.len(), fixture.count("POST")),
        (3, 1)
    );
}

#[tokio::test]
async fn requests_to_a_busy_platform_are_retried() {
    let fixture = Fixture::new("busy").await;
    fixture.fault(json!({"method": "POST", "status": 423, "times": 2}));
    fixture.fault(json!({"method": "DELETE", "status": 423}));
    fixture.fault(json!({"method": "DELETE", "status": 502, "body": "<html>bad gateway</html>"}));
    fixture.fault(json!({"method": "DELETE", "kind": "lose_answer"}));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (3, 1)
    );
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    assert_eq!(
        fixture.count("DELETE"),
        4,
        "the third was carried out and not answered; the fourth is answered with 404"
    );
    assert!(fixture.computes().await.is_empty());
}

#[tokio::test]
async fn retry_after_of_the_platform_is_respected() {
    let fixture = Fixture::new("throttled").await;
    // Otherwise the fault could hit requests of the account itself.
    fixture.until_ready("account/prod").await;
    fixture.fault(json!({"method": "POST", "status": 429, "retry_after": 4}));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .wait_until("the first try", async || fixture.count("POST") == 1)
        .await;
    let (refused, asked) = (Instant::now(), fixture.requests().len());
    fixture
        .wait_until("the next request", async || {
            fixture.requests().len() > asked
        })
        .await;
    assert!(
        refused.elapsed() >= Duration::from_millis(3500),
        "after {:?}",
        refused.elapsed()
    );
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 1)
    );
}

#[tokio::test]
async fn an_unavailable_platform_is_waited_for() {
    let fixture = Fixture::bare("late").await;
    let address = free_address();
    fixture.secret("platform-api-key", ADMIN).await;
    let url = format!("http://{address}/api/v2");
    fixture.account_at(&url).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let waiting = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "PlatformUnreachable")
        .await;
    assert!(
        message(&waiting, "Ready").contains("cannot be reached"),
        "{waiting}"
    );
    let platform = simulator::serve(
        TcpListener::bind(&address).await.unwrap(),
        Options::new(world(&fixture.project)),
    )
    .await
    .unwrap();
    fixture.until_ready("compute/orders").await;
    platform.stop().await;
}

#[tokio::test]
async fn a_revoked_key_stops_all_calls_until_there_is_another() {
    let (fixture, _) = created("compute-revoked", "  size: {fixed: 1}\n").await;
    let keys = fixture.keys().await;
    let key = keys
        .iter()
        .find(|key| key["name"] == "laptop" && key["owner"] == "user-ada")
        .unwrap_or_else(|| panic!("{keys:?}"));
    fixture
        .console(
            Method::POST,
            &format!("/api_keys/{}/revoke", key["id"]),
            json!({}),
        )
        .await;
    let reported = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady")
        .await;
    assert!(message(&reported, "Ready").contains("401"), "{reported}");
    let asked = fixture.requests().len();
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .until("compute/orders", "seen", |seen| {
            seen["status"]["observedGeneration"] == 2
        })
        .await;
    assert_eq!(fixture.requests().len(), asked, "{:?}", fixture.requests());

    let form = json!({"key_name": "another"});
    let minted = fixture
        .console(Method::POST, "/users/user-ada/api_keys", form)
        .await;
    fixture.secret("platform-api-key", token(&minted)).await;
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(writes(&fixture).len(), 2);
    polls(&fixture, 1).await;
}

fn token(minted: &Value) -> &str {
    minted["key"].as_str().unwrap_or_else(|| panic!("{minted}"))
}
