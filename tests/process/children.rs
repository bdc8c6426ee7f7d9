//! dbplane's objects that other objects of dbplane own.

use dbplane::api::{ClusterAccount, Compute, ProjectKey};
use dbplane::cluster::{ApiServer, Cluster};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use crate::support::{PATIENCE, wait_for, wait_until};
use crate::{Operator, cluster};

/// These owners have nothing to do, so only their children trigger passes.
const OWNERS: &str = "
apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {name: owner}
spec:
  baseURL: https://127.0.0.1:1/v2
  apiKeySecretRef: {namespace: default, name: none}
  namespaces: {names: [default]}
---
apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {name: owner, namespace: default}
spec: {accountRef: {name: none}, projectID: p, keyName: ci, secret: {name: ci-key}}
";

fn child(name: &str, owner: Option<OwnerReference>) -> Compute {
    let spec = json!({"accountRef": {"name": "none"}, "projectID": "p", "branchID": "b", "type": "ReadOnly"});
    let mut child = Compute::new(name, serde_json::from_value(spec).unwrap());
    child.metadata.namespace = Some("default".to_owned());
    child.metadata.owner_references = owner.map(|owner| vec![owner]);
    child
}

/// The number of finished passes over objects of a kind.
async fn passes(operator: &Operator, kind: &str) -> u64 {
    let metrics = reqwest::get(&operator.metrics)
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let of_kind = |line: &&str| {
        line.starts_with("dbplane_reconciles_total{") && line.contains(&format!("kind=\"{kind}\""))
    };
    metrics
        .lines()
        .filter(of_kind)
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

/// Waits until the number of passes is stable: the status that a pass writes may trigger another
/// one.
async fn settled(operator: &Operator, kind: &str) -> u64 {
    let (mut last, mut unchanged) = (0, 0);
    let probe = async || {
        let now = passes(operator, kind).await;
        unchanged = if now == last { unchanged + 1 } else { 0 };
        last = now;
        (unchanged == 20).then_some(now)
    };
    wait_for("the passes to end", PATIENCE, probe)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_child_is_created_once_and_its_changes_wake_its_owner() {
    let cluster = cluster().await;
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], OWNERS)
        .await
        .unwrap();
    let operator = Operator::start(&cluster, "operator", &[]);
    let client = cluster.client().await.unwrap();
    let server = ApiServer::new(client.clone(), "test");
    let is_reported = async |what: &str| {
        let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        cluster
            .kubectl(&["get", what, "-o", path])
            .await
            .is_ok_and(|status| status == "False")
    };
    let of_cluster = Api::<ClusterAccount>::all(client.clone())
        .get("owner")
        .await
        .unwrap();
    let of_namespace = Api::<ProjectKey>::default_namespaced(client)
        .get("owner")
        .await
        .unwrap();
    for (kind, owner) in [
        (
            "ClusterAccount",
            of_cluster.controller_owner_ref(&()).unwrap(),
        ),
        (
            "ProjectKey",
            of_namespace.controller_owner_ref(&()).unwrap(),
        ),
    ] {
        let what = format!("{}/owner", kind.to_lowercase());
        wait_until("the owner to be reported", PATIENCE, async || {
            is_reported(&what).await
        })
        .await
        .unwrap();
        let stranger = child(&format!("stranger-{}", kind.to_lowercase()), None);
        let before = settled(&operator, kind).await;
        server.create(&stranger).await.unwrap();
        let what = format!("compute/{}", stranger.name_any());
        wait_until("the stranger to be reported", PATIENCE, async || {
            is_reported(&what).await
        })
        .await
        .unwrap();
        assert_eq!(
            passes(&operator, kind).await,
            before,
            "a stranger wakes nobody"
        );

        let child = child(&format!("child-{}", kind.to_lowercase()), Some(owner));
        server.create(&child).await.unwrap();
        let woken = async || passes(&operator, kind).await > before;
        wait_until("the owner to be woken by its new child", PATIENCE, woken)
            .await
            .unwrap();
        let again = server.create(&child).await.unwrap_err();
        assert!(
            matches!(&again, kube::Error::Api(status) if status.code == 409),
            "{again}"
        );

        let what = format!("compute/{}", child.name_any());
        wait_until("the child to be reported", PATIENCE, async || {
            is_reported(&what).await
        })
        .await
        .unwrap();
        let before = settled(&operator, kind).await;
        cluster.kubectl(&["delete", &what]).await.unwrap();
        let woken = async || passes(&operator, kind).await > before;
        wait_until("the owner to be woken by its child's end", PATIENCE, woken)
            .await
            .unwrap();
    }
}
