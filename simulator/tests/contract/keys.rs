//! API keys.

use reqwest::Method;
use serde_json::json;

use crate::support::*;

const KEYS: &str = "/organizations/org-scale-1/api_keys";

#[tokio::test]
async fn a_world_says_where_a_personal_key_names_the_organization() {
    for profile in Profile::ALL {
        for (setting, without) in [("everywhere", 404), ("lists", 200)] {
            let setting = format!("settings:\n  org_id_with_personal_keys: {setting}");
            let platform =
                Platform::start_with(options(&WORLD.replace("settings:", &setting), profile)).await;
            let cases = [
                ("/projects/shop-1/endpoints", ADMIN, without),
                (
                    "/projects/shop-1/endpoints?org_id=org-launch-2",
                    ADMIN,
                    without,
                ),
                ("/projects/shop-1/endpoints?org_id=org-scale-1", ADMIN, 200),
                ("/projects/notes-5/endpoints", ADMIN, 200),
                ("/projects/shop-1/endpoints", ORGANIZATION, 200),
            ];
            for (path, token, status) in cases {
                platform.get(path, token).await.expect(status);
            }
        }
    }
}

#[tokio::test]
async fn a_project_scoped_key_that_deletes_its_project_learns_that_it_may_not() {
    for profile in BEYOND {
        let answer = Platform::start(profile)
            .await
            .delete("/projects/shop-1", SCOPED)
            .await
            .expect(404);
        assert!(answer.message().starts_with("not allowed"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_key_is_not_created_without_a_name_or_an_object() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        for body in [json!({ "key_name": "", "project_id": "shop-1" }), json!([])] {
            platform.post(KEYS, ADMIN, body).await.expect(400);
        }
    }
}

#[tokio::test]
async fn the_first_key_is_made_in_the_console() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let answer = platform
            .console(
                Method::POST,
                "/users/user-eve/api_keys",
                json!({ "key_name": "first" }),
            )
            .await
            .expect(201);
        let path = if profile == Profile::Minimal {
            "/projects"
        } else {
            "/projects?org_id=user-eve"
        };
        platform
            .get(path, &answer.text_at("/key"))
            .await
            .expect(200);
        let answer = platform
            .console(
                Method::POST,
                "/organizations/org-free-3/api_keys",
                json!({ "key_name": "first" }),
            )
            .await;
        platform
            .get(
                "/projects/hobby-4/endpoints",
                &answer.expect(201).text_at("/key"),
            )
            .await
            .expect(200);
        platform
            .console(
                Method::POST,
                "/users/nobody/api_keys",
                json!({ "key_name": "first" }),
            )
            .await
            .expect(404);
    }
}

#[tokio::test]
async fn only_administrators_create_keys_of_an_organization_in_the_console_too() {
    let yaml = WORLD.replace(
        "id: org-free-3, plan: free, members: [{user: user-ada, role: admin}]",
        "id: org-free-3, plan: free",
    );
    let yaml = yaml.replace(
        "  - {type: organization, owner: org-free-3, name: all, token: test-free-key}\n",
        "",
    );
    let platform = Platform::start_with(options(&yaml, Profile::Default)).await;
    let form = json!({ "key_name": "nobody's" });
    platform
        .console(Method::POST, "/organizations/org-free-3/api_keys", form)
        .await
        .expect(403);
    let form = json!({ "key_name": "narrow", "project_id": "notes-5" });
    platform
        .console(Method::POST, "/users/user-ada/api_keys", form)
        .await
        .expect(400);
}
