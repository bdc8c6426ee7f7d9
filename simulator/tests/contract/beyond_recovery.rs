//! Deleted projects in the public profile: what prevents a deletion, and how a project is
//! recovered.

use serde_json::json;

use crate::support::*;

const SHOP: &str = "/projects/shop-1";
const RECOVERABLE: &str = "/projects?recoverable=true";

/// Removes the protected branch, because it would prevent the deletion of the project.
async fn platform(profile: Profile) -> Platform {
    let platform =
        Platform::start_with(options(&WORLD.replace(", protected: true", ""), profile)).await;
    assert_eq!(platform.profile, profile);
    platform
}

#[tokio::test]
async fn a_protected_branch_keeps_its_project() {
    let platform = Platform::public().await;
    platform.delete(SHOP, ORGANIZATION).await.expect(422);
    platform.get(SHOP, ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn a_deleted_project_is_recovered_with_everything_in_it() {
    let platform = platform(Profile::Public).await;
    let active = platform.active_primary().await;
    let starting = platform
        .compute(json!({ "branch_id": "br-dev", "type": "read_write" }))
        .await;
    platform.delete(SHOP, ORGANIZATION).await.expect(200);
    platform.get(SHOP, ORGANIZATION).await.expect(404);
    platform
        .get("/projects/shop-1/endpoints", SCOPED)
        .await
        .expect(404);
    platform.advance(3600);

    let listed = platform.get(RECOVERABLE, ORGANIZATION).await.expect(200);
    assert_eq!(listed.body["projects"].as_array().unwrap().len(), 1);
    assert_eq!(listed.text_at("/projects/0/id"), "shop-1");
    assert_eq!(
        listed.text_at("/projects/0/deleted_at"),
        "2026-01-05T08:00:05Z"
    );
    assert_eq!(
        listed.text_at("/projects/0/recoverable_until"),
        "2026-01-12T08:00:05Z"
    );
    let existing = platform.get("/projects", ORGANIZATION).await.expect(200);
    assert_eq!(existing.body["projects"].as_array().unwrap().len(), 1);

    let recovered = platform
        .push(&format!("{SHOP}/recover"), ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(recovered.text_at("/project/id"), "shop-1");
    assert_eq!(recovered.body["project"].get("deleted_at"), None);
    assert_eq!(recovered.body["branches"].as_array().unwrap().len(), 3);
    for compute in [&active, &starting] {
        assert_eq!(
            platform.states(compute).await,
            state("idle", None),
            "computes do not run on by themselves"
        );
    }
    platform
        .get("/projects/shop-1/endpoints", SCOPED)
        .await
        .expect(200);
    platform
        .push(&format!("{active}/start"), ORGANIZATION)
        .await
        .expect(200);
    platform
        .push(&format!("{SHOP}/recover"), ORGANIZATION)
        .await
        .expect(404);
}

#[tokio::test]
async fn recovery_is_for_those_who_may_delete_and_for_a_week() {
    let platform = platform(Profile::Public).await;
    platform.delete(SHOP, ORGANIZATION).await.expect(200);
    for (token, status) in [(SCOPED, 404), (STRANGER, 404), (LAUNCH, 404)] {
        platform
            .push(&format!("{SHOP}/recover"), token)
            .await
            .expect(status);
    }
    let of_another = platform.get(RECOVERABLE, LAUNCH).await.expect(200);
    assert_eq!(of_another.body["projects"], json!([]));
    platform.advance(7 * 86_400 - 1);
    assert_eq!(
        platform.get(RECOVERABLE, ORGANIZATION).await.body["projects"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    platform.advance(1);
    assert_eq!(
        platform.get(RECOVERABLE, ORGANIZATION).await.body["projects"],
        json!([])
    );
    platform
        .push(&format!("{SHOP}/recover"), ORGANIZATION)
        .await
        .expect(404);
}

#[tokio::test]
async fn other_profiles_keep_nothing_that_is_deleted() {
    let platform = platform(Profile::Default).await;
    platform.delete(SHOP, ORGANIZATION).await.expect(200);
    platform
        .push(&format!("{SHOP}/recover"), ORGANIZATION)
        .await
        .expect(404);
    let listed = platform.get(RECOVERABLE, ORGANIZATION).await.expect(200);
    assert_eq!(
        listed.text_at("/projects/0/id"),
        "other-2",
        "the parameter is unknown"
    );
}
