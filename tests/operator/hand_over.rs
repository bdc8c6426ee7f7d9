//! Hand-over: to another name, another namespace, another cluster, in any order.

use serde_json::{Value, json};

use crate::computes::{delete, message, writes};
use crate::creates::reader;
use crate::fixture::{ADMIN, Fixture, PROJECT, compute, condition, key, key_into};

const CONNECTION: &str = "  connection: {secretName: orders-db}\n";

async fn handed_over(fixture: &Fixture, object: &str) -> Value {
    fixture.until_condition(object, "Ready", "True", "HandedOver").await
}

async fn waits(fixture: &Fixture, object: &str) -> String {
    let seen = fixture.until_condition(object, "Ready", "False", "HandingOver").await;
    message(&seen, "Ready").to_owned()
}

#[tokio::test]
async fn a_compute_gets_another_name_without_an_interruption() {
    let fixture = Fixture::new("renamed").await;
    let primary =
        |name: &str, more: &str| compute(name, "br-main-42", &format!("  restartToken: one\n{CONNECTION}{more}"));
    fixture.apply(&primary("orders", "  deletionProtection: true\n")).await;
    let before = fixture.until_ready("compute/orders").await;
    let secret = fixture.get("secret/orders-db").await.unwrap()["metadata"]["uid"].clone();

    fixture.apply(&primary("primary", "  takeOverFrom: {name: orders}\n")).await;
    let text = waits(&fixture, "compute/primary").await;
    assert!(text.contains("handOverTo to {namespace: renamed, name: primary}"), "{text}");
    let changed = writes(&fixture).len();
    fixture.patch("compute/orders", json!({"handOverTo": {"name": "primary"}})).await;
    let after = fixture.until_ready("compute/primary").await;
    assert_eq!(after["status"]["computeID"], before["status"]["computeID"]);
    let old = handed_over(&fixture, "compute/orders").await;
    assert!(message(&old, "Ready").contains("managed by Compute renamed/primary"), "{old}");
    let text = fixture.event("compute/primary", "Linked").await;
    assert!(text.starts_with("Took over compute ep-") && text.contains("Compute renamed/orders"), "{text}");

    // Of the two only the new one changes anything.
    fixture.patch("compute/orders", json!({"size": {"fixed": 8}, "restartToken": "two"})).await;
    fixture.patch("compute/primary", json!({"size": {"fixed": 2}})).await;
    fixture.until("compute/primary", "of the declared size", |seen| seen["status"]["size"] == "2").await;
    fixture
        .until("compute/orders", "looked at", |seen| {
            seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
        })
        .await;
    delete(&fixture, "compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.until_ready("compute/primary").await;
    assert_eq!(writes(&fixture).len(), changed + 1, "{:?}", writes(&fixture));
    let owner = fixture
        .until("secret/orders-db", "the new resource's", |seen| {
            seen["metadata"]["ownerReferences"][0]["name"] == "primary"
        })
        .await;
    assert_eq!(owner["metadata"]["uid"], secret, "the Secret was there all the time");
}

#[tokio::test]
async fn a_resource_that_is_deleted_first_waits_for_the_one_in_another_namespace() {
    let fixture = Fixture::new("handed").await;
    let elsewhere = Fixture::bare("handed-to").await;
    fixture.apply(&reader("reader", "  handOverTo: {namespace: handed-to, name: replica}\n")).await;
    let before = fixture.until_ready("compute/reader").await;
    delete(&fixture, "compute/reader").await;
    let text = waits(&fixture, "compute/reader").await;
    assert!(
        text.contains("Compute handed-to/replica, which does not exist")
            && text.contains("takeOverFrom: {namespace: handed"),
        "{text}"
    );
    // Those of other tests wait too.
    let waiting = reqwest::get(&fixture.shared.metrics).await.unwrap().text().await.unwrap();
    let counted = "dbplane_waiting_resources{kind=\"Compute\",reason=\"HandingOver\"} ";
    let count = waiting.lines().find_map(|line| line.strip_prefix(counted)?.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count >= 1), "{waiting}");

    elsewhere.secret("platform-api-key", ADMIN).await;
    elsewhere.account_at(&fixture.platform.base_url()).await;
    let manifest = reader("replica", "  takeOverFrom: {namespace: handed, name: reader}\n");
    elsewhere.apply(&manifest.replace(PROJECT, &fixture.project)).await;
    let after = elsewhere.until_ready("compute/replica").await;
    fixture.until_gone("compute/reader").await;
    assert_eq!(after["status"]["computeID"], before["status"]["computeID"]);
    assert_eq!((fixture.count("POST"), fixture.count("DELETE"), fixture.computes().await.len()), (1, 0, 1));
    delete(&elsewhere, "compute/replica").await;
    elsewhere.until_gone("compute/replica").await;
    assert_eq!(fixture.computes().await.len(), 0, "it is the new one's to delete");
}

