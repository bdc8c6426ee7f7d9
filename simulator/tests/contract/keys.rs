//! API keys: their fields, types and states.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

const KEYS: &str = "/organizations/org-scale-1/api_keys";

fn for_shop(name: &str) -> Value {
    json!({ "key_name": name, "project_id": "shop-1" })
}

/// The id of the first key in the console with this name.
async fn id_of(platform: &Platform, name: &str) -> i64 {
    let answer = platform.console(Method::GET, "/api_keys", Value::Null).await.expect(200);
    let line = answer.body.as_array().unwrap().iter().find(|line| line["name"] == name).cloned().unwrap();
    line["id"].as_i64().unwrap()
}

#[tokio::test]
async fn api_key_fields() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = platform.post(KEYS, ADMIN, for_shop("ci")).await.expect(200);
        assert_eq!(fields(&answer.body), ["created_at", "created_by", "id", "key", "name", "project_id"]);
        assert!(answer.body["id"].is_i64());
        assert!(answer.body["key"].as_str().unwrap().len() > 32);
        assert_eq!(answer.body["name"], "ci");
        assert!(is_utc(&answer.body["created_at"]));
        assert_eq!(answer.body["created_by"], "user-ada");
        assert_eq!(answer.body["project_id"], "shop-1");
    }
}

#[tokio::test]
async fn key_type_personal_reaches_personal_projects_and_organizations_by_org_id() {
    let platform = Platform::minimal().await;
    let ids = |answer: &Answer| -> Vec<String> {
        let projects = answer.body["projects"].as_array().unwrap();
        projects.iter().map(|project| project["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&platform.get("/projects", ADMIN).await), ["notes-5"]);
    assert_eq!(ids(&platform.get("/projects?org_id=org-scale-1", ADMIN).await), ["notes-5", "other-2", "shop-1"]);
    assert_eq!(ids(&platform.get("/projects?org_id=org-scale-1", MEMBER).await), ["other-2", "shop-1"]);
    assert!(ids(&platform.get("/projects", STRANGER).await).is_empty());
    platform.get("/projects?org_id=org-scale-1", STRANGER).await.expect(404);
    platform.get("/projects/shop-1/endpoints", MEMBER).await.expect(200);
    platform.get("/projects/shop-1/endpoints", STRANGER).await.expect(404);
    platform.get("/projects/notes-5/endpoints", MEMBER).await.expect(404);
}

#[tokio::test]
async fn key_type_personal_may_have_to_name_the_organization_everywhere() {
    let yaml = WORLD.replace("settings:", "settings:\n  org_id_with_personal_keys: everywhere");
    let platform = Platform::start_with(options(&yaml, BOTH[0])).await;
    platform.get("/projects/shop-1/endpoints", ADMIN).await.expect(404);
    platform.get("/projects/shop-1/endpoints?org_id=org-launch-2", ADMIN).await.expect(404);
    platform.get("/projects/shop-1/endpoints?org_id=org-scale-1", ADMIN).await.expect(200);
    platform.get("/projects/notes-5/endpoints", ADMIN).await.expect(200);
    platform.get("/projects/shop-1/endpoints", ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn key_type_organization_reaches_all_its_projects_without_org_id_and_no_personal_ones() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = platform.get("/projects", ORGANIZATION).await.expect(200);
        let ids: Vec<&Value> =
            answer.body["projects"].as_array().unwrap().iter().map(|project| &project["id"]).collect();
        assert_eq!(ids, ["other-2", "shop-1"]);
        platform.get("/projects/shop-1/endpoints", ORGANIZATION).await.expect(200);
        platform.get("/projects/notes-5/endpoints", ORGANIZATION).await.expect(404);
        platform.get("/projects/hobby-4/endpoints", ORGANIZATION).await.expect(404);
    }
}

#[tokio::test]
async fn key_type_project_scoped_reaches_one_project_only() {
    for (profile, refused) in [(BOTH[0], 403), (BOTH[1], 404)] {
        let platform = Platform::start(profile).await;
        platform.get("/projects/shop-1/endpoints", SCOPED).await.expect(200);
        let answer = platform.post("/projects/shop-1/endpoints", SCOPED, json!({ "endpoint": primary() })).await;
        assert!(answer.status < 300, "{answer:?}");
        for path in ["/projects/other-2/endpoints", "/projects/notes-5/endpoints", "/projects/nowhere/endpoints"] {
            platform.get(path, SCOPED).await.expect(refused);
        }
    }
}

#[tokio::test]
async fn key_type_project_scoped_performs_no_organization_actions() {
    for (profile, refused) in [(BOTH[0], 403), (BOTH[1], 404)] {
        let platform = Platform::start(profile).await;
        platform.post(KEYS, SCOPED, for_shop("more")).await.expect(refused);
    }
}

#[tokio::test]
async fn key_type_project_scoped_lists_its_one_project() {
    let platform = Platform::minimal().await;
    let answer = platform.get("/projects", SCOPED).await.expect(200);
    assert_eq!(answer.body["projects"].as_array().unwrap().len(), 1);
    assert_eq!(answer.text_at("/projects/0/id"), "shop-1");
}

#[tokio::test]
async fn key_type_project_scoped_creates_and_deletes_no_projects() {
    let platform = Platform::full().await;
    platform.post("/projects", SCOPED, json!({ "project": { "name": "new" } })).await.expect(404);
    let answer = platform.delete("/projects/shop-1", SCOPED).await.expect(404);
    assert!(answer.message().starts_with("not allowed"), "{answer:?}");
    platform.get("/projects/shop-1", ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn key_project_scoped_loses_access_when_its_project_is_transferred() {
    for (profile, refused) in [(BOTH[0], 403), (BOTH[1], 404)] {
        let platform = Platform::start(profile).await;
        platform.get("/projects/shop-1/endpoints", SCOPED).await.expect(200);
        let transfer = json!({ "organization_id": "org-launch-2" });
        platform.console(Method::POST, "/projects/shop-1/transfer", transfer).await.expect(200);
        platform.get("/projects/shop-1/endpoints", SCOPED).await.expect(refused);
        platform.get("/projects/shop-1/endpoints", ORGANIZATION).await.expect(404);
        platform.get("/projects/shop-1/endpoints", LAUNCH).await.expect(200);
    }
}

#[tokio::test]
async fn key_state_none_create_key_becomes_active_and_secret_is_returned_once() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let created = platform.post(KEYS, ADMIN, for_shop("ci")).await.expect(200);
        let secret = created.text_at("/key");
        platform.get("/projects/shop-1/endpoints", &secret).await.expect(200);
        let listed = platform.console(Method::GET, "/api_keys", Value::Null).await;
        assert!(listed.text.contains("\"ci\""));
        assert!(!listed.text.contains(&secret));
    }
}

#[tokio::test]
async fn key_state_active_revoke_is_immediate_and_every_later_request_is_401() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let secret = platform.post(KEYS, ADMIN, for_shop("ci")).await.text_at("/key");
        let id = id_of(&platform, "ci").await;
        platform.console(Method::POST, &format!("/api_keys/{id}/revoke"), Value::Null).await.expect(200);
        for _ in 0..3 {
            platform.get("/projects/shop-1/endpoints", &secret).await.expect(401);
            platform.advance(86_400 * 365);
        }
    }
}

#[tokio::test]
async fn key_state_revoked_cannot_be_reactivated() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let secret = platform.post(KEYS, ADMIN, for_shop("ci")).await.text_at("/key");
        let id = id_of(&platform, "ci").await;
        for _ in 0..2 {
            let line = platform.console(Method::POST, &format!("/api_keys/{id}/revoke"), Value::Null).await.expect(200);
            assert_eq!(line.body["revoked"], true);
        }
        let renewed = platform.post(KEYS, ADMIN, for_shop("ci")).await.expect(200);
        assert_ne!(renewed.text_at("/key"), secret);
        platform.get("/projects/shop-1/endpoints", &secret).await.expect(401);
        platform.get("/projects/shop-1/endpoints", &renewed.text_at("/key")).await.expect(200);
    }
}

