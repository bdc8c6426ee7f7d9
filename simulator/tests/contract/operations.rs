//! The statuses of operations over time.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn operations_are_scheduling_then_running_then_finished() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform
            .push(&format!("{path}/restart"), ORGANIZATION)
            .await
            .expect(200);
        let seen = async || {
            platform
                .get("/projects/shop-1/operations?limit=2", ORGANIZATION)
                .await
                .operations()
        };
        assert_eq!(
            seen().await,
            operations(&[
                ("start_compute", "scheduling"),
                ("suspend_compute", "running")
            ])
        );
        platform
            .simulator
            .advance(std::time::Duration::from_millis(500))
            .unwrap();
        assert_eq!(
            seen().await,
            operations(&[
                ("start_compute", "running"),
                ("suspend_compute", "finished")
            ])
        );
        platform.advance(1);
        assert_eq!(
            seen().await,
            operations(&[
                ("start_compute", "finished"),
                ("suspend_compute", "finished")
            ])
        );
    }
}

#[tokio::test]
async fn an_operation_is_found_by_its_id() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .post(
                "/projects/shop-1/endpoints",
                ORGANIZATION,
                json!({ "endpoint": primary() }),
            )
            .await;
        let id = answer.text_at("/operations/0/id");
        let found = platform
            .get(&format!("/projects/shop-1/operations/{id}"), ORGANIZATION)
            .await
            .expect(200);
        assert_eq!(found.body["operation"], answer.body["operations"][0]);
        platform
            .get(&format!("/projects/other-2/operations/{id}"), ORGANIZATION)
            .await
            .expect(404);
    }
}

#[tokio::test]
async fn operations_are_forgotten_after_six_months() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .post(
                "/projects/shop-1/endpoints",
                ORGANIZATION,
                json!({ "endpoint": primary() }),
            )
            .await;
        let id = answer.text_at("/operations/0/id");
        platform.advance(86_400 * 200);
        platform.compute(replica()).await;
        platform
            .get(&format!("/projects/shop-1/operations/{id}"), ORGANIZATION)
            .await
            .expect(404);
    }
}

/// The status and the error of an operation, and the state of its compute; the number of failures,
/// and the compute's next state.
async fn states_of(platform: &Platform, operation: &str, compute: &str) -> (Value, Value) {
    let path = format!("/projects/shop-1/operations/{operation}");
    let operation = platform.get(&path, ORGANIZATION).await.expect(200).body["operation"].clone();
    let path = format!("/projects/shop-1/endpoints/{compute}");
    let endpoint = platform.get(&path, ORGANIZATION).await.expect(200).body["endpoint"].clone();
    let texts = [
        &operation["status"],
        &operation["error"],
        &endpoint["current_state"],
    ];
    (
        json!(texts),
        json!([operation["failures_count"], endpoint["pending_state"]]),
    )
}

#[tokio::test]
async fn an_operation_fails_as_often_as_was_ordered_and_does_nothing() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let order = json!({ "action": "start_compute", "tries": 2, "error": "no room" });
        platform
            .console(Method::POST, "/failing_operations", order)
            .await
            .expect(201);
        let answer = platform
            .post(
                "/projects/shop-1/endpoints",
                ORGANIZATION,
                json!({ "endpoint": primary() }),
            )
            .await;
        let (compute, id) = (
            answer.text_at("/endpoint/id"),
            answer.text_at("/operations/0/id"),
        );
        let seen = || states_of(&platform, &id, &compute);
        assert_eq!(
            seen().await,
            (json!(["running", null, "init"]), json!([0, "active"]))
        );
        platform.advance(5);
        assert_eq!(
            seen().await,
            (json!(["failed", "no room", "init"]), json!([1, "active"]))
        );
        platform.advance(20);
        assert_eq!(
            seen().await,
            (json!(["error", "no room", "init"]), json!([2, null]))
        );
        // Only one operation was ordered to fail.
        platform
            .push(
                &format!("/projects/shop-1/endpoints/{compute}/start"),
                ORGANIZATION,
            )
            .await
            .expect(200);
        platform.advance(5);
        assert_eq!(
            seen().await,
            (json!(["error", "no room", "active"]), json!([2, null]))
        );
    }
}
