//! dbplane's objects that other objects of dbplane own.

use dbplane::api::{ClusterAccount, Compute, ProjectKey};
use dbplane::cluster::{ApiServer, Cluster};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use crate::support::{ControlPlane, PATIENCE, wait_for, wait_until};
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

async fn until_reported(cluster: &ControlPlane, object: &str) {
    let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    let is_reported = async || {
        cluster
            .kubectl(&["get", object, "-o", path])
            .await
            .is_ok_and(|status| status == "False")
    };
    wait_until(&format!("{object} to be reported"), PATIENCE, is_reported)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_child_is_created_once_and_its_changes_requeue_its_owner() {
    let cluster = cluster().await;
    cluster.apply(OWNERS).await.unwrap();
    let operator = Operator::start(&cluster, "operator", &[]);
    let client = cluster.client().await.unwrap();
    let server = ApiServer::new(client.clone(), "test");
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
        until_reported(&cluster, &format!("{}/owner", kind.to_lowercase())).await;
        let test = Children {
            cluster: &cluster,
            operator: &operator,
            server: &server,
            kind,
        };
        let before = test.others_do_not_requeue_the_owner().await;
        test.children_requeue_their_owner(owner, before).await;
    }
}

/// Computes with and without an owner of this kind.
struct Children<'a> {
    cluster: &'a ControlPlane,
    operator: &'a Operator,
    server: &'a ApiServer,
    kind: &'a str,
}

impl Children<'_> {
    fn compute(&self, prefix: &str, owner: Option<OwnerReference>) -> Compute {
        child(&format!("{prefix}-{}", self.kind.to_lowercase()), owner)
    }

    async fn until_reported(&self, compute: &Compute) {
        until_reported(self.cluster, &format!("compute/{}", compute.name_any())).await;
    }

    async fn until_requeued(&self, what: &str, before: u64) {
        let requeued = async || passes(self.operator, self.kind).await > before;
        wait_until(what, PATIENCE, requeued).await.unwrap();
    }

    /// Returns the number of passes over owners.
    async fn others_do_not_requeue_the_owner(&self) -> u64 {
        let other = self.compute("stranger", None);
        let before = settled(self.operator, self.kind).await;
        self.server.create(&other).await.unwrap();
        self.until_reported(&other).await;
        assert_eq!(
            passes(self.operator, self.kind).await,
            before,
            "only a child requeues the owner"
        );
        before
    }

    async fn children_requeue_their_owner(&self, owner: OwnerReference, before: u64) {
        let child = self.compute("child", Some(owner));
        self.server.create(&child).await.unwrap();
        self.until_requeued("the owner to be requeued by its new child", before)
            .await;
        let again = self.server.create(&child).await.unwrap_err();
        assert!(
            matches!(&again, kube::Error::Api(status) if status.code == 409),
            "{again}"
        );

        self.until_reported(&child).await;
        let before = settled(self.operator, self.kind).await;
        let object = format!("compute/{}", child.name_any());
        self.cluster.kubectl(&["delete", &object]).await.unwrap();
        self.until_requeued("the owner to be requeued by its child's end", before)
            .await;
    }
}
