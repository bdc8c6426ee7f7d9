//! ProjectKeys after a restore, in the wrong cluster, with read-only Secrets, and with manual
//! intervention.

use dbplane::decide::names;
use serde_json::{Value, json};

use crate::fixture::{Fixture, condition, key};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";
const CREATES: &str = "^/organizations/[^/]+/api_keys$";
const REVOKE: &str = "DELETE /organizations/org-cool-darkness-1/api_keys";

/// The parts of an object that a backup contains: name, labels and annotations, spec or data.
fn backup(object: &Value) -> Value {
    let mut kept = object.clone();
    let meta = &object["metadata"];
    kept["metadata"] =
        json!({"name": meta["name"], "labels": meta["labels"], "annotations": meta["annotations"]});
    kept.as_object_mut().unwrap().remove("status");
    kept
}

impl Fixture {
    /// Deletes a ProjectKey as if there were no operator, and waits until its Secret is gone too.
    async fn tear_down(&self, name: &str, secret: &str) {
        let object = format!("projectkey/{name}");
        self.annotate(&object, "dbplane.dev/paused=true").await;
        self.delete(&object).await;
        self.kubectl(&[
            "patch",
            &object,
            "--type",
            "merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ])
        .await;
        self.until_gone(&object).await;
        self.until_gone(&format!("secret/{secret}")).await;
    }

    async fn restore(&self, manifest: &Value) {
        self.apply(&manifest.to_string()).await;
    }
}

#[tokio::test]
async fn a_key_and_its_secret_from_a_backup_stay_in_use() {
    let fixture = Fixture::new("key-restored").await;
    for (name, secret_first) in [("one", true), ("two", false)] {
        let (object, secret_name) = (format!("projectkey/{name}"), format!("{name}-key"));
        let secret_object = format!("secret/{secret_name}");
        fixture.apply(&key(name, "")).await;
        let ready = fixture.until_ready(&object).await;
        let token = fixture.entry(&secret_name, "api-key").await.unwrap();
        let (resource, secret) = (
            backup(&ready),
            backup(&fixture.get(&secret_object).await.unwrap()),
        );
        fixture.tear_down(name, &secret_name).await;
        let (first, second) = if secret_first {
            (&secret, &resource)
        } else {
            (&resource, &secret)
        };
        fixture.restore(first).await;
        if !secret_first {
            let waits = fixture
                .until_condition(&object, "Reconciling", "True", "Creating")
                .await;
            let message = condition(&waits, "Reconciling").unwrap()["message"]
                .as_str()
                .unwrap();
            assert!(message.contains("backup"), "{message}");
        }
        fixture.restore(second).await;
        let again = fixture.until_ready(&object).await;
        assert_ne!(again["metadata"]["uid"], ready["metadata"]["uid"]);
        assert_eq!(again["status"]["keyID"], ready["status"]["keyID"]);
        let owners =
            fixture.get(&secret_object).await.unwrap()["metadata"]["ownerReferences"].clone();
        assert_eq!(owners.as_array().map(Vec::len), Some(1), "{owners}");
        assert_eq!(owners[0]["uid"], again["metadata"]["uid"]);
        assert_eq!(fixture.entry(&secret_name, "api-key").await.unwrap(), token);
        assert_eq!(fixture.answer_to(&token).await, 200);
    }
    assert_eq!((fixture.count(CREATE), fixture.count(REVOKE)), (2, 0));
    // After the restore, the Secret is dbplane's again.
    fixture
        .kubectl(&["delete", "projectkey", "one", "two", "--wait=false"])
        .await;
    for object in [
        "projectkey/one",
        "projectkey/two",
        "secret/one-key",
        "secret/two-key",
    ] {
        fixture.until_gone(object).await;
    }
    assert!(fixture.live_keys().await.is_empty());
}

#[tokio::test]
async fn an_empty_secret_from_a_backup_is_used_again() {
    let fixture = Fixture::new("key-empty").await;
    fixture.fault(json!({"method": "POST", "path": CREATES, "status": 422, "times": 1000}));
    fixture.apply(&key("ci", "")).await;
    fixture
        .until_condition("projectkey/ci", "Stalled", "True", "Refused")
        .await;
    let secret = backup(&fixture.get("secret/ci-key").await.unwrap());
    fixture.kubectl(&["delete", "projectkey", "ci"]).await;
    fixture.until_gone("secret/ci-key").await;
    fixture.restore(&secret).await;
    assert!(fixture.get("secret/ci-key").await.unwrap()["metadata"]["ownerReferences"].is_null());
    fixture.platform.clear_faults();
    fixture.apply(&key("ci", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    let owners = fixture.get("secret/ci-key").await.unwrap()["metadata"]["ownerReferences"].clone();
    assert_eq!(
        (owners.as_array().map(Vec::len), &owners[0]["uid"]),
        (Some(1), &ready["metadata"]["uid"])
    );
    assert!(fixture.entry("ci-key", "api-key").await.is_some());
}

#[tokio::test]
async fn a_secret_from_a_backup_with_an_unrecorded_key_is_not_adopted() {
    let fixture = Fixture::new("key-unknown").await;
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("projectkey/ci").await;
    let secret = backup(&fixture.get("secret/ci-key").await.unwrap());
    fixture.tear_down("ci", "ci-key").await;
    fixture.restore(&secret).await;
    let before = fixture.get("secret/ci-key").await.unwrap();
    fixture.apply(&key("ci", "")).await;
    fixture
        .until_condition("projectkey/ci", "Stalled", "True", "SecretNotOurs")
        .await;
    assert_eq!(fixture.get("secret/ci-key").await.unwrap(), before);
    assert_eq!((fixture.count(CREATE), fixture.count(REVOKE)), (1, 0));
}

#[tokio::test]
async fn an_edited_record_is_restored_and_ignored() {
    let fixture = Fixture::new("key-edited").await;
    fixture.apply(&key("ci", "")).await;
    fixture.apply(&key("cd", "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    let other = fixture.until_ready("projectkey/cd").await["status"]["keyID"].to_string();
    let record = ready["metadata"]["annotations"][names::RECORD]
        .as_str()
        .unwrap();
    let edited = record.replace(
        &format!("\"id\":{}", ready["status"]["keyID"]),
        &format!("\"id\":{other}"),
    );
    assert_ne!(edited, record);
    fixture
        .annotate("projectkey/ci", &format!("{}={edited}", names::RECORD))
        .await;
    fixture
        .until("projectkey/ci", "restored", |seen| {
            seen["metadata"]["annotations"][names::RECORD] == record
        })
        .await;
    // Even if the resource is deleted at the same time, its own key must be revoked.
    fixture
        .annotate("projectkey/ci", &format!("{}={edited}", names::RECORD))
        .await;
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    let live = fixture.live_keys().await;
    assert_eq!(
        live.iter()
            .map(|key| key["id"].to_string())
            .collect::<Vec<_>>(),
        [other]
    );
    assert_eq!(fixture.count(REVOKE), 1);
}

/// The command at the end of a message, as arguments of kubectl.
fn command(message: &str) -> Vec<String> {
    let (_, command) = message.split_once("kubectl -n ").unwrap();
    let command = command.split_once("'.").unwrap().0.replace('\'', "");
    command.split(' ').skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn lost_keys_are_dropped_after_an_acknowledgement() {
    let fixture = Fixture::minimal("key-acknowledged").await;
    fixture.fault(json!({"method": "POST", "path": CREATES, "kind": "lose_answer"}));
    fixture.apply(&key("ci", "")).await;
    let reported = fixture
        .until_condition("projectkey/ci", "Synced", "False", "RevocationUnsupported")
        .await;
    let lost = reported["status"]["lostKeys"][0]["name"].as_str().unwrap();
    let message = condition(&reported, "Synced").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(message.contains(lost), "{message}");
    let say = command(message);
    fixture
        .kubectl(&say.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let clear = fixture
        .until("projectkey/ci", "without lost keys", |seen| {
            seen["status"]["lostKeys"].is_null()
                && condition(seen, "Synced").is_some_and(|synced| synced["status"] == "True")
        })
        .await;
    assert_eq!(
        clear["metadata"]["annotations"][names::REVOKED_KEYS],
        lost,
        "it stays, as a tool would keep it"
    );
    assert_eq!(clear["status"]["acknowledgedKeys"], json!([lost]));
    assert!(
        fixture
            .event("projectkey/ci", "KeyForgotten")
            .await
            .contains(lost)
    );
    assert_eq!(clear["status"]["keyID"], reported["status"]["keyID"]);

    // Without the Secret the key cannot be probed, so the user's confirmation is enough.
    fixture
        .annotate("projectkey/ci", "dbplane.dev/paused=true")
        .await;
    fixture
        .until_condition("projectkey/ci", "Paused", "True", "Paused")
        .await;
    fixture.kubectl(&["delete", "secret", "ci-key"]).await;
    fixture.delete("projectkey/ci").await;
    fixture
        .annotate("projectkey/ci", "dbplane.dev/paused-")
        .await;
    let waits = fixture
        .until_condition("projectkey/ci", "Stalled", "True", "RevocationUnsupported")
        .await;
    let say = command(
        condition(&waits, "Stalled").unwrap()["message"]
            .as_str()
            .unwrap(),
    );
    fixture
        .kubectl(&say.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    fixture.until_gone("projectkey/ci").await;
    assert_eq!(fixture.count(CREATE), 2);
}

/// A policy that denies changes of a Secret, with or without dry runs. It is active on return.
async fn refuse_changes(fixture: &Fixture, secret: &str, rehearsed_too: bool) -> String {
    let probe = format!("{secret}-probe");
    let exempt = if rehearsed_too {
        "false"
    } else {
        "request.dryRun"
    };
    let policy = format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {secret}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [secrets]}}
  validations:
    - {{expression: \"{exempt} || !(object.metadata.name in ['{secret}', '{probe}'])\", message: not here}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {secret}}}
spec: {{policyName: {secret}, validationActions: [Deny]}}
"
    );
    fixture.apply(&policy).await;
    fixture.secret(&probe, "a").await;
    let change = format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {probe}}}, stringData: {{api-key: b}}}}"
    );
    let args = [
        "-n",
        &fixture.namespace,
        "apply",
        "--server-side",
        "--force-conflicts",
        "-f",
        "-",
    ];
    fixture
        .wait_until("the policy to be in force", async || {
            fixture
                .shared
                .cluster
                .kubectl_with_input(&args, &change)
                .await
                .is_err()
        })
        .await;
    policy
}

async fn allow_changes(fixture: &Fixture, policy: &str) {
    fixture
        .shared
        .cluster
        .kubectl_with_input(&["delete", "-f", "-"], policy)
        .await
        .unwrap();
}

#[tokio::test]
async fn no_key_is_created_if_a_policy_refuses_the_secret() {
    let fixture = Fixture::new("key-policy").await;
    let policy = refuse_changes(&fixture, "policed-key", true).await;
    fixture.apply(&key("policed", "")).await;
    let stalled = fixture
        .until_condition("projectkey/policed", "Stalled", "True", "SecretNotWritten")
        .await;
    let message = condition(&stalled, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(
        message.contains("Secret policed-key") && message.contains("not here"),
        "{message}"
    );
    assert_eq!(fixture.count(CREATE), 0);
    allow_changes(&fixture, &policy).await;
    fixture.until_ready("projectkey/policed").await;
    assert_eq!(fixture.count(CREATE), 1);
}

#[tokio::test]
async fn no_key_is_created_for_a_secret_in_deletion() {
    let fixture = Fixture::new("key-going").await;
    fixture.apply(&key("ci", "")).await;
    let old = fixture.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    let held = |held: &str| format!(r#"{{"metadata":{{"finalizers":{held}}}}}"#);
    fixture
        .kubectl(&[
            "patch",
            "secret",
            "ci-key",
            "--type",
            "merge",
            "-p",
            &held(r#"["example.com/held"]"#),
        ])
        .await;
    fixture.delete("secret/ci-key").await;
    fixture.revoke(&old).await;
    fixture
        .until("projectkey/ci", "waiting for the Secret to go", |seen| {
            condition(seen, "Reconciling").is_some_and(|waits| {
                waits["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("being deleted"))
            })
        })
        .await;
    assert_eq!(fixture.count(CREATE), 1);
    fixture
        .kubectl(&[
            "patch",
            "secret",
            "ci-key",
            "--type",
            "merge",
            "-p",
            &held("null"),
        ])
        .await;
    fixture.until_replaced("projectkey/ci", &old).await;
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("ci-key", "api-key").await.unwrap())
            .await,
        200
    );
    assert_eq!(fixture.count(CREATE), 2);
}

#[tokio::test]
async fn a_key_in_memory_is_written_to_the_next_secret() {
    let fixture = Fixture::new("key-in-memory").await;
    let policy = refuse_changes(&fixture, "kept-key", false).await;
    fixture.apply(&key("kept", "")).await;
    fixture
        .until_condition("projectkey/kept", "Stalled", "True", "SecretNotWritten")
        .await;
    assert_eq!(fixture.live_keys().await.len(), 1);
    fixture.kubectl(&["delete", "secret", "kept-key"]).await;
    fixture
        .until("secret/kept-key", "there again", |seen| {
            seen["metadata"]["uid"].is_string()
        })
        .await;
    assert_eq!(fixture.entry("kept-key", "api-key").await, None);
    allow_changes(&fixture, &policy).await;
    fixture.until_ready("projectkey/kept").await;
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("kept-key", "api-key").await.unwrap())
            .await,
        200
    );
    assert_eq!((fixture.count(CREATE), fixture.count(REVOKE)), (1, 0));
}

#[tokio::test]
async fn a_key_in_memory_is_revoked_when_its_resource_is_deleted() {
    let fixture = Fixture::new("key-unsaved").await;
    let policy = refuse_changes(&fixture, "unsaved-key", false).await;
    fixture.apply(&key("unsaved", "")).await;
    fixture
        .until_condition("projectkey/unsaved", "Stalled", "True", "SecretNotWritten")
        .await;
    assert_eq!(fixture.live_keys().await.len(), 1);
    fixture.delete("projectkey/unsaved").await;
    fixture.until_gone("projectkey/unsaved").await;
    assert!(fixture.live_keys().await.is_empty());
    assert_eq!((fixture.count(CREATE), fixture.count(REVOKE)), (1, 1));
    allow_changes(&fixture, &policy).await;
}
