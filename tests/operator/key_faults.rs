//! ProjectKeys on platforms with fewer calls, and on failing platforms and clusters.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{Fixture, ORGANIZATION_KEY, condition, key};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";
const CREATES: &str = "^/organizations/[^/]+/api_keys$";

#[tokio::test]
async fn without_a_revoke_call_the_deletion_waits_and_checks_the_key() {
    let fixture = Fixture::minimal("no-revoke").await;
    fixture.apply(&key("ci", "")).await;
    fixture.apply(&key("left", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    fixture.until_ready("projectkey/left").await;
    let left = fixture.entry("left-key", "api-key").await.unwrap();
    fixture
        .kubectl(&["delete", "projectkey", "ci", "left", "--wait=false"])
        .await;
    for name in ["ci", "left"] {
        let object = format!("projectkey/{name}");
        let waits = fixture
            .until_condition(&object, "Stalled", "True", "RevocationUnsupported")
            .await;
        let message = condition(&waits, "Stalled").unwrap()["message"]
            .as_str()
            .unwrap();
        assert!(
            message.contains(waits["status"]["keyName"].as_str().unwrap())
                && message.contains("Orphan"),
            "{message}"
        );
    }
    fixture.revoke(&ready["status"]["keyID"]).await;
    fixture.until_gone("projectkey/ci").await;
    fixture
        .patch("projectkey/left", json!({"deletion": "Orphan"}))
        .await;
    fixture.until_gone("projectkey/left").await;
    assert_eq!(fixture.answer_to(&left).await, 200);
}

#[tokio::test]
async fn a_lost_answer_results_in_one_live_key() {
    let fixture = Fixture::new("lost-answer").await;
    fixture.fault(json!({"method": "POST", "path": CREATES, "kind": "lose_answer"}));
    fixture.apply(&key("ci", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    assert_eq!(fixture.count(CREATE), 2);
    let live = fixture.live_keys().await;
    assert_eq!(
        live.iter().map(|key| &key["id"]).collect::<Vec<_>>(),
        [&ready["status"]["keyID"]]
    );
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("ci-key", "api-key").await.unwrap())
            .await,
        200
    );
    assert_eq!(ready["status"]["lostKeys"], Value::Null);
}

#[tokio::test]
async fn a_lost_answer_is_reported_if_keys_cannot_be_listed() {
    let fixture = Fixture::minimal("lost-answer-minimal").await;
    fixture.fault(json!({"method": "POST", "path": CREATES, "kind": "lose_answer"}));
    fixture.apply(&key("ci", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    let live = fixture.live_keys().await;
    let lost = live
        .iter()
        .find(|key| key["id"] != ready["status"]["keyID"])
        .unwrap();
    assert_eq!(live.len(), 2);
    assert_eq!(ready["status"]["lostKeys"][0]["name"], lost["name"]);
    let reported = fixture.event("projectkey/ci", "KeyLeft").await;
    assert!(
        reported.contains(lost["name"].as_str().unwrap()),
        "{reported}"
    );
    let synced = condition(&ready, "Synced").unwrap();
    assert_eq!(
        (&synced["status"], &synced["reason"]),
        (&json!("False"), &json!("RevocationUnsupported"))
    );
}

#[tokio::test]
async fn a_refused_creation_is_reported_and_retried_when_the_spec_changes() {
    let fixture = Fixture::new("mint-refused").await;
    fixture
        .fault(json!({"method": "POST", "path": CREATES, "status": 403, "body": {"message": "administrators only"}}));
    fixture.apply(&key("ci", "")).await;
    let stalled = fixture
        .until_condition("projectkey/ci", "Stalled", "True", "Forbidden")
        .await;
    let message = condition(&stalled, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("administrators only"), "{message}");
    assert_eq!(fixture.count(CREATE), 1);
    fixture
        .patch("projectkey/ci", json!({"onRevoked": "Report"}))
        .await;
    fixture.until_ready("projectkey/ci").await;
    assert_eq!(fixture.live_keys().await.len(), 1);
}

#[tokio::test]
async fn a_rate_limit_is_waited_for() {
    let fixture = Fixture::new("mint-throttled").await;
    fixture.until_ready("account/prod").await;
    fixture.fault(
        json!({"method": "POST", "path": CREATES, "status": 429, "retry_after": 1, "times": 5}),
    );
    let begun = Instant::now();
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("projectkey/ci").await;
    // Five seconds plus the usual time; exponential backoff would take half a minute.
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(fixture.count(CREATE), 6);
    assert_eq!(fixture.live_keys().await.len(), 1);
}

/// Takes the settle time, which is necessary to prove that a key was not created.
#[tokio::test]
async fn a_creation_with_an_unknown_outcome_is_repeated_after_it_is_resolved() {
    let fixture = Fixture::new("mint-open").await;
    let begun = Instant::now();
    fixture.fault(json!({"method": "POST", "path": CREATES, "status": 500, "times": 1}));
    fixture.fault(json!({"method": "POST", "path": CREATES, "status": 409, "times": 1}));
    fixture.apply(&key("one", "")).await;
    fixture.apply(&key("other", "")).await;
    fixture
        .until_condition("projectkey/one", "Reconciling", "True", "ConfirmingCreate")
        .await;
    fixture
        .until_condition(
            "projectkey/other",
            "Reconciling",
            "True",
            "ConfirmingCreate",
        )
        .await;
    assert_eq!(fixture.count(CREATE), 2);
    fixture.until_ready("projectkey/one").await;
    fixture.until_ready("projectkey/other").await;
    assert_eq!(fixture.count(CREATE), 4);
    assert_eq!(fixture.live_keys().await.len(), 2);
    // The recovery must not list in a loop. Regular polls list every 3.75 s as well.
    let lists = fixture.count("GET /organizations/org-cool-darkness-1/api_keys");
    let polls = usize::try_from(begun.elapsed().as_millis() / 3750).unwrap();
    assert!(lists <= 8 + polls, "{lists} lists, {polls} polls at most");
}

#[tokio::test]
async fn no_key_is_created_if_its_secret_cannot_be_created() {
    let fixture = Fixture::new("quota").await;
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: no-secrets}\nspec: {hard: {secrets: '1'}}\n";
    fixture.apply(quota).await;
    // The status that the quota controller would write; it does not run here.
    let used = json!({"status": {"hard": {"secrets": "1"}, "used": {"secrets": "1"}}}).to_string();
    fixture
        .kubectl(&[
            "patch",
            "resourcequota",
            "no-secrets",
            "--subresource=status",
            "--type",
            "merge",
            "-p",
            &used,
        ])
        .await;
    fixture.apply(&key("ci", "")).await;
    let stalled = fixture
        .until_condition("projectkey/ci", "Stalled", "True", "SecretNotWritten")
        .await;
    let message = condition(&stalled, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(
        message.contains("Secret ci-key") && message.contains("quota"),
        "{message}"
    );
    assert_eq!(fixture.count(CREATE), 0);
    fixture
        .kubectl(&["delete", "resourcequota", "no-secrets"])
        .await;
    fixture.until_ready("projectkey/ci").await;
    assert_eq!(fixture.count(CREATE), 1);
}

#[tokio::test]
async fn no_key_is_created_if_its_secret_cannot_be_written() {
    let fixture = Fixture::new("immutable").await;
    fixture.apply(&key("ci", "")).await;
    let old = fixture.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    fixture
        .kubectl(&[
            "patch",
            "secret",
            "ci-key",
            "--type",
            "merge",
            "-p",
            r#"{"immutable": true}"#,
        ])
        .await;
    fixture.revoke(&old).await;
    fixture
        .until_condition("projectkey/ci", "Stalled", "True", "SecretNotWritten")
        .await;
    assert_eq!(fixture.count(CREATE), 1);
    fixture.kubectl(&["delete", "secret", "ci-key"]).await;
    fixture.until_replaced("projectkey/ci", &old).await;
    assert_eq!(fixture.live_keys().await.len(), 1);
}

#[tokio::test]
async fn a_key_without_the_right_to_create_keys_is_reported_as_the_reason() {
    let fixture = Fixture::bare("mint-by-organization").await;
    fixture.account_with(ORGANIZATION_KEY).await;
    fixture.until_ready("account/prod").await;
    fixture.apply(&key("ci", "")).await;
    fixture
        .until_condition("projectkey/ci", "Stalled", "True", "Forbidden")
        .await;
    // It has nothing on the platform that would block the deletion.
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
}

#[tokio::test]
async fn a_stable_key_causes_no_write() {
    let fixture = Fixture::new("key-quiet").await;
    fixture.apply(&key("ci", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    let secret = fixture.get("secret/ci-key").await;
    let asked = fixture.count("GET");
    // The key is probed several times, and nothing is written.
    fixture
        .wait_until("the key to be asked", async || {
            fixture.count("GET") >= asked + 2
        })
        .await;
    assert_eq!(fixture.get("projectkey/ci").await, Some(ready));
    assert_eq!(fixture.get("secret/ci-key").await, secret);
    assert_eq!(fixture.count(CREATE), 1);
}

#[tokio::test]
async fn copied_or_removed_annotations_are_harmless() {
    let fixture = Fixture::new("copied").await;
    fixture.apply(&key("ci", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    let token = fixture.entry("ci-key", "api-key").await.unwrap();
    let annotation = ready["metadata"]["annotations"]["dbplane.dev/record"]
        .as_str()
        .unwrap();
    let copy = key("copy", "").replace(
        "metadata: {name: copy}",
        &format!("metadata: {{name: copy, annotations: {{dbplane.dev/record: '{annotation}'}}}}"),
    );
    fixture.apply(&copy).await;
    fixture
        .until_condition("projectkey/copy", "Stalled", "True", "BindingConflict")
        .await;
    fixture.delete("projectkey/copy").await;
    fixture.until_gone("projectkey/copy").await;
    assert_eq!(fixture.answer_to(&token).await, 200);
    // The record is restored from the status.
    fixture
        .annotate("projectkey/ci", "dbplane.dev/record-")
        .await;
    fixture
        .until("projectkey/ci", "restored", |seen| {
            seen["metadata"]["annotations"]["dbplane.dev/record"].is_string()
        })
        .await;
    assert_eq!(
        fixture.until_ready("projectkey/ci").await["status"]["keyID"],
        ready["status"]["keyID"]
    );
    assert_eq!(fixture.count(CREATE), 1);
}

#[tokio::test]
async fn keys_with_lost_answers_do_not_accumulate() {
    tokio::join!(
        lost_keys_are_revoked_before_the_next_creation(),
        at_most_three_lost_keys_exist()
    );
}

async fn lost_keys_are_revoked_before_the_next_creation() {
    let fixture = Fixture::new("pile").await;
    fixture.fault(
        json!({"method": "POST", "path": CREATES, "kind": "lose_answer", "times": 1_000_000}),
    );
    fixture.apply(&key("ci", "")).await;
    let mut most = 0;
    fixture
        .wait_until("five creations", async || {
            most = most.max(fixture.live_keys().await.len());
            fixture.count(CREATE) >= 5
        })
        .await;
    assert!(most <= 1, "{most} keys were live at once");
    fixture.platform.clear_faults();
    let ready = fixture.until_ready("projectkey/ci").await;
    assert_eq!(
        (
            fixture.live_keys().await.len(),
            &ready["status"]["lostKeys"]
        ),
        (1, &Value::Null)
    );
}

async fn at_most_three_lost_keys_exist() {
    let fixture = Fixture::minimal("pile-minimal").await;
    fixture.fault(
        json!({"method": "POST", "path": CREATES, "kind": "lose_answer", "times": 1_000_000}),
    );
    fixture.apply(&key("ci", "")).await;
    let stalled = fixture
        .until_condition("projectkey/ci", "Stalled", "True", "RevocationUnsupported")
        .await;
    let message = condition(&stalled, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    let live = fixture.live_keys().await;
    assert!(
        live.iter()
            .all(|key| message.contains(key["name"].as_str().unwrap())),
        "{message}"
    );
    fixture.platform.clear_faults();
    assert_eq!((fixture.count(CREATE), live.len()), (3, 3), "{message}");
    fixture
        .annotate("projectkey/ci", "dbplane.dev/revoked-keys=all")
        .await;
    fixture.until_ready("projectkey/ci").await;
    assert_eq!(fixture.count(CREATE), 4);
}

/// A policy that changes Secrets whose names begin with `ci`, in dry runs or only in real writes.
pub async fn altering(fixture: &Fixture, dry_runs: bool) -> String {
    let (namespace, name) = (&fixture.namespace, format!("alter-{}", fixture.namespace));
    let condition = if dry_runs {
        "true"
    } else {
        "!(has(request.dryRun) && request.dryRun)"
    };
    let policy = format!(
        r#"apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}}]
  matchConditions:
    - {{name: wanted, expression: "object.metadata.name.startsWith('ci') && has(object.data) && {condition}"}}
  mutations:
    - patchType: JSONPatch
      jsonPatch: {{expression: '[JSONPatch{{op: "add", path: "/data", value: {{"api-key": "eA=="}}}}]'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}}}
"#
    );
    fixture.apply(&policy).await;
    fixture
        .wait_until("the policy to be in force", async || {
            fixture.secret("ci-probe", "probe").await;
            fixture.entry("ci-probe", "api-key").await.as_deref() == Some("x")
        })
        .await;
    name
}

#[tokio::test]
async fn no_further_key_is_created_if_a_policy_alters_the_secret() {
    tokio::join!(
        altered_after_a_clean_rehearsal(),
        altered_in_the_rehearsal()
    );
}

async fn altered_after_a_clean_rehearsal() {
    let fixture = Fixture::new("altered").await;
    let policy = altering(&fixture, false).await;
    fixture.apply(&key("ci", "")).await;
    let stalled = fixture
        .until_condition("projectkey/ci", "Stalled", "True", "SecretNotWritten")
        .await;
    let message = condition(&stalled, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("entry api-key"), "{message}");
    let version =
        async || fixture.get("projectkey/ci").await.unwrap()["metadata"]["resourceVersion"].clone();
    let before = version().await;
    fixture
        .kubectl(&["label", "projectkey", "ci", "touched=yes"])
        .await;
    fixture
        .wait_until("the resource to be touched", async || {
            version().await != before
        })
        .await;
    fixture
        .kubectl(&[
            "delete",
            "mutatingadmissionpolicybinding,mutatingadmissionpolicy",
            &policy,
        ])
        .await;
    fixture.until_ready("projectkey/ci").await;
    assert_eq!(
        (fixture.count(CREATE), fixture.live_keys().await.len()),
        (1, 1)
    );
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("ci-key", "api-key").await.unwrap())
            .await,
        200
    );
}

async fn altered_in_the_rehearsal() {
    let fixture = Fixture::new("altered-rehearsal").await;
    let policy = altering(&fixture, true).await;
    fixture.apply(&key("ci", "")).await;
    fixture
        .until_condition("projectkey/ci", "Stalled", "True", "SecretNotWritten")
        .await;
    assert_eq!(fixture.count(CREATE), 0);
    fixture
        .kubectl(&[
            "delete",
            "mutatingadmissionpolicybinding,mutatingadmissionpolicy",
            &policy,
        ])
        .await;
    fixture.until_ready("projectkey/ci").await;
    assert_eq!(
        (fixture.count(CREATE), fixture.live_keys().await.len()),
        (1, 1)
    );
}
