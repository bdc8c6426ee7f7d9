//! Computes: their fields and the calls on them.

use serde_json::{Value, json};

use crate::support::*;

const COMPUTES: &str = "/projects/shop-1/endpoints";

/// Without `last_active` and `pending_state`, which are optional.
const SPECIFIED: [&str; 17] = [
    "autoscaling_limit_max_cu",
    "autoscaling_limit_min_cu",
    "branch_id",
    "created_at",
    "current_state",
    "disabled",
    "host",
    "id",
    "passwordless_access",
    "pooler_enabled",
    "pooler_mode",
    "project_id",
    "proxy_host",
    "region_id",
    "settings",
    "type",
    "updated_at",
];

async fn create(platform: &Platform, attributes: Value) -> Answer {
    platform
        .post(COMPUTES, ORGANIZATION, json!({ "endpoint": attributes }))
        .await
}

#[tokio::test]
async fn compute_fields() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let compute = platform.listed(&path).await;
        let present = fields(&compute);
        assert!(
            SPECIFIED.iter().all(|name| present.contains(name)),
            "{compute}"
        );
        assert!(compute["id"].as_str().unwrap().starts_with("ep-"));
        assert!(
            compute["host"]
                .as_str()
                .unwrap()
                .starts_with(compute["id"].as_str().unwrap())
        );
        assert_eq!(compute["project_id"], "shop-1");
        assert_eq!(compute["branch_id"], "br-main");
        assert_eq!(compute["region_id"], "aws-eu-central-1");
        assert_eq!(compute["type"], "read_write");
        assert!(
            compute["autoscaling_limit_min_cu"].is_number()
                && compute["autoscaling_limit_max_cu"].is_number()
        );
        assert_eq!(compute["current_state"], "active");
        assert!(compute["settings"].is_object());
        assert!(compute["pooler_enabled"].is_boolean());
        assert_eq!(compute["pooler_mode"], "transaction");
        assert!(compute["disabled"].is_boolean() && compute["passwordless_access"].is_boolean());
        assert!(
            is_utc(&compute["last_active"])
                && is_utc(&compute["created_at"])
                && is_utc(&compute["updated_at"])
        );
        assert!(compute["proxy_host"].is_string());
        assert!(
            !compute.as_object().unwrap().values().any(Value::is_null),
            "absent, never null: {compute}"
        );
    }
}

#[tokio::test]
async fn compute_fields_other_than_those_listed_are_not_in_minimal() {
    let platform = Platform::minimal().await;
    let path = platform.active_primary().await;
    let mut expected = SPECIFIED.to_vec();
    expected.push("last_active");
    expected.sort_unstable();
    assert_eq!(fields(&platform.listed(&path).await), expected);
}

#[tokio::test]
async fn create_compute_needs_an_existing_branch_and_a_known_type() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let cases = [
            (json!({ "type": "read_write" }), 400),
            (json!({ "branch_id": "br-main", "type": "write_only" }), 400),
            (
                json!({ "branch_id": "br-nowhere", "type": "read_write" }),
                404,
            ),
            (
                json!({ "branch_id": "br-other", "type": "read_write" }),
                404,
            ),
            (
                json!({ "branch_id": "br-main", "type": "read_write", "region_id": "elsewhere" }),
                400,
            ),
            (
                json!({ "branch_id": "br-main", "type": "read_write", "pooler_mode": "session" }),
                400,
            ),
            (
                json!({ "branch_id": "br-main", "type": "read_write", "disabled": "yes" }),
                400,
            ),
            (
                json!({ "branch_id": "br-main", "type": "read_write", "autoscaling_limit_min_cu": "1" }),
                400,
            ),
            (
                json!({ "branch_id": "br-main", "type": "read_write", "settings": { "pg_settings": { "a": 1 } } }),
                400,
            ),
            (json!("text"), 400),
        ];
        for (attributes, status) in cases {
            create(&platform, attributes).await.expect(status);
        }
        platform.push(COMPUTES, ORGANIZATION).await.expect(400);
        let broken = platform
            .http
            .post(format!("{}{COMPUTES}", platform.simulator.base_url()));
        let broken = broken
            .bearer_auth(ORGANIZATION)
            .body("{\"endpoint\":")
            .send()
            .await
            .unwrap();
        assert_eq!(broken.status(), 400);
        assert_eq!(
            platform.get(COMPUTES, ORGANIZATION).await.body,
            json!({ "endpoints": [] })
        );
    }
}

