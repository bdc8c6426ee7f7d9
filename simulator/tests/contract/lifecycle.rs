//! The states of a compute and the transitions between them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn compute_state_init_becomes_active_when_it_is_started() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.compute(primary()).await;
        platform
            .simulator
            .advance(std::time::Duration::from_millis(999))
            .unwrap();
        assert_eq!(platform.states(&path).await, state("init", Some("active")));
        platform
            .simulator
            .advance(std::time::Duration::from_millis(1))
            .unwrap();
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}

#[tokio::test]
async fn compute_state_any_restart_is_suspended_then_started_again() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let restart = platform
            .push(&format!("{path}/restart"), ORGANIZATION)
            .await
            .expect(200);
        assert_eq!(
            restart.operations(),
            operations(&[
                ("suspend_compute", "running"),
                ("start_compute", "scheduling")
            ])
        );
        assert_eq!(platform.states(&path).await, state("active", Some("idle")));
        platform
            .simulator
            .advance(std::time::Duration::from_millis(500))
            .unwrap();
        assert_eq!(platform.states(&path).await, state("idle", Some("active")));
        platform.advance(1);
        assert_eq!(platform.states(&path).await, state("active", None));
        assert_eq!(platform.line(&path).await["interruptions"], 1);
    }
}

#[tokio::test]
async fn a_compute_that_is_enabled_again_wakes() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform
            .patch(
                &path,
                ORGANIZATION,
                json!({ "endpoint": { "disabled": true } }),
            )
            .await
            .expect(200);
        platform.advance(5);
        platform
            .patch(
                &path,
                ORGANIZATION,
                json!({ "endpoint": { "disabled": false } }),
            )
            .await
            .expect(200);
        platform.advance(5);
        platform.activity(&path).await.expect(200);
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}

fn time(compute: &Value, name: &str) -> jiff::Timestamp {
    compute[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {compute}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_shorter_timeout_suspends_no_earlier_than_it_was_set() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let mut attributes = primary();
        attributes["suspend_timeout_seconds"] = 3600.into();
        let path = platform.compute(attributes).await;
        platform.advance(2000);
        let changed = platform.simulator.now();
        let shorter = json!({ "endpoint": { "suspend_timeout_seconds": 60 } });
        platform
            .patch(&path, ORGANIZATION, shorter)
            .await
            .expect(200);
        platform.advance(5);
        let compute = platform.listed(&path).await;
        assert_eq!(compute["current_state"], "idle");
        assert!(
            time(&compute, "suspended_at") >= changed && time(&compute, "updated_at") >= changed,
            "{compute}"
        );
        let used =
            platform.get("/projects/shop-1", ORGANIZATION).await.body["project"]["cpu_used_sec"]
                .as_u64();
        assert!(used >= Some(1999), "{used:?}");
    }
}

#[tokio::test]
async fn a_change_of_plan_suspends_no_earlier_than_it_was_made() {
    let platform = Platform::public().await;
    let mut attributes = primary();
    attributes["suspend_timeout_seconds"] = (-1).into();
    let path = platform.compute(attributes).await;
    platform.advance(2000);
    let changed = platform.simulator.now();
    platform
        .console(
            Method::PATCH,
            "/organizations/org-scale-1",
            json!({ "plan": "free" }),
        )
        .await
        .expect(200);
    platform.advance(5);
    let compute = platform.listed(&path).await;
    assert_eq!(compute["current_state"], "idle");
    assert!(time(&compute, "suspended_at") >= changed, "{compute}");
}

#[tokio::test]
async fn a_compute_is_checked_no_earlier_than_it_was_enabled() {
    let yaml = WORLD.replace("settings:", "settings:\n  availability_check_seconds: 3600");
    for profile in BEYOND {
        let platform = Platform::start_with(options(&yaml, profile)).await;
        let mut attributes = primary();
        attributes["disabled"] = true.into();
        let path = platform.compute(attributes).await;
        platform.advance(10_000);
        let enabled = platform.simulator.now();
        platform
            .patch(
                &path,
                ORGANIZATION,
                json!({ "endpoint": { "disabled": false } }),
            )
            .await
            .expect(200);
        platform.advance(5);
        let compute = platform.listed(&path).await;
        assert!(
            time(&compute, "started_at") >= enabled && time(&compute, "updated_at") >= enabled,
            "{compute}"
        );
    }
}
