//! Data that the keys of an organization share.

use std::time::{Duration, Instant};

use crate::fixture::{Fixture, key};

const LIST: &str = "GET /organizations/org-cool-darkness-1/api_keys";
const KEYS: u64 = 3;

impl Fixture {
    /// The value of a metric of the shared operator.
    async fn shared_metric(&self, series: &str) -> Option<u64> {
        let text = reqwest::get(&self.shared.metrics)
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }
}

/// With a check every five seconds, the shared list is read about every four. Separate reads per
/// key would be more frequent.
#[tokio::test]
async fn one_list_serves_all_keys_and_shows_their_last_use() {
    let fixture = Fixture::new("one-list").await;
    for number in 0..KEYS {
        fixture.apply(&key(&format!("k{number}"), "")).await;
    }
    for number in 0..KEYS {
        fixture.until_ready(&format!("projectkey/k{number}")).await;
    }
    let token = fixture.entry("k0-key", "api-key").await.unwrap();
    assert_eq!(fixture.answer_to(&token).await, 200);
    let used = fixture
        .until("projectkey/k0", "its last use", |seen| {
            seen["status"]["lastUsedAt"].is_string()
        })
        .await;
    assert_eq!(used["status"]["lastUsedFrom"], "127.0.0.1");

    let (before, start) = (fixture.count(LIST), Instant::now());
    fixture
        .wait_until("three more lists", async || {
            fixture.count(LIST) >= before + 3
        })
        .await;
    assert!(
        start.elapsed() > Duration::from_secs(6),
        "three lists within {:?}",
        start.elapsed()
    );

    let account = format!(
        r#"namespace="{}",kind="Account",account="prod""#,
        fixture.namespace
    );
    let keys = |state| format!(r#"dbplane_keys{{{account},state="{state}"}}"#);
    assert_eq!(fixture.shared_metric(&keys("in_use")).await, Some(KEYS));
    assert_eq!(fixture.shared_metric(&keys("lost")).await, Some(0));
    let all = fixture
        .shared_metric(&format!("dbplane_organization_keys{{{account}}}"))
        .await;
    assert!(all.is_some_and(|all| all >= KEYS), "{all:?}");
}
