//! Restarts: once per token, and never for an idle compute.

use std::time::Duration;

use serde_json::json;

use super::{created, is_restarted, line, polls, writes};
use crate::fixture::Fixture;

const RESTART: &str = "dbplane.dev/restart";

fn restarts(fixture: &Fixture) -> usize {
    writes(fixture)
        .iter()
        .filter(|request| request.ends_with("/restart"))
        .count()
}

async fn restarted(fixture: &Fixture, token: &str) {
    fixture
        .until("compute/orders", "restarted", |seen| {
            is_restarted(seen, token)
        })
        .await;
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn each_token_restarts_once() {
    let (fixture, id) = created("restart", "  restartToken: first\n").await;
    assert_eq!(
        restarts(&fixture),
        0,
        "a compute that is created with a token is as new as it gets"
    );
    fixture
        .patch("compute/orders", json!({"restartToken": "second"}))
        .await;
    restarted(&fixture, "second").await;
    assert_eq!(restarts(&fixture), 1);
    fixture
        .annotate("compute/orders", &format!("{RESTART}=please"))
        .await;
    restarted(&fixture, "second please").await;
    polls(&fixture, 2).await;
    assert_eq!(restarts(&fixture), 2);
    assert_eq!(line(&fixture, &id).await["interruptions"], 2);
    // Removing the request must not cause a restart.
    fixture
        .patch("compute/orders", json!({"restartToken": null}))
        .await;
    fixture
        .annotate("compute/orders", &format!("{RESTART}-"))
        .await;
    fixture
        .until("compute/orders", "seen", |seen| {
            seen["status"]["observedGeneration"] == 3
        })
        .await;
    assert_eq!(restarts(&fixture), 2);
}

#[tokio::test]
async fn an_idle_compute_is_not_woken_for_a_restart() {
    let (fixture, _) = created("restart-idle", "").await;
    fixture.platform.advance(Duration::from_secs(600)).unwrap();
    fixture
        .until("compute/orders", "idle", |seen| {
            seen["status"]["state"] == "idle"
        })
        .await;
    fixture
        .patch("compute/orders", json!({"restartToken": "now"}))
        .await;
    restarted(&fixture, "now").await;
    polls(&fixture, 1).await;
    assert_eq!((restarts(&fixture), writes(&fixture).len()), (0, 1));
    assert_eq!(
        fixture.get("compute/orders").await.unwrap()["status"]["state"],
        "idle"
    );
}

#[tokio::test]
async fn a_restart_with_a_lost_answer_is_not_repeated() {
    let (fixture, id) = created("restart-lost", "").await;
    // Start times have a resolution of one second.
    fixture.platform.advance(Duration::from_secs(5)).unwrap();
    fixture.fault(json!({"method": "POST", "path": "/restart$", "kind": "lose_answer"}));
    fixture
        .patch("compute/orders", json!({"restartToken": "now"}))
        .await;
    restarted(&fixture, "now").await;
    polls(&fixture, 2).await;
    assert_eq!(restarts(&fixture), 1);
    assert_eq!(line(&fixture, &id).await["interruptions"], 1);
}

#[tokio::test]
async fn a_temporarily_refused_restart_is_retried() {
    let (fixture, id) = created("restart-busy", "").await;
    fixture.fault(json!({"method": "POST", "path": "/restart$", "status": 423, "times": 2}));
    fixture
        .patch("compute/orders", json!({"restartToken": "now"}))
        .await;
    restarted(&fixture, "now").await;
    assert_eq!(restarts(&fixture), 3);
    assert_eq!(line(&fixture, &id).await["interruptions"], 1);
}

#[tokio::test]
async fn a_restart_is_done_by_a_change_that_restarts_anyway() {
    let closed = "  size: {fixed: 1}\n  disruption: {policy: Window, window: {schedule: 0 0 29 2 *, duration: 1m}}\n";
    let (fixture, id) = created("restart-and-resize", closed).await;
    // Start times have a resolution of one second.
    fixture.platform.advance(Duration::from_secs(5)).unwrap();
    fixture
        .patch(
            "compute/orders",
            json!({"size": {"fixed": 2}, "restartToken": "now"}),
        )
        .await;
    let both = "size is 1, declared is 2; the requested restart";
    fixture
        .until("compute/orders", "waiting", |seen| {
            seen["status"]["waiting"]["changes"] == both
        })
        .await;
    fixture
        .patch("compute/orders", json!({"disruption": null}))
        .await;
    restarted(&fixture, "now").await;
    let ready = fixture.until_ready("compute/orders").await;
    assert_eq!(
        (&ready["status"]["size"], &ready["status"]["waiting"]),
        (&json!("2"), &json!(null))
    );
    polls(&fixture, 1).await;
    assert_eq!((restarts(&fixture), fixture.count("PATCH")), (0, 1));
    assert_eq!(line(&fixture, &id).await["interruptions"], 1);
}
