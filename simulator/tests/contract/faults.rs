//! Ordered faults.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

pub const COMPUTES: &str = "/projects/shop-1/endpoints";

pub async fn order(platform: &Platform, fault: Value) {
    platform
        .console(Method::POST, "/faults", fault)
        .await
        .expect(201);
}

/// Sends a create and returns its error.
async fn failed_create(platform: &Platform) -> reqwest::Error {
    let url = format!("{}{COMPUTES}", platform.simulator.base_url());
    let request = platform
        .http
        .post(url)
        .bearer_auth(ORGANIZATION)
        .json(&json!({ "endpoint": primary() }));
    let answer = request.send().await;
    match answer {
        Ok(answer) => answer.text().await.unwrap_err(),
        Err(error) => error,
    }
}

pub async fn count(platform: &Platform) -> usize {
    platform.get(COMPUTES, ORGANIZATION).await.expect(200).body["endpoints"]
        .as_array()
        .unwrap()
        .len()
}

#[tokio::test]
async fn fault_status_answers_without_the_work() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        order(
            &platform,
            json!({ "method": "POST", "path": "/endpoints$", "status": 503, "retry_after": 7, "times": 2 }),
        )
        .await;
        for _ in 0..2 {
            let answer = platform
                .post(COMPUTES, ORGANIZATION, json!({ "endpoint": primary() }))
                .await
                .expect(503);
            assert_eq!(answer.headers["retry-after"], "7");
        }
        assert_eq!(count(&platform).await, 0);
        platform.compute(primary()).await;
    }
}

#[tokio::test]
async fn fault_status_has_any_body_and_either_form_of_retry_after() {
    let platform = Platform::new().await;
    order(
        &platform,
        json!({ "status": 524, "body": "<html>time-out</html>" }),
    )
    .await;
    let answer = platform.get("/projects", ORGANIZATION).await.expect(524);
    assert_eq!(
        (answer.text.as_str(), &answer.headers["content-type"]),
        ("<html>time-out</html>", &"text/html".parse().unwrap())
    );
    let date = "Wed, 07 Jan 2026 08:00:00 GMT";
    order(
        &platform,
        json!({ "status": 429, "retry_after": date, "body": { "message": "slow down" } }),
    )
    .await;
    let answer = platform.get("/projects", ORGANIZATION).await.expect(429);
    assert_eq!(
        (
            answer.message().as_str(),
            answer.headers["retry-after"].to_str().unwrap()
        ),
        ("slow down", date)
    );
    order(&platform, json!({ "status": 401 })).await;
    platform.get("/projects", ORGANIZATION).await.expect(401);
    platform.get("/projects", ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn fault_status_after_work_does_the_work() {
    let platform = Platform::new().await;
    order(
        &platform,
        json!({ "method": "POST", "kind": "status_after_work", "status": 500 }),
    )
    .await;
    platform
        .post(COMPUTES, ORGANIZATION, json!({ "endpoint": primary() }))
        .await
        .expect(500);
    assert_eq!(count(&platform).await, 1);
}

#[tokio::test]
async fn fault_delay_answers_late() {
    let platform = Platform::new().await;
    order(&platform, json!({ "delay_ms": 150 })).await;
    let before = Instant::now();
    platform.get("/projects", ORGANIZATION).await.expect(200);
    assert!(before.elapsed() >= Duration::from_millis(150));
}

/// Otherwise a test that waits for the end of all requests would hang if a client has disconnected.
#[tokio::test]
async fn a_request_is_over_once_it_is_answered_or_its_client_has_gone() {
    let platform = Platform::new().await;
    platform.get("/projects", ORGANIZATION).await.expect(200);
    order(&platform, json!({ "delay_ms": 60_000 })).await;
    let url = format!("{}/projects", platform.simulator.base_url());
    let request = platform
        .http
        .get(url)
        .bearer_auth(ORGANIZATION)
        .timeout(Duration::from_millis(300));
    assert!(request.send().await.unwrap_err().is_timeout());
    let seen = || {
        platform
            .simulator
            .requests(0)
            .iter()
            .map(|entry| (entry.status, entry.over))
            .collect::<Vec<_>>()
    };
    let begun = Instant::now();
    while seen().len() < 2 || !seen()[1].1 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", seen());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(seen(), [(Some(200), true), (None, true)]);
}

#[tokio::test]
async fn fault_lose_answer_does_the_work_and_closes_the_connection() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        order(
            &platform,
            json!({ "method": "POST", "kind": "lose_answer" }),
        )
        .await;
        let error = failed_create(&platform).await;
        assert!(error.is_request() && error.status().is_none(), "{error:?}");
        assert_eq!(count(&platform).await, 1);
        let log = platform.simulator.requests(0);
        assert_eq!((log[0].status, log[1].status), (None, Some(200)));
    }
}

#[tokio::test]
async fn fault_drop_closes_the_connection_before_the_work() {
    let platform = Platform::new().await;
    order(&platform, json!({ "method": "POST", "kind": "drop" })).await;
    let error = failed_create(&platform).await;
    assert!(error.is_request(), "{error:?}");
    assert_eq!(count(&platform).await, 0);
}

