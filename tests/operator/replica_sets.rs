//! ReadReplicaSets: the declared number of Computes, rolling changes, and a shared Secret.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::deletes::Alone;
use crate::fixture::{Fixture, PROJECT, condition};

const SET: &str = "readreplicaset/reads";

fn set(replicas: u32, branch: &str, of_template: &str, more: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ReadReplicaSet
metadata: {{name: reads}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: reads}}}}
  template:
    metadata: {{labels: {{app: reads}}}}
    spec:
      accountRef: {{name: prod}}
      projectID: {PROJECT}
      branchID: {branch}
{of_template}{more}"
    )
}

/// Waits until the set reports this number of replicas, all ready and up to date.
async fn until_all(fixture: &Fixture, count: u32) -> Value {
    let complete = |seen: &Value| {
        let numbers = ["replicas", "readyReplicas", "updatedReplicas"]
            .map(|field| seen["status"][field] == count);
        let ready = condition(seen, "Ready").is_some_and(|ready| ready["status"] == "True");
        ready
            && numbers == [true; 3]
            && seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
    };
    fixture
        .until(SET, &format!("{count} replicas"), complete)
        .await
}

/// The names of the set's Computes with their compute ids.
async fn replicas(fixture: &Fixture) -> Vec<(String, String)> {
    let path = "jsonpath={range .items[*]}{.metadata.name} {.status.computeID}{'\\n'}{end}";
    let lines = fixture
        .kubectl(&["get", "computes", "-l", "app=reads", "-o", path])
        .await;
    lines
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .collect()
}

fn names(replicas: &[(String, String)]) -> Vec<&str> {
    replicas.iter().map(|(name, _)| name.as_str()).collect()
}

/// The number of computes on a branch.
async fn on_branch(fixture: &Fixture, branch: &str) -> usize {
    fixture
        .computes()
        .await
        .iter()
        .filter(|compute| compute["branch_id"] == branch)
        .count()
}

async fn scale(fixture: &Fixture, count: u32) {
    fixture
        .kubectl(&["scale", SET, &format!("--replicas={count}")])
        .await;
}

#[tokio::test]
async fn kubectl_scales_a_set_and_the_least_recently_active_replica_is_deleted_first() {
    let fixture = Fixture::new("set-scale").await;
    fixture.apply(&set(1, "br-main-42", "", "")).await;
    until_all(&fixture, 1).await;
    scale(&fixture, 3).await;
    until_all(&fixture, 3).await;
    let all = replicas(&fixture).await;
    assert_eq!(names(&all), ["reads-0", "reads-1", "reads-2"]);
    assert_eq!(fixture.count("POST"), 3);

    // All replicas except the first are used after they were suspended.
    fixture.platform.advance(Duration::from_secs(600)).unwrap();
    for (name, id) in &all[1..] {
        fixture
            .console(Method::POST, &format!("/computes/{id}/activity"), json!({}))
            .await;
        let object = format!("compute/{name}");
        fixture
            .until(&object, "active", |seen| {
                seen["status"]["state"] == "active"
            })
            .await;
    }
    fixture
        .until("compute/reads-0", "idle", |seen| {
            seen["status"]["state"] == "idle"
        })
        .await;
    scale(&fixture, 2).await;
    until_all(&fixture, 2).await;
    fixture.until_gone("compute/reads-0").await;
    assert_eq!(names(&replicas(&fixture).await), ["reads-1", "reads-2"]);
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (3, 1));
    assert!(
        fixture
            .event(SET, "ReplicaDeleted")
            .await
            .contains("reads-0")
    );

    let table = fixture.kubectl(&["get", SET]).await;
    let words: Vec<&str> = table
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .take(7)
        .collect();
    assert_eq!(
        words,
        ["reads", "2", "2", "2", "2", "True", "Available"],
        "{table}"
    );
    let scale = fixture
        .kubectl(&["get", "--raw", &scale_path(&fixture)])
        .await;
    let scale: Value = serde_json::from_str(&scale).unwrap();
    assert_eq!(
        scale["status"],
        json!({"replicas": 2, "selector": "app=reads"})
    );
}

