//! Errors and authentication.

use serde_json::Value;

use crate::support::*;

#[tokio::test]
async fn without_a_key_nobody_learns_what_exists() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        for path in [
            "/projects/shop-1/endpoints",
            "/projects/nowhere/endpoints",
            "/no/such/route",
        ] {
            let url = format!("{}{path}", platform.simulator.base_url());
            let answer = platform.http.get(&url).send().await.unwrap();
            assert_eq!(answer.status(), 401, "{path}");
            let body: Value = answer.json().await.unwrap();
            assert!(body["message"].is_string(), "{body}");
        }
    }
}

#[tokio::test]
async fn error_api_key_invalid_is_401() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let url = format!("{}/projects", platform.simulator.base_url());
        platform.get("/projects", "no-such-key").await.expect(401);
        for header in [
            "Bearer",
            "Bearer ",
            ORGANIZATION,
            "Basic dGVzdA==",
            "Token test-organization-key",
        ] {
            let answer = platform
                .http
                .get(&url)
                .header("authorization", header)
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 401, "{header:?}");
        }
        let twice = platform
            .http
            .get(&url)
            .bearer_auth(ORGANIZATION)
            .header("authorization", "Bearer x")
            .send()
            .await
            .unwrap();
        assert_eq!(twice.status(), 401);
        let lower = platform
            .http
            .get(&url)
            .header("authorization", format!("bearer {ORGANIZATION}"))
            .send()
            .await
            .unwrap();
        assert_eq!(lower.status(), 200);
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_whatever_its_type() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        // The specification's statement about revoked keys is tested with a project-scoped key.
        for (id, token) in [(1, ADMIN), (4, ORGANIZATION)] {
            platform
                .console(
                    reqwest::Method::POST,
                    &format!("/api_keys/{id}/revoke"),
                    Value::Null,
                )
                .await
                .expect(200);
            platform.get("/projects", token).await.expect(401);
        }
    }
}

#[tokio::test]
async fn gaps_in_the_endpoint_set_are_gaps_in_minimal() {
    let platform = Platform::minimal().await;
    let missing = [
        "/api_keys",
        "/projects/shop-1",
        "/projects/shop-1/branches",
        "/projects/shop-1/operations",
        "/users/me",
        "/users/me/organizations",
        "/auth",
        "/regions",
    ];
    for path in missing {
        assert_eq!(
            platform.get(path, ADMIN).await.expect(404).message(),
            "this route does not exist",
            "{path}"
        );
    }
    platform
        .get("/organizations/org-scale-1/api_keys", ADMIN)
        .await
        .expect(405);
    let path = platform.active_primary().await;
    platform.get(&path, ORGANIZATION).await.expect(405);
    platform
        .push(&format!("{path}/start"), ORGANIZATION)
        .await
        .expect(404);
    platform
        .delete("/organizations/org-scale-1/api_keys/1", ADMIN)
        .await
        .expect(404);
}
