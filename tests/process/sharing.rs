//! Two operators for different namespaces that share a ClusterAccount.

use dbplane_simulator::Simulator;
use serde_json::Value;

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{Operator, cluster, platform};

const SECRET: &str = "apiVersion: v1
kind: Secret
metadata: {name: platform-api-key}
stringData: {api-key: demo-personal-key-not-a-secret}
";

async fn account(cluster: &ControlPlane, platform: &Simulator) {
    let account = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: prod}}
spec:
  baseURL: {}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{namespace: default, name: platform-api-key}}
  pollInterval: 5s
  namespaces: {{names: [one, two]}}
",
        platform.base_url()
    );
    cluster
        .kubectl_with_input(&["-n", "default", "apply", "-f", "-"], SECRET)
        .await
        .unwrap();
    cluster.apply(&account).await.unwrap();
}

async fn reader(cluster: &ControlPlane, namespace: &str) {
    let compute = "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {name: reader}
spec:
  accountRef: {kind: ClusterAccount, name: prod}
  projectID: aged-wind-123456
  branchID: br-main-42
  type: ReadOnly
";
    cluster
        .kubectl_with_input(&["-n", namespace, "apply", "-f", "-"], compute)
        .await
        .unwrap();
    cluster
        .kubectl(&[
            "-n",
            namespace,
            "wait",
            "--timeout=60s",
            "--for=condition=Ready",
            "compute/reader",
        ])
        .await
        .unwrap();
}

async fn object(cluster: &ControlPlane, object: &str) -> Value {
    let text = cluster
        .kubectl(&[
            "-n",
            "default",
            "get",
            object,
            "-o",
            "json",
            "--ignore-not-found",
        ])
        .await
        .unwrap();
    serde_json::from_str(&text).unwrap_or_default()
}

async fn finalizers(cluster: &ControlPlane, name: &str) -> usize {
    object(cluster, name).await["metadata"]["finalizers"]
        .as_array()
        .map_or(0, Vec::len)
}

fn computes(platform: &Simulator) -> usize {
    platform
        .with_world(|world, _| world.console_computes(None).len())
        .unwrap()
}

/// Checks that neither the account nor its Secret is written during several reads of the platform.
async fn quiet(cluster: &ControlPlane, platform: &Simulator) {
    let reads = || {
        platform
            .requests(0)
            .iter()
            .filter(|entry| entry.method == "GET")
            .count()
    };
    let versions = async || {
        let [account, secret] = [
            object(cluster, "clusteraccount/prod").await,
            object(cluster, "secret/platform-api-key").await,
        ];
        [account, secret].map(|object| object["metadata"]["resourceVersion"].clone())
    };
    let (before, asked) = (versions().await, reads());
    wait_until("more to be read", PATIENCE, async || reads() >= asked + 3)
        .await
        .unwrap();
    assert_eq!(versions().await, before);
}

#[tokio::test]
async fn confined_operators_share_an_account() {
    let cluster = cluster().await;
    let platform = platform().await;
    let others = computes(&platform);
    for namespace in ["one", "two"] {
        cluster
            .kubectl(&["create", "namespace", namespace])
            .await
            .unwrap();
    }
    let confined =
        |namespace| Operator::start(&cluster, namespace, &["--watch-namespaces", namespace]);
    let (one, two) = (confined("one"), confined("two"));
    account(&cluster, &platform).await;
    reader(&cluster, "one").await;
    // The other operator does not use the account, and must not interfere.
    assert_eq!(finalizers(&cluster, "clusteraccount/prod").await, 1);
    quiet(&cluster, &platform).await;
    reader(&cluster, "two").await;
    for shared in ["clusteraccount/prod", "secret/platform-api-key"] {
        assert_eq!(finalizers(&cluster, shared).await, 2, "{shared}");
    }
    cluster
        .kubectl(&["delete", "clusteraccount/prod", "--wait=false"])
        .await
        .unwrap();
    let waits = "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=InUse";
    cluster
        .kubectl(&["wait", "--timeout=60s", waits, "clusteraccount/prod"])
        .await
        .unwrap();
    quiet(&cluster, &platform).await;
    cluster
        .kubectl(&["-n", "one", "delete", "compute/reader", "--timeout=60s"])
        .await
        .unwrap();
    let released = async || finalizers(&cluster, "clusteraccount/prod").await == 1;
    wait_until("one operator to release the account", PATIENCE, released)
        .await
        .unwrap();
    assert_eq!(computes(&platform), others + 1, "the other's");
    cluster
        .kubectl(&["-n", "two", "delete", "compute/reader", "--timeout=60s"])
        .await
        .unwrap();
    cluster
        .kubectl(&[
            "wait",
            "--timeout=60s",
            "--for=delete",
            "clusteraccount/prod",
        ])
        .await
        .unwrap();
    assert_eq!(
        (
            finalizers(&cluster, "secret/platform-api-key").await,
            computes(&platform)
        ),
        (0, others)
    );
    drop((one, two));
}

/// The account is checked once an hour, so only the changed Secret can trigger this.
#[tokio::test]
async fn a_confined_operator_uses_the_new_api_key_of_a_shared_account_at_once() {
    let cluster = cluster().await;
    let platform = platform().await;
    cluster
        .kubectl(&["create", "namespace", "one"])
        .await
        .unwrap();
    let flags = [
        "--watch-namespaces",
        "one",
        "--credentials-namespaces",
        "default",
    ];
    let operator = Operator::start(&cluster, "one", &flags);
    account(&cluster, &platform).await;
    reader(&cluster, "one").await;
    for (key, reason) in [
        ("revoked-by-now", "Unauthorized"),
        ("demo-personal-key-not-a-secret", "Available"),
    ] {
        let secret = SECRET.replace("demo-personal-key-not-a-secret", key);
        cluster
            .kubectl_with_input(&["-n", "default", "apply", "-f", "-"], &secret)
            .await
            .unwrap();
        let says =
            format!("--for=jsonpath={{.status.conditions[?(@.type==\"Ready\")].reason}}={reason}");
        cluster
            .kubectl(&["wait", "--timeout=60s", &says, "clusteraccount/prod"])
            .await
            .unwrap();
    }
    drop(operator);
}
