//! Keys beyond the specification.

use serde_json::{Value, json};

use crate::support::*;

const KEYS: &str = "/organizations/org-scale-1/api_keys";

fn named(name: &str) -> Value {
    json!({ "key_name": name })
}

#[tokio::test]
async fn list_personal_keys_is_a_bare_array() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform.get("/api_keys", ADMIN).await.expect(200);
        let keys = answer.body.as_array().unwrap();
        assert_eq!(keys.len(), 1);
        assert_eq!(
            fields(&keys[0]),
            [
                "created_at",
                "created_by",
                "id",
                "last_used_at",
                "last_used_from_addr",
                "name"
            ]
        );
        assert_eq!(fields(&keys[0]["created_by"]), ["id", "image", "name"]);
        assert_eq!(keys[0]["created_by"]["id"], "user-ada");
        assert!(is_utc(&keys[0]["last_used_at"]));
        assert_eq!(keys[0]["last_used_from_addr"], "127.0.0.1");
    }
}

#[tokio::test]
async fn list_organization_keys_has_neither_secrets_nor_revoked_keys() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform.get(KEYS, ADMIN).await.expect(200);
        let names: Vec<&str> = answer
            .body
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["all", "shop"]);
        assert_eq!(answer.body[0].get("project_id"), None);
        assert_eq!(answer.body[1]["project_id"], "shop-1");
        assert_eq!(answer.body[0]["last_used_at"], Value::Null);
        assert!(!answer.text.contains(SCOPED) && !answer.text.contains("\"key\""));
        let scoped = answer.body[1]["id"].as_i64().unwrap();
        platform
            .delete(&format!("{KEYS}/{scoped}"), ADMIN)
            .await
            .expect(200);
        assert_eq!(
            platform
                .get(KEYS, ADMIN)
                .await
                .body
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }
}

#[tokio::test]
async fn the_list_shows_when_and_from_where_a_key_was_used() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let last_use = async || {
            let keys = platform.get(KEYS, ADMIN).await.expect(200).body;
            let scoped = keys
                .as_array()
                .unwrap()
                .iter()
                .find(|key| key["name"] == "shop")
                .unwrap();
            (
                scoped["last_used_at"].clone(),
                scoped["last_used_from_addr"].clone(),
            )
        };
        assert_eq!(last_use().await, (Value::Null, json!("")));
        platform
            .get("/projects/shop-1/endpoints", SCOPED)
            .await
            .expect(200);
        let (at, from) = last_use().await;
        assert!(is_utc(&at), "{at}");
        assert_eq!(from, "127.0.0.1");
    }
}

#[tokio::test]
async fn list_organization_keys_by_caller() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        for (token, status) in [
            (ADMIN, 200),
            (MEMBER, 403),
            (STRANGER, 404),
            (ORGANIZATION, 200),
            (SCOPED, 404),
            (LAUNCH, 404),
        ] {
            platform.get(KEYS, token).await.expect(status);
        }
    }
}

#[tokio::test]
async fn create_personal_key_by_caller() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .post("/api_keys", MEMBER, named("second"))
            .await
            .expect(200);
        assert_eq!(
            fields(&answer.body),
            ["created_at", "created_by", "id", "key", "name"]
        );
        platform
            .get("/users/me", &answer.text_at("/key"))
            .await
            .expect(200);
        let refused = platform
            .post("/api_keys", ORGANIZATION, named("third"))
            .await
            .expect(404);
        assert_eq!(refused.message(), "not allowed for organization API keys");
        platform
            .post("/api_keys", SCOPED, named("third"))
            .await
            .expect(404);
    }
}

#[tokio::test]
async fn create_organization_key_without_a_project() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform.post(KEYS, ADMIN, named("wide")).await.expect(200);
        assert_eq!(answer.body.get("project_id"), None);
        platform
            .get("/projects/other-2/endpoints", &answer.text_at("/key"))
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn public_key_name_has_at_most_64_characters() {
    let platform = Platform::public().await;
    platform
        .post(KEYS, ADMIN, named(&"é".repeat(64)))
        .await
        .expect(200);
    platform
        .post(KEYS, ADMIN, named(&"é".repeat(65)))
        .await
        .expect(400);
}

