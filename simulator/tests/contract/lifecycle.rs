//! The states of a compute and what moves it between them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn compute_state_none_create_becomes_init_with_pending_state_active() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
        assert_eq!(answer.text_at("/endpoint/current_state"), "init");
        assert_eq!(answer.text_at("/endpoint/pending_state"), "active");
        assert_eq!(answer.operations(), operations(&[("start_compute", "running")]));
    }
}

#[tokio::test]
async fn compute_state_init_becomes_active_when_it_is_started() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.compute(primary()).await;
        platform.simulator.advance(std::time::Duration::from_millis(999)).unwrap();
        assert_eq!(platform.states(&path).await, state("init", Some("active")));
        platform.simulator.advance(std::time::Duration::from_millis(1)).unwrap();
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}

#[tokio::test]
async fn compute_state_idle_any_activity_becomes_active() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.idle_primary().await;
        platform.activity(&path).await.expect(200);
        assert_eq!(platform.states(&path).await, state("idle", Some("active")));
        platform.advance(2);
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}

#[tokio::test]
async fn compute_state_idle_activity_occurs_as_a_start_compute_operation() {
    let platform = Platform::full().await;
    let path = platform.idle_primary().await;
    platform.activity(&path).await.expect(200);
    let answer = platform.get("/projects/shop-1/operations", ORGANIZATION).await;
    assert_eq!(answer.operations()[0], ("start_compute".into(), "running".into()));
}

#[tokio::test]
async fn compute_state_active_inactivity_of_5_minutes_becomes_idle() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.compute(primary()).await;
        platform.advance(290);
        platform.activity(&path).await.expect(200);
        platform.advance(299);
        assert_eq!(platform.states(&path).await, state("active", None));
        platform.advance(1);
        assert_eq!(platform.states(&path).await, state("active", Some("idle")));
        platform.advance(1);
        assert_eq!(platform.states(&path).await, state("idle", None));
    }
}

#[tokio::test]
async fn compute_state_active_inactivity_occurs_as_a_suspend_compute_operation() {
    let platform = Platform::full().await;
    platform.idle_primary().await;
    let answer = platform.get("/projects/shop-1/operations", ORGANIZATION).await;
    assert_eq!(answer.operations(), operations(&[("suspend_compute", "finished"), ("start_compute", "finished")]));
}

#[tokio::test]
async fn compute_state_active_stays_active_when_scale_to_zero_is_disabled() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let id = path.rsplit_once('/').unwrap().1;
        let never = json!({ "suspend_timeout_seconds": -1 });
        platform.console(Method::PATCH, &format!("/computes/{id}"), never).await.expect(200);
        platform.advance(86_400);
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}

#[tokio::test]
async fn compute_state_any_move_keeps_its_state_with_pending_state_idle() {
    for profile in BOTH {
        for idle in [false, true] {
            let platform = Platform::start(profile).await;
            let path = if idle { platform.idle_primary().await } else { platform.active_primary().await };
            let before = platform.states(&path).await.0;
            let answer =
                platform.patch(&path, ORGANIZATION, json!({ "endpoint": { "branch_id": "br-dev" } })).await.expect(200);
            assert_eq!(answer.text_at("/endpoint/current_state"), before);
            assert_eq!(answer.text_at("/endpoint/pending_state"), "idle");
            assert_eq!(answer.text_at("/endpoint/branch_id"), "br-dev");
            assert!(path.ends_with(&answer.text_at("/endpoint/id")), "it keeps its id");
            assert_eq!(
                answer.operations(),
                operations(&[("apply_config", "running"), ("suspend_compute", "scheduling")])
            );
            platform.advance(5);
            assert_eq!(platform.states(&path).await, state("idle", None));
        }
    }
}

#[tokio::test]
async fn compute_state_any_restart_is_suspended_then_started_again() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let restart = platform.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
        assert_eq!(
            restart.operations(),
            operations(&[("suspend_compute", "running"), ("start_compute", "scheduling")])
        );
        assert_eq!(platform.states(&path).await, state("active", Some("idle")));
        platform.simulator.advance(std::time::Duration::from_millis(500)).unwrap();
        assert_eq!(platform.states(&path).await, state("idle", Some("active")));
        platform.advance(1);
        assert_eq!(platform.states(&path).await, state("active", None));
        assert_eq!(platform.line(&path).await["interruptions"], 1);
    }
}

