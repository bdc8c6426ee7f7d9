//! Creates whose answers never come: found again, made once, told where that is not possible; and links that are restored.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::computes::existing::resize;
use crate::computes::{by_hand, create, created, delete, message, polls, writes};
use crate::stage::{PROJECT, Stage, compute, condition};

const BRANCH: &str = "br-main-42";

fn reader(name: &str, more: &str) -> String {
    compute(name, BRANCH, &format!("  size: {{fixed: 1}}\n{more}")).replace("ReadWrite", "ReadOnly")
}

/// What somebody else creates at the same time; nothing but a name could tell it from ours.
async fn twin(stage: &Stage, more: Value) -> String {
    let size = resize(1);
    let mut form = json!({"project_id": PROJECT, "branch_id": BRANCH, "type": "read_only"});
    for part in [size, more] {
        form.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    }
    let line = stage.console(Method::POST, "/computes", form).await;
    line["id"].as_str().unwrap().to_owned()
}

/// Applies a read replica whose create is carried out and not answered, while somebody else creates another.
async fn lost_with_a_twin(stage: &Stage) -> String {
    stage.fault(json!({"method": "POST", "path": "/endpoints$", "kind": "lose_answer", "delay_ms": 1500}));
    stage.apply(&reader("reader", "")).await;
    stage.wait_until("the create to be sent", async || stage.count("POST") == 1).await;
    twin(stage, json!({})).await
}

fn id(seen: &Value) -> String {
    seen["status"]["computeID"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_mark_distinguishes_our_compute_from_one_created_at_the_same_time() {
    let stage = Stage::new("marked").await;
    by_hand(&stage, BRANCH, "read_write").await;
    let twin = lost_with_a_twin(&stage).await;
    let ready = stage.until_ready("compute/reader").await;
    assert_ne!(id(&ready), twin);
    let computes = stage.computes().await;
    let ours = computes.iter().find(|compute| compute["id"] == *id(&ready)).unwrap();
    assert!(ours["name"].as_str().unwrap().starts_with("reader-"), "{ours}");
    assert_eq!((stage.count("POST"), computes.len()), (1, 3));
}

#[tokio::test]
async fn without_marks_a_person_decides_with_the_reported_command() {
    let stage = Stage::minimal("unmarked").await;
    let twin = lost_with_a_twin(&stage).await;
    let stalled = stage.until_condition("compute/reader", "Stalled", "True", "AmbiguousCreate").await;
    let said = message(&stalled, "Stalled");
    let ids: BTreeSet<String> =
        stage.computes().await.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert!(ids.len() == 2 && ids.contains(&twin) && ids.iter().all(|id| said.contains(id.as_str())), "{said}");
    polls(&stage, 1).await;
    assert_eq!(stage.count("POST"), 1);
    let command = said.split("To name the right one: ").nth(1).and_then(|rest| rest.split(". If").next()).unwrap();
    run(&stage, command).await;
    let ready = stage.until_ready("compute/reader").await;
    assert!(command.contains(&id(&ready)), "{command}");
    assert!(ready["metadata"]["annotations"]["dbplane.dev/create-intent"].is_null(), "{ready}");
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (1, 2));
}

/// Runs a kubectl command as a person copies it from a message.
async fn run(stage: &Stage, command: &str) {
    let words: Vec<String> = command.split_whitespace().skip(1).map(|word| word.replace('\'', "")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(command.starts_with("kubectl "), "{command}");
    stage.shared.cluster.kubectl(&words).await.unwrap();
}

#[tokio::test]
async fn computes_of_one_branch_are_found_again_in_turn() {
    for stage in [Stage::new("turns").await, Stage::minimal("turns-minimal").await] {
        stage.fault(json!({"method": "POST", "path": "/endpoints$", "kind": "lose_answer", "times": 3}));
        let names = ["reader-1", "reader-2", "reader-3"];
        stage.apply(&names.map(|name| reader(name, "")).join("---\n")).await;
        let mut ids = BTreeSet::new();
        for name in names {
            ids.insert(id(&stage.until_ready(&format!("compute/{name}")).await));
        }
        assert_eq!((ids.len(), stage.count("POST"), stage.computes().await.len()), (3, 3, 3));
    }
}

/// What comes later than the settle time, all at once.
#[tokio::test]
async fn a_create_that_is_carried_out_late_is_noticed() {
    tokio::join!(
        a_late_compute_is_reported_and_kept("late-told", true),
        a_late_compute_is_reported_and_kept("late-told-minimal", false),
        a_late_compute_is_bound_by_an_unbound_resource(),
        a_marked_compute_is_deleted_with_the_resource(),
    );
}

async fn late(name: &str, full: bool) -> Stage {
    let stage = if full { Stage::new(name).await } else { Stage::minimal(name).await };
    by_hand(&stage, BRANCH, "read_write").await;
    // The operator is certain after 21 s.
    stage.fault(json!({"method": "POST", "path": "/endpoints$", "kind": "late_work", "delay_ms": 30_000}));
    stage.apply(&reader("reader", "")).await;
    stage
}

async fn told(stage: &Stage) -> (String, String) {
    stage.wait_until("the late create", async || stage.computes().await.len() == 3).await;
    let told = stage.until_condition("compute/reader", "Synced", "False", "StrayCompute").await;
    assert_eq!(condition(&told, "Ready").unwrap()["status"], "True", "{told}");
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 3));
    let said = message(&told, "Synced");
    let own = id(&told);
    let computes = stage.computes().await;
    let stray = computes.iter().find(|line| line["type"] == "Read Replica" && line["id"] != *own).unwrap();
    let stray = stray["id"].as_str().unwrap().to_owned();
    assert!(said.contains(&stray) && !said.contains(&own), "{said}");
    (stray, said)
}

