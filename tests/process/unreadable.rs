//! A stored object that violates its definition must not affect others, and must keep its compute.

use std::path::PathBuf;

use serde_json::json;

use crate::support::{ControlPlane, PATIENCE, definition_files, wait_until};
use crate::{Operator, cluster, creates, declare, platform, until_ready};

/// Stores a Compute whose field `disabled` is a number, by a temporarily looser definition.
async fn store_unreadable_field(cluster: &ControlPlane) {
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let loose = json!([{
        "op": "replace",
        "path": format!("{schema}/properties/spec/properties/disabled"),
        "value": {"x-kubernetes-int-or-string": true},
    }]);
    let definition = "computes.dbplane.dev";
    cluster
        .kubectl(&[
            "patch",
            "crd",
            definition,
            "--type",
            "json",
            "-p",
            &loose.to_string(),
        ])
        .await
        .unwrap();
    let spoilt = r#"{"spec":{"disabled":7}}"#;
    let stored = async || {
        cluster
            .kubectl(&[
                "patch", "compute", "orders", "--type", "merge", "-p", spoilt,
            ])
            .await
            .is_ok()
    };
    wait_until("the API server to take what does not fit", PATIENCE, stored)
        .await
        .unwrap();
    let strict = definition_files()
        .into_iter()
        .find(|path| path.ends_with("dbplane.dev_computes.yaml"))
        .unwrap();
    cluster
        .kubectl(&["replace", "-f", strict.to_str().unwrap()])
        .await
        .unwrap();
    let other = r#"{"spec":{"disabled":8}}"#;
    let refused = async || {
        cluster
            .kubectl(&["patch", "compute", "orders", "--type", "merge", "-p", other])
            .await
            .is_err()
    };
    wait_until("the API server to refuse it again", PATIENCE, refused)
        .await
        .unwrap();
}

/// The operator's installed rights.
async fn installed(cluster: &ControlPlane) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
    cluster.kubectl(&["apply", "-k", folder]).await.unwrap();
    cluster
        .kubeconfig_for_service_account("dbplane-system", "dbplane")
        .await
        .unwrap()
}

async fn apply(cluster: &ControlPlane, name: &str, spec: &str) {
    let manifest = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectID: aged-wind-123456
  branchID: br-main-42
{spec}"
    );
    let applied = async || cluster.apply(&manifest).await.is_ok();
    wait_until("the definition to be served again", PATIENCE, applied)
        .await
        .unwrap();
}

async fn until_reason(cluster: &ControlPlane, name: &str, reason: &str) {
    let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}";
    let says = async || {
        cluster
            .kubectl(&["get", "compute", name, "-o", path])
            .await
            .is_ok_and(|text| text == reason)
    };
    wait_until(&format!("{name} to say {reason}"), PATIENCE, says)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_unreadable_object_stops_no_other_and_keeps_its_compute() {
    let cluster = cluster().await;
    let platform = platform().await;
    declare(&cluster, &platform).await;
    let installed = installed(&cluster).await;
    let mut operator = Operator::start_as(&installed, &cluster, "operator", &[]);
    until_ready(&cluster).await;
    // The operator must be down while the definition is loose, because it has to write the
    // condition under the strict one.
    operator.process.kill().unwrap();
    store_unreadable_field(&cluster).await;
    let mut operator = Operator::start_as(&installed, &cluster, "spoilt", &[]);
    until_reason(&cluster, "orders", "Unreadable").await;
    // Otherwise tools would wait instead of reporting that the object needs attention.
    let generations = "jsonpath={.metadata.generation} {.status.observedGeneration}";
    assert_eq!(
        cluster
            .kubectl(&["get", "compute", "orders", "-o", generations])
            .await
            .unwrap(),
        "2 2"
    );
    let log = operator.process.log();
    assert!(
        log.contains("a stored object cannot be read") && log.contains("orders"),
        "{log}"
    );
    let metrics = reqwest::get(&operator.metrics)
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        metrics.contains(r#"dbplane_unreadable_resources{namespace="default",kind="Compute"} 1"#),
        "{metrics}"
    );

    // Other objects are still reconciled, and must not take its compute.
    apply(&cluster, "replica", "  type: ReadOnly\n").await;
    until_reason(&cluster, "replica", "Available").await;
    apply(&cluster, "rival", "  type: ReadWrite\n  existing: Adopt\n").await;
    until_reason(&cluster, "rival", "ClaimedByAnother").await;

    // The same for a process that has only seen the invalid object.
    operator.process.kill().unwrap();
    let _next = Operator::start_as(&installed, &cluster, "next", &[]);
    apply(&cluster, "another", "  type: ReadOnly\n").await;
    until_reason(&cluster, "another", "Available").await;
    until_reason(&cluster, "rival", "ClaimedByAnother").await;
    assert_eq!(creates(&platform), 3);

    // After its correction, the object is reconciled again.
    let correct = r#"{"spec":{"disabled":null}}"#;
    cluster
        .kubectl(&["delete", "compute", "rival"])
        .await
        .unwrap();
    cluster
        .kubectl(&[
            "patch", "compute", "orders", "--type", "merge", "-p", correct,
        ])
        .await
        .unwrap();
    until_reason(&cluster, "orders", "Available").await;
    assert_eq!(creates(&platform), 3, "nothing was created beside it");
}

