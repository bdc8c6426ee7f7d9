//! An operator that runs with what the chart gives it: Roles, ClusterRole and arguments.

use std::fs;
use std::path::Path;
use std::process::Command;

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as World, Simulator};
use tokio::net::TcpListener;

use super::{Helm, NAMESPACE, REPOSITORY, chart, cluster};
use crate::support::{ControlPlane, PATIENCE, Running, free_port, wait_until};

/// The operator gets exactly the chart's Roles, ClusterRole and container arguments.
#[tokio::test]
async fn an_operator_of_chosen_namespaces_serves_a_shared_account_with_the_rights_of_the_chart() {
    let (cluster, helm) = (cluster().await, Helm::new());
    let platform = platform().await;
    let values = chart()
        .join("ci/shared-account-values.yaml")
        .display()
        .to_string();
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let chart = chart().display().to_string();
    let flags = [
        "--namespace",
        NAMESPACE,
        "--kubeconfig",
        &kubeconfig,
        "--values",
        &values,
    ];
    let insecure = ["--set", "operator.extraArgs={--allow-insecure-platform}"];
    helm.run(&[&["install", "dbplane", &chart], &flags[..], &insecure].concat())
        .unwrap();

    only_secrets_of_served_namespaces_can_be_created(&cluster).await;
    let mut operator = deployed(&cluster).await;
    a_compute_is_ready(&cluster, &platform).await;
    a_refused_credential_is_reported(&cluster).await;

    operator.terminate(PATIENCE).await.unwrap();
    let refusals: Vec<_> = operator
        .log()
        .lines()
        .filter(|line| line.contains("orbidden"))
        .map(str::to_owned)
        .collect();
    assert_eq!(refusals, Vec::<String>::new());
}

async fn only_secrets_of_served_namespaces_can_be_created(cluster: &ControlPlane) {
    for (namespace, may) in [("shop", true), (NAMESPACE, false)] {
        let asked = [
            "auth",
            "can-i",
            "create",
            "secrets",
            "--as=system:serviceaccount:dbplane-system:dbplane",
            "-n",
        ];
        let answer = cluster.kubectl(&[&asked[..], &[namespace]].concat()).await;
        assert_eq!(answer.is_ok(), may, "{namespace}: {answer:?}");
    }
}

async fn a_compute_is_ready(cluster: &ControlPlane, platform: &Simulator) {
    let account = format!(
        "{SHARED}  baseURL: {}
---
{}",
        platform.base_url(),
        COMPUTE_OF_SHOP
    );
    cluster.apply(&account).await.unwrap();
    let wait = ["wait", "--timeout=120s"];
    cluster
        .kubectl(
            &[
                &wait[..],
                &["-n=shop", "--for=condition=Ready", "compute/reader"],
            ]
            .concat(),
        )
        .await
        .unwrap();
}

/// In a condition and in an event of the account.
async fn a_refused_credential_is_reported(cluster: &ControlPlane) {
    let wait = ["wait", "--timeout=120s"];
    let patch = r#"--patch={"stringData":{"api-key":"revoked-by-now"}}"#;
    cluster
        .kubectl(&[
            "-n",
            NAMESPACE,
            "patch",
            "secret",
            "platform-api-key",
            patch,
        ])
        .await
        .unwrap();
    let refused = "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=Unauthorized";
    cluster
        .kubectl(&[&wait[..], &[refused, "clusteraccount/company"]].concat())
        .await
        .unwrap();
    let about = [
        "-n=default",
        "get",
        "events.events.k8s.io",
        "-o=jsonpath={.items[*].regarding.kind}",
    ];
    let published = async || {
        cluster
            .kubectl(&about)
            .await
            .unwrap()
            .contains("ClusterAccount")
    };
    wait_until("an event about the account", PATIENCE, published)
        .await
        .unwrap();
}

const SHARED: &str = "apiVersion: v1
kind: Secret
metadata: {name: platform-api-key, namespace: dbplane-system}
stringData: {api-key: demo-personal-key-not-a-secret}
---
apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {name: company}
spec:
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {namespace: dbplane-system, name: platform-api-key}
  namespaces: {names: [shop]}
";
const COMPUTE_OF_SHOP: &str = "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {name: reader, namespace: shop}
spec:
  accountRef: {kind: ClusterAccount, name: company}
  projectID: aged-wind-123456
  branchID: br-main-42
  type: ReadOnly
";

async fn platform() -> Simulator {
    let world =
        fs::read_to_string(Path::new(REPOSITORY).join("deploy/examples/world.yaml")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    simulator::serve(listener, World::new(WorldFile::parse(&world).unwrap()))
        .await
        .unwrap()
}

/// Runs the program with the arguments and the token of its Deployment, on free ports.
async fn deployed(cluster: &ControlPlane) -> Running {
    let container = "-o=jsonpath={.spec.template.spec.containers[0].args}";
    let args = cluster
        .kubectl(&["-n", NAMESPACE, "get", "deployment", "dbplane", container])
        .await
        .unwrap();
    let args: Vec<String> = serde_json::from_str(&args).unwrap();
    let here = |arg: &String| match arg.split_once("=0.0.0.0:") {
        Some((flag, _)) => format!("{flag}=127.0.0.1:{}", free_port().unwrap()),
        None => arg.clone(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command.args(args.iter().map(here));
    command.env(
        "KUBECONFIG",
        cluster
            .kubeconfig_for_service_account(NAMESPACE, "dbplane")
            .await
            .unwrap(),
    );
    cluster
        .sandbox()
        .start("operator", command)
        .unwrap()
        .log_on_panic()
}
