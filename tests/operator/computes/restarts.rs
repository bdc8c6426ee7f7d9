//! Restarts: once for each token, never of an idle compute.

use std::time::Duration;

use serde_json::json;

use super::{annotate, created, line, polls, writes};
use crate::stage::Stage;

const RESTART: &str = "dbplane.dev/restart";

fn restarts(stage: &Stage) -> usize {
    writes(stage).iter().filter(|request| request.ends_with("/restart")).count()
}

async fn restarted(stage: &Stage, token: &str) {
    stage.until("compute/orders", "restarted", |seen| seen["status"]["restart"]["token"] == token).await;
    stage.until_ready("compute/orders").await;
}

#[tokio::test]
async fn each_token_restarts_once() {
    let (stage, id) = created("restart", "  restartToken: first\n").await;
    assert_eq!(restarts(&stage), 0, "a compute that is created with a token is as new as it gets");
    stage.patch("compute/orders", json!({"restartToken": "second"})).await;
    restarted(&stage, "second").await;
    assert_eq!(restarts(&stage), 1);
    annotate(&stage, "orders", &format!("{RESTART}=please")).await;
    restarted(&stage, "second please").await;
    polls(&stage, 2).await;
    assert_eq!(restarts(&stage), 2);
    assert_eq!(line(&stage, &id).await["interruptions"], 2);
    // Taking the request back asks for nothing.
    stage.patch("compute/orders", json!({"restartToken": null})).await;
    annotate(&stage, "orders", &format!("{RESTART}-")).await;
    stage.until("compute/orders", "seen", |seen| seen["status"]["observedGeneration"] == 3).await;
    assert_eq!(restarts(&stage), 2);
}

#[tokio::test]
async fn an_idle_compute_is_not_woken_for_a_restart() {
    let (stage, _) = created("restart-idle", "").await;
    stage.platform.advance(Duration::from_secs(600)).unwrap();
    stage.until("compute/orders", "idle", |seen| seen["status"]["state"] == "idle").await;
    stage.patch("compute/orders", json!({"restartToken": "now"})).await;
    restarted(&stage, "now").await;
    polls(&stage, 1).await;
    assert_eq!((restarts(&stage), writes(&stage).len()), (0, 1));
    assert_eq!(stage.get("compute/orders").await.unwrap()["status"]["state"], "idle");
}

#[tokio::test]
async fn a_restart_whose_answer_was_lost_is_not_made_twice() {
    let (stage, id) = created("restart-lost", "").await;
    // Starts are dated to the second.
    stage.platform.advance(Duration::from_secs(5)).unwrap();
    stage.fault(json!({"method": "POST", "path": "/restart$", "kind": "lose_answer"}));
    stage.patch("compute/orders", json!({"restartToken": "now"})).await;
    restarted(&stage, "now").await;
    polls(&stage, 2).await;
    assert_eq!(restarts(&stage), 1);
    assert_eq!(line(&stage, &id).await["interruptions"], 1);
}

#[tokio::test]
async fn a_restart_that_was_refused_for_the_moment_is_made_later() {
    let (stage, id) = created("restart-busy", "").await;
    stage.fault(json!({"method": "POST", "path": "/restart$", "status": 423, "times": 2}));
    stage.patch("compute/orders", json!({"restartToken": "now"})).await;
    restarted(&stage, "now").await;
    assert_eq!(restarts(&stage), 3);
    assert_eq!(line(&stage, &id).await["interruptions"], 1);
}
