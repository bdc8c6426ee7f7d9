//! Operations: their fields and their course.

use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn operation_fields() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
        let operation = &answer.body["operations"][0];
        let specified = [
            "action",
            "branch_id",
            "created_at",
            "endpoint_id",
            "failures_count",
            "id",
            "project_id",
            "status",
            "updated_at",
        ];
        let present = fields(operation);
        assert!(specified.iter().all(|name| present.contains(name)), "{operation}");
        assert_eq!(operation["id"].as_str().unwrap().len(), 36);
        assert_eq!(operation["project_id"], "shop-1");
        assert_eq!(operation["branch_id"], "br-main");
        assert_eq!(operation["endpoint_id"], answer.body["endpoint"]["id"]);
        assert_eq!(operation["failures_count"], 0);
        assert!(is_utc(&operation["created_at"]) && is_utc(&operation["updated_at"]));
    }
}

#[tokio::test]
async fn operation_fields_other_than_those_listed_are_not_in_minimal() {
    let platform = Platform::minimal().await;
    let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
    assert_eq!(fields(&answer.body["operations"][0]).len(), 9);
}

#[tokio::test]
async fn operations_are_scheduling_then_running_then_finished() {
    let platform = Platform::full().await;
    let path = platform.active_primary().await;
    platform.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
    let seen = async || platform.get("/projects/shop-1/operations?limit=2", ORGANIZATION).await.operations();
    assert_eq!(seen().await, operations(&[("start_compute", "scheduling"), ("suspend_compute", "running")]));
    platform.simulator.advance(std::time::Duration::from_millis(500)).unwrap();
    assert_eq!(seen().await, operations(&[("start_compute", "running"), ("suspend_compute", "finished")]));
    platform.advance(1);
    assert_eq!(seen().await, operations(&[("start_compute", "finished"), ("suspend_compute", "finished")]));
}

#[tokio::test]
async fn an_operation_is_found_by_its_id() {
    let platform = Platform::full().await;
    let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
    let id = answer.text_at("/operations/0/id");
    let found = platform.get(&format!("/projects/shop-1/operations/{id}"), ORGANIZATION).await.expect(200);
    assert_eq!(found.body["operation"], answer.body["operations"][0]);
    platform.get(&format!("/projects/other-2/operations/{id}"), ORGANIZATION).await.expect(404);
}

#[tokio::test]
async fn operations_are_forgotten_after_six_months() {
    let platform = Platform::full().await;
    let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
    let id = answer.text_at("/operations/0/id");
    platform.advance(86_400 * 200);
    platform.compute(replica()).await;
    platform.get(&format!("/projects/shop-1/operations/{id}"), ORGANIZATION).await.expect(404);
}
