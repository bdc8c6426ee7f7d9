//! No writes without a cause, and no leftovers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{create, created, is_restarted, polls, writes};
use crate::fixture::{Fixture, compute};

/// The operator's writes in the namespace so far, from the API server's audit log.
fn written(fixture: &Fixture) -> Vec<String> {
    let log = std::fs::read_to_string(&fixture.shared.audit_log).unwrap();
    let mut written = Vec::new();
    for line in log.lines() {
        // The last line may be incomplete.
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let verb = entry["verb"].as_str().unwrap_or_default();
        let object = &entry["objectRef"];
        if object["namespace"] == fixture.namespace.as_str()
            && !["get", "list", "watch"].contains(&verb)
        {
            written.push(format!("{verb} {} {}", object["resource"], object["name"]));
        }
    }
    written
}

/// The resource version of every object in the namespace.
async fn versions(fixture: &Fixture) -> BTreeMap<String, String> {
    let text = fixture
        .kubectl(&["get", "computes,accounts,secrets,events", "-o", "json"])
        .await;
    let list: Value = serde_json::from_str(&text).unwrap();
    let version = |object: &Value| {
        let metadata = &object["metadata"];
        (
            format!("{} {}", object["kind"], metadata["name"]),
            metadata["resourceVersion"].to_string(),
        )
    };
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(version)
        .collect()
}

#[tokio::test]
async fn a_settled_operator_writes_nothing_and_reads_one_list_a_poll() {
    let more = "  size: {fixed: 1}\n  connection: {secretName: orders-db}\n";
    let (fixture, id) = created("compute-quiet", more).await;
    fixture
        .apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    fixture.until_ready("compute/reader").await;
    polls(&fixture, 1).await;
    let (before, wrote, asked) = (
        versions(&fixture).await,
        written(&fixture),
        fixture.requests().len(),
    );
    assert!(wrote.len() > 8, "the audit log tells nothing: {wrote:?}");
    // Activity on the compute is no cause for a write.
    fixture
        .console(
            reqwest::Method::POST,
            &format!("/computes/{id}/activity"),
            json!({}),
        )
        .await;
    polls(&fixture, 3).await;
    assert_eq!(versions(&fixture).await, before);
    assert_eq!(written(&fixture)[wrote.len()..], [] as [String; 0]);
    let since = fixture.requests().split_off(asked);
    let list = format!("GET /projects/{}/endpoints", fixture.project);
    assert!(since.iter().all(|request| *request == list), "{since:?}");
    assert!(since.len() <= 4, "{since:?}");
}

#[tokio::test]
async fn actions_and_states_are_counted() {
    let (fixture, _) = created("metrics", "").await;
    let account = r#"kind="Account",account="prod""#;
    let compute = r#"kind="Compute""#;
    let expected = [
        (
            "platform_requests_total",
            format!(r#"{account},call="create_compute",outcome="ok""#),
            1.0,
        ),
        ("budget_requests_per_minute", account.to_owned(), 600.0),
        ("budget_requests_left", account.to_owned(), 0.0),
        (
            "oldest_snapshot_timestamp_seconds",
            format!(r#"{account},list="project""#),
            1e9,
        ),
        ("account_info", account.to_owned(), 1.0),
        (
            "account_ready",
            format!(r#"{account},reason="Available""#),
            1.0,
        ),
        (
            "creates_total",
            format!(r#"{compute},outcome="answered""#),
            1.0,
        ),
        (
            "resources",
            format!(r#"{compute},ready="True",reason="Available""#),
            1.0,
        ),
    ]
    .map(|(metric, labels, least)| {
        let namespace = &fixture.namespace;
        let series = format!(r#"{metric}{{namespace="{namespace}",{labels}}}"#);
        (series, least)
    });
    let expected = [&expected[..], &[("leader".to_owned(), 1.0)]].concat();
    let mut text = String::new();
    let counted = async || {
        text = reqwest::get(&fixture.shared.metrics)
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        expected
            .iter()
            .all(|(series, least)| value(&text, &format!("dbplane_{series}")) >= Some(*least))
    };
    fixture.wait_until("all of it to be counted", counted).await;
    assert!(
        value(&text, "process_resident_memory_bytes") > Some(1e6),
        "{text}"
    );
    assert!(value(&text, "tokio_alive_tasks") > Some(1.0), "{text}");
    assert!(!text.contains(crate::fixture::ADMIN), "a token");
}

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[tokio::test]
async fn an_idle_compute_is_ready_and_is_not_woken() {
    let (fixture, id) = created("idle", "  size: {fixed: 1}\n").await;
    fixture.platform.advance(Duration::from_secs(600)).unwrap();
    let seen = fixture
        .until("compute/orders", "idle", |seen| {
            seen["status"]["state"] == "idle"
        })
        .await;
    assert_eq!(seen["status"]["conditions"][0]["status"], "True", "{seen}");
    for _ in 0..2 {
        fixture.platform.advance(Duration::from_secs(600)).unwrap();
        polls(&fixture, 1).await;
    }
    let line = super::line(&fixture, &id).await;
    assert_eq!(
        (&line["status"], writes(&fixture).len()),
        (&json!("Idle"), 1),
        "{line}"
    );
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn the_minimal_platform_is_sufficient() {
    let fixture = Fixture::minimal("minimal").await;
    let id = create(&fixture, "  size: {fixed: 1}\n").await;
    fixture
        .patch(
            "compute/orders",
            json!({"size": {"fixed": 2}, "pooler": {"enabled": true}}),
        )
        .await;
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    fixture.until_ready("compute/orders").await;
    fixture
        .patch("compute/orders", json!({"restartToken": "now"}))
        .await;
    fixture
        .until("compute/orders", "restarted", |seen| {
            is_restarted(seen, "now")
        })
        .await;
    let ready = fixture.until_ready("compute/orders").await;
    assert_eq!(ready["status"]["computeID"], *id);
    assert_eq!((fixture.count("POST"), fixture.count("PATCH")), (2, 1));
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.computes().await.is_empty());
    assert_eq!(fixture.count("DELETE"), 1);
}

#[tokio::test]
async fn a_namespace_is_deleted_with_everything_in_it_and_on_the_platform() {
    let (fixture, _) = created("whole", "  connection: {secretName: orders-db}\n").await;
    for name in ["reader-1", "reader-2"] {
        fixture
            .apply(&compute(name, "br-main-42", "").replace("ReadWrite", "ReadOnly"))
            .await;
        fixture.until_ready(&format!("compute/{name}")).await;
    }
    let cluster = &fixture.shared.cluster;
    cluster
        .kubectl(&["delete", "namespace", "whole", "--wait=false"])
        .await
        .unwrap();
    let gone = async || {
        let left = cluster
            .kubectl(&["get", "namespace", "whole", "--ignore-not-found"])
            .await
            .unwrap();
        left.trim().is_empty()
    };
    fixture.wait_until("the namespace to be gone", gone).await;
    assert!(fixture.computes().await.is_empty());
    assert_eq!(fixture.count("DELETE"), 3);
}
