//! Existing computes: rejected, adopted, imported, observed, orphaned; and two resources that claim
//! the same one.

use dbplane::decide::names::RECORD;
use dbplane::decide::seal::{ObjectKey, seal};
use reqwest::Method;
use serde_json::{Value, json};

use super::{by_hand, created, line, message, polls, writes};
use crate::fixture::{Fixture, compute, condition};

#[tokio::test]
async fn an_existing_primary_is_not_changed_until_the_spec_adopts_it() {
    let fixture = Fixture::new("refuse").await;
    let id = by_hand(&fixture, "br-main-42", "read_write").await;
    let before = line(&fixture, &id).await["size"].clone();
    fixture
        .apply(&compute("orders", "br-main-42", "  size: {fixed: 4}\n"))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "PrimaryExists")
        .await;
    assert!(message(&stalled, "Stalled").contains(&id), "{stalled}");
    polls(&fixture, 2).await;
    assert_eq!(line(&fixture, &id).await["size"], before);
    assert_eq!(writes(&fixture).len(), 0);

    fixture
        .patch("compute/orders", json!({"existing": "Adopt"}))
        .await;
    let ready = fixture
        .until("compute/orders", "of the declared size", |seen| {
            seen["status"]["size"] == "4"
        })
        .await;
    assert_eq!(ready["status"]["computeID"], *id);
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    assert_eq!(
        (
            fixture.count("POST"),
            fixture.count("PATCH"),
            fixture.computes().await.len()
        ),
        (0, 1, 1)
    );
}

#[tokio::test]
async fn a_primary_created_since_the_last_poll_is_refused_by_the_platform() {
    // The first compute shows that the platform has names, the second that it keeps them. Later
    // creates need no list of their own.
    let (fixture, _) = created("since", "").await;
    fixture
        .apply(&compute("reports", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    fixture.until_ready("compute/reports").await;
    fixture.fault(json!({"method": "GET", "path": "/endpoints$", "delay_ms": 4000, "times": 1000}));
    let id = by_hand(&fixture, "br-dev-7", "read_write").await;
    fixture.apply(&compute("late", "br-dev-7", "")).await;
    fixture
        .wait_until("the create to be refused", async || {
            fixture.count("POST") == 3
        })
        .await;
    fixture.platform.clear_faults();
    let stalled = fixture
        .until_condition("compute/late", "Stalled", "True", "PrimaryExists")
        .await;
    assert!(message(&stalled, "Stalled").contains(&id), "{stalled}");
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (3, 3)
    );
    fixture
        .patch("compute/late", json!({"existing": "Adopt"}))
        .await;
    let ready = fixture.until_ready("compute/late").await;
    assert_eq!(ready["status"]["computeID"], *id);
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (3, 3)
    );
}

#[tokio::test]
async fn a_deleted_primary_is_replaced() {
    let fixture = Fixture::new("room").await;
    let id = by_hand(&fixture, "br-main-42", "read_write").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .until_condition("compute/orders", "Stalled", "True", "PrimaryExists")
        .await;
    fixture
        .console(Method::DELETE, &format!("/computes/{id}"), json!({}))
        .await;
    let ready = fixture.until_ready("compute/orders").await;
    assert_ne!(ready["status"]["computeID"], *id);
    assert_eq!(fixture.count("POST"), 1);
}

#[tokio::test]
async fn an_imported_compute_is_moved_and_kept_when_orphaned() {
    let fixture = Fixture::new("import").await;
    let id = by_hand(&fixture, "br-dev-7", "read_write").await;
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            &format!("  computeID: {id}\n  deletion: Orphan\n"),
        ))
        .await;
    let synced = fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    assert_eq!(synced["status"]["computeID"], *id);
    let shown = line(&fixture, &id).await["branch_id"].clone();
    assert_eq!(shown, "br-main-42", "{synced} {:?}", fixture.requests());
    assert_eq!((fixture.count("POST"), fixture.count("PATCH")), (0, 1));
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    line(&fixture, &id).await;
    assert_eq!(fixture.count("DELETE"), 0);
}

