//! ProjectKeys on platforms that offer less, and on platforms and clusters that fail.

use serde_json::{Value, json};

use crate::keys::key;
use crate::stage::{ORGANIZATION_KEY, Stage, condition};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";
const CREATES: &str = "^/organizations/[^/]+/api_keys$";

#[tokio::test]
async fn without_a_revoke_call_the_deletion_waits_and_checks_the_key() {
    let stage = Stage::minimal("no-revoke").await;
    stage.apply(&key("ci", "")).await;
    stage.apply(&key("left", "")).await;
    let ready = stage.until_ready("projectkey/ci").await;
    stage.until_ready("projectkey/left").await;
    let left = stage.entry("left-key", "api-key").await.unwrap();
    stage.kubectl(&["delete", "projectkey", "ci", "left", "--wait=false"]).await;
    for name in ["ci", "left"] {
        let object = format!("projectkey/{name}");
        let waits = stage.until_condition(&object, "Stalled", "True", "RevocationUnsupported").await;
        let message = condition(&waits, "Stalled").unwrap()["message"].as_str().unwrap();
        assert!(
            message.contains(waits["status"]["keyName"].as_str().unwrap()) && message.contains("Orphan"),
            "{message}"
        );
    }
    stage.revoke(&ready["status"]["keyID"]).await;
    stage.until_gone("projectkey/ci").await;
    stage.patch("projectkey/left", json!({"deletion": "Orphan"})).await;
    stage.until_gone("projectkey/left").await;
    assert_eq!(stage.answer_to(&left).await, 200);
}

#[tokio::test]
async fn a_lost_answer_results_in_one_live_key() {
    let stage = Stage::new("lost-answer").await;
    stage.fault(json!({"method": "POST", "path": CREATES, "kind": "lose_answer"}));
    stage.apply(&key("ci", "")).await;
    let ready = stage.until_ready("projectkey/ci").await;
    assert_eq!(stage.count(CREATE), 2);
    let live = stage.live_keys().await;
    assert_eq!(live.iter().map(|key| &key["id"]).collect::<Vec<_>>(), [&ready["status"]["keyID"]]);
    assert_eq!(stage.answer_to(&stage.entry("ci-key", "api-key").await.unwrap()).await, 200);
    assert_eq!(ready["status"]["lostKeys"], Value::Null);
}

#[tokio::test]
async fn a_lost_answer_is_reported_where_keys_cannot_be_listed() {
    let stage = Stage::minimal("lost-answer-minimal").await;
    stage.fault(json!({"method": "POST", "path": CREATES, "kind": "lose_answer"}));
    stage.apply(&key("ci", "")).await;
    let ready = stage.until_ready("projectkey/ci").await;
    let live = stage.live_keys().await;
    let lost = live.iter().find(|key| key["id"] != ready["status"]["keyID"]).unwrap();
    assert_eq!(live.len(), 2);
    assert_eq!(ready["status"]["lostKeys"][0]["name"], lost["name"]);
    let told = stage.event("projectkey/ci", "KeyLeft").await;
    assert!(told.contains(lost["name"].as_str().unwrap()), "{told}");
    let synced = condition(&ready, "Synced").unwrap();
    assert_eq!((&synced["status"], &synced["reason"]), (&json!("False"), &json!("RevocationUnsupported")));
}

#[tokio::test]
async fn a_refused_creation_is_reported_and_tried_again_when_the_spec_changes() {
    let stage = Stage::new("mint-refused").await;
    stage.fault(json!({"method": "POST", "path": CREATES, "status": 403, "body": {"message": "administrators only"}}));
    stage.apply(&key("ci", "")).await;
    let stalled = stage.until_condition("projectkey/ci", "Stalled", "True", "Forbidden").await;
    let message = condition(&stalled, "Stalled").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("administrators only"), "{message}");
    assert_eq!(stage.count(CREATE), 1);
    stage.patch("projectkey/ci", json!({"onRevoked": "Report"})).await;
    stage.until_ready("projectkey/ci").await;
    assert_eq!(stage.live_keys().await.len(), 1);
}

#[tokio::test]
async fn a_limited_rate_is_waited_for() {
    let stage = Stage::new("mint-throttled").await;
    stage.fault(json!({"method": "POST", "path": CREATES, "status": 429, "retry_after": 2}));
    stage.apply(&key("ci", "")).await;
    stage.until_ready("projectkey/ci").await;
    assert_eq!(stage.count(CREATE), 2);
    assert_eq!(stage.live_keys().await.len(), 1);
}

