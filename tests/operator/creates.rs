//! Creates without an answer: found again, made once, or reported.

use std::collections::BTreeSet;

use dbplane_simulator::world::Profile;
use reqwest::Method;
use serde_json::{Value, json};

use crate::computes::existing::resize;
use crate::computes::{by_hand, message, polls};
use crate::fixture::{ADMIN, Fixture, account, compute, condition};

pub const BRANCH: &str = "br-main-42";

pub fn reader(name: &str, more: &str) -> String {
    compute(name, BRANCH, &format!("  size: {{fixed: 1}}\n{more}")).replace("ReadWrite", "ReadOnly")
}

/// A compute that a user creates at the same time; only its name could distinguish it.
async fn twin(fixture: &Fixture, more: Value) -> String {
    let size = resize(1);
    let mut form = json!({"project_id": fixture.project, "branch_id": BRANCH, "type": "read_only"});
    for part in [size, more] {
        form.as_object_mut()
            .unwrap()
            .extend(part.as_object().unwrap().clone());
    }
    let line = fixture.console(Method::POST, "/computes", form).await;
    line["id"].as_str().unwrap().to_owned()
}

/// Applies a read replica whose create is executed without an answer, while a user creates another
/// replica.
pub async fn lost_with_a_twin(fixture: &Fixture) -> String {
    fixture.fault(
        json!({"method": "POST", "path": "/endpoints$", "kind": "lose_answer", "delay_ms": 1500}),
    );
    fixture.apply(&reader("reader", "")).await;
    fixture
        .wait_until("the create to be sent", async || fixture.count("POST") == 1)
        .await;
    twin(fixture, json!({})).await
}

pub fn id(seen: &Value) -> String {
    seen["status"]["computeID"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_mark_distinguishes_our_compute_from_one_created_at_the_same_time() {
    let fixture = Fixture::new("marked").await;
    by_hand(&fixture, BRANCH, "read_write").await;
    let twin = lost_with_a_twin(&fixture).await;
    let ready = fixture.until_ready("compute/reader").await;
    assert_ne!(id(&ready), twin);
    let computes = fixture.computes().await;
    let ours = computes
        .iter()
        .find(|compute| compute["id"] == *id(&ready))
        .unwrap();
    assert!(
        ours["name"].as_str().unwrap().starts_with("reader-"),
        "{ours}"
    );
    assert_eq!((fixture.count("POST"), computes.len()), (1, 3));
}

#[tokio::test]
async fn without_marks_a_person_decides_with_the_reported_command() {
    let fixture = Fixture::minimal("unmarked").await;
    let twin = lost_with_a_twin(&fixture).await;
    let stalled = fixture
        .until_condition("compute/reader", "Stalled", "True", "AmbiguousCreate")
        .await;
    let text = message(&stalled, "Stalled");
    let ids: BTreeSet<String> = fixture
        .computes()
        .await
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        ids.len() == 2 && ids.contains(&twin) && ids.iter().all(|id| text.contains(id.as_str())),
        "{text}"
    );
    polls(&fixture, 1).await;
    assert_eq!(fixture.count("POST"), 1);
    let command = text
        .split("To name the right one: ")
        .nth(1)
        .and_then(|rest| rest.split(". If").next())
        .unwrap();
    run(&fixture, command).await;
    let ready = fixture.until_ready("compute/reader").await;
    assert!(command.contains(&id(&ready)), "{command}");
    assert!(
        !ready["status"]["record"]
            .as_str()
            .unwrap()
            .contains("intent"),
        "{ready}"
    );
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (1, 2)
    );
}

/// The baseline must be read just before the create is sent, because the create may have waited
/// long for the budget.
#[tokio::test]
async fn a_compute_created_while_our_create_is_queued_is_not_taken_for_its_result() {
    let fixture = Fixture::on("awaiting-place", |options| {
        options.profile = Profile::Minimal
    })
    .await;
    fixture.secret("platform-api-key", ADMIN).await;
    let limited = account(
        "prod",
        &fixture.platform.base_url(),
        "  rateLimit: {requestsPerMinute: 5, burst: 1}\n",
    );
    fixture.apply(&limited).await;
    fixture.until_ready("account/prod").await;
    fixture.fault(json!({"method": "POST", "path": "/endpoints$", "kind": "lose_answer"}));
    fixture.apply(&reader("reader", "")).await;
    let lists = async || {
        fixture
            .requests()
            .iter()
            .any(|request| request.ends_with("/endpoints"))
    };
    fixture.wait_until("the computes to be listed", lists).await;
    assert_eq!(fixture.count("POST"), 0, "the create waits for its place");
    let twin = twin(&fixture, json!({})).await;
    fixture
        .wait_until("the create to be sent", async || fixture.count("POST") == 1)
        .await;
    let ready = fixture.until_ready("compute/reader").await;
    assert_ne!(id(&ready), twin);
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (1, 2)
    );
}