async fn a_late_compute_is_reported_and_kept(name: &str, full: bool) {
    let stage = late(name, full).await;
    let (stray, _) = told(&stage).await;
    assert!(stage.event("compute/reader", "StrayCompute").await.contains(&stray));
    polls(&stage, 1).await;
    assert_eq!(stage.count("DELETE"), 0);
    // Another Compute takes it: then there is nothing left to tell.
    stage.apply(&reader("second", &format!("  computeID: {stray}\n"))).await;
    assert_eq!(id(&stage.until_ready("compute/second").await), stray);
    stage.until_condition("compute/reader", "Synced", "True", "InSync").await;
    assert_eq!((stage.count("POST"), stage.count("DELETE"), stage.computes().await.len()), (2, 0, 3));
}

async fn a_late_compute_is_bound_by_an_unbound_resource() {
    let stage = late("late-taken", false).await;
    stage.wait_until("the create to be sent", async || stage.count("POST") == 1).await;
    stage.fault(json!({"method": "POST", "path": "/endpoints$", "status": 422, "body": {"message": "not now"}}));
    stage.until_condition("compute/reader", "Stalled", "True", "Refused").await;
    stage.until_ready("compute/reader").await;
    assert!(stage.event("compute/reader", "Linked").await.contains("interrupted create"));
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 2));
}

async fn a_marked_compute_is_deleted_with_the_resource() {
    let stage = late("late-deleted", true).await;
    let primary = stage.computes().await[0]["id"].clone();
    told(&stage).await;
    delete(&stage, "compute/reader").await;
    stage.until_gone("compute/reader").await;
    // Of the deletes some may have been refused while the computes were still starting.
    let left = stage.computes().await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &primary));
}

#[tokio::test]
async fn a_namespace_that_is_restored_has_its_computes_again_and_creates_nothing() {
    let stage = Stage::new("restored").await;
    stage.apply(&compute("orders", BRANCH, "")).await;
    stage.apply(&format!("{}---\n{}", reader("reader-1", ""), reader("reader-2", ""))).await;
    let names = ["orders", "reader-1", "reader-2"];
    let mut before = Vec::new();
    for name in names {
        let seen = stage.until_ready(&format!("compute/{name}")).await;
        before.push((id(&seen), seen));
    }
    for name in names {
        stage.patch(&format!("compute/{name}"), json!({"deletion": "Orphan"})).await;
    }
    stage.kubectl(&["delete", "namespace", "restored", "--wait=false"]).await;
    stage.until_gone("namespace/restored").await;
    stage.shared.cluster.kubectl(&["create", "namespace", "restored"]).await.unwrap();
    for (_, backup) in &before {
        let metadata = &backup["metadata"];
        let metadata = json!({"name": metadata["name"], "annotations": metadata["annotations"], "finalizers": metadata["finalizers"]});
        let object = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": backup["spec"]});
        stage.apply(&object.to_string()).await;
    }
    stage.account().await;
    for ((bound, _), name) in before.iter().zip(names) {
        let seen = stage.until_ready(&format!("compute/{name}")).await;
        assert_eq!(id(&seen), *bound, "{name}");
    }
    assert_eq!((stage.computes().await.len(), writes(&stage).len()), (3, 3), "the three creates alone");
}

#[tokio::test]
async fn an_edited_binding_is_reported_and_not_followed() {
    let (stage, bound) = created("edited", "").await;
    let other = by_hand(&stage, "br-dev-7", "read_write").await;
    let seen = stage.get("compute/orders").await.unwrap();
    let link = seen["metadata"]["annotations"]["dbplane.dev/compute"].as_str().unwrap().to_owned();
    for edited in [link.replace(&bound, &other), link.replace(PROJECT, "quiet-sea-654321")] {
        assert_ne!(edited, link);
        let annotation = format!("dbplane.dev/compute={edited}");
        stage.kubectl(&["annotate", "--overwrite", "compute", "orders", &annotation]).await;
        stage.patch("compute/orders", json!({"size": {"fixed": 4}})).await;
        let stalled = stage.until_condition("compute/orders", "Stalled", "True", "BindingConflict").await;
        assert!(message(&stalled, "Stalled").contains("not as dbplane wrote it"), "{stalled}");
        polls(&stage, 1).await;
        assert_eq!(writes(&stage).len(), 1, "the create alone");
        stage.patch("compute/orders", json!({"size": null})).await;
        stage.kubectl(&["annotate", "--overwrite", "compute", "orders", &format!("dbplane.dev/compute={link}")]).await;
        assert_eq!(id(&stage.until_ready("compute/orders").await), bound);
    }
}

#[tokio::test]
async fn repeated_drift_is_corrected_three_times_and_reported() {
    // The fuller platform refuses changes while it is busy.
    let stage = Stage::minimal("persists").await;
    let id = create(&stage, "  size: {fixed: 1}\n").await;
    for corrected in 1..=3 {
        stage.console(Method::PATCH, &format!("/computes/{id}"), resize(4)).await;
        stage.wait_until("the correction", async || stage.count("PATCH") == corrected).await;
        stage.until("compute/orders", "as declared", |seen| seen["status"]["size"] == "1").await;
        polls(&stage, 2).await;
    }
    stage.console(Method::PATCH, &format!("/computes/{id}"), resize(4)).await;
    stage.until_condition("compute/orders", "Synced", "False", "DriftPersists").await;
    polls(&stage, 2).await;
    assert_eq!(stage.count("PATCH"), 3);
}
