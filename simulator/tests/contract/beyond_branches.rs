//! Branches beyond the specification; most tests run in the public profile only.

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
        let refused = if profile == Profile::Default {
            405
        } else {
            404
        };
        platform
            .patch(DEV, ORGANIZATION, json!({ "branch": { "name": "next" } }))
            .await
            .expect(refused);
        for call in ["set_as_default", "restore"] {
            platform
                .push(&format!("{DEV}/{call}"), ORGANIZATION)
                .await
                .expect(404);
        }
        platform
            .get(&format!("{DEV}/schema?db_name=app"), ORGANIZATION)
            .await
            .expect(404);
    }
}

#[tokio::test]
async fn branches_are_renamed_and_protected() {
    let platform = Platform::public().await;
    platform.advance(60);
    let renamed = platform
        .patch(DEV, ORGANIZATION, json!({ "branch": { "name": "next" } }))
        .await
        .expect(200);
    assert_eq!(
        (renamed.text_at("/branch/name"), renamed.operations()),
        ("next".to_owned(), Vec::new())
    );
    platform
        .patch(
            DEV,
            ORGANIZATION,
            json!({ "branch": { "protected": true } }),
        )
        .await
        .expect(200);
    let changed = branch(&platform, DEV).await;
    assert_eq!(
        (&changed["name"], &changed["protected"]),
        (&json!("next"), &json!(true))
    );
    // The list starts with the latest change.
    let listed = platform
        .get("/projects/shop-1/branches", ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(listed.text_at("/branches/0/id"), "br-dev");
    platform.delete(DEV, ORGANIZATION).await.expect(422);
    platform
        .patch(
            DEV,
            ORGANIZATION,
            json!({ "branch": { "protected": false } }),
        )
        .await
        .expect(200);
    platform.delete(DEV, ORGANIZATION).await.expect(200);
    platform
        .patch(DEV, ORGANIZATION, json!({ "branch": { "name": "gone" } }))
        .await
        .expect(404);
    let again = platform.delete(DEV, ORGANIZATION).await.expect(204);
    assert_eq!(again.text, "");
}

#[tokio::test]
async fn another_branch_becomes_the_default() {
    let platform = Platform::public().await;
    let answer = platform
        .push(&format!("{DEV}/set_as_default"), ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(answer.body["branch"]["default"], true);
    assert_eq!(
        (
            &branch(&platform, MAIN).await["default"],
            &branch(&platform, MAIN).await["primary"]
        ),
        (&json!(false), &json!(false))
    );
    let made = platform
        .post("/projects/shop-1/branches", ORGANIZATION, json!({}))
        .await
        .expect(201);
    assert_eq!(made.text_at("/branch/parent_id"), "br-dev");
    assert_eq!(
        platform
            .delete(DEV, ORGANIZATION)
            .await
            .expect(422)
            .message(),
        "the default branch cannot be deleted"
    );
    assert_eq!(
        platform
            .delete(MAIN, ORGANIZATION)
            .await
            .expect(422)
            .message(),
        "the root branch cannot be deleted"
    );
}

#[tokio::test]
async fn a_branch_expires() {
    let platform = Platform::public().await;
    let at = |time: Value| json!({ "branch": { "expires_at": time } });
    let answer = platform
        .patch(DEV, ORGANIZATION, at(json!("2026-01-06T08:00:00Z")))
        .await
        .expect(200);
    assert_eq!(answer.text_at("/branch/expires_at"), "2026-01-06T08:00:00Z");
    assert_eq!(answer.body["branch"]["ttl_interval_seconds"], 86_400);
    platform
        .patch(DEV, ORGANIZATION, at(Value::Null))
        .await
        .expect(200);
    assert_eq!(branch(&platform, DEV).await.get("expires_at"), None);

    platform
        .patch(DEV, ORGANIZATION, at(json!("2026-01-06T08:00:00Z")))
        .await
        .expect(200);
    // Attributes that are absent stay unchanged.
    platform
        .patch(
            DEV,
            ORGANIZATION,
            json!({ "branch": { "name": "passing" } }),
        )
        .await
        .expect(200);
    let compute = platform
        .compute(json!({ "branch_id": "br-dev", "type": "read_write" }))
        .await;
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
        (
            "/projects/shop-1/branches/br-kept",
            "2026-01-06T08:00:00Z",
            422,
        ),
        (DEV, "2026-01-05T08:00:00Z", 400),
        (DEV, "soon", 400),
    ] {
        platform
            .patch(path, ORGANIZATION, at(time))
            .await
            .expect(status);
    }
    // A branch that became the default after its expiration was set is not deleted either.
    platform
        .patch(DEV, ORGANIZATION, at("2026-01-06T08:00:00Z"))
        .await
        .expect(200);
    platform
        .push(&format!("{DEV}/set_as_default"), ORGANIZATION)
        .await
        .expect(200);
    platform.advance(2 * 86_400);
    platform.get(DEV, ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn a_branch_is_made_of_a_part_of_its_parent() {
    let made = async |profile, attributes: Value| {
        let platform = Platform::start(profile).await;
        let body = json!({ "branch": attributes });
        let answer = platform
            .post("/projects/shop-1/branches", ORGANIZATION, body)
            .await;
        (answer.status, answer.body["branch"].clone())
    };
    let cases = [
        (
            json!({ "parent_lsn": "0/1E88838" }),
            json!({ "parent_id": "br-main", "parent_lsn": "0/1E88838" }),
        ),
        (
            json!({ "parent_id": "br-dev", "parent_timestamp": "2026-01-01T00:00:00Z" }),
            json!({ "parent_id": "br-dev", "parent_timestamp": "2026-01-01T00:00:00Z" }),
        ),
        (
            json!({ "init_source": "schema-only" }),
            json!({ "parent_id": null, "init_source": "schema-only" }),
        ),
        (
            json!({ "expires_at": "2026-01-05T09:00:00.123Z" }),
            json!({ "expires_at": "2026-01-05T09:00:00Z", "ttl_interval_seconds": 3600 }),
        ),
    ];
    for (attributes, expected) in cases {
        let (status, branch) = made(Profile::Public, attributes).await;
        let shown: Value = expected
            .as_object()
            .unwrap()
            .keys()
            .map(|key| (key.clone(), branch[key].clone()))
            .collect();
        assert_eq!((status, shown), (201, expected));
    }
    for (attributes, status) in [
        (
            json!({ "parent_lsn": "0/1", "parent_timestamp": "2026-01-01T00:00:00Z" }),
            400,
        ),
        (json!({ "parent_timestamp": "2027-01-01T00:00:00Z" }), 400),
        (json!({ "expires_at": "2026-01-05T08:00:00Z" }), 400),
        (
            json!({ "expires_at": "2026-01-06T08:00:00Z", "protected": true }),
            422,
        ),
    ] {
        assert_eq!(made(Profile::Public, attributes).await.0, status);
    }
    let (_, branch) = made(Profile::Default, json!({ "init_source": "schema-only" })).await;
    assert_eq!(
        (&branch["parent_id"], branch.get("init_source")),
        (&json!("br-main"), None)
    );
}

#[tokio::test]
async fn a_branch_is_restored_from_its_own_past() {
    let platform = Platform::public().await;
    let compute = platform.active_primary().await;
    let past = json!({ "source_branch_id": "br-main", "source_timestamp": "2026-01-05T08:00:01Z", "preserve_under_name": "before" });
    let restored = platform
        .post(&format!("{MAIN}/restore"), ORGANIZATION, past)
        .await
        .expect(200);
    // Connections end, because their data is different now.
    assert_eq!(
        restored.operations(),
        operations(&[
            ("suspend_compute", "running"),
            ("start_compute", "scheduling")
        ])
    );
    let kept = restored.text_at("/branch/parent_id");
    assert_eq!(restored.text_at("/branch/id"), "br-main");
    assert_eq!(
        restored.text_at("/branch/parent_timestamp"),
        "2026-01-05T08:00:01Z"
    );
    assert_eq!(
        restored.text_at("/branch/last_reset_at"),
        "2026-01-05T08:00:05Z"
    );
    let kept = branch(&platform, &format!("/projects/shop-1/branches/{kept}")).await;
    assert_eq!(
        (&kept["name"], &kept["default"]),
        (&json!("before"), &json!(false))
    );
    assert_eq!(branch(&platform, DEV).await["parent_id"], kept["id"]);
    assert_eq!(platform.listed(&compute).await["branch_id"], "br-main");
}

#[tokio::test]
async fn a_branch_is_reset_to_another() {
    let platform = Platform::public().await;
    platform
        .patch(
            DEV,
            ORGANIZATION,
            json!({ "branch": { "expires_at": "2026-01-05T09:00:00Z" } }),
        )
        .await
        .expect(200);
    platform.advance(600);
    let parent = json!({ "source_branch_id": "br-main" });
    let reset = platform
        .post(&format!("{DEV}/restore"), ORGANIZATION, parent.clone())
        .await
        .expect(200);
    assert_eq!(
        (reset.text_at("/branch/parent_id"), reset.operations()),
        ("br-main".to_owned(), Vec::new())
    );
    assert_eq!(reset.text_at("/branch/expires_at"), "2026-01-05T09:10:00Z");
    let listed = platform
        .get("/projects/shop-1/branches", ORGANIZATION)
        .await;
    assert_eq!(
        listed.body["branches"].as_array().unwrap().len(),
        3,
        "nothing is kept that nobody asked for"
    );
    let compute = platform
        .compute(json!({ "branch_id": "br-dev", "type": "read_write" }))
        .await;
    platform
        .post(&format!("{DEV}/restore"), ORGANIZATION, parent.clone())
        .await
        .expect(423);
    platform.advance(5);
    platform
        .post(&format!("{DEV}/restore"), ORGANIZATION, parent)
        .await
        .expect(200);
    assert_eq!(
        platform.states(&compute).await,
        state("active", Some("idle"))
    );
}

#[tokio::test]
async fn what_cannot_be_restored() {
    let platform = Platform::public().await;
    let cases = [
        ("br-dev", json!({}), 404),
        ("br-dev", json!({ "source_branch_id": "br-none" }), 404),
        ("br-none", json!({ "source_branch_id": "br-main" }), 404),
        (
            "br-dev",
            json!({ "source_branch_id": "br-dev", "preserve_under_name": "before" }),
            400,
        ),
        (
            "br-dev",
            json!({ "source_branch_id": "br-dev", "source_lsn": "0/1" }),
            400,
        ),
        ("br-main", json!({ "source_branch_id": "br-dev" }), 400),
        (
            "br-dev",
            json!({ "source_branch_id": "br-main", "source_timestamp": "2027-01-01T00:00:00Z" }),
            400,
        ),
        ("br-kept", json!({ "source_branch_id": "br-main" }), 422),
    ];
    for (branch, body, status) in cases {
        let path = format!("/projects/shop-1/branches/{branch}/restore");
        platform
            .post(&path, ORGANIZATION, body)
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn schemas_are_empty() {
    let platform = Platform::public().await;
    let answer = platform
        .get(&format!("{DEV}/schema?db_name=app"), ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(answer.body, json!({ "sql": "" }));
    platform
        .get(&format!("{DEV}/schema?db_name=other"), ORGANIZATION)
        .await
        .expect(404);
    platform
        .get(&format!("{DEV}/schema"), ORGANIZATION)
        .await
        .expect(400);
}
