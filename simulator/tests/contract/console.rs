//! The JSON API of the console.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn console_shows_no_last_active_time_of_a_new_compute() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.compute(primary()).await;
        assert_eq!(platform.line(&path).await["last_active"], Value::Null);
    }
}

#[tokio::test]
async fn console_lists_and_creates_keys() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let form = json!({ "key_name": "made here" });
        let created = platform
            .console(Method::POST, "/organizations/org-scale-1/api_keys", form)
            .await
            .expect(201);
        assert_eq!(
            fields(&created.body),
            ["created_at", "created_by", "id", "key", "name"]
        );
        let listed = platform
            .console(Method::GET, "/api_keys", Value::Null)
            .await
            .expect(200);
        let line = listed.body.as_array().unwrap().last().cloned().unwrap();
        let expected = json!({
            "id": created.body["id"], "type": "organization", "name": "made here", "owner": "org-scale-1",
            "revoked": false, "created_at": created.body["created_at"]
        });
        assert_eq!(line, expected);
        assert!(
            !listed.text.contains(&created.text_at("/key")),
            "the secret is shown once"
        );
    }
}

#[tokio::test]
async fn console_creates_changes_and_deletes_computes_of_others() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let form = json!({ "project_id": "shop-1", "branch_id": "br-main", "type": "read_write" });
        let made = platform
            .console(Method::POST, "/computes", form.clone())
            .await
            .expect(201);
        platform
            .console(Method::POST, "/computes", form)
            .await
            .expect(409);
        let id = made.text_at("/id");
        platform.advance(5);
        let change = json!({ "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 2 });
        let changed = platform
            .console(Method::PATCH, &format!("/computes/{id}"), change)
            .await
            .expect(200);
        assert_eq!(changed.text_at("/size"), "0.25 - 2 CU");
        platform.advance(5);
        platform
            .console(Method::DELETE, &format!("/computes/{id}"), Value::Null)
            .await
            .expect(200);
        platform
            .console(Method::DELETE, &format!("/computes/{id}"), Value::Null)
            .await
            .expect(404);
        assert_eq!(
            platform
                .get("/projects/shop-1/endpoints", ORGANIZATION)
                .await
                .body,
            json!({ "endpoints": [] })
        );
    }
}

#[tokio::test]
async fn console_transfers_projects() {
    let platform = Platform::new().await;
    let transfer = async |body: Value, status| {
        platform
            .console(Method::POST, "/projects/shop-1/transfer", body)
            .await
            .expect(status);
    };
    transfer(json!({ "user_id": "user-eve" }), 200).await;
    platform.get("/projects/shop-1", STRANGER).await.expect(200);
    platform
        .get("/projects/shop-1", ORGANIZATION)
        .await
        .expect(404);
    transfer(json!({ "organization_id": "org-scale-1" }), 200).await;
    platform.get("/projects/shop-1", SCOPED).await.expect(200);
    transfer(json!({ "organization_id": "org-nowhere" }), 404).await;
    transfer(json!({ "organization_id": "user-eve" }), 404).await;
    transfer(json!({}), 400).await;
}

#[tokio::test]
async fn console_moves_the_clock() {
    let platform = Platform::minimal().await;
    let before = platform
        .console(Method::GET, "/clock", Value::Null)
        .await
        .expect(200);
    assert_eq!(before.body["now"], "2026-01-05T08:00:00Z");
    let after = platform
        .console(Method::POST, "/clock/advance", json!({ "seconds": 90.5 }))
        .await
        .expect(200);
    assert_eq!(after.body["now"], "2026-01-05T08:01:30.5Z");
    platform
        .console(Method::POST, "/clock/advance", json!({ "seconds": -1 }))
        .await
        .expect(400);
}