#[tokio::test]
async fn an_observed_compute_is_reported_and_never_changed() {
    let fixture = Fixture::new("observe").await;
    let id = by_hand(&fixture, "br-main-42", "read_write").await;
    let more = "  management: Observe\n  size: {fixed: 4}\n  restartToken: now\n";
    fixture.apply(&compute("orders", "br-main-42", more)).await;
    let drifted = fixture
        .until_condition("compute/orders", "Synced", "False", "Drifted")
        .await;
    assert_eq!(drifted["status"]["computeID"], *id);
    assert!(
        message(&drifted, "Synced").contains("declared is 4"),
        "{drifted}"
    );
    fixture
        .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
        .await;
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    line(&fixture, &id).await;
    assert_eq!(writes(&fixture).len(), 0);
}

pub fn resize(cu: u32) -> serde_json::Value {
    json!({"autoscaling_limit_min_cu": cu, "autoscaling_limit_max_cu": cu})
}

#[tokio::test]
async fn a_paused_resource_is_not_reconciled_until_it_is_resumed() {
    let fixture = Fixture::new("pause").await;
    let paused = "metadata: {name: orders, annotations: {dbplane.dev/paused: \"true\"}}";
    fixture
        .apply(&compute("orders", "br-main-42", "").replace("metadata: {name: orders}", paused))
        .await;
    let seen = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "Paused")
        .await;
    polls(&fixture, 1).await;
    assert!(seen["metadata"]["finalizers"].is_null(), "{seen}");
    assert_eq!(writes(&fixture).len(), 0);
    fixture
        .annotate("compute/orders", "dbplane.dev/paused-")
        .await;
    fixture.until_ready("compute/orders").await;

    fixture
        .annotate("compute/orders", "dbplane.dev/paused=true")
        .await;
    let seen = fixture
        .until_condition("compute/orders", "Paused", "True", "Paused")
        .await;
    assert_eq!(
        condition(&seen, "Ready").unwrap()["status"],
        "True",
        "the compute serves as before: {seen}"
    );
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    polls(&fixture, 1).await;
    let seen = fixture.get("compute/orders").await.unwrap();
    let [generation, observed] = [
        &seen["metadata"]["generation"],
        &seen["status"]["observedGeneration"],
    ];
    assert!(
        generation.as_i64() > observed.as_i64(),
        "what is declared meanwhile is not called done: {seen}"
    );
    fixture.delete("compute/orders").await;
    fixture
        .until("compute/orders", "waiting", |seen| {
            message(seen, "Paused").contains("the deletion waits")
        })
        .await;
    polls(&fixture, 2).await;
    assert_eq!(writes(&fixture).len(), 1, "the create alone");
    fixture
        .annotate("compute/orders", "dbplane.dev/paused-")
        .await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
}

#[tokio::test]
async fn the_older_of_two_resources_gets_the_primary_and_the_other_takes_over() {
    let (fixture, id) = created("rivals", "").await;
    fixture
        .apply(&compute("rival", "br-main-42", "  existing: Adopt\n"))
        .await;
    let stalled = fixture
        .until_condition("compute/rival", "Stalled", "True", "ClaimedByAnother")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("Compute rivals/orders"),
        "{stalled}"
    );
    assert_eq!(writes(&fixture).len(), 1);
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    let ready = fixture.until_ready("compute/rival").await;
    assert_ne!(ready["status"]["computeID"], *id);
    assert_eq!(
        (
            fixture.count("POST"),
            fixture.count("DELETE"),
            fixture.computes().await.len()
        ),
        (2, 1, 1)
    );
}