/// Runs a kubectl command from a message as a user would.
async fn run(fixture: &Fixture, command: &str) {
    let words: Vec<String> = command
        .split_whitespace()
        .skip(1)
        .map(|word| word.replace('\'', ""))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(command.starts_with("kubectl "), "{command}");
    fixture.shared.cluster.kubectl(&words).await.unwrap();
}

#[tokio::test]
async fn computes_of_one_branch_are_recovered_one_after_the_other() {
    for fixture in [
        Fixture::new("turns").await,
        Fixture::minimal("turns-minimal").await,
    ] {
        fixture.fault(
            json!({"method": "POST", "path": "/endpoints$", "kind": "lose_answer", "times": 3}),
        );
        let names = ["reader-1", "reader-2", "reader-3"];
        fixture
            .apply(&names.map(|name| reader(name, "")).join("---\n"))
            .await;
        let mut ids = BTreeSet::new();
        for name in names {
            ids.insert(id(&fixture.until_ready(&format!("compute/{name}")).await));
        }
        assert_eq!(
            (
                ids.len(),
                fixture.count("POST"),
                fixture.computes().await.len()
            ),
            (3, 3, 3)
        );
    }
}

/// Cases that take longer than the settle time, run concurrently.
#[tokio::test]
async fn a_create_that_is_executed_late_is_detected() {
    tokio::join!(
        a_late_compute_is_reported_and_kept("late-reported", true),
        a_late_compute_is_reported_and_kept("late-reported-minimal", false),
        a_late_compute_is_bound_by_an_unbound_resource(),
        a_marked_compute_is_deleted_with_the_resource(),
    );
}

async fn late(name: &str, full: bool) -> Fixture {
    let fixture = if full {
        Fixture::new(name).await
    } else {
        Fixture::minimal(name).await
    };
    by_hand(&fixture, BRANCH, "read_write").await;
    // The operator concludes after 21 s that nothing was created.
    fixture.fault(
        json!({"method": "POST", "path": "/endpoints$", "kind": "late_work", "delay_ms": 30_000}),
    );
    fixture.apply(&reader("reader", "")).await;
    fixture
}

async fn reported(fixture: &Fixture) -> (String, String) {
    fixture
        .wait_until("the late create", async || {
            fixture.computes().await.len() == 3
        })
        .await;
    let reported = fixture
        .until_condition("compute/reader", "Synced", "False", "StrayCompute")
        .await;
    assert_eq!(
        condition(&reported, "Ready").unwrap()["status"],
        "True",
        "{reported}"
    );
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 3)
    );
    let text = message(&reported, "Synced");
    let own = id(&reported);
    let computes = fixture.computes().await;
    let stray = computes
        .iter()
        .find(|line| line["type"] == "Read Replica" && line["id"] != *own)
        .unwrap();
    let stray = stray["id"].as_str().unwrap().to_owned();
    assert!(
        text.contains(&format!("created {stray}")) && !text.contains(&format!("created {own}")),
        "{text}"
    );
    assert!(text.ends_with(&format!("not-created={stray}'")), "{text}");
    (stray, text)
}

async fn a_late_compute_is_reported_and_kept(name: &str, full: bool) {
    let fixture = late(name, full).await;
    let (stray, _) = reported(&fixture).await;
    assert!(
        fixture
            .event("compute/reader", "StrayCompute")
            .await
            .contains(&stray)
    );
    polls(&fixture, 1).await;
    assert_eq!(fixture.count("DELETE"), 0);
    // Once another Compute has bound it, the report must disappear.
    fixture
        .apply(&reader("second", &format!("  computeID: {stray}\n")))
        .await;
    assert_eq!(id(&fixture.until_ready("compute/second").await), stray);
    fixture
        .until_condition("compute/reader", "Synced", "True", "InSync")
        .await;
    assert_eq!(
        (
            fixture.count("POST"),
            fixture.count("DELETE"),
            fixture.computes().await.len()
        ),
        (2, 0, 3)
    );
}

async fn a_late_compute_is_bound_by_an_unbound_resource() {
    let fixture = late("late-taken", false).await;
    fixture
        .wait_until("the create to be sent", async || fixture.count("POST") == 1)
        .await;
    fixture.fault(json!({"method": "POST", "path": "/endpoints$", "status": 422, "body": {"message": "not now"}}));
    fixture
        .until_condition("compute/reader", "Stalled", "True", "Refused")
        .await;
    fixture.until_ready("compute/reader").await;
    assert!(
        fixture
            .event("compute/reader", "Linked")
            .await
            .contains("interrupted create")
    );
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 2)
    );
}

async fn a_marked_compute_is_deleted_with_the_resource() {
    let fixture = late("late-deleted", true).await;
    let primary = fixture.computes().await[0]["id"].clone();
    reported(&fixture).await;
    fixture.delete("compute/reader").await;
    fixture.until_gone("compute/reader").await;
    // Some deletes may have been refused while the computes were starting.
    let left = fixture.computes().await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &primary));
}
