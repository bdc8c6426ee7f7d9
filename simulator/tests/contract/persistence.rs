//! The state file: what survives a restart.

use dbplane_simulator::{Options, StartError, serve};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

fn kept(directory: &tempfile::TempDir, profile: Profile) -> Options {
    Options {
        state: Some(directory.path().join("world.redb")),
        ..options(WORLD, profile)
    }
}

#[tokio::test]
async fn computes_keys_operations_and_the_clock_survive_a_restart() {
    for profile in Profile::ALL {
        let directory = tempfile::tempdir().unwrap();
        let platform = Platform::start_with(kept(&directory, profile)).await;
        let path = platform.active_primary().await;
        let gone = platform.compute(replica()).await;
        platform.advance(5);
        platform.delete(&gone, ORGANIZATION).await.expect(200);
        let key = json!({ "key_name": "ci", "project_id": "shop-1" });
        let secret = platform
            .post("/organizations/org-scale-1/api_keys", ADMIN, key)
            .await
            .text_at("/key");
        platform
            .console(Method::POST, "/api_keys/4/revoke", Value::Null)
            .await
            .expect(200);
        let (before, now) = (
            platform
                .get("/projects/shop-1/endpoints", SCOPED)
                .await
                .body,
            platform.simulator.now(),
        );
        platform.simulator.stop().await;

        let platform = Platform::start_with(kept(&directory, profile)).await;
        assert_eq!(platform.simulator.now(), now);
        assert_eq!(
            platform
                .get("/projects/shop-1/endpoints", SCOPED)
                .await
                .expect(200)
                .body,
            before
        );
        platform
            .get("/projects/shop-1/endpoints", &secret)
            .await
            .expect(200);
        platform
            .get("/projects/shop-1/endpoints", ORGANIZATION)
            .await
            .expect(401);
        platform.advance(600);
        let compute = platform
            .get("/projects/shop-1/endpoints", SCOPED)
            .await
            .body["endpoints"][0]
            .clone();
        assert_eq!(compute["current_state"], "idle", "time goes on for {path}");
        platform.simulator.stop().await;
    }
}

#[tokio::test]
async fn a_change_under_way_is_finished_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let platform = Platform::start_with(kept(&directory, Profile::Default)).await;
    let path = platform.compute(primary()).await;
    platform.simulator.stop().await;
    let platform = Platform::start_with(kept(&directory, Profile::Default)).await;
    assert_eq!(platform.states(&path).await, state("init", Some("active")));
    platform.advance(1);
    assert_eq!(platform.states(&path).await, state("active", None));
    platform.simulator.stop().await;
}

#[tokio::test]
async fn new_ids_do_not_repeat_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let platform = Platform::start_with(kept(&directory, Profile::Default)).await;
        seen.push(platform.compute(replica()).await);
        platform.simulator.stop().await;
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn plans_and_owners_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let platform = Platform::start_with(kept(&directory, Profile::Default)).await;
    platform
        .console(
            Method::PATCH,
            "/organizations/org-free-3",
            json!({ "plan": "scale" }),
        )
        .await
        .expect(200);
    platform
        .console(
            Method::POST,
            "/projects/notes-5/transfer",
            json!({ "user_id": "user-eve" }),
        )
        .await
        .expect(200);
    platform.simulator.stop().await;
    let platform = Platform::start_with(kept(&directory, Profile::Default)).await;
    assert_eq!(
        platform
            .get("/organizations/org-free-3", FREE)
            .await
            .text_at("/plan"),
        "scale"
    );
    platform
        .get("/projects/notes-5", STRANGER)
        .await
        .expect(200);
    platform.simulator.stop().await;
}

#[tokio::test]
async fn two_simulators_do_not_share_a_state_file() {
    let directory = tempfile::tempdir().unwrap();
    let platform = Platform::start_with(kept(&directory, Profile::Default)).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let second = serve(listener, kept(&directory, Profile::Default)).await;
    assert!(matches!(second, Err(StartError::State(_))), "{second:?}");
    platform.simulator.stop().await;
}

#[tokio::test]
async fn the_token_of_a_key_is_in_no_error_and_no_debug_text() {
    let directory = tempfile::tempdir().unwrap();
    let options = kept(&directory, Profile::Default);
    assert!(!format!("{options:?}").contains(ADMIN));
    let platform = Platform::start_with(options).await;
    assert!(!format!("{:?}", platform.simulator).contains(ADMIN));
    platform.simulator.stop().await;
}

#[tokio::test]
async fn a_deleted_project_can_be_recovered_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let platform = Platform::start_with(kept(&directory, Profile::Public)).await;
    platform
        .delete("/projects/rocket-3", LAUNCH)
        .await
        .expect(200);
    platform.simulator.stop().await;
    let platform = Platform::start_with(kept(&directory, Profile::Public)).await;
    platform
        .push("/projects/rocket-3/recover", LAUNCH)
        .await
        .expect(200);
    platform.simulator.stop().await;
    let platform = Platform::start_with(kept(&directory, Profile::Public)).await;
    platform.get("/projects/rocket-3", LAUNCH).await.expect(200);
    platform.simulator.stop().await;
}
