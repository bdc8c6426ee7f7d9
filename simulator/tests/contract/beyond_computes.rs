//! Computes beyond the specification.

use serde_json::{Value, json};

use crate::support::*;

fn endpoint(attributes: Value) -> Value {
    json!({ "endpoint": attributes })
}

#[tokio::test]
async fn compute_fields_beyond_the_specification() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let mut attributes = primary();
        attributes["name"] = "orders".into();
        let path = platform.compute(attributes).await;
        platform.advance(5);
        let compute = platform.listed(&path).await;
        assert_eq!(compute["name"], "orders");
        assert_eq!(compute["suspend_timeout_seconds"], 0);
        for name in [
            "creation_source",
            "provisioner",
            "started_at",
            "compute_release_version",
            "hosts",
            "slug",
            "group",
        ] {
            assert!(compute.get(name).is_some(), "{name}");
        }
        let host = compute["host"].as_str().unwrap();
        assert_eq!(compute["hosts"]["read_write_host"], host);
        assert_eq!(
            compute["hosts"]["read_write_pooled_host"],
            host.replacen('.', "-pooler.", 1)
        );
        assert_eq!(platform.line(&path).await["name"], "orders");
    }
}

#[tokio::test]
async fn compute_name_has_1_to_64_characters_and_need_not_be_unique() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let named = |name: &str| {
            endpoint(json!({ "branch_id": "br-main", "type": "read_only", "name": name }))
        };
        for (name, status) in [
            ("twin", 201),
            ("twin", 201),
            ("", 400),
            ("é".repeat(64).as_str(), 201),
            ("a".repeat(65).as_str(), 400),
        ] {
            platform
                .post("/projects/shop-1/endpoints", ORGANIZATION, named(name))
                .await
                .expect(status);
        }
    }
}

#[tokio::test]
async fn operation_has_a_total_duration() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        platform.active_primary().await;
        let answer = platform
            .get("/projects/shop-1/operations", ORGANIZATION)
            .await;
        assert_eq!(answer.body["operations"][0]["total_duration_ms"], 1000);
    }
}

#[tokio::test]
async fn get_compute_and_computes_of_a_branch() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        assert_eq!(
            platform.get(&path, ORGANIZATION).await.expect(200).body["endpoint"],
            platform.listed(&path).await
        );
        platform
            .get(&format!("{path}0"), ORGANIZATION)
            .await
            .expect(404);
        let of = async |branch: &str| {
            let answer = platform
                .get(
                    &format!("/projects/shop-1/branches/{branch}/endpoints"),
                    ORGANIZATION,
                )
                .await
                .expect(200);
            answer.body["endpoints"].as_array().unwrap().len()
        };
        assert_eq!((of("br-main").await, of("br-dev").await), (1, 0));
    }
}

#[tokio::test]
async fn patch_of_an_idle_compute_has_an_operation() {
    let platform = Platform::new().await;
    let path = platform.idle_primary().await;
    let answer = platform
        .patch(
            &path,
            ORGANIZATION,
            endpoint(json!({ "pooler_enabled": true })),
        )
        .await
        .expect(200);
    assert_eq!(
        answer.operations(),
        operations(&[("apply_config", "running")])
    );
    assert_eq!(platform.states(&path).await, state("idle", Some("idle")));
    platform.advance(1);
    assert_eq!(platform.states(&path).await, state("idle", None));
}

#[tokio::test]
async fn public_delete_of_an_active_compute_suspends_it_and_of_an_absent_one_is_204() {
    let platform = Platform::public().await;
    let path = platform.active_primary().await;
    let answer = platform.delete(&path, ORGANIZATION).await.expect(200);
    assert_eq!(
        answer.operations(),
        operations(&[("suspend_compute", "running")])
    );
    let again = platform.delete(&path, ORGANIZATION).await.expect(204);
    assert_eq!(again.text, "");
    platform
        .delete("/projects/nowhere/endpoints/ep-x", ORGANIZATION)
        .await
        .expect(404);
}