#[tokio::test]
async fn fault_late_work_closes_the_connection_and_does_the_work_later() {
    let platform = Platform::new().await;
    order(
        &platform,
        json!({ "method": "POST", "kind": "late_work", "delay_ms": 300 }),
    )
    .await;
    let begun = Instant::now();
    let error = failed_create(&platform).await;
    assert!(error.is_request() && error.status().is_none(), "{error:?}");
    assert_eq!(count(&platform).await, 0);
    let done = async { while count(&platform).await == 0 {} };
    tokio::time::timeout(Duration::from_secs(20), done)
        .await
        .unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn fault_cut_body_does_the_work_and_sends_half_of_the_answer() {
    let platform = Platform::new().await;
    order(&platform, json!({ "method": "POST", "kind": "cut_body" })).await;
    let error = failed_create(&platform).await;
    assert!(
        error.is_body() || error.is_decode(),
        "the head arrived: {error:?}"
    );
    assert_eq!(count(&platform).await, 1);
}

async fn listed(platform: &Platform) -> Vec<Value> {
    platform.get(COMPUTES, ORGANIZATION).await.expect(200).body["endpoints"]
        .as_array()
        .unwrap()
        .clone()
}

/// Creates two computes and lists them.
async fn two(platform: &Platform) -> Vec<Value> {
    for _ in 0..2 {
        platform
            .compute(json!({ "branch_id": "br-main", "type": "read_only" }))
            .await;
    }
    listed(platform).await
}

#[tokio::test]
async fn fault_odd_entry_alters_one_entry_of_a_list() {
    let platform = Platform::new().await;
    let whole = two(&platform).await;
    let (branch, none) = (json!("br-main"), Value::Null);
    for (fault, expected) in [
        (json!({ "field": "branch_id" }), [&none, &branch]),
        (
            json!({ "field": "branch_id", "entry": whole[1]["id"] }),
            [&branch, &none],
        ),
        (
            json!({ "field": "branch_id", "body": 7 }),
            [&json!(7), &branch],
        ),
        (json!({ "body": "text" }), [&none, &branch]),
        (
            json!({ "field": "branch_id", "entry": "ep-none" }),
            [&branch, &branch],
        ),
    ] {
        let mut ordered = fault.clone();
        (ordered["kind"], ordered["path"]) = (json!("odd_entry"), json!("/endpoints$"));
        order(&platform, ordered).await;
        let odd = listed(&platform).await;
        assert_eq!(
            (odd.len(), [&odd[0]["branch_id"], &odd[1]["branch_id"]]),
            (2, expected),
            "{fault}"
        );
    }
    assert_eq!(listed(&platform).await, whole, "nothing of it stays");
    order(
        &platform,
        json!({ "kind": "odd_entry", "field": "id", "entry": "shop-1" }),
    )
    .await;
    let projects = platform
        .get("/projects", ORGANIZATION)
        .await
        .expect(200)
        .body["projects"]
        .clone();
    assert!(
        projects
            .as_array()
            .unwrap()
            .iter()
            .any(|project| project.get("id").is_none()),
        "{projects}"
    );
}

#[tokio::test]
async fn fault_state_shows_computes_in_another_state() {
    let platform = Platform::new().await;
    let whole = two(&platform).await;
    let known = whole[0]["current_state"].clone();
    for (fault, field, expected) in [
        (
            json!({}),
            "current_state",
            ["failed".into(), "failed".into()],
        ),
        (
            json!({ "entry": whole[1]["id"], "body": "degraded" }),
            "current_state",
            [known, "degraded".into()],
        ),
        (
            json!({ "field": "pending_state", "body": 7 }),
            "pending_state",
            [json!(7), json!(7)],
        ),
    ] {
        let mut ordered = fault.clone();
        ordered["kind"] = json!("state");
        order(&platform, ordered).await;
        let shown = listed(&platform).await;
        assert_eq!(
            [shown[0][field].clone(), shown[1][field].clone()],
            expected,
            "{fault}"
        );
    }
    assert_eq!(listed(&platform).await, whole, "nothing of it stays");
    order(&platform, json!({ "kind": "state", "method": "PATCH" })).await;
    let path = format!("{COMPUTES}/{}", whole[0]["id"].as_str().unwrap());
    let changed = platform
        .patch(&path, ORGANIZATION, json!({ "endpoint": {} }))
        .await
        .expect(200);
    assert_eq!(changed.body["endpoint"]["current_state"], "failed");
}

#[tokio::test]
async fn faults_let_requests_pass_first_and_can_be_taken_back() {
    let platform = Platform::new().await;
    order(
        &platform,
        json!({ "path": "^/projects", "status": 500, "after": 2, "times": 5 }),
    )
    .await;
    for status in [200, 200, 500] {
        platform.get("/projects", ORGANIZATION).await.expect(status);
    }
    platform.get("/auth", ORGANIZATION).await.expect(200);
    let listed = platform
        .console(Method::GET, "/faults", Value::Null)
        .await
        .expect(200);
    assert_eq!(
        (&listed.body[0]["id"], &listed.body[0]["remaining"]),
        (&json!(1), &json!(4))
    );
    platform
        .console(Method::DELETE, "/faults", Value::Null)
        .await
        .expect(204);
    platform.get("/projects", ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn faults_never_meet_the_console() {
    let platform = Platform::new().await;
    order(&platform, json!({ "status": 500, "times": 100 })).await;
    platform
        .console(Method::GET, "/computes", Value::Null)
        .await
        .expect(200);
    platform.get("/projects", ORGANIZATION).await.expect(500);
}

#[tokio::test]
async fn faults_that_make_no_sense_are_refused() {
    let platform = Platform::new().await;
    for fault in [
        json!({}),
        json!({ "status": 500, "path": "(" }),
        json!({ "kind": "burn" }),
        json!({ "colour": 1 }),
    ] {
        platform
            .console(Method::POST, "/faults", fault)
            .await
            .expect(400);
    }
}