#[tokio::test]
async fn a_restored_backup_of_a_resource_does_not_take_the_compute() {
    let (fixture, id) = created("copy", "").await;
    let mut copy = fixture.get("compute/orders").await.unwrap();
    let metadata = copy["metadata"].clone();
    copy["metadata"] = json!({
        "name": "copy", "annotations": metadata["annotations"], "finalizers": metadata["finalizers"],
    });
    fixture.apply(&copy.to_string()).await;
    let stalled = fixture
        .until_condition("compute/copy", "Stalled", "True", "BindingConflict")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("was copied from copy/orders"),
        "{stalled}"
    );
    fixture.delete("compute/copy").await;
    fixture.until_gone("compute/copy").await;
    line(&fixture, &id).await;
    assert_eq!(fixture.count("DELETE"), 0);
}

/// After a downgrade, the older version must not touch records that it cannot read.
#[tokio::test]
async fn a_record_of_a_newer_version_is_unchanged_until_that_version_is_back() {
    let (fixture, id) = created("newer", "").await;
    let annotated = async |text: &str| {
        let patch = json!({"metadata": {"annotations": {RECORD: text}}}).to_string();
        fixture
            .kubectl(&["patch", "compute/orders", "--type=merge", "--patch", &patch])
            .await;
    };
    let before =
        fixture.get("compute/orders").await.unwrap()["metadata"]["annotations"][RECORD].clone();
    let mut newer: Value = serde_json::from_str(before.as_str().unwrap()).unwrap();
    newer["form"] = json!(2);
    let newer = seal(
        RECORD,
        &newer,
        ObjectKey {
            namespace: fixture.namespace(),
            name: "orders",
        },
    );
    let calls = writes(&fixture).len();
    annotated(&newer).await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "BindingConflict")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("written by a newer version of dbplane"),
        "{stalled}"
    );

    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture.delete("compute/orders").await;
    polls(&fixture, 3).await;
    let seen = fixture.get("compute/orders").await.unwrap();
    assert_eq!(seen["metadata"]["annotations"][RECORD], newer.as_str());
    assert_eq!(writes(&fixture).len(), calls);
    line(&fixture, &id).await;

    annotated(before.as_str().unwrap()).await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
}

#[tokio::test]
async fn a_resource_restored_without_its_status_keeps_its_compute() {
    let (fixture, id) = created("restore", "").await;
    let mut backup = fixture.get("compute/orders").await.unwrap();
    let metadata = backup["metadata"].clone();
    backup["metadata"] = json!({
        "name": "orders", "annotations": metadata["annotations"], "finalizers": metadata["finalizers"],
    });
    backup["status"] = json!({});
    fixture
        .patch("compute/orders", json!({"deletion": "Orphan"}))
        .await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.apply(&backup.to_string()).await;
    let ready = fixture.until_ready("compute/orders").await;
    assert_eq!(ready["status"]["computeID"], *id);
    assert_eq!(writes(&fixture).len(), 1);
}

#[tokio::test]
async fn a_second_resource_of_the_same_moment_does_not_create_again() {
    let fixture = Fixture::new("race").await;
    // The slow first create ensures that the second resource is decided while it is in progress.
    fixture.fault(json!({"method": "POST", "kind": "delay", "delay_ms": 1500}));
    let both = format!(
        "{}---\n{}",
        compute("one", "br-main-42", ""),
        compute("two", "br-main-42", "")
    );
    fixture.apply(&both).await;
    // The first recorded resource gets the branch.
    let is_ready = async |name: &str| {
        let seen = fixture.get(&format!("compute/{name}")).await.unwrap();
        condition(&seen, "Ready").is_some_and(|ready| ready["status"] == "True")
    };
    fixture
        .wait_until("one of the two to be ready", async || {
            is_ready("one").await || is_ready("two").await
        })
        .await;
    let (first, second) = if is_ready("one").await {
        ("one", "two")
    } else {
        ("two", "one")
    };
    let second = format!("compute/{second}");
    let stalled = fixture
        .until_condition(&second, "Stalled", "True", "ClaimedByAnother")
        .await;
    assert!(
        message(&stalled, "Stalled").contains(&format!("Compute race/{first}")),
        "{stalled}"
    );
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (1, 1)
    );
}