fn scale_path(fixture: &Fixture) -> String {
    format!(
        "/apis/dbplane.dev/v1alpha1/namespaces/{}/readreplicasets/reads/scale",
        fixture.namespace
    )
}

#[tokio::test]
async fn a_replica_that_is_deleted_by_hand_is_replaced() {
    let fixture = Fixture::new("set-by-hand").await;
    fixture.apply(&set(2, "br-main-42", "", "")).await;
    until_all(&fixture, 2).await;
    fixture.delete("compute/reads-0").await;
    fixture.until_gone("compute/reads-0").await;
    // The status may be stale for a moment.
    fixture
        .wait_until("another one to be created", async || {
            fixture.count("POST") == 3
        })
        .await;
    until_all(&fixture, 2).await;
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (3, 1));
    assert_eq!(on_branch(&fixture, "br-main-42").await, 2);
}

#[tokio::test]
async fn replicas_are_changed_one_after_the_other() {
    let fixture = Fixture::new("set-change").await;
    fixture
        .apply(&set(3, "br-main-42", "      size: {fixed: 1}\n", ""))
        .await;
    until_all(&fixture, 3).await;
    let before = replicas(&fixture).await;
    fixture
        .apply(&set(3, "br-main-42", "      size: {fixed: 2}\n", ""))
        .await;
    until_all(&fixture, 3).await;
    assert_eq!(
        replicas(&fixture).await,
        before,
        "they are the same computes"
    );
    assert_eq!((fixture.count("POST"), fixture.count("PATCH")), (3, 3));
    assert!(
        fixture
            .event(SET, "ReplicaChanged")
            .await
            .contains("reads-")
    );
    // Manual changes of a replica are reverted.
    fixture
        .patch("compute/reads-1", json!({"size": {"fixed": 4}}))
        .await;
    fixture
        .until("compute/reads-1", "changed back", |seen| {
            seen["spec"]["size"]["fixed"] == 2
        })
        .await;
}

#[tokio::test]
async fn replicas_on_another_branch_are_ready_before_the_old_ones_are_deleted() {
    let fixture = Fixture::new("set-branch").await;
    fixture
        .apply(&set(
            2,
            "br-main-42",
            "",
            "  connection: {secretName: reads-db}\n",
        ))
        .await;
    until_all(&fixture, 2).await;
    let before = replicas(&fixture).await;
    fixture
        .apply(&set(
            2,
            "br-dev-7",
            "",
            "  connection: {secretName: reads-db}\n",
        ))
        .await;
    until_all(&fixture, 2).await;
    let after = replicas(&fixture).await;
    assert!(
        after.iter().all(|replica| !before.contains(replica)),
        "{before:?} {after:?}"
    );
    for (name, _) in &before {
        fixture.until_gone(&format!("compute/{name}")).await;
    }
    assert_eq!(
        (
            on_branch(&fixture, "br-main-42").await,
            on_branch(&fixture, "br-dev-7").await
        ),
        (0, 2)
    );
    // The rollout must not delete a replica before two computes are ready on the platform.
    let changes: Vec<String> = fixture
        .requests()
        .into_iter()
        .filter(|request| !request.starts_with("GET "))
        .collect();
    let kinds: Vec<&str> = changes
        .iter()
        .filter_map(|request| request.split(' ').next())
        .collect();
    assert_eq!(
        kinds,
        ["POST", "POST", "POST", "DELETE", "POST", "DELETE"],
        "{changes:?}"
    );
    let (name, id) = &after[0];
    let hosts = fixture.entry("reads-db", "host").await.unwrap();
    assert!(
        hosts.split(',').count() == 2 && hosts.contains(id.as_str()),
        "{hosts}: {name}"
    );
}

