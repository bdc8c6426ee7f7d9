//! Lists, error bodies and rate limits beyond the specification.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::*;

/// The test world with 25 more projects of one organization.
async fn crowded() -> Platform {
    let mut more = String::from("projects:\n");
    for n in 0..25 {
        writeln!(
            more,
            "  - {{id: mass-{n:02}, name: \"n{n}\", owner: org-launch-2, branches: [{{id: br-1}}, {{id: br-2}}]}}"
        )
        .unwrap();
    }
    Platform::start_with(options(
        &WORLD.replace("projects:\n", &more),
        Profile::Public,
    ))
    .await
}

fn ids(answer: &Answer, list: &str) -> Vec<String> {
    answer.body[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn projects_come_10_to_a_page_by_default() {
    let platform = crowded().await;
    let (mut path, mut pages) = ("/projects".to_owned(), Vec::new());
    loop {
        let answer = platform.get(&path, LAUNCH).await.expect(200);
        pages.push(ids(&answer, "projects"));
        let Some(cursor) = answer.body.pointer("/pagination/cursor") else {
            break;
        };
        path = format!("/projects?cursor={}", cursor.as_str().unwrap());
    }
    let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
    assert_eq!(
        sizes,
        [10, 10, 6, 0],
        "the last page has a cursor to an empty one"
    );
    let mut all = pages.concat();
    all.dedup();
    assert_eq!(all.len(), 26);
}

#[tokio::test]
async fn projects_limit_search_and_cursor() {
    let platform = crowded().await;
    assert_eq!(
        ids(
            &platform.get("/projects?limit=400", LAUNCH).await,
            "projects"
        )
        .len(),
        26
    );
    assert_eq!(
        ids(&platform.get("/projects?limit=3", LAUNCH).await, "projects").len(),
        3
    );
    assert_eq!(
        ids(
            &platform.get("/projects?search=n24", LAUNCH).await,
            "projects"
        ),
        ["mass-24"]
    );
    assert_eq!(
        ids(
            &platform.get("/projects?search=rock", LAUNCH).await,
            "projects"
        ),
        ["rocket-3"]
    );
    for query in ["limit=0", "limit=401", "limit=x", "cursor=x"] {
        platform
            .get(&format!("/projects?{query}"), LAUNCH)
            .await
            .expect(400);
    }
    let answer = platform.get("/projects", LAUNCH).await;
    assert_eq!(
        fields(&answer.body),
        ["applications", "integrations", "pagination", "projects"]
    );
}

#[tokio::test]
async fn public_projects_need_org_id_with_a_personal_key() {
    let platform = Platform::public().await;
    let refused = platform.get("/projects", ADMIN).await.expect(400);
    assert!(
        refused.message().starts_with("org_id is required"),
        "{refused:?}"
    );
    assert_eq!(
        ids(
            &platform.get("/projects?org_id=org-scale-1", ADMIN).await,
            "projects"
        ),
        ["other-2", "shop-1"]
    );
    assert_eq!(
        ids(
            &platform.get("/projects?org_id=user-ada", ADMIN).await,
            "projects"
        ),
        ["notes-5"]
    );
    platform
        .get("/projects?org_id=org-scale-1", STRANGER)
        .await
        .expect(404);
    platform
        .get("/projects?org_id=org-launch-2", ORGANIZATION)
        .await
        .expect(404);
}

#[tokio::test]
async fn public_projects_are_refused_to_a_project_scoped_key() {
    let platform = Platform::public().await;
    let refused = platform.get("/projects", SCOPED).await.expect(404);
    let expected = "not allowed to perform actions outside the project this key is scoped to; subject_project_id:\"shop-1\"";
    assert_eq!(refused.message(), expected);
}

#[tokio::test]
async fn branches_page_by_next() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let first = platform
            .get(
                "/projects/shop-1/branches?limit=2&sort_by=name&sort_order=asc",
                ORGANIZATION,
            )
            .await
            .expect(200);
        assert_eq!(ids(&first, "branches"), ["br-dev", "br-kept"]);
        let next = first.text_at("/pagination/next");
        let path =
            format!("/projects/shop-1/branches?limit=2&sort_by=name&sort_order=asc&cursor={next}");
        let second = platform.get(&path, ORGANIZATION).await.expect(200);
        assert_eq!(ids(&second, "branches"), ["br-main"]);
        assert_eq!(second.body["pagination"].get("next"), None);
        assert!(first.body["annotations"].is_object());
    }
}