#[tokio::test]
async fn public_start_and_suspend() {
    let platform = Platform::public().await;
    let path = platform.idle_primary().await;
    let started = platform
        .push(&format!("{path}/start"), ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(
        started.operations(),
        operations(&[("start_compute", "running")])
    );
    assert_eq!(platform.states(&path).await, state("idle", Some("active")));
    let refused = platform
        .push(&format!("{path}/suspend"), ORGANIZATION)
        .await
        .expect(423);
    assert_eq!(
        refused.message(),
        "endpoint is in some transitive state, could not suspend"
    );
    platform.advance(2);
    assert_eq!(
        platform
            .push(&format!("{path}/start"), ORGANIZATION)
            .await
            .expect(200)
            .operations(),
        operations(&[])
    );
    let suspended = platform
        .push(&format!("{path}/suspend"), ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(
        suspended.operations(),
        operations(&[("suspend_compute", "running")])
    );
    platform.advance(2);
    assert_eq!(platform.states(&path).await, state("idle", None));
    assert_eq!(
        platform
            .push(&format!("{path}/suspend"), ORGANIZATION)
            .await
            .expect(200)
            .operations(),
        operations(&[])
    );
}

#[tokio::test]
async fn start_of_a_disabled_compute_is_refused() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let mut attributes = primary();
        attributes["disabled"] = true.into();
        let path = platform.compute(attributes).await;
        platform.advance(5);
        assert_eq!(platform.states(&path).await, state("idle", None));
        platform
            .push(&format!("{path}/start"), ORGANIZATION)
            .await
            .expect(409);
    }
}

#[tokio::test]
async fn public_conflicting_operations_are_423() {
    let platform = Platform::public().await;
    let path = platform.compute(primary()).await;
    let change = || endpoint(json!({ "pooler_enabled": true }));
    let refused = platform
        .patch(&path, ORGANIZATION, change())
        .await
        .expect(423);
    assert!(
        refused
            .message()
            .starts_with("project already has running conflicting operations"),
        "{refused:?}"
    );
    platform.delete(&path, ORGANIZATION).await.expect(423);
    platform
        .push(&format!("{path}/restart"), ORGANIZATION)
        .await
        .expect(423);
    platform.compute(replica()).await;
    platform.advance(2);
    platform
        .patch(&path, ORGANIZATION, change())
        .await
        .expect(200);
}

#[tokio::test]
async fn conflicting_operations_can_be_those_of_the_project_or_none() {
    let cases = [
        (Profile::Public, "conflict_scope: project", 423),
        (Profile::Public, "serialise_operations: false", 200),
        (Profile::Default, "conflict_scope: project", 200),
        (
            Profile::Default,
            "serialise_operations: true\n  conflict_scope: project",
            423,
        ),
    ];
    for (profile, setting, status) in cases {
        let yaml = WORLD.replace("settings:", &format!("settings:\n  {setting}"));
        let platform = Platform::start_with(options(&yaml, profile)).await;
        let path = platform.active_primary().await;
        platform.compute(replica()).await;
        platform
            .patch(
                &path,
                ORGANIZATION,
                endpoint(json!({ "pooler_enabled": true })),
            )
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn a_change_over_another_cancels_it() {
    let yaml = WORLD.replace("settings:", "settings:\n  serialise_operations: false");
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    let path = platform.active_primary().await;
    platform
        .push(&format!("{path}/restart"), ORGANIZATION)
        .await
        .expect(200);
    platform
        .push(&format!("{path}/suspend"), ORGANIZATION)
        .await
        .expect(200);
    let seen = platform
        .get("/projects/shop-1/operations?limit=3", ORGANIZATION)
        .await
        .operations();
    let expected = [
        ("suspend_compute", "running"),
        ("start_compute", "cancelled"),
        ("suspend_compute", "cancelled"),
    ];
    assert_eq!(seen, operations(&expected));
    platform.advance(5);
    assert_eq!(platform.states(&path).await, state("idle", None));
}