#[tokio::test]
async fn console_pauses_the_clock_and_changes_its_speed() {
    let platform = Platform::new().await;
    let set = async |change: Value| {
        let answer = platform
            .console(Method::PATCH, "/clock", change)
            .await
            .expect(200);
        (
            answer.body["speed"].as_f64().unwrap(),
            answer.body["paused"].as_bool().unwrap(),
        )
    };
    assert_eq!(set(json!({ "paused": true })).await, (0.0, true));
    assert_eq!(
        set(json!({ "speed": 1_000_000 })).await,
        (1_000_000.0, true),
        "a paused clock stays paused"
    );
    let now = async || {
        platform
            .console(Method::GET, "/clock", Value::Null)
            .await
            .expect(200)
            .body["now"]
            .clone()
    };
    assert_eq!(now().await, "2026-01-05T08:00:00Z");
    platform.advance(60);
    assert_eq!(
        now().await,
        "2026-01-05T08:01:00Z",
        "a paused clock can be put forward"
    );
    assert_eq!(set(json!({ "paused": false })).await, (1_000_000.0, false));
    assert_ne!(
        now().await,
        "2026-01-05T08:01:00Z",
        "it goes on at its speed"
    );
    assert_eq!(
        set(json!({ "speed": 0, "paused": true })).await,
        (0.0, true)
    );
    for refused in [
        json!({ "speed": -1 }),
        json!({ "speed": "fast" }),
        json!({ "pause": true }),
    ] {
        platform
            .console(Method::PATCH, "/clock", refused)
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn console_has_a_page_for_people() {
    let platform = Platform::minimal().await;
    for path in ["", "/"] {
        let answer = platform
            .console(Method::GET, path, Value::Null)
            .await
            .expect(200);
        assert!(
            answer.text.contains("Simulated platform"),
            "{}",
            answer.text
        );
    }
    platform
        .console(Method::GET, "/nowhere", Value::Null)
        .await
        .expect(404);
    let owners = platform
        .console(Method::GET, "/owners", Value::Null)
        .await
        .expect(200);
    let expected = json!({ "type": "organization", "id": "org-scale-1", "name": "Scale" });
    assert!(
        owners.body.as_array().unwrap().contains(&expected),
        "{}",
        owners.text
    );
}

#[tokio::test]
async fn request_log_can_be_read_and_holds_no_tokens() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let key = json!({ "key_name": "ci", "project_id": "shop-1" });
        let secret = platform
            .post("/organizations/org-scale-1/api_keys", ADMIN, key)
            .await
            .text_at("/key");
        platform
            .get("/projects/shop-1/endpoints", &secret)
            .await
            .expect(200);
        platform
            .get(
                &format!("/{secret}/{ADMIN}/endpoints?limit={secret}&token={secret}&cursor=abc"),
                &secret,
            )
            .await;
        platform.get("/projects", "unknown-token").await.expect(401);
        let log = platform
            .console(Method::GET, "/requests", Value::Null)
            .await
            .expect(200);
        for token in [&secret, ADMIN, "unknown-token"] {
            assert!(!log.text.contains(token), "{}", log.text);
        }
        let entries = log.body.as_array().unwrap();
        assert_eq!(entries.len(), 4, "the console itself is not logged");
        assert_eq!(
            (&entries[1]["method"], &entries[1]["status"]),
            (&json!("GET"), &json!(200))
        );
        assert_eq!(entries[1]["path"], "/projects/shop-1/endpoints");
        assert!(entries[1]["key_id"].is_i64() && entries[1]["api"] == true);
        assert_eq!(entries[3].get("key_id"), None);
        let later = platform
            .console(Method::GET, "/requests?since=3", Value::Null)
            .await;
        assert_eq!(later.body.as_array().unwrap().len(), 1);
        platform
            .console(Method::DELETE, "/requests", Value::Null)
            .await
            .expect(204);
        assert_eq!(
            platform
                .console(Method::GET, "/requests", Value::Null)
                .await
                .body,
            json!([])
        );
    }
}
