//! Branches beyond the specification: what the public profile alone offers.

use serde_json::{Value, json};

use crate::support::*;

const DEV: &str = "/projects/shop-1/branches/br-dev";
const MAIN: &str = "/projects/shop-1/branches/br-main";

async fn branch(platform: &Platform, path: &str) -> Value {
    platform.get(path, ORGANIZATION).await.expect(200).body["branch"].clone()
}

#[tokio::test]
async fn these_calls_are_public_alone() {
    for profile in [Profile::Default, Profile::Minimal] {
        let platform = Platform::start(profile).await;
        let refused = if profile == Profile::Default { 405 } else { 404 };
        platform.patch(DEV, ORGANIZATION, json!({ "branch": { "name": "next" } })).await.expect(refused);
        platform.push(&format!("{DEV}/set_as_default"), ORGANIZATION).await.expect(404);
    }
}

#[tokio::test]
async fn branches_are_renamed_and_protected() {
    let platform = Platform::public().await;
    platform.advance(60);
    let renamed = platform.patch(DEV, ORGANIZATION, json!({ "branch": { "name": "next" } })).await.expect(200);
    assert_eq!((renamed.text_at("/branch/name"), renamed.operations()), ("next".to_owned(), Vec::new()));
    platform.patch(DEV, ORGANIZATION, json!({ "branch": { "protected": true } })).await.expect(200);
    let changed = branch(&platform, DEV).await;
    assert_eq!((&changed["name"], &changed["protected"]), (&json!("next"), &json!(true)));
    // The list begins with what was changed last.
    let listed = platform.get("/projects/shop-1/branches", ORGANIZATION).await.expect(200);
    assert_eq!(listed.text_at("/branches/0/id"), "br-dev");
    platform.delete(DEV, ORGANIZATION).await.expect(422);
    platform.patch(DEV, ORGANIZATION, json!({ "branch": { "protected": false } })).await.expect(200);
    platform.delete(DEV, ORGANIZATION).await.expect(200);
    platform.patch(DEV, ORGANIZATION, json!({ "branch": { "name": "gone" } })).await.expect(404);
}

#[tokio::test]
async fn another_branch_becomes_the_default() {
    let platform = Platform::public().await;
    let answer = platform.push(&format!("{DEV}/set_as_default"), ORGANIZATION).await.expect(200);
    assert_eq!(answer.body["branch"]["default"], true);
    assert_eq!(
        (&branch(&platform, MAIN).await["default"], &branch(&platform, MAIN).await["primary"]),
        (&json!(false), &json!(false))
    );
    let made = platform.post("/projects/shop-1/branches", ORGANIZATION, json!({})).await.expect(201);
    assert_eq!(made.text_at("/branch/parent_id"), "br-dev");
    assert_eq!(platform.delete(DEV, ORGANIZATION).await.expect(422).message(), "the default branch cannot be deleted");
    assert_eq!(platform.delete(MAIN, ORGANIZATION).await.expect(422).message(), "the root branch cannot be deleted");
}

#[tokio::test]
async fn a_branch_expires() {
    let platform = Platform::public().await;
    let at = |time: Value| json!({ "branch": { "expires_at": time } });
    let answer = platform.patch(DEV, ORGANIZATION, at(json!("2026-01-06T08:00:00Z"))).await.expect(200);
    assert_eq!(answer.text_at("/branch/expires_at"), "2026-01-06T08:00:00Z");
    assert_eq!(answer.body["branch"]["ttl_interval_seconds"], 86_400);
    platform.patch(DEV, ORGANIZATION, at(Value::Null)).await.expect(200);
    assert_eq!(branch(&platform, DEV).await.get("expires_at"), None);

    platform.patch(DEV, ORGANIZATION, at(json!("2026-01-06T08:00:00Z"))).await.expect(200);
    // What is not given stays.
    platform.patch(DEV, ORGANIZATION, json!({ "branch": { "name": "passing" } })).await.expect(200);
    let compute = platform.compute(json!({ "branch_id": "br-dev", "type": "read_write" })).await;
    platform.advance(86_399);
    platform.get(DEV, ORGANIZATION).await.expect(200);
    platform.advance(1);
    platform.get(DEV, ORGANIZATION).await.expect(404);
    assert_eq!(platform.listed(&compute).await, Value::Null);
}

#[tokio::test]
async fn what_is_needed_does_not_expire() {
    let platform = Platform::public().await;
    let at = |time: &str| json!({ "branch": { "expires_at": time } });
    for (path, time, status) in [
        (MAIN, "2026-01-06T08:00:00Z", 422),
        ("/projects/shop-1/branches/br-kept", "2026-01-06T08:00:00Z", 422),
        (DEV, "2026-01-05T08:00:00Z", 400),
        (DEV, "soon", 400),
    ] {
        platform.patch(path, ORGANIZATION, at(time)).await.expect(status);
    }
    // Neither does what has become so since.
    platform.patch(DEV, ORGANIZATION, at("2026-01-06T08:00:00Z")).await.expect(200);
    platform.push(&format!("{DEV}/set_as_default"), ORGANIZATION).await.expect(200);
    platform.advance(2 * 86_400);
    platform.get(DEV, ORGANIZATION).await.expect(200);
}
