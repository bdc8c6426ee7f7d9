//! An account whose credentials come from a ProjectKey that is rotated.

use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{ADMIN, Lab, PROJECT, minutes};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys 200";

/// The administrators' ClusterAccount, a ProjectKey of the team's project with this rotation, and
/// the team's Account that uses it.
async fn declare(lab: &Lab, rotation: &str) {
    let credentials = format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: company-platform-api-key, namespace: dbplane-system}}
stringData: {{api-key: {ADMIN}}}
"
    );
    lab.apply_anywhere(&credentials).await;
    let url = lab.platform.base_url();
    lab.apply(&format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: company}}
spec:
  baseURL: {url}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{namespace: dbplane-system, name: company-platform-api-key}}
  namespaces: {{names: [shop]}}
---
apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {{name: team}}
spec:
  accountRef: {{kind: ClusterAccount, name: company}}
  projectID: {PROJECT}
  secret: {{name: team-platform-key}}
  rotation: {rotation}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: team}}
spec:
  baseURL: {url}
  apiKeySecretRef: {{name: team-platform-key}}
  pollInterval: 5s
---
apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: orders}}
spec:
  accountRef: {{name: team}}
  projectID: {PROJECT}
  branchID: br-main-42
  type: ReadWrite
  scaleToZero: {{never: true}}
"
    ))
    .await;
}

/// The time since which the resource is ready.
fn ready_since(object: &Value) -> Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .find(|condition| condition["type"] == "Ready")
        .unwrap()["lastTransitionTime"]
        .clone()
}

/// Requests for computes so far, with the id of their key.
fn made_with(lab: &Lab) -> Vec<(String, Option<i64>)> {
    let of_project = |path: &str| path.starts_with(&format!("/projects/{PROJECT}/endpoints"));
    let requests = lab
        .platform
        .requests(0)
        .into_iter()
        .filter(|entry| of_project(&entry.path));
    requests.map(|entry| (entry.method, entry.key_id)).collect()
}

/// The account must switch to each new key without a refused call: at once, or at the end of the
/// overlap.
async fn rotated_under_an_account(rotation: &str, overlap: Duration) {
    let lab = Lab::start().await;
    declare(&lab, rotation).await;
    let ready = lab.until_ready("compute/orders").await;
    let (since, compute) = (ready_since(&ready), ready["status"]["computeID"].clone());
    let mut key = lab.get("projectkey/team").await["status"]["keyID"].clone();
    let created = ("POST".to_owned(), key.as_i64());
    assert!(
        made_with(&lab).contains(&created),
        "the compute is created with the project's key"
    );
    for rotation in 1..=2 {
        if overlap.is_zero() {
            // Delays the check of the new key. In the meantime the project is polled at least once
            // with the old key.
            lab.fault(json!({"method": "GET", "path": "^/projects$", "kind": "delay", "delay_ms": 7000, "times": 100}));
        }
        lab.passes(minutes(60)).await;
        let rotated = lab.until_replaced("projectkey/team", &key).await;
        let new = rotated["status"]["keyID"].clone();
        assert_eq!(lab.count(CREATE), rotation + 1);
        let uses_it = async || made_with(&lab).iter().any(|(_, id)| *id == new.as_i64());
        lab.wait_until("the account to work with the new key", uses_it)
            .await;
        if !overlap.is_zero() {
            lab.is_decided("projectkey/team").await;
            lab.until_live(&[&key, &new]).await;
            lab.passes(overlap).await;
        }
        lab.until_live(&[&new]).await;
        lab.platform.clear_faults();
        let begun = lab.platform.requests(0).len();
        let seen = lab.is_decided("compute/orders").await;
        assert_eq!(
            (ready_since(&seen), &seen["status"]["computeID"]),
            (since.clone(), &compute)
        );
        let later = lab.platform.requests(0).split_off(begun);
        assert!(
            later.iter().all(|entry| entry.key_id != key.as_i64()),
            "{later:?}"
        );
        key = new;
    }
    assert_eq!(lab.refused(), 0, "{}", lab.requests().join("\n"));
    lab.stop().await;
}

#[tokio::test]
async fn an_account_follows_the_rotation_of_its_key_without_one_refused_call() {
    rotated_under_an_account("{every: 1h, overlap: 20m}", minutes(20)).await;
}

/// The old key is due for revocation at once, but must wait for the account.
#[tokio::test]
async fn a_rotation_without_an_overlap_waits_for_the_account() {
    rotated_under_an_account("{every: 1h, overlap: 0s}", Duration::ZERO).await;
}