#[tokio::test]
async fn create_compute_takes_the_attributes_of_the_compute() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let mut attributes = json!({
            "branch_id": "br-main", "type": "read_only", "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 4,
            "settings": { "pg_settings": { "work_mem": "8MB" } }, "pooler_enabled": true, "pooler_mode": "transaction",
            "passwordless_access": false, "disabled": false
        });
        let answer = create(&platform, attributes.clone()).await;
        attributes
            .as_object_mut()
            .unwrap()
            .insert("project_id".into(), "shop-1".into());
        for (name, value) in attributes.as_object().unwrap() {
            assert_eq!(&answer.body["endpoint"][name], value, "{name}");
        }
        assert!(
            answer.text.contains("\"autoscaling_limit_max_cu\":4,"),
            "whole sizes have no fraction: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn create_compute_ignores_unknown_attributes() {
    let platform = Platform::minimal().await;
    let answer = create(
        &platform,
        json!({ "branch_id": "br-main", "type": "read_write", "name": "x", "suspend_timeout_seconds": -7, "colour": 1 }),
    )
    .await;
    assert!(answer.status < 300, "{answer:?}");
    for name in [
        "name",
        "suspend_timeout_seconds",
        "colour",
        "provisioner",
        "creation_source",
    ] {
        assert!(answer.body["endpoint"].get(name).is_none(), "{name}");
    }
}

#[tokio::test]
async fn update_compute_leaves_what_is_not_sent() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let before = platform.listed(&path).await;
        let answer = platform
            .patch(&path, ORGANIZATION, json!({ "endpoint": {} }))
            .await
            .expect(200);
        assert_eq!(answer.operations(), operations(&[]));
        let change = json!({ "endpoint": { "passwordless_access": false } });
        platform
            .patch(&path, ORGANIZATION, change)
            .await
            .expect(200);
        let after = platform.listed(&path).await;
        for name in [
            "branch_id",
            "autoscaling_limit_min_cu",
            "autoscaling_limit_max_cu",
            "pooler_enabled",
            "host",
            "id",
        ] {
            assert_eq!(before[name], after[name], "{name}");
        }
    }
}

#[tokio::test]
async fn update_compute_cannot_move_to_a_branch_with_a_primary() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let other = platform
            .compute(json!({ "branch_id": "br-dev", "type": "read_write" }))
            .await;
        platform.advance(5);
        let to = |branch: &str| json!({ "endpoint": { "branch_id": branch } });
        platform
            .patch(&path, ORGANIZATION, to("br-dev"))
            .await
            .expect(409);
        platform
            .patch(&path, ORGANIZATION, to("br-nowhere"))
            .await
            .expect(404);
        assert_eq!(platform.listed(&path).await["branch_id"], "br-main");
        platform.delete(&other, ORGANIZATION).await.expect(200);
        platform
            .patch(&path, ORGANIZATION, to("br-dev"))
            .await
            .expect(200);
        let moved = platform.listed(&path).await;
        assert_eq!(moved["branch_id"], "br-dev");
        platform.compute(primary()).await;
    }
}

#[tokio::test]
async fn restart_compute_is_accepted_without_a_body() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        platform
            .push(&format!("{path}/restart"), ORGANIZATION)
            .await
            .expect(200);
        platform
            .push(&format!("{path}0/restart"), ORGANIZATION)
            .await
            .expect(404);
    }
}
