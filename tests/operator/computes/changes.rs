//! Declared fields: changes, moves, drift correction, and changes that wait for an allowed
//! interruption.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::existing::resize;
use super::{create, created, line, message, polls, writes};
use crate::fixture::Fixture;

async fn resized(fixture: &Fixture, size: &str) {
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == size
        })
        .await;
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn only_changed_fields_are_patched() {
    let (fixture, _) = created("resize", "  size: {fixed: 1}\n").await;
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    resized(&fixture, "2").await;
    let seen = fixture.get("compute/orders").await.unwrap();
    assert_eq!(seen["status"]["observedGeneration"], 2);
    assert_eq!(fixture.count("PATCH"), 1);
}

#[tokio::test]
async fn settings_and_disabled_take_effect_on_every_platform() {
    for fixture in [
        Fixture::new("settings").await,
        Fixture::public("settings-public").await,
        Fixture::minimal("settings-minimal").await,
    ] {
        create(
            &fixture,
            "  postgresSettings: {work_mem: 64MB}\n  disabled: true\n",
        )
        .await;
        fixture
            .until_condition("compute/orders", "Synced", "True", "InSync")
            .await;
        let spec = json!({"postgresSettings": {"work_mem": "128MB"}, "disabled": false});
        fixture.patch("compute/orders", spec).await;
        fixture
            .until("compute/orders", "changed", |seen| {
                seen["status"]["observedGeneration"] == 2
            })
            .await;
        fixture
            .until_condition("compute/orders", "Synced", "True", "InSync")
            .await;
        fixture.until_ready("compute/orders").await;
        polls(&fixture, 2).await;
        assert_eq!(
            (fixture.count("POST"), fixture.count("PATCH")),
            (1, 1),
            "{}",
            fixture.namespace
        );
    }
}

