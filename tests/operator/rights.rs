//! The operator's rights: all that it asks for, and nothing that it does not.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::keys::key;
use crate::stage::{Stage, compute, root};
use crate::support::wait_until;

/// API group, resource (with its subresource) and verb.
type Right = (String, String, String);

#[derive(Deserialize)]
struct Role {
    kind: String,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
}

/// What deploy/ grants.
fn granted() -> BTreeSet<Right> {
    let text = std::fs::read_to_string(root().join("deploy/operator-roles.yaml")).unwrap();
    let mut rights = BTreeSet::new();
    for document in text.split("\n---\n") {
        let role: Role = serde_saphyr::from_str(document).unwrap();
        if !role.kind.ends_with("Role") {
            continue;
        }
        for Rule { api_groups, resources, verbs } in role.rules {
            for group in &api_groups {
                for resource in &resources {
                    rights.extend(verbs.iter().map(|verb| (group.clone(), resource.clone(), verb.clone())));
                }
            }
        }
    }
    rights
}

/// What the operator asked for, as the API server noted it, and what of it was denied.
fn asked(audit_log: &Path) -> (BTreeSet<Right>, Vec<Value>) {
    let text = std::fs::read_to_string(audit_log).unwrap_or_default();
    let (mut rights, mut denied) = (BTreeSet::new(), Vec::new());
    // The last line may be half written.
    for entry in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &entry["objectRef"];
        let resource = match object["subresource"].as_str() {
            Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
            None => text(&object["resource"]),
        };
        // Refused for lack of rights, not by a quota or an admission rule.
        if entry["annotations"]["authorization.k8s.io/decision"] == "forbid" {
            denied.push(entry.clone());
        }
        rights.insert((text(&object["apiGroup"]), resource, text(&entry["verb"])));
    }
    (rights, denied)
}

#[tokio::test]
async fn every_right_is_used_and_none_is_lacking() {
    let stage = Stage::new("rights").await;
    // Keys and computes, the Secrets of both, a ClusterAccount, and a second event of the same kind: a patch.
    stage.apply(&compute("orders", "br-main-42", "  connection: {secretName: orders-db}\n")).await;
    stage.apply(&key("ci", "")).await;
    stage.until_ready("compute/orders").await;
    let mut id = stage.until_ready("projectkey/ci").await["status"]["keyId"].clone();
    for _ in 0..2 {
        stage.kubectl(&["delete", "secret", "ci-key"]).await;
        id = stage.until_replaced("projectkey/ci", &id).await["status"]["keyId"].clone();
    }
    stage.apply(&cluster_account(&stage)).await;
    let other = key("other", "").replace("{name: prod}", "{name: rights, kind: ClusterAccount}");
    stage.apply(&other).await;
    stage.until_ready("projectkey/other").await;
    // A Secret in use that people delete: the namespace is asked whether it goes too.
    stage.kubectl(&["delete", "secret", "platform-api-key"]).await;
    stage.until_condition("account/prod", "Stalled", "True", "CredentialsMissing").await;
    stage.account().await;
    for object in ["projectkey/other", "projectkey/ci", "compute/orders"] {
        stage.until_ready(object).await;
        stage.kubectl(&["delete", object, "--wait=false"]).await;
        stage.until_gone(object).await;
    }
    stage.kubectl(&["delete", "clusteraccount", "rights"]).await;

    let log = &stage.shared.audit_log;
    let granted = granted();
    let unused = || granted.difference(&asked(log).0).cloned().collect::<Vec<_>>();
    // Leases are renewed by and by.
    let all = wait_until("every right to be used", Duration::from_secs(30), async || unused().is_empty()).await;
    assert!(all.is_ok(), "granted and never used: {:?}", unused());
    let (asked, denied) = asked(log);
    assert!(denied.is_empty(), "denied: {denied:#?}");
    let lacking: Vec<&Right> = asked.difference(&granted).filter(|(_, resource, _)| !resource.is_empty()).collect();
    assert!(lacking.is_empty(), "asked for and not granted: {lacking:?}");
}

fn cluster_account(stage: &Stage) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: rights}}
spec:
  baseUrl: {}
  organizationId: org-cool-darkness-1
  apiKeySecretRef: {{namespace: rights, name: platform-api-key}}
  namespaces: {{names: [rights]}}
",
        stage.platform.base_url()
    )
}
