//! Faults of the platform itself: wrong clocks, unusual forms of answers, and keys that do not work
//! yet.

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::faults::{COMPUTES, order};
use crate::support::*;

const KEYS: &str = "/organizations/org-scale-1/api_keys";

fn scoped(name: &str) -> Value {
    json!({ "key_name": name, "project_id": "shop-1" })
}

#[tokio::test]
async fn fault_clock_off_dates_what_is_created_and_the_answer() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        order(
            &platform,
            json!({ "kind": "clock_off", "seconds": 3600, "method": "POST" }),
        )
        .await;
        let created = platform
            .post(COMPUTES, ORGANIZATION, json!({ "endpoint": primary() }))
            .await
            .expect(201);
        let date = rfc2822::parse(created.headers["date"].to_str().unwrap())
            .unwrap()
            .timestamp();
        let ahead = date.duration_since(Timestamp::now());
        assert!(
            (ahead - SignedDuration::from_hours(1)).abs() < SignedDuration::from_mins(1),
            "{ahead}"
        );
        let listed = platform
            .listed(&format!("{COMPUTES}/{}", created.text_at("/endpoint/id")))
            .await;
        for field in ["created_at", "updated_at"] {
            assert_eq!(listed[field], created.body["endpoint"][field], "{field}");
            assert_eq!(listed[field], "2026-01-05T09:00:00Z", "{field}");
        }
    }
}

/// Simulates a gateway with two servers behind it, one of which has a slow clock.
#[tokio::test]
async fn fault_clock_off_may_meet_each_second_request() {
    let platform = Platform::new().await;
    let off =
        json!({ "kind": "clock_off", "seconds": -90, "method": "POST", "every": 2, "times": 9 });
    order(&platform, off).await;
    for name in ["one", "two", "three"] {
        platform.post(KEYS, ADMIN, scoped(name)).await.expect(200);
    }
    let keys = platform.get(KEYS, ADMIN).await.expect(200).body;
    let times: Vec<&Value> = keys
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .take(3)
        .map(|key| &key["created_at"])
        .collect();
    assert_eq!(
        times,
        [
            "2026-01-05T07:58:30Z",
            "2026-01-05T08:00:00Z",
            "2026-01-05T07:58:30Z"
        ]
    );
}

#[tokio::test]
async fn fault_times_without_zone_are_those_of_the_answer() {
    let platform = Platform::new().await;
    let path = platform.compute(primary()).await;
    let whole = platform.listed(&path).await;
    order(
        &platform,
        json!({ "kind": "times_without_zone", "path": "/endpoints$" }),
    )
    .await;
    let listed = platform.listed(&path).await;
    for field in ["created_at", "updated_at"] {
        assert_eq!(listed[field], "2026-01-05T08:00:00", "{field}");
    }
    assert_eq!(listed["id"], whole["id"]);
    assert_eq!(platform.listed(&path).await, whole);
}

#[tokio::test]
async fn fault_normalized_settings_are_those_of_the_answer() {
    let platform = Platform::new().await;
    let settings =
        json!({ "pg_settings": { "work_mem": "64MB", "statement_timeout": "5min", "jit": "on" } });
    let path = platform
        .compute(json!({ "branch_id": "br-main", "type": "read_write", "settings": settings }))
        .await;
    order(
        &platform,
        json!({ "kind": "normalized_settings", "path": "/endpoints$" }),
    )
    .await;
    let normalized = json!({ "work_mem": "65536kB", "statement_timeout": "300000ms", "jit": "on" });
    assert_eq!(
        platform.listed(&path).await["settings"]["pg_settings"],
        normalized
    );
    assert_eq!(platform.listed(&path).await["settings"], settings);
}

#[tokio::test]
async fn fault_young_key_refuses_a_key_until_it_is_old_enough() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        platform.advance(60);
        order(
            &platform,
            json!({ "kind": "young_key", "seconds": 30, "times": 100 }),
        )
        .await;
        let key = platform
            .post(KEYS, ADMIN, scoped("new"))
            .await
            .expect(200)
            .text_at("/key");
        let refused = platform.get(COMPUTES, &key).await.expect(401);
        assert_eq!(
            refused.message(),
            platform
                .get(COMPUTES, "no-such-key")
                .await
                .expect(401)
                .message()
        );
        platform.get(COMPUTES, ORGANIZATION).await.expect(200);
        platform.advance(29);
        platform.get(COMPUTES, &key).await.expect(401);
        platform.advance(1);
        platform.get(COMPUTES, &key).await.expect(200);
        let listed = platform
            .console(Method::GET, "/faults", Value::Null)
            .await
            .expect(200);
        assert_eq!(
            listed.body[0]["remaining"], 98,
            "it met the young key alone"
        );
    }
}