#[tokio::test]
async fn a_compute_moves_to_another_branch_and_stays_itself() {
    let (fixture, id) = created("move", "").await;
    fixture
        .patch("compute/orders", json!({"branchID": "br-dev-7"}))
        .await;
    fixture
        .wait_until("the compute to have moved", async || {
            line(&fixture, &id).await["branch_id"] == "br-dev-7"
        })
        .await;
    let synced = fixture
        .until("compute/orders", "moved", |seen| {
            seen["status"]["observedGeneration"] == 2
        })
        .await;
    assert_eq!(synced["status"]["computeID"], *id);
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        (
            fixture.count("POST"),
            fixture.count("PATCH"),
            fixture.computes().await.len()
        ),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn a_change_made_in_the_console_is_corrected_once() {
    let (fixture, id) = created("drift", "  size: {fixed: 1}\n").await;
    fixture
        .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
        .await;
    fixture
        .wait_until("the size to be restored", async || {
            line(&fixture, &id).await["size"] == "1 CU"
        })
        .await;
    resized(&fixture, "1").await;
    polls(&fixture, 2).await;
    assert_eq!(fixture.count("PATCH"), 1);
    let metrics = reqwest::get(&fixture.shared.metrics)
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let series = format!(
        r#"dbplane_drift_corrected_total{{namespace="{}",field="size"}}"#,
        fixture.namespace
    );
    assert!(
        metrics.lines().any(|line| line.starts_with(&series)),
        "{metrics}"
    );
    // Undeclared and ignored fields may be changed outside of dbplane.
    fixture
        .console(
            Method::PATCH,
            &format!("/computes/{id}"),
            json!({"pooler_enabled": true}),
        )
        .await;
    fixture
        .patch("compute/orders", json!({"ignore": ["size"]}))
        .await;
    fixture
        .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
        .await;
    polls(&fixture, 2).await;
    assert_eq!(fixture.count("PATCH"), 1);
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
}

#[tokio::test]
async fn repeated_drift_is_corrected_three_times_and_reported() {
    // The default platform refuses changes while it is busy.
    let fixture = Fixture::minimal("persists").await;
    let id = create(&fixture, "  size: {fixed: 1}\n").await;
    for corrected in 1..=3 {
        fixture
            .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
            .await;
        fixture
            .wait_until("the correction", async || {
                fixture.count("PATCH") == corrected
            })
            .await;
        fixture
            .until("compute/orders", "as declared", |seen| {
                seen["status"]["size"] == "1"
            })
            .await;
        polls(&fixture, 2).await;
    }
    fixture
        .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
        .await;
    fixture
        .until_condition("compute/orders", "Synced", "False", "DriftPersists")
        .await;
    polls(&fixture, 2).await;
    assert_eq!(fixture.count("PATCH"), 3);
}

#[tokio::test]
async fn a_size_waits_until_the_compute_is_idle() {
    let (fixture, id) = created(
        "when-idle",
        "  size: {fixed: 1}\n  disruption: {policy: WhenIdle}\n",
    )
    .await;
    fixture
        .patch(
            "compute/orders",
            json!({"size": {"fixed": 2}, "pooler": {"enabled": true}}),
        )
        .await;
    let waiting = fixture
        .until_condition("compute/orders", "Synced", "False", "WaitingForDisruption")
        .await;
    assert!(
        message(&waiting, "Synced").contains("until the compute is idle"),
        "{waiting}"
    );
    assert_eq!(
        waiting["status"]["waiting"]["changes"],
        "size is 1, declared is 2"
    );
    let shown = fixture
        .kubectl(&["get", "compute", "orders", "-o", "wide"])
        .await;
    assert!(shown.contains("size is 1, declared is 2"), "{shown}");
    fixture.until_ready("compute/orders").await;
    polls(&fixture, 1).await;
    assert_eq!(
        fixture.count("PATCH"),
        1,
        "what interrupts nobody is changed at once"
    );
    assert_eq!(line(&fixture, &id).await["size"], "1 CU");
    fixture.platform.advance(Duration::from_secs(600)).unwrap();
    resized(&fixture, "2").await;
    let seen = line(&fixture, &id).await;
    assert_eq!(
        (fixture.count("PATCH"), &seen["interruptions"]),
        (2, &json!(1)),
        "it was suspended for being idle alone"
    );
}

#[tokio::test]
async fn a_size_waits_for_the_window() {
    let closed = "  size: {fixed: 1}\n  disruption: {policy: Window, window: {schedule: 0 0 29 2 *, duration: 1m}}\n";
    let (fixture, id) = created("window", closed).await;
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    let waiting = fixture
        .until_condition("compute/orders", "Synced", "False", "WaitingForDisruption")
        .await;
    assert!(
        message(&waiting, "Synced").contains("opens at 2028-02-29T00:00:00Z"),
        "{waiting}"
    );
    assert_eq!(line(&fixture, &id).await["size"], "1 CU");
    assert_eq!(fixture.count("PATCH"), 0);
    let open = json!({"policy": "Window", "window": {"schedule": "* * * * *", "duration": "1h"}});
    fixture
        .patch("compute/orders", json!({"disruption": open}))
        .await;
    resized(&fixture, "2").await;
    assert_eq!(fixture.count("PATCH"), 1);
}

#[tokio::test]
async fn a_change_with_a_lost_answer_is_applied_once() {
    let (fixture, id) = created("change-lost", "  size: {fixed: 1}\n").await;
    fixture.fault(json!({"method": "PATCH", "kind": "lose_answer"}));
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    resized(&fixture, "2").await;
    assert_eq!(fixture.count("PATCH"), 1);
    assert_eq!(line(&fixture, &id).await["interruptions"], 1);
}

#[tokio::test]
async fn a_failed_change_is_retried() {
    let (fixture, _) = created("change-fails", "  size: {fixed: 1}\n").await;
    for status in [423, 503, 500] {
        fixture.fault(json!({"method": "PATCH", "status": status, "body": "<html>busy</html>"}));
    }
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    resized(&fixture, "2").await;
    assert_eq!(fixture.count("PATCH"), 4);
    assert_eq!(writes(&fixture).len(), 5);
}
