//! Faults of proxies, gateways and login pages in front of the platform.

use reqwest::redirect::Policy;
use serde_json::json;

use crate::faults::{COMPUTES, count, order};
use crate::support::*;

const KEYS: &str = "/organizations/org-scale-1/api_keys";

#[tokio::test]
async fn fault_repeat_does_the_work_twice_and_returns_the_second_answer() {
    let platform = Platform::new().await;
    order(
        &platform,
        json!({ "kind": "repeat", "method": "POST", "times": 4 }),
    )
    .await;
    platform
        .post(COMPUTES, ORGANIZATION, json!({ "endpoint": primary() }))
        .await
        .expect(409);
    assert_eq!(count(&platform).await, 1, "the first was done");
    platform.compute(replica()).await;
    assert_eq!(count(&platform).await, 3);

    let created = platform
        .post(
            KEYS,
            ADMIN,
            json!({ "key_name": "ci", "project_id": "shop-1" }),
        )
        .await
        .expect(200);
    let keys = platform.get(KEYS, ADMIN).await.expect(200).body;
    let named = keys
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["name"] == "ci")
        .map(|key| &key["id"]);
    let named: Vec<_> = named.collect();
    assert_eq!((named.len(), named.last()), (2, Some(&&created.body["id"])));

    platform.advance(60);
    let computes = platform.get(COMPUTES, ORGANIZATION).await.expect(200).body["endpoints"].clone();
    let restart = format!("{COMPUTES}/{}/restart", computes[0]["id"].as_str().unwrap());
    platform.push(&restart, ORGANIZATION).await.expect(200);
    let operations = platform
        .get("/projects/shop-1/operations", ORGANIZATION)
        .await
        .expect(200)
        .operations();
    assert_eq!(
        operations
            .iter()
            .filter(|(action, _)| action == "suspend_compute")
            .count(),
        2,
        "{operations:?}"
    );
}

#[tokio::test]
async fn fault_redirect_does_the_work_and_names_another_address() {
    let platform = Platform::new().await;
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .build()
        .unwrap();
    let own = format!("/api/v2{COMPUTES}?a=b");
    for (fault, status, location) in [
        (json!({}), 302, own.as_str()),
        (json!({ "status": 307 }), 307, &own),
        (
            json!({ "location": "https://login.example/" }),
            302,
            "https://login.example/",
        ),
    ] {
        let before = count(&platform).await;
        let mut ordered = fault;
        (ordered["kind"], ordered["method"]) = ("redirect".into(), "POST".into());
        order(&platform, ordered).await;
        let url = format!("{}{COMPUTES}?a=b", platform.simulator.base_url());
        let request = http
            .post(url)
            .bearer_auth(ORGANIZATION)
            .json(&json!({ "endpoint": replica() }));
        let answer = answer(request.send().await.unwrap()).await.expect(status);
        assert_eq!(answer.headers["location"], location);
        assert_eq!(count(&platform).await, before + 1);
    }
}

#[tokio::test]
async fn fault_login_page_is_html_with_200_whether_it_was_done_or_not() {
    let platform = Platform::new().await;
    for (kind, done) in [("login_page", 0), ("login_page_after_work", 1)] {
        order(&platform, json!({ "kind": kind, "method": "POST" })).await;
        let answer = platform
            .post(COMPUTES, ORGANIZATION, json!({ "endpoint": primary() }))
            .await
            .expect(200);
        assert_eq!(answer.headers["content-type"], "text/html");
        assert!(answer.text.contains("<form"), "{}", answer.text);
        assert_eq!(count(&platform).await, done, "{kind}");
    }
}

#[tokio::test]
async fn fault_gateway_page_is_html_and_nothing_is_done() {
    let platform = Platform::new().await;
    for (fault, status) in [
        (json!({}), 502),
        (json!({ "status": 404 }), 404),
        (json!({ "status": 403, "body": "<h1>Blocked</h1>" }), 403),
    ] {
        let own = fault["body"].as_str().map(str::to_owned);
        let mut ordered = fault;
        (ordered["kind"], ordered["method"]) = ("gateway_page".into(), "POST".into());
        order(&platform, ordered).await;
        let answer = platform
            .post(COMPUTES, ORGANIZATION, json!({ "endpoint": primary() }))
            .await
            .expect(status);
        assert_eq!(answer.headers["content-type"], "text/html");
        assert!(
            answer
                .text
                .contains(&own.unwrap_or(format!("<h1>{status}</h1>"))),
            "{}",
            answer.text
        );
        assert_eq!(count(&platform).await, 0);
    }
}
