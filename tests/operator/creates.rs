//! Creates without an answer: found again, made once, or reported; and restored bindings.

use std::collections::BTreeSet;

use dbplane::decide::names;
use dbplane_simulator::world::Profile;
use dbplane_simulator::{self as simulator, Options};
use reqwest::Method;
use serde_json::{Value, json};

use crate::computes::existing::resize;
use crate::computes::{by_hand, create, created, delete, message, polls, writes};
use crate::fixture::{ADMIN, Fixture, account, compute, condition, listener, world};

const BRANCH: &str = "br-main-42";

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
async fn what_somebody_creates_while_a_create_waits_for_its_place_is_not_taken_for_its_result() {
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
async fn computes_of_one_branch_are_found_again_in_turn() {
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
async fn a_create_that_is_carried_out_late_is_noticed() {
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
    assert!(text.ends_with(&format!("not-created={stray}")), "{text}");
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
    delete(&fixture, "compute/reader").await;
    fixture.until_gone("compute/reader").await;
    // Some deletes may have been refused while the computes were starting.
    let left = fixture.computes().await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &primary));
}

#[tokio::test]
async fn a_namespace_that_is_restored_has_its_computes_again_and_creates_nothing() {
    let fixture = Fixture::new("restored").await;
    fixture.apply(&compute("orders", BRANCH, "")).await;
    fixture
        .apply(&format!(
            "{}---\n{}",
            reader("reader-1", ""),
            reader("reader-2", "")
        ))
        .await;
    let names = ["orders", "reader-1", "reader-2"];
    let mut before = Vec::new();
    for name in names {
        let seen = fixture.until_ready(&format!("compute/{name}")).await;
        before.push((id(&seen), seen));
    }
    for name in names {
        fixture
            .patch(&format!("compute/{name}"), json!({"deletion": "Orphan"}))
            .await;
    }
    fixture
        .kubectl(&["delete", "namespace", "restored", "--wait=false"])
        .await;
    fixture.until_gone("namespace/restored").await;
    fixture
        .shared
        .cluster
        .kubectl(&["create", "namespace", "restored"])
        .await
        .unwrap();
    for (_, backup) in &before {
        let metadata = &backup["metadata"];
        let metadata = json!({"name": metadata["name"], "annotations": metadata["annotations"], "finalizers": metadata["finalizers"]});
        let object = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": backup["spec"]});
        fixture.apply(&object.to_string()).await;
    }
    fixture.account().await;
    for ((bound, _), name) in before.iter().zip(names) {
        let seen = fixture.until_ready(&format!("compute/{name}")).await;
        assert_eq!(id(&seen), *bound, "{name}");
    }
    assert_eq!(
        (fixture.computes().await.len(), writes(&fixture).len()),
        (3, 3),
        "the three creates alone"
    );
}

#[tokio::test]
async fn an_edited_record_is_restored_and_not_followed() {
    let (fixture, bound) = created("edited", "").await;
    let other = by_hand(&fixture, "br-dev-7", "read_write").await;
    let seen = fixture.get("compute/orders").await.unwrap();
    let record = seen["metadata"]["annotations"][names::RECORD]
        .as_str()
        .unwrap()
        .to_owned();
    for edited in [
        record.replace(&bound, &other),
        record.replace(&fixture.project, "quiet-sea-654321"),
    ] {
        assert_ne!(edited, record);
        let annotation = format!("{}={edited}", names::RECORD);
        fixture
            .kubectl(&["annotate", "--overwrite", "compute", "orders", &annotation])
            .await;
        fixture
            .until("compute/orders", "restored", |seen| {
                seen["metadata"]["annotations"][names::RECORD] == record.as_str()
            })
            .await;
        assert_eq!(id(&fixture.until_ready("compute/orders").await), bound);
    }
    assert_eq!(writes(&fixture).len(), 1, "the create alone");
}

