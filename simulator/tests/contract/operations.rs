//! The course of operations.

use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn operations_are_scheduling_then_running_then_finished() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
        let seen = async || platform.get("/projects/shop-1/operations?limit=2", ORGANIZATION).await.operations();
        assert_eq!(seen().await, operations(&[("start_compute", "scheduling"), ("suspend_compute", "running")]));
        platform.simulator.advance(std::time::Duration::from_millis(500)).unwrap();
        assert_eq!(seen().await, operations(&[("start_compute", "running"), ("suspend_compute", "finished")]));
        platform.advance(1);
        assert_eq!(seen().await, operations(&[("start_compute", "finished"), ("suspend_compute", "finished")]));
    }
}

#[tokio::test]
async fn an_operation_is_found_by_its_id() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
        let id = answer.text_at("/operations/0/id");
        let found = platform.get(&format!("/projects/shop-1/operations/{id}"), ORGANIZATION).await.expect(200);
        assert_eq!(found.body["operation"], answer.body["operations"][0]);
        platform.get(&format!("/projects/other-2/operations/{id}"), ORGANIZATION).await.expect(404);
    }
}

#[tokio::test]
async fn operations_are_forgotten_after_six_months() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
        let id = answer.text_at("/operations/0/id");
        platform.advance(86_400 * 200);
        platform.compute(replica()).await;
        platform.get(&format!("/projects/shop-1/operations/{id}"), ORGANIZATION).await.expect(404);
    }
}