#[tokio::test]
async fn branches_search_sort_and_fields() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .get("/projects/shop-1/branches?search=main", ORGANIZATION)
            .await
            .expect(200);
        let branch = &answer.body["branches"][0];
        assert_eq!(
            (&branch["id"], &branch["default"], &branch["protected"]),
            (&json!("br-main"), &json!(true), &json!(false))
        );
        assert_eq!(branch.get("parent_id"), None);
        let sorted = platform
            .get(
                "/projects/shop-1/branches?sort_by=name&sort_order=desc",
                ORGANIZATION,
            )
            .await;
        assert_eq!(ids(&sorted, "branches"), ["br-main", "br-kept", "br-dev"]);
        platform
            .get("/projects/shop-1/branches?sort_by=colour", ORGANIZATION)
            .await
            .expect(400);
        let one = platform
            .get("/projects/shop-1/branches/br-dev", ORGANIZATION)
            .await
            .expect(200);
        assert_eq!(one.text_at("/branch/parent_id"), "br-main");
        assert_eq!(one.text_at("/annotation/object/id"), "br-dev");
        platform
            .get("/projects/shop-1/branches/br-no", ORGANIZATION)
            .await
            .expect(404);
    }
}

#[tokio::test]
async fn operations_page_by_cursor() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        for _ in 0..5 {
            platform.compute(replica()).await;
        }
        let (mut path, mut seen) = ("/projects/shop-1/operations?limit=2".to_owned(), Vec::new());
        loop {
            let answer = platform.get(&path, ORGANIZATION).await.expect(200);
            seen.extend(ids(&answer, "operations"));
            let Some(cursor) = answer.body.pointer("/pagination/cursor") else {
                break;
            };
            path = format!(
                "/projects/shop-1/operations?limit=2&cursor={}",
                cursor.as_str().unwrap()
            );
        }
        seen.dedup();
        assert_eq!(seen.len(), 5);
        platform
            .get("/projects/shop-1/operations?limit=1001", ORGANIZATION)
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn error_body_has_request_id_code_and_message() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .get("/projects/nowhere", ORGANIZATION)
            .await
            .expect(404);
        assert_eq!(fields(&answer.body), ["code", "message", "request_id"]);
        assert_eq!(answer.body["code"], "");
        assert_eq!(
            answer.headers["x-request-id"],
            answer.text_at("/request_id")
        );
        let other = platform.get("/projects/nowhere", ORGANIZATION).await;
        assert_ne!(other.text_at("/request_id"), answer.text_at("/request_id"));
    }
}

#[tokio::test]
async fn request_id_is_echoed() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let url = format!("{}/projects/nowhere", platform.simulator.base_url());
        let request = platform
            .http
            .get(url)
            .bearer_auth(ORGANIZATION)
            .header("x-request-id", "mine-1");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["x-request-id"], "mine-1");
        assert_eq!(
            answer.json::<Value>().await.unwrap()["request_id"],
            "mine-1"
        );
    }
}

#[tokio::test]
async fn unknown_route_is_404_and_wrong_method_405() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        assert_eq!(
            platform
                .get("/no/such/route", ORGANIZATION)
                .await
                .expect(404)
                .message(),
            "this route does not exist"
        );
        platform.delete("/auth", ORGANIZATION).await.expect(405);
        platform
            .patch("/projects/shop-1/endpoints", ORGANIZATION, json!({}))
            .await
            .expect(405);
        platform
            .get("/projects/Not_an_id/endpoints", ORGANIZATION)
            .await
            .expect(400);
    }
}

/// A world with low limits and a stopped clock; rate limits count on the real clock.
async fn limited(limits: &str) -> Platform {
    let yaml = WORLD.replace(
        "rate_limit: {enabled: false}",
        &format!("rate_limit: {limits}"),
    );
    Platform::start_with(options(&yaml, Profile::Public)).await
}

#[tokio::test]
async fn rate_limit_of_an_account_is_429_with_retry_after() {
    let platform = limited("{per_minute: 3}").await;
    for _ in 0..3 {
        platform.get("/projects", ORGANIZATION).await.expect(200);
    }
    let refused = platform.get("/auth", ORGANIZATION).await.expect(429);
    let seconds: u64 = refused.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((55..=60).contains(&seconds), "{seconds}");
    platform.get("/auth", SCOPED).await.expect(429);
    platform.get("/auth", LAUNCH).await.expect(200);
    platform.get("/auth", "nobody").await.expect(401);
}

#[tokio::test]
async fn rate_limit_of_a_route_and_of_key_creation() {
    let platform = limited("{per_second_per_route: 2, key_creations_per_second: 1}").await;
    let mut statuses = Vec::new();
    for n in 0..2 {
        let key = json!({ "key_name": format!("key {n}") });
        statuses.push(
            platform
                .post("/organizations/org-scale-1/api_keys", ADMIN, key)
                .await
                .status,
        );
    }
    assert_eq!(statuses, [200, 429]);
}
