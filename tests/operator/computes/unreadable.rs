//! Answers that dbplane cannot decode: a list entry, or an unknown state of a compute.

use reqwest::Method;
use serde_json::{Value, json};

use super::{by_hand, create, message, polls, writes};
use crate::fixture::{Fixture, compute, condition};

/// Applies a fault to every later list.
fn lists(fixture: &Fixture, fault: Value) {
    let mut order = json!({"method": "GET", "path": "/endpoints$", "times": 10_000});
    order
        .as_object_mut()
        .unwrap()
        .extend(fault.as_object().unwrap().clone());
    fixture.fault(order);
}

async fn remove_faults(fixture: &Fixture) {
    fixture.console(Method::DELETE, "/faults", json!({})).await;
}

#[tokio::test]
async fn an_unreadable_compute_blocks_only_resources_that_it_may_belong_to() {
    let fixture = Fixture::minimal("odd-entry").await;
    create(&fixture, "").await;
    let odd = by_hand(&fixture, "br-dev-7", "read_write").await;
    lists(
        &fixture,
        json!({"kind": "odd_entry", "entry": odd, "field": "branch_id"}),
    );
    let account = fixture
        .until_condition(
            "account/prod",
            "UnreadableEntries",
            "True",
            "UnreadableEntries",
        )
        .await;
    let reported = message(&account, "UnreadableEntries");
    assert!(
        reported.contains(&format!(
            "of project {}: {odd} (branch_id)",
            fixture.project
        )),
        "{reported}"
    );
    assert_eq!(condition(&account, "Ready").unwrap()["status"], "True");
    the_entry_is_counted_and_logged(&fixture, &odd).await;
    // A create needs the previous contents of the branch as baseline, which are unknown here.
    fixture
        .apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    let waiting = fixture
        .until_condition("compute/reader", "Ready", "Unknown", "UnreadableEntries")
        .await;
    assert!(message(&waiting, "Ready").contains(&odd), "{waiting}");
    // Readable entries are still reconciled.
    fixture
        .until_condition("compute/orders", "Ready", "True", "Available")
        .await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    polls(&fixture, 2).await;
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (1, 1));
    remove_faults(&fixture).await;
    fixture.until_ready("compute/reader").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 2)
    );
}

async fn the_entry_is_counted_and_logged(fixture: &Fixture, odd: &str) {
    let namespace = &fixture.namespace;
    let series = format!(
        r#"dbplane_unreadable_entries{{namespace="{namespace}",kind="Account",account="prod",list="project"}} 1"#
    );
    let counted = async || {
        let text = reqwest::get(&fixture.shared.metrics)
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        text.lines().any(|line| line == series)
    };
    fixture.wait_until("it to be counted", counted).await;
    assert!(
        fixture
            .shared
            .operator
            .log()
            .contains(&format!("{odd} (branch_id)")),
        "it is in the log"
    );
}

#[tokio::test]
async fn an_entry_without_an_identifier_does_not_prove_absence() {
    let fixture = Fixture::minimal("nameless-entry").await;
    let id = create(&fixture, "").await;
    lists(
        &fixture,
        json!({"kind": "odd_entry", "entry": id, "field": "id", "body": 7}),
    );
    let unknown = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "UnreadableEntries")
        .await;
    assert_eq!(unknown["status"]["computeID"], id.as_str());
    fixture.delete("compute/orders").await;
    fixture
        .wait_until("the deletion", async || fixture.count("DELETE") == 1)
        .await;
    // An empty list has no entry that the fault could change.
    fixture.until_gone("compute/orders").await;
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (1, 1));
}

#[tokio::test]
async fn an_unknown_state_is_neither_ready_nor_failed() {
    let fixture = Fixture::new("odd-state").await;
    create(&fixture, "").await;
    lists(&fixture, json!({"kind": "state", "body": "degraded"}));
    let unknown = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "StateUnknown")
        .await;
    assert!(
        message(&unknown, "Ready").contains("\"degraded\""),
        "{unknown}"
    );
    assert_eq!(
        (
            &unknown["status"]["state"],
            &unknown["status"]["lastSeenServing"]
        ),
        (&json!("degraded"), &json!(true))
    );
    remove_faults(&fixture).await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(writes(&fixture).len(), 1);
}
