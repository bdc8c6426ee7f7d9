//! Changes that the platform refuses or ignores: reported with its message, retried slowly, and at
//! once after a spec change.

use reqwest::Method;
use serde_json::json;

use super::{by_hand, create, created, is_restarted, line, message, polls, writes};
use crate::fixture::{Fixture, ORGANIZATION_KEY, compute, condition};

#[tokio::test]
async fn a_refused_create_is_reported_and_retried_with_another_spec() {
    // Only the public API refuses such a wide range.
    let fixture = Fixture::public("create-refused").await;
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            "  size: {autoscaling: {min: 0.25, max: 16}}\n",
        ))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "Refused")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("wider than 8 CU"),
        "{stalled}"
    );
    polls(&fixture, 2).await;
    assert_eq!(writes(&fixture).len(), 1, "it is tried again slowly");
    let still = fixture.get("compute/orders").await.unwrap();
    assert_eq!(message(&still, "Stalled"), message(&stalled, "Stalled"));
    fixture
        .patch(
            "compute/orders",
            json!({"size": {"autoscaling": {"min": 0.25, "max": 8}}}),
        )
        .await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 1)
    );
}

#[tokio::test]
async fn a_refused_change_is_reported_and_the_compute_is_unchanged() {
    // Only the public API lets users of the Free plan resize a compute.
    let fixture = Fixture::public("ceiling").await;
    create(&fixture, "  size: {fixed: 1}\n").await;
    fixture
        .console(
            Method::PATCH,
            "/organizations/org-cool-darkness-1",
            json!({"plan": "free"}),
        )
        .await;
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 8}}))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "Refused")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("not available on the free plan"),
        "{stalled}"
    );
    for (kind, status, reason) in [
        ("Ready", "True", "Available"),
        ("Synced", "False", "Refused"),
    ] {
        let condition = condition(&stalled, kind).unwrap();
        assert!(
            condition["status"] == status && condition["reason"] == reason,
            "{stalled}"
        );
    }
    assert!(
        fixture
            .event("compute/orders", "Refused")
            .await
            .contains("not available on the free plan")
    );
    assert_eq!(
        (
            &stalled["status"]["size"],
            &stalled["status"]["observedGeneration"]
        ),
        (&json!("1"), &json!(2))
    );
    polls(&fixture, 2).await;
    assert_eq!(fixture.count("PATCH"), 1);
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(fixture.count("PATCH"), 2);
}

#[tokio::test]
async fn a_refused_delete_keeps_the_resource_until_it_is_allowed() {
    let (fixture, _) = created("protected", "").await;
    let body = json!({"code": "", "message": "endpoints of a protected branch cannot be deleted"});
    fixture.fault(json!({"method": "DELETE", "status": 422, "times": 1000, "body": body}));
    fixture.delete("compute/orders").await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "Refused")
        .await;
    let text = message(&stalled, "Stalled");
    assert!(
        text.contains("protected branch") && text.contains("Orphan"),
        "{text}"
    );
    polls(&fixture, 2).await;
    assert_eq!(fixture.count("DELETE"), 1);
    fixture.platform.clear_faults();
    // A changed spec triggers a retry at once.
    fixture
        .patch("compute/orders", json!({"restartToken": "again"}))
        .await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
}

#[tokio::test]
async fn a_compute_that_may_not_be_deleted_can_be_orphaned() {
    let (fixture, _) = created("left", "").await;
    fixture.fault(json!({"method": "DELETE", "status": 422, "times": 1000}));
    fixture.delete("compute/orders").await;
    fixture
        .until_condition("compute/orders", "Stalled", "True", "Refused")
        .await;
    fixture
        .patch("compute/orders", json!({"deletion": "Orphan"}))
        .await;
    fixture.until_gone("compute/orders").await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (1, 1)
    );
}

#[tokio::test]
async fn a_setting_that_the_platform_ignores_is_reported_and_sent_once() {
    let fixture = Fixture::minimal("ignored").await;
    create(&fixture, "  scaleToZero: {after: 10m}\n").await;
    let seen = fixture
        .until_condition("compute/orders", "Synced", "False", "SettingNotApplied")
        .await;
    let text = message(&seen, "Synced");
    assert!(
        text.contains("scaleToZero is not reported, declared is after 600s"),
        "{text}"
    );
    polls(&fixture, 2).await;
    assert_eq!((fixture.count("POST"), fixture.count("PATCH")), (1, 1));
    // All other work continues.
    fixture
        .patch(
            "compute/orders",
            json!({"size": {"fixed": 2}, "restartToken": "now"}),
        )
        .await;
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    fixture
        .until("compute/orders", "restarted", |seen| {
            is_restarted(seen, "now")
        })
        .await;
    // The new size includes a restart.
    assert_eq!((fixture.count("POST"), fixture.count("PATCH")), (1, 2));
    fixture
        .until_condition("compute/orders", "Synced", "False", "SettingNotApplied")
        .await;
}

#[tokio::test]
async fn a_call_refused_to_one_key_is_retried_at_once_with_another() {
    let fixture = Fixture::new("other-key").await;
    let body = json!({"message": "not allowed for this key"});
    fixture.fault(json!({"method": "POST", "status": 403, "times": 1000, "body": body}));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "Forbidden")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("not allowed for this key"),
        "{stalled}"
    );
    fixture.platform.clear_faults();
    fixture.secret("platform-api-key", ORGANIZATION_KEY).await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(fixture.count("POST"), 2);
}

#[tokio::test]
async fn a_replica_moves_to_a_branch_without_a_primary_only_in_the_public_api() {
    for (fixture, allowed) in [
        (Fixture::new("beside").await, false),
        (Fixture::public("beside-public").await, true),
    ] {
        by_hand(&fixture, "br-dev-7", "read_write").await;
        fixture
            .apply(&compute("orders", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
            .await;
        let ready = fixture.until_ready("compute/orders").await;
        let id = ready["status"]["computeID"].as_str().unwrap();
        fixture
            .patch("compute/orders", json!({"branchID": "br-dev-7"}))
            .await;
        if allowed {
            fixture
                .wait_until("the move", async || {
                    line(&fixture, id).await["branch_id"] == "br-dev-7"
                })
                .await;
            fixture.until_ready("compute/orders").await;
            continue;
        }
        let stalled = fixture
            .until_condition("compute/orders", "Stalled", "True", "Refused")
            .await;
        assert!(
            message(&stalled, "Stalled").contains("already exists"),
            "{stalled}"
        );
        fixture
            .patch("compute/orders", json!({"branchID": "br-main-42"}))
            .await;
        fixture.until_ready("compute/orders").await;
    }
}