#[tokio::test]
async fn repeated_drift_is_corrected_three_times_and_reported() {
    // The default platform refuses changes while it is busy.
    let fixture = Fixture::minimal("persists").await;
    let id = create(&fixture, "  size: {fixed: 1}\n").await;
    for corrected in 1..=3 {
        fixture
            .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
            .await;
        fixture
            .wait_until("the correction", async || {
                fixture.count("PATCH") == corrected
            })
            .await;
        fixture
            .until("compute/orders", "as declared", |seen| {
                seen["status"]["size"] == "1"
            })
            .await;
        polls(&fixture, 2).await;
    }
    fixture
        .console(Method::PATCH, &format!("/computes/{id}"), resize(4))
        .await;
    fixture
        .until_condition("compute/orders", "Synced", "False", "DriftPersists")
        .await;
    polls(&fixture, 2).await;
    assert_eq!(fixture.count("PATCH"), 3);
}

#[tokio::test]
async fn two_accounts_of_one_platform_share_claims_however_they_spell_it() {
    let fixture = Fixture::new("spelled").await;
    fixture.apply(&compute("first", BRANCH, "")).await;
    let first = id(&fixture.until_ready("compute/first").await);
    let other = format!(
        "{}/",
        fixture.platform.base_url().replace("127.0.0.1", "127.1")
    );
    fixture.account_named("other", &other).await;
    let through = |manifest: &str| manifest.replace("{name: prod}", "{name: other}");
    fixture
        .apply(&through(&compute("second", BRANCH, "  existing: Adopt\n")))
        .await;
    fixture
        .apply(&through(
            &reader("third", &format!("  computeID: {first}\n")).replace("ReadOnly", "ReadWrite"),
        ))
        .await;
    for name in ["second", "third"] {
        let object = format!("compute/{name}");
        let stalled = fixture
            .until_condition(&object, "Stalled", "True", "ClaimedByAnother")
            .await;
        assert!(
            message(&stalled, "Stalled").contains("spelled/first"),
            "{stalled}"
        );
    }
    // A Compute without its account keeps its binding.
    fixture
        .patch("compute/first", json!({"accountRef": {"name": "gone"}}))
        .await;
    fixture
        .until_condition("compute/first", "Stalled", "True", "AccountNotFound")
        .await;
    polls(&fixture, 2).await;
    for name in ["second", "third"] {
        fixture
            .until_condition(
                &format!("compute/{name}"),
                "Stalled",
                "True",
                "ClaimedByAnother",
            )
            .await;
    }
    assert_eq!(writes(&fixture).len(), 1, "the create alone");
}

#[tokio::test]
async fn an_account_of_another_platform_creates_nothing_anew() {
    let (fixture, bound) = created("moved", "").await;
    let other = simulator::serve(listener(), Options::new(world(&fixture.project)))
        .await
        .unwrap();
    let requests = || {
        other
            .requests(0)
            .into_iter()
            .filter(|entry| entry.method != "GET")
            .count()
    };
    fixture.account_named("there", &other.base_url()).await;
    fixture.until_ready("account/there").await;
    fixture
        .patch("compute/orders", json!({"accountRef": {"name": "there"}}))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "BindingConflict")
        .await;
    let text = message(&stalled, "Stalled");
    assert!(
        text.contains(&bound)
            && text.contains(&fixture.platform.base_url())
            && text.contains(&other.base_url()),
        "{text}"
    );
    delete(&fixture, "compute/orders").await;
    fixture
        .until("compute/orders", "held", |seen| {
            seen["metadata"]["deletionTimestamp"].is_string()
                && condition(seen, "Stalled").is_some()
        })
        .await;
    assert_eq!((requests(), fixture.computes().await.len()), (0, 1));
    fixture
        .patch("compute/orders", json!({"accountRef": {"name": "prod"}}))
        .await;
    fixture.until_gone("compute/orders").await;
    assert_eq!((requests(), fixture.computes().await.len()), (0, 0));
    other.stop().await;
}