#[tokio::test]
async fn a_release_is_taken_back_once_the_other_one_is_gone() {
    let fixture = Fixture::new("taken-back").await;
    fixture.apply(&reader("reader", "")).await;
    let id = fixture.until_ready("compute/reader").await["status"]["computeID"].clone();
    // It cannot take over: its account is for nothing.
    let other = reader("other", "  takeOverFrom: {name: reader}\n").replace("{name: prod}", "{name: none}");
    fixture.apply(&other).await;
    fixture.until_condition("compute/other", "Stalled", "True", "AccountNotFound").await;
    fixture.patch("compute/reader", json!({"handOverTo": {"name": "other"}})).await;
    let text = waits(&fixture, "compute/reader").await;
    assert!(text.contains("Compute taken-back/other is about to take over"), "{text}");
    fixture.patch("compute/reader", json!({"handOverTo": null, "size": {"fixed": 2}})).await;
    let text = waits(&fixture, "compute/reader").await;
    assert!(text.contains("about to take over"), "it may do so at any moment: {text}");
    delete(&fixture, "compute/other").await;
    fixture.until_gone("compute/other").await;
    let back = fixture.until("compute/reader", "of the declared size", |seen| seen["status"]["size"] == "2").await;
    assert_eq!(back["status"]["computeID"], id);
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (1, 0));
}

#[tokio::test]
async fn a_namespace_that_is_deleted_with_both_goes() {
    let fixture = Fixture::new("both-gone").await;
    fixture.apply(&reader("reader", "  handOverTo: {name: other}\n")).await;
    fixture.apply(&key("ci", "  handOverTo: {name: runner}\n")).await;
    for object in ["compute/reader", "projectkey/ci"] {
        fixture.until_ready(object).await;
    }
    fixture.kubectl(&["delete", "namespace", "both-gone", "--wait=false"]).await;
    fixture.until_gone("namespace/both-gone").await;
    assert_eq!((fixture.computes().await.len(), fixture.live_keys().await.len()), (0, 0));
}