#[tokio::test]
async fn a_set_adopts_selected_computes_and_releases_them_with_orphan() {
    let fixture = Fixture::new("set-adopt").await;
    fixture.apply(&set(2, "br-main-42", "", "")).await;
    until_all(&fixture, 2).await;
    let before = replicas(&fixture).await;
    fixture.kubectl(&["delete", SET, "--cascade=orphan"]).await;
    fixture.until_gone(SET).await;
    let path = "jsonpath={.items[*].metadata.ownerReferences}";
    assert_eq!(fixture.kubectl(&["get", "computes", "-o", path]).await, "");
    assert_eq!(replicas(&fixture).await, before);
    fixture.apply(&set(2, "br-main-42", "", "")).await;
    until_all(&fixture, 2).await;
    assert_eq!(
        replicas(&fixture).await,
        before,
        "nothing was created and nothing deleted"
    );
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (2, 0));
    fixture
        .kubectl(&["label", "compute", "reads-0", "app-", "--overwrite"])
        .await;
    fixture.until_ready("compute/reads-2").await;
    until_all(&fixture, 2).await;
    let released = fixture.get("compute/reads-0").await.unwrap();
    assert_eq!(
        released["metadata"]["ownerReferences"],
        Value::Null,
        "it is nobody's, and stays"
    );
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (3, 0));
    fixture.kubectl(&["delete", SET]).await;
    fixture.until_gone("compute/reads-1").await;
    fixture.until_gone("compute/reads-2").await;
    assert!(fixture.get("compute/reads-0").await.is_some());
}

#[tokio::test]
async fn one_secret_leads_to_all_replicas() {
    let fixture = Fixture::new("set-secret").await;
    fixture.role("app", "a b").await;
    let more =
        "  connection: {secretName: reads-db, database: shop, credentialsFrom: {name: role}}\n";
    fixture.apply(&set(2, "br-main-42", "", more)).await;
    until_all(&fixture, 2).await;
    let uri = || async { fixture.entry("reads-db", "uri").await.unwrap_or_default() };
    fixture
        .wait_until("both hosts in the URI", async || {
            uri().await.matches(":5432").count() == 2
        })
        .await;
    let with_both = uri().await;
    assert!(
        with_both.starts_with("postgresql://app:a%20b@ep-"),
        "{with_both}"
    );
    assert!(
        with_both
            .ends_with("/shop?sslmode=require&target_session_attrs=any&load_balance_hosts=random"),
        "{with_both}"
    );
    scale(&fixture, 1).await;
    fixture
        .wait_until("one host in the URI", async || {
            uri().await.matches(":5432").count() == 1
        })
        .await;
    scale(&fixture, 0).await;
    fixture
        .wait_until("no URI", async || uri().await.is_empty())
        .await;
    let seen = until_all(&fixture, 0).await;
    assert_eq!(seen["status"]["hosts"], 0);
    assert_eq!(seen["status"]["binding"]["name"], "reads-db");
}

/// Scaling down is intended, so the brake does not apply; it does apply to deleting many Computes.
#[tokio::test]
async fn scaling_down_passes_the_brake_and_deleting_does_not() {
    let alone = Alone::new(&["--log", "info,dbplane=debug", "--deletes-per-minute", "1"]).await;
    let fixture = alone.fixture("set-braked").await;
    fixture.apply(&set(4, "br-main-42", "", "")).await;
    until_all(&fixture, 4).await;
    scale(&fixture, 3).await;
    scale(&fixture, 2).await;
    until_all(&fixture, 2).await;
    fixture
        .wait_until("two to be gone", async || {
            replicas(&fixture).await.len() == 2
        })
        .await;
    assert_eq!(fixture.count("DELETE"), 2);
    fixture.apply(&set(4, "br-main-42", "", "")).await;
    until_all(&fixture, 4).await;
    fixture.kubectl(&["delete", SET]).await;
    fixture
        .wait_until("the others to wait", async || {
            let path = "jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].reason}";
            let reasons = fixture.kubectl(&["get", "computes", "-o", path]).await;
            reasons.split_whitespace().count() == 3
                && reasons
                    .split_whitespace()
                    .all(|reason| reason == "DeletionPaused")
        })
        .await;
    assert_eq!(fixture.count("DELETE"), 3);
}