/// Takes the settle time: nothing less proves that a key was not created.
#[tokio::test]
async fn a_creation_with_an_open_outcome_is_repeated_once_it_is_settled() {
    let stage = Stage::new("mint-open").await;
    stage.fault(json!({"method": "POST", "path": CREATES, "status": 500, "times": 1}));
    stage.fault(json!({"method": "POST", "path": CREATES, "status": 409, "times": 1}));
    stage.apply(&key("one", "")).await;
    stage.apply(&key("other", "")).await;
    stage.until_condition("projectkey/one", "Reconciling", "True", "ConfirmingCreate").await;
    stage.until_condition("projectkey/other", "Reconciling", "True", "ConfirmingCreate").await;
    assert_eq!(stage.count(CREATE), 2);
    stage.until_ready("projectkey/one").await;
    stage.until_ready("projectkey/other").await;
    assert_eq!(stage.count(CREATE), 4);
    assert_eq!(stage.live_keys().await.len(), 2);
    // What is to be found out is not asked for again and again.
    let lists = stage.count("GET /organizations/org-cool-darkness-1/api_keys");
    assert!(lists <= 8, "{lists} lists");
}

#[tokio::test]
async fn a_secret_that_cannot_be_created_costs_no_key() {
    let stage = Stage::new("quota").await;
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: no-secrets}\nspec: {hard: {secrets: '1'}}\n";
    stage.apply(quota).await;
    // What the quota controller would write, which does not run here.
    let used = json!({"status": {"hard": {"secrets": "1"}, "used": {"secrets": "1"}}}).to_string();
    stage
        .kubectl(&["patch", "resourcequota", "no-secrets", "--subresource=status", "--type", "merge", "-p", &used])
        .await;
    stage.apply(&key("ci", "")).await;
    let stalled = stage.until_condition("projectkey/ci", "Stalled", "True", "SecretNotWritten").await;
    let message = condition(&stalled, "Stalled").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("Secret ci-key") && message.contains("quota"), "{message}");
    assert_eq!(stage.count(CREATE), 0);
    stage.kubectl(&["delete", "resourcequota", "no-secrets"]).await;
    stage.until_ready("projectkey/ci").await;
    assert_eq!(stage.count(CREATE), 1);
}

#[tokio::test]
async fn a_secret_that_cannot_be_written_costs_no_key() {
    let stage = Stage::new("immutable").await;
    stage.apply(&key("ci", "")).await;
    let old = stage.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    stage.kubectl(&["patch", "secret", "ci-key", "--type", "merge", "-p", r#"{"immutable": true}"#]).await;
    stage.revoke(&old).await;
    stage.until_condition("projectkey/ci", "Stalled", "True", "SecretNotWritten").await;
    assert_eq!(stage.count(CREATE), 1);
    stage.kubectl(&["delete", "secret", "ci-key"]).await;
    stage.until_replaced("projectkey/ci", &old).await;
    assert_eq!(stage.live_keys().await.len(), 1);
}

#[tokio::test]
async fn a_key_that_may_not_create_keys_is_named_as_the_reason() {
    let stage = Stage::bare("mint-by-organization").await;
    stage.account_with(ORGANIZATION_KEY).await;
    stage.until_ready("account/prod").await;
    stage.apply(&key("ci", "")).await;
    stage.until_condition("projectkey/ci", "Stalled", "True", "Forbidden").await;
    // Nothing on the platform keeps it.
    stage.kubectl(&["delete", "projectkey", "ci", "--wait=false"]).await;
    stage.until_gone("projectkey/ci").await;
}

#[tokio::test]
async fn quiet_means_no_write() {
    let stage = Stage::new("key-quiet").await;
    stage.apply(&key("ci", "")).await;
    let ready = stage.until_ready("projectkey/ci").await;
    let secret = stage.get("secret/ci-key").await;
    let asked = stage.count("GET");
    // Several questions whether the key is accepted, and not one write.
    stage.wait_until("the key to be asked", async || stage.count("GET") >= asked + 2).await;
    assert_eq!(stage.get("projectkey/ci").await, Some(ready));
    assert_eq!(stage.get("secret/ci-key").await, secret);
    assert_eq!(stage.count(CREATE), 1);
}

#[tokio::test]
async fn annotations_that_are_copied_or_removed_do_no_harm() {
    let stage = Stage::new("copied").await;
    stage.apply(&key("ci", "")).await;
    let ready = stage.until_ready("projectkey/ci").await;
    let token = stage.entry("ci-key", "api-key").await.unwrap();
    let annotation = ready["metadata"]["annotations"]["dbplane.dev/keys"].as_str().unwrap();
    let copy = key("copy", "").replace(
        "metadata: {name: copy}",
        &format!("metadata: {{name: copy, annotations: {{dbplane.dev/keys: '{annotation}'}}}}"),
    );
    stage.apply(&copy).await;
    stage.until_condition("projectkey/copy", "Stalled", "True", "BindingConflict").await;
    stage.kubectl(&["delete", "projectkey", "copy", "--wait=false"]).await;
    stage.until_gone("projectkey/copy").await;
    assert_eq!(stage.answer_to(&token).await, 200);
    // The Secret tells which key it is.
    stage.kubectl(&["annotate", "projectkey", "ci", "dbplane.dev/keys-"]).await;
    stage
        .until("projectkey/ci", "restored", |seen| seen["metadata"]["annotations"]["dbplane.dev/keys"].is_string())
        .await;
    assert_eq!(stage.until_ready("projectkey/ci").await["status"]["keyID"], ready["status"]["keyID"]);
    assert_eq!(stage.count(CREATE), 1);
}
