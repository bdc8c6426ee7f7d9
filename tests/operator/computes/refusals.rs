//! What the platform refuses or ignores: told in its own words, tried again slowly, and at once with another spec.

use reqwest::Method;
use serde_json::json;

use super::{by_hand, create, created, delete, line, message, polls, writes};
use crate::stage::{ORGANIZATION_KEY, Stage, compute};

#[tokio::test]
async fn a_create_that_is_refused_is_told_and_made_with_another_spec() {
    // Only the public API refuses so wide a range.
    let stage = Stage::public("create-refused").await;
    stage.apply(&compute("orders", "br-main-42", "  size: {autoscaling: {min: 0.25, max: 16}}\n")).await;
    let stalled = stage.until_condition("compute/orders", "Stalled", "True", "Refused").await;
    assert!(message(&stalled, "Stalled").contains("wider than 8 CU"), "{stalled}");
    polls(&stage, 2).await;
    assert_eq!(writes(&stage).len(), 1, "it is tried again slowly");
    let still = stage.get("compute/orders").await.unwrap();
    assert_eq!(message(&still, "Stalled"), message(&stalled, "Stalled"));
    stage.patch("compute/orders", json!({"size": {"autoscaling": {"min": 0.25, "max": 8}}})).await;
    stage.until_ready("compute/orders").await;
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 1));
}

#[tokio::test]
async fn a_change_that_is_refused_is_told_and_leaves_the_compute_as_it_is() {
    // Only in the public API may a free compute be resized.
    let stage = Stage::public("ceiling").await;
    create(&stage, "  size: {fixed: 1}\n").await;
    stage.console(Method::PATCH, "/organizations/org-cool-darkness-1", json!({"plan": "free"})).await;
    stage.patch("compute/orders", json!({"size": {"fixed": 8}})).await;
    let stalled = stage.until_condition("compute/orders", "Stalled", "True", "Refused").await;
    assert!(message(&stalled, "Stalled").contains("not available on the free plan"), "{stalled}");
    assert_eq!((&stalled["status"]["size"], &stalled["status"]["observedGeneration"]), (&json!("1"), &json!(2)));
    polls(&stage, 2).await;
    assert_eq!(stage.count("PATCH"), 1);
    stage.patch("compute/orders", json!({"size": {"fixed": 2}})).await;
    stage.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    stage.until_ready("compute/orders").await;
    assert_eq!(stage.count("PATCH"), 2);
}

#[tokio::test]
async fn a_delete_that_is_refused_keeps_the_resource_until_it_is_allowed() {
    let (stage, _) = created("protected", "").await;
    let body = json!({"code": "", "message": "endpoints of a protected branch cannot be deleted"});
    stage.fault(json!({"method": "DELETE", "status": 422, "times": 1000, "body": body}));
    delete(&stage, "compute/orders").await;
    let stalled = stage.until_condition("compute/orders", "Stalled", "True", "Refused").await;
    let said = message(&stalled, "Stalled");
    assert!(said.contains("protected branch") && said.contains("Orphan"), "{said}");
    polls(&stage, 2).await;
    assert_eq!(stage.count("DELETE"), 1);
    stage.platform.clear_faults();
    // A spec that changes has it tried again at once.
    stage.patch("compute/orders", json!({"restartToken": "again"})).await;
    stage.until_gone("compute/orders").await;
    assert!(stage.computes().await.is_empty());
}

#[tokio::test]
async fn a_compute_that_may_not_be_deleted_can_be_left() {
    let (stage, _) = created("left", "").await;
    stage.fault(json!({"method": "DELETE", "status": 422, "times": 1000}));
    delete(&stage, "compute/orders").await;
    stage.until_condition("compute/orders", "Stalled", "True", "Refused").await;
    stage.patch("compute/orders", json!({"deletion": "Orphan"})).await;
    stage.until_gone("compute/orders").await;
    assert_eq!((stage.count("DELETE"), stage.computes().await.len()), (1, 1));
}

#[tokio::test]
async fn a_setting_that_the_platform_ignores_is_told_and_sent_once() {
    let stage = Stage::minimal("ignored").await;
    create(&stage, "  scaleToZero: {after: 10m}\n").await;
    let seen = stage.until_condition("compute/orders", "Synced", "False", "SettingNotApplied").await;
    let said = message(&seen, "Synced");
    assert!(said.contains("scaleToZero is not reported, declared is after 600s"), "{said}");
    polls(&stage, 2).await;
    assert_eq!((stage.count("POST"), stage.count("PATCH")), (1, 1));
    // Everything else goes on.
    stage.patch("compute/orders", json!({"size": {"fixed": 2}, "restartToken": "now"})).await;
    stage.until("compute/orders", "resized", |seen| seen["status"]["size"] == "2").await;
    stage.until("compute/orders", "restarted", |seen| seen["status"]["restart"]["token"] == "now").await;
    assert_eq!((stage.count("POST"), stage.count("PATCH")), (2, 2));
    stage.until_condition("compute/orders", "Synced", "False", "SettingNotApplied").await;
}

#[tokio::test]
async fn what_was_refused_to_one_key_is_tried_at_once_with_another() {
    let stage = Stage::new("other-key").await;
    let body = json!({"message": "not allowed for this key"});
    stage.fault(json!({"method": "POST", "status": 403, "times": 1000, "body": body}));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    let stalled = stage.until_condition("compute/orders", "Stalled", "True", "Forbidden").await;
    assert!(message(&stalled, "Stalled").contains("not allowed for this key"), "{stalled}");
    stage.platform.clear_faults();
    stage.secret("platform-api-key", ORGANIZATION_KEY).await;
    stage.until_ready("compute/orders").await;
    assert_eq!(stage.count("POST"), 2);
}

#[tokio::test]
async fn a_replica_moves_beside_no_primary_but_in_the_public_api() {
    for (stage, allowed) in [(Stage::new("beside").await, false), (Stage::public("beside-public").await, true)] {
        by_hand(&stage, "br-dev-7", "read_write").await;
        stage.apply(&compute("orders", "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
        let ready = stage.until_ready("compute/orders").await;
        let id = ready["status"]["computeID"].as_str().unwrap();
        stage.patch("compute/orders", json!({"branchID": "br-dev-7"})).await;
        if allowed {
            stage.wait_until("the move", async || line(&stage, id).await["branch_id"] == "br-dev-7").await;
            stage.until_ready("compute/orders").await;
            continue;
        }
        let stalled = stage.until_condition("compute/orders", "Stalled", "True", "Refused").await;
        assert!(message(&stalled, "Stalled").contains("already exists"), "{stalled}");
        stage.patch("compute/orders", json!({"branchID": "br-main-42"})).await;
        stage.until_ready("compute/orders").await;
    }
}
