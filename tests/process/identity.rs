//! The identity of a cluster: keys contain it, and an operator revokes only keys of its own
//! cluster.

use dbplane_simulator::Simulator;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{KEY, Operator, cluster, declare, platform, until_condition};

async fn key(cluster: &ControlPlane) -> Option<Value> {
    let text = cluster
        .kubectl(&[
            "get",
            "projectkey",
            "ci",
            "--ignore-not-found",
            "-o",
            "json",
        ])
        .await
        .unwrap();
    (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap())
}

/// The UID of the namespace that identifies a cluster.
async fn id_of(cluster: &ControlPlane) -> String {
    cluster
        .kubectl(&[
            "get",
            "namespace",
            "kube-system",
            "-o",
            "jsonpath={.metadata.uid}",
        ])
        .await
        .unwrap()
}

/// Number of requests to revoke a key.
fn revocations(platform: &Simulator) -> usize {
    platform
        .requests(0)
        .iter()
        .filter(|entry| entry.method == "DELETE" && entry.path.contains("api_keys"))
        .count()
}

async fn stop(mut operator: Operator) {
    operator.process.signal(Signal::SIGTERM).unwrap();
    assert!(operator.process.wait(PATIENCE).await.unwrap().success());
}

#[tokio::test]
async fn a_clone_of_a_cluster_does_not_revoke_the_keys_of_the_original() {
    let cluster = cluster().await;
    let platform = platform().await;
    declare(&cluster, &platform).await;
    cluster.apply(KEY).await.unwrap();
    let original = Operator::start(&cluster, "original", &[]);
    until_condition(&cluster, "projectkey/ci", "Ready").await;
    stop(original).await;
    let uid = id_of(&cluster).await;
    let name = key(&cluster).await.unwrap()["status"]["keyName"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        name.starts_with(&format!("ci-{}-", &uid[..6])),
        "{name}, {uid}"
    );

    // An operator of another cluster with the same resources, as after a restore of a backup there.
    let clone = Operator::start(&cluster, "clone", &["--cluster-id", "c1one0"]);
    cluster
        .kubectl(&["delete", "projectkey", "ci", "--wait=false"])
        .await
        .unwrap();
    let reported = async || {
        let stalled = key(&cluster).await.unwrap_or_default()["status"]["conditions"].clone();
        stalled.as_array().is_some_and(|all| {
            all.iter()
                .any(|one| one["type"] == "Stalled" && one["reason"] == "KeyOfAnotherCluster")
        })
    };
    wait_until(
        "the clone to report the owner of the key",
        PATIENCE,
        reported,
    )
    .await
    .unwrap();
    stop(clone).await;
    assert_eq!(revocations(&platform), 0);

    // An operator that replaces the original cluster.
    let _heir = Operator::start(&cluster, "heir", &["--cluster-id", &uid[..6]]);
    wait_until("the key to go", PATIENCE, async || {
        key(&cluster).await.is_none()
    })
    .await
    .unwrap();
    assert_eq!(revocations(&platform), 1);
}

/// Rights for the operator's own resources, without the right to read namespaces.
const CONFINED: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: confined, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: confined}
rules:
  - {apiGroups: [dbplane.dev], resources: ['*'], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: confined}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: confined}
subjects: [{kind: ServiceAccount, name: confined, namespace: default}]
";

#[tokio::test]
async fn an_operator_that_cannot_identify_its_cluster_reports_what_to_do() {
    let cluster = cluster().await;
    cluster.apply(CONFINED).await.unwrap();
    let kubeconfig = cluster
        .kubeconfig_for_service_account("default", "confined")
        .await
        .unwrap();
    let mut confined = Operator::start_as(
        &kubeconfig,
        &cluster,
        "confined",
        &["--watch-namespaces", "default"],
    );
    let status = confined.process.wait(PATIENCE).await.unwrap();
    assert!(!status.success());
    let log = confined.process.log();
    assert!(
        log.contains("--cluster-id is needed") && log.contains("kube-system"),
        "{log}"
    );
    // An operator of all namespaces waits for the right, and here gets it in time.
    let waiting = Operator::start_as(&kubeconfig, &cluster, "waiting", &[]);
    let named = async || {
        waiting.asks("/readyz").await.is_some_and(|(status, text)| {
            status == 503 && text.contains("kube-system") && text.contains("--cluster-id")
        })
    };
    wait_until("the namespace to be named", PATIENCE, named)
        .await
        .unwrap();
    let right = json!([{"op": "add", "path": "/rules/-", "value":
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"], "resourceNames": ["kube-system"]}}]);
    cluster
        .kubectl(&[
            "patch",
            "clusterrole",
            "confined",
            "--type",
            "json",
            "-p",
            &right.to_string(),
        ])
        .await
        .unwrap();
    let further = async || waiting.process.log().contains("the id of this cluster");
    wait_until("the cluster to be identified", PATIENCE, further)
        .await
        .unwrap();
}