#[tokio::test]
async fn public_key_name_is_unique_in_an_account() {
    let yaml = WORLD.replace("name: shop, token", "name: all, token");
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    let first = platform.post(KEYS, ADMIN, named("ci")).await.expect(200);
    let refused = platform
        .post(
            KEYS,
            ADMIN,
            json!({ "key_name": "ci", "project_id": "shop-1" }),
        )
        .await
        .expect(409);
    assert_eq!(refused.message(), "choose another unique name for api key");
    platform
        .post("/api_keys", ADMIN, named("ci"))
        .await
        .expect(200);
    platform
        .post("/organizations/org-launch-2/api_keys", ADMIN, named("ci"))
        .await
        .expect(200);
    platform
        .delete(&format!("{KEYS}/{}", first.body["id"]), ADMIN)
        .await
        .expect(200);
    platform.post(KEYS, ADMIN, named("ci")).await.expect(200);
    // Two keys of the world file are named `all`, so the name is free after both are revoked.
    for (id, status) in [(4, 409), (7, 200)] {
        platform
            .delete(&format!("{KEYS}/{id}"), ADMIN)
            .await
            .expect(200);
        platform
            .post(KEYS, ADMIN, named("all"))
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn revoke_organization_key() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let created = platform
            .post(
                KEYS,
                ADMIN,
                json!({ "key_name": "ci", "project_id": "shop-1" }),
            )
            .await
            .expect(200);
        let (path, secret) = (
            format!("{KEYS}/{}", created.body["id"]),
            created.text_at("/key"),
        );
        platform
            .get("/projects/shop-1/endpoints", &secret)
            .await
            .expect(200);
        for (token, status) in [
            (MEMBER, 403),
            (STRANGER, 404),
            (ORGANIZATION, 404),
            (SCOPED, 404),
        ] {
            platform.delete(&path, token).await.expect(status);
        }
        let revoked = platform.delete(&path, ADMIN).await.expect(200);
        let expected = [
            "created_at",
            "created_by",
            "id",
            "last_used_at",
            "last_used_from_addr",
            "name",
            "project_id",
            "revoked",
        ];
        assert_eq!(fields(&revoked.body), expected);
        assert_eq!(
            (&revoked.body["revoked"], &revoked.body["created_by"]),
            (&json!(true), &json!("user-ada"))
        );
        platform
            .get("/projects/shop-1/endpoints", &secret)
            .await
            .expect(401);
        platform.delete(&path, ADMIN).await.expect(404);
    }
}

#[tokio::test]
async fn revoke_reaches_only_keys_of_the_same_account() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let own = platform.get("/api_keys", ADMIN).await.body[0]["id"].clone();
        platform
            .delete(&format!("/api_keys/{own}"), MEMBER)
            .await
            .expect(404);
        platform
            .delete(&format!("{KEYS}/{own}"), ADMIN)
            .await
            .expect(404);
        platform.delete("/api_keys/twelve", ADMIN).await.expect(400);
        platform
            .delete(&format!("/api_keys/{own}"), ADMIN)
            .await
            .expect(200);
        platform.get("/api_keys", ADMIN).await.expect(401);
    }
}

#[tokio::test]
async fn auth_returns_the_type_of_key() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let cases = [
            (ADMIN, "api_key_user", "user-ada"),
            (ORGANIZATION, "api_key_org", "org-scale-1"),
            (SCOPED, "api_key_org", "org-scale-1"),
        ];
        for (token, method, account) in cases {
            let answer = platform.get("/auth", token).await.expect(200);
            assert_eq!(
                (
                    answer.text_at("/auth_method"),
                    answer.text_at("/account_id")
                ),
                (method.into(), account.into())
            );
        }
    }
}

#[tokio::test]
async fn users_me_is_for_people() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform.get("/users/me", ADMIN).await.expect(200);
        assert_eq!(
            (answer.text_at("/id"), answer.text_at("/plan")),
            ("user-ada".into(), "free".into())
        );
        assert!(
            answer.body["projects_limit"].is_u64()
                && answer.body["max_autoscaling_limit"].is_number()
        );
        for path in ["/users/me", "/regions"] {
            assert_eq!(
                platform.get(path, ORGANIZATION).await.expect(404).message(),
                "not allowed for organization API keys"
            );
        }
    }
}

#[tokio::test]
async fn my_organizations_by_caller() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let cases: [(&str, &[&str]); 4] = [
            (ADMIN, &["org-free-3", "org-launch-2", "org-scale-1"]),
            (MEMBER, &["org-scale-1"]),
            (ORGANIZATION, &["org-scale-1"]),
            (SCOPED, &["org-scale-1"]),
        ];
        for (token, expected) in cases {
            let answer = platform
                .get("/users/me/organizations", token)
                .await
                .expect(200);
            let ids: Vec<&Value> = answer.body["organizations"]
                .as_array()
                .unwrap()
                .iter()
                .map(|own| &own["id"])
                .collect();
            assert_eq!(ids, expected, "{token}");
        }
    }
}

#[tokio::test]
async fn organization_and_members() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .get("/organizations/org-scale-1", MEMBER)
            .await
            .expect(200);
        assert_eq!(
            (answer.text_at("/id"), answer.text_at("/plan")),
            ("org-scale-1".into(), "scale".into())
        );
        let members = platform
            .get("/organizations/org-scale-1/members", MEMBER)
            .await
            .expect(200);
        assert_eq!(members.text_at("/members/0/member/user_id"), "user-ada");
        assert_eq!(members.text_at("/members/0/member/role"), "admin");
        assert_eq!(members.text_at("/members/0/user/email"), "ada@example.com");
        platform
            .get("/organizations/org-scale-1", STRANGER)
            .await
            .expect(404);
        platform
            .get("/organizations/org-nowhere", ADMIN)
            .await
            .expect(404);
    }
}
