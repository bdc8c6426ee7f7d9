//! The states of a compute and what moves it between them.

use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn compute_state_init_becomes_active_when_it_is_started() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.compute(primary()).await;
        platform.simulator.advance(std::time::Duration::from_millis(999)).unwrap();
        assert_eq!(platform.states(&path).await, state("init", Some("active")));
        platform.simulator.advance(std::time::Duration::from_millis(1)).unwrap();
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}

#[tokio::test]
async fn compute_state_any_restart_is_suspended_then_started_again() {
    for profile in Profile::ALL {
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
async fn a_compute_that_is_enabled_again_wakes() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform.patch(&path, ORGANIZATION, json!({ "endpoint": { "disabled": true } })).await.expect(200);
        platform.advance(5);
        platform.patch(&path, ORGANIZATION, json!({ "endpoint": { "disabled": false } })).await.expect(200);
        platform.advance(5);
        platform.activity(&path).await.expect(200);
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("active", None));
    }
}