#[tokio::test]
async fn compute_state_idle_or_init_restart_is_accepted_in_minimal() {
    let platform = Platform::minimal().await;
    let path = platform.idle_primary().await;
    platform.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
    platform.advance(2);
    assert_eq!(platform.states(&path).await, state("active", None));
    let fresh = platform.compute(replica()).await;
    platform.push(&format!("{fresh}/restart"), ORGANIZATION).await.expect(200);
    platform.advance(2);
    assert_eq!(platform.states(&fresh).await, state("active", None));
}

#[tokio::test]
async fn compute_state_any_delete_is_removed() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform.delete(&path, ORGANIZATION).await.expect(200);
        platform.advance(3600);
        assert_eq!(platform.listed(&path).await, Value::Null);
        platform.activity(&path).await.expect(404);
    }
}

#[tokio::test]
async fn settings_change_1_and_2_size_changes_restart_and_interrupt() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let sizes = [(2.0, 2.0), (1.0, 4.0), (1.0, 8.0), (2.0, 8.0)];
        for (count, (min, max)) in sizes.into_iter().enumerate() {
            let change = json!({ "endpoint": { "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max } });
            let answer = platform.patch(&path, ORGANIZATION, change).await.expect(200);
            let expected =
                [("apply_config", "running"), ("suspend_compute", "scheduling"), ("start_compute", "scheduling")];
            assert_eq!(answer.operations(), operations(&expected));
            assert_eq!(
                answer.body["endpoint"]["autoscaling_limit_max_cu"].as_f64(),
                Some(max),
                "takes effect immediately"
            );
            platform.advance(5);
            assert_eq!(platform.states(&path).await, state("active", None));
            assert_eq!(platform.line(&path).await["interruptions"], count + 1);
        }
    }
}

#[tokio::test]
async fn settings_change_3_automatic_resize_interrupts_nobody() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let mut attributes = primary();
        attributes["autoscaling_limit_min_cu"] = 1.into();
        attributes["autoscaling_limit_max_cu"] = 4.into();
        let path = platform.compute(attributes).await;
        platform.advance(5);
        let id = path.rsplit_once('/').unwrap().1;
        for (load, size) in [(3.5, 4.0), (9.0, 4.0), (0.1, 1.0)] {
            let activity = json!({ "load_cu": load });
            platform.console(Method::POST, &format!("/computes/{id}/activity"), activity).await.expect(200);
            let line = platform.line(&path).await;
            assert_eq!(line["current_size"].as_f64(), Some(size));
            assert_eq!((&line["interruptions"], &line["status"]), (&json!(0), &json!("Active")));
            assert_eq!(platform.states(&path).await, state("active", None));
        }
    }
}

#[tokio::test]
async fn settings_change_5_a_compute_that_never_suspends_gets_updates_by_restart() {
    let platform = Platform::full().await;
    let mut attributes = primary();
    attributes["suspend_timeout_seconds"] = (-1).into();
    let path = platform.compute(attributes).await;
    platform.advance(5);
    let release = platform.listed(&path).await["compute_release_version"].clone();
    platform.advance(15 * 86_400);
    assert_eq!(platform.listed(&path).await["compute_release_version"], release);
    platform.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
    platform.advance(5);
    assert_ne!(platform.listed(&path).await["compute_release_version"], release);
}

#[tokio::test]
async fn compute_disabled_is_suspended_and_does_not_wake() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform.patch(&path, ORGANIZATION, json!({ "endpoint": { "disabled": true } })).await.expect(200);
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("idle", None));
        platform.activity(&path).await.expect(409);
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("idle", None));
        platform.patch(&path, ORGANIZATION, json!({ "endpoint": { "disabled": false } })).await.expect(200);
        platform.advance(5);
        platform.activity(&path).await.expect(200);
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}
