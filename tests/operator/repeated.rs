//! Creates that a proxy sends twice; it returns the second answer.

use serde_json::json;

use crate::computes::{by_hand, message, polls};
use crate::creates::{id, reader};
use crate::fixture::{Fixture, condition, key};

const BRANCH: &str = "br-main-42";

/// Creates a replica twice, and returns its own compute and the second one that the status lists.
async fn repeated(fixture: &Fixture) -> (String, String) {
    by_hand(fixture, BRANCH, "read_write").await;
    fixture.fault(json!({"method": "POST", "path": "/endpoints$", "kind": "repeat"}));
    fixture.apply(&reader("reader", "")).await;
    let seen = fixture
        .until_condition("compute/reader", "Synced", "False", "StrayCompute")
        .await;
    let own = id(&seen);
    let computes = fixture.computes().await;
    let mut others = computes
        .iter()
        .filter(|line| line["type"] == "Read Replica" && line["id"] != *own);
    let other = others.next().unwrap()["id"].as_str().unwrap().to_owned();
    assert!(message(&seen, "Synced").contains(&other), "{seen}");
    assert!(
        fixture
            .event("compute/reader", "StrayCompute")
            .await
            .contains(&other)
    );
    assert_eq!(
        (fixture.count("POST"), computes.len(), others.next()),
        (1, 3, None)
    );
    (own, other)
}

#[tokio::test]
async fn the_second_compute_of_a_repeated_create_is_reported_and_deleted_with_the_resource() {
    let fixture = Fixture::new("repeated").await;
    let (own, other) = repeated(&fixture).await;
    polls(&fixture, 2).await;
    let seen = fixture.until_ready("compute/reader").await;
    assert_eq!((id(&seen), fixture.count("DELETE")), (own, 0));
    fixture.delete("compute/reader").await;
    fixture.until_gone("compute/reader").await;
    let left = fixture.computes().await;
    assert!(left.len() == 1 && left[0]["id"] != *other, "{left:?}");
}

/// The second compute belongs to the resource that imports it.
#[tokio::test]
async fn the_second_compute_of_a_repeated_create_can_be_imported() {
    let fixture = Fixture::new("repeated-imported").await;
    let (_, other) = repeated(&fixture).await;
    fixture
        .apply(&reader("second", &format!("  computeID: {other}\n")))
        .await;
    assert_eq!(id(&fixture.until_ready("compute/second").await), other);
    fixture
        .until_condition("compute/reader", "Synced", "True", "InSync")
        .await;
    fixture.delete("compute/reader").await;
    fixture.until_gone("compute/reader").await;
    let left = fixture.computes().await;
    assert!(
        left.len() == 2 && left.iter().any(|line| line["id"] == *other),
        "{left:?}"
    );
}

#[tokio::test]
async fn without_marks_the_second_compute_of_a_repeated_create_is_reported_and_kept() {
    let fixture = Fixture::minimal("repeated-minimal").await;
    let (own, other) = repeated(&fixture).await;
    polls(&fixture, 2).await;
    assert_eq!(id(&fixture.until_ready("compute/reader").await), own);
    fixture.delete("compute/reader").await;
    fixture.until_gone("compute/reader").await;
    let left = fixture.computes().await;
    assert!(
        left.len() == 2 && left.iter().any(|line| line["id"] == *other),
        "{left:?}"
    );
}

#[tokio::test]
async fn the_second_key_of_a_repeated_creation_is_revoked() {
    let fixture = Fixture::new("repeated-key").await;
    fixture.fault(json!({"method": "POST", "path": "/api_keys$", "kind": "repeat"}));
    fixture.apply(&key("ci", "")).await;
    let seen = fixture
        .until("projectkey/ci", "ready", |seen| {
            condition(seen, "Ready").is_some_and(|ready| ready["status"] == "True")
        })
        .await;
    let own = seen["status"]["keyID"].clone();
    let live = async || {
        let keys = fixture.keys().await;
        let mine = keys
            .iter()
            .filter(|key| key["name"] == seen["status"]["keyName"] && key["revoked"] == false);
        mine.map(|key| key["id"].clone()).collect::<Vec<_>>()
    };
    fixture
        .wait_until("the other key to be revoked", async || {
            live().await == [own.clone()]
        })
        .await;
    assert_eq!(
        fixture.get("projectkey/ci").await.unwrap()["status"]["keyID"],
        own
    );
}