#[tokio::test]
async fn keys_have_no_expiry() {
    let platform = Platform::minimal().await;
    platform.advance(86_400 * 365 * 20);
    platform.get("/projects", ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn create_project_scoped_key_needs_a_personal_key_of_an_administrator() {
    for (profile, organization_key, scoped) in [(BOTH[0], 403, 403), (BOTH[1], 404, 404)] {
        let platform = Platform::start(profile).await;
        let cases = [
            (ADMIN, 200),
            (MEMBER, 403),
            (STRANGER, 404),
            (ORGANIZATION, organization_key),
            (SCOPED, scoped),
            (LAUNCH, 404),
        ];
        for (token, status) in cases {
            platform.post(KEYS, token, for_shop(&format!("by {token}"))).await.expect(status);
        }
    }
}

#[tokio::test]
async fn create_project_scoped_key_takes_key_name_and_a_project_of_the_organization() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let cases = [
            (json!({ "project_id": "shop-1" }), 400),
            (json!({ "key_name": "", "project_id": "shop-1" }), 400),
            (json!({ "key_name": 5, "project_id": "shop-1" }), 400),
            (json!({ "key_name": "a", "project_id": "nowhere" }), 404),
            (json!({ "key_name": "a", "project_id": "hobby-4" }), 404),
            (json!([]), 400),
        ];
        for (body, status) in cases {
            platform.post(KEYS, ADMIN, body).await.expect(status);
        }
    }
    Platform::minimal().await.post(KEYS, ADMIN, json!({ "key_name": "a" })).await.expect(400);
}

#[tokio::test]
async fn the_first_key_is_made_in_the_console() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = platform
            .console(Method::POST, "/users/user-eve/api_keys", json!({ "key_name": "first" }))
            .await
            .expect(201);
        platform.get("/projects?org_id=user-eve", &answer.text_at("/key")).await.expect(200);
        let answer =
            platform.console(Method::POST, "/organizations/org-free-3/api_keys", json!({ "key_name": "first" })).await;
        platform.get("/projects/hobby-4/endpoints", &answer.expect(201).text_at("/key")).await.expect(200);
        platform.console(Method::POST, "/users/nobody/api_keys", json!({ "key_name": "first" })).await.expect(404);
    }
}

#[tokio::test]
async fn limit_api_keys_per_account_is_not_strict() {
    let platform = Platform::full().await;
    let made = platform.simulator.with_world(|world, now| {
        (0..10_001).filter(|n| world.console_create_personal_key("user-ada", &format!("key {n}"), now).is_ok()).count()
    });
    assert_eq!(made.unwrap(), 10_001);
}