#[tokio::test]
async fn a_key_is_handed_over_with_its_secret() {
    let fixture = Fixture::new("key-handed").await;
    fixture.apply(&key("ci", "")).await;
    let before = fixture.until_ready("projectkey/ci").await;
    let token = fixture.entry("ci-key", "api-key").await.unwrap();
    fixture.patch("projectkey/ci", json!({"handOverTo": {"name": "runner"}})).await;
    fixture.apply(&key("runner", "  takeOverFrom: {name: ci}\n")).await;
    let after = fixture.until_ready("projectkey/runner").await;
    handed_over(&fixture, "projectkey/ci").await;
    assert_eq!(after["status"]["keyID"], before["status"]["keyID"]);
    assert_eq!(fixture.entry("runner-key", "api-key").await.unwrap(), token);
    assert_eq!(fixture.entry("ci-key", "api-key").await.unwrap(), token, "who reads it goes on");
    delete(&fixture, "projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    assert_eq!((fixture.answer_to(&token).await, fixture.live_keys().await.len()), (200, 1));

    delete(&fixture, "projectkey/runner").await;
    assert!(fixture.get("projectkey/runner").await.is_none_or(|seen| condition(&seen, "Stalled").is_none()));
    fixture.until_gone("projectkey/runner").await;
    assert_eq!(
        (fixture.answer_to(&token).await, fixture.live_keys().await.len()),
        (401, 0),
        "it was the new one's to revoke"
    );
}

#[tokio::test]
async fn a_key_keeps_its_secret_under_another_name_of_its_resource() {
    let fixture = Fixture::new("key-renamed").await;
    fixture.apply(&key("ci", "  handOverTo: {name: runner}\n")).await;
    fixture.until_ready("projectkey/ci").await;
    let token = fixture.entry("ci-key", "api-key").await.unwrap();
    let uid = fixture.get("secret/ci-key").await.unwrap()["metadata"]["uid"].clone();
    delete(&fixture, "projectkey/ci").await;
    waits(&fixture, "projectkey/ci").await;
    fixture.apply(&key_into("runner", "{name: ci-key}", "  takeOverFrom: {name: ci}\n")).await;
    fixture.until_ready("projectkey/runner").await;
    fixture.until_gone("projectkey/ci").await;
    let secret = fixture.get("secret/ci-key").await.unwrap();
    assert_eq!(
        (&secret["metadata"]["uid"], &secret["metadata"]["ownerReferences"][0]["name"]),
        (&uid, &json!("runner"))
    );
    assert_eq!(fixture.entry("ci-key", "api-key").await.unwrap(), token);
    assert_eq!((fixture.answer_to(&token).await, fixture.live_keys().await.len()), (200, 1));
}

#[tokio::test]
async fn a_secret_that_somebody_alters_meanwhile_holds_up_nobody() {
    let fixture = Fixture::new("key-altered").await;
    fixture.apply(&key("ci", "  handOverTo: {name: runner}\n")).await;
    fixture.until_ready("projectkey/ci").await;
    let token = fixture.entry("ci-key", "api-key").await.unwrap();
    delete(&fixture, "projectkey/ci").await;
    waits(&fixture, "projectkey/ci").await;
    fixture
        .kubectl(&["patch", "secret", "ci-key", "--type=merge", "-p", r#"{"stringData": {"api-key": "another"}}"#])
        .await;
    fixture.apply(&key_into("runner", "{name: ci-key}", "  takeOverFrom: {name: ci}\n")).await;
    fixture.until_gone("projectkey/ci").await;
    fixture.until_ready("projectkey/runner").await;
    let replaced = fixture.entry("ci-key", "api-key").await.unwrap();
    fixture.wait_until("one live key", async || fixture.live_keys().await.len() == 1).await;
    assert_eq!((fixture.answer_to(&replaced).await, fixture.answer_to(&token).await), (200, 401));
}

#[tokio::test]
async fn a_backup_from_before_a_hand_over_leaves_the_key_to_the_new_resource() {
    let fixture = Fixture::new("key-brought-back").await;
    fixture.apply(&key("ci", "")).await;
    let backup = fixture
        .until("projectkey/ci", "recorded in both places", |seen| {
            let record = &seen["metadata"]["annotations"]["dbplane.dev/record"];
            record.is_string() && *record == seen["status"]["record"] && seen["status"]["keyID"].is_i64()
        })
        .await;
    let token = fixture.entry("ci-key", "api-key").await.unwrap();
    fixture.patch("projectkey/ci", json!({"handOverTo": {"name": "runner"}})).await;
    fixture.apply(&key("runner", "  takeOverFrom: {name: ci}\n")).await;
    handed_over(&fixture, "projectkey/ci").await;
    delete(&fixture, "projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;

    let metadata = json!({"name": "ci", "annotations": backup["metadata"]["annotations"]});
    let (version, spec) = (&backup["apiVersion"], &backup["spec"]);
    let restored = json!({"apiVersion": version, "kind": "ProjectKey", "metadata": metadata, "spec": spec});
    fixture.apply(&restored.to_string()).await;
    let stalled = fixture.until_condition("projectkey/ci", "Stalled", "True", "ClaimedByAnother").await;
    let text = message(&stalled, "Stalled");
    assert!(text.contains("ProjectKey key-brought-back/runner has taken over key"), "{text}");
    delete(&fixture, "projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    assert_eq!((fixture.answer_to(&token).await, fixture.live_keys().await.len()), (200, 1));
    fixture.until_ready("projectkey/runner").await;
}

#[tokio::test]
async fn what_another_cluster_is_to_take_over_is_written_by_nobody_until_then() {
    let fixture = Fixture::new("released").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    let changed = writes(&fixture).len();
    let more =
        json!({"handOverTo": {"cluster": "0ther0", "name": "orders"}, "size": {"fixed": 4}, "restartToken": "now"});
    fixture.patch("compute/orders", more).await;
    let old = handed_over(&fixture, "compute/orders").await;
    let release = old["status"]["release"].as_str().unwrap_or_default().to_owned();
    assert!(message(&old, "Ready").contains("of cluster 0ther0") && release.contains("\"to\":\"0ther0\""), "{old}");
    // It is for another cluster, and for another name.
    let quoted = release.replace('\'', "''");
    for (name, words) in [("orders-2", "is for released/orders"), ("here", "is for released/orders")] {
        let from = format!("  takeOverFrom: {{name: orders, release: '{quoted}'}}\n");
        fixture.apply(&compute(name, "br-main-42", &from)).await;
        let seen = fixture.until_condition(&format!("compute/{name}"), "Stalled", "True", "BindingConflict").await;
        assert!(message(&seen, "Stalled").contains(words), "{seen}");
    }
    delete(&fixture, "compute/orders").await;
    fixture.until_gone("compute/orders").await;
    assert_eq!((writes(&fixture).len(), fixture.computes().await.len()), (changed, 1));
}