/// Another Compute of the sample project; these fields may have either spelling.
fn of_branch_dev(fields: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: former, finalizers: [dbplane.dev/finalizer]}}
spec: {{accountRef: {{name: prod}}, type: ReadWrite, {fields}}}
"
    )
}

/// Stores a Compute under the old definition, with the spelling before `projectID` and `branchID`.
async fn store_in_the_former_spelling(cluster: &ControlPlane) {
    let definition = definition_files()
        .into_iter()
        .find(|path| path.ends_with("dbplane.dev_computes.yaml"))
        .unwrap();
    let text = std::fs::read_to_string(&definition).unwrap();
    let spelt = |text: String, word: &str| text.replace(&format!("{word}ID"), &format!("{word}Id"));
    let former = ["project", "branch", "compute"]
        .into_iter()
        .fold(text, spelt);
    cluster
        .kubectl_with_input(&["replace", "-f", "-"], &former)
        .await
        .unwrap();
    let manifest = of_branch_dev("projectId: aged-wind-123456, branchId: br-dev-7");
    let stored = async || cluster.apply(&manifest).await.is_ok();
    wait_until(
        "the API server to take the former spelling",
        PATIENCE,
        stored,
    )
    .await
    .unwrap();
    cluster
        .kubectl(&["replace", "-f", definition.to_str().unwrap()])
        .await
        .unwrap();
    let dry_run = ["apply", "--dry-run=server", "-f", "-"];
    let refused = async || {
        cluster
            .kubectl_with_input(&dry_run, &manifest)
            .await
            .is_err()
    };
    wait_until("the API server to refuse it again", PATIENCE, refused)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_object_in_the_former_spelling_is_unchanged_until_its_manifest_is_rewritten() {
    let cluster = cluster().await;
    let platform = platform().await;
    store_in_the_former_spelling(&cluster).await;
    let made =
        json!({"project_id": "aged-wind-123456", "branch_id": "br-dev-7", "type": "read_write"});
    let url = format!("{}/computes", platform.console_url());
    let made = reqwest::Client::new()
        .post(url)
        .json(&made)
        .send()
        .await
        .unwrap();
    let made: serde_json::Value = made.json().await.unwrap();
    declare(&cluster, &platform).await;
    let _operator = Operator::start_as(&installed(&cluster).await, &cluster, "operator", &[]);
    until_ready(&cluster).await;
    until_reason(&cluster, "former", "Unreadable").await;
    let id = made["id"].as_str().unwrap();
    let anew = of_branch_dev(&format!(
        "projectID: aged-wind-123456, branchID: br-dev-7, computeID: {id}"
    ));
    cluster
        .kubectl_with_input(&["replace", "-f", "-"], &anew)
        .await
        .unwrap();
    until_reason(&cluster, "former", "Available").await;
    let changes = platform
        .requests(0)
        .into_iter()
        .filter(|request| request.method != "GET")
        .count();
    assert_eq!(
        (creates(&platform), changes),
        (1, 1),
        "nothing but the other Compute"
    );
}
