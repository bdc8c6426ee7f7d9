//! The operator is removed before its resources: their deletion hangs until their finalizers are
//! removed.

use std::fs::OpenOptions;
use std::process::{Command, Output};

use dbplane_simulator::Simulator;
use serde_json::Value;

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{KEY, Operator, cluster, declare, platform, until_condition, until_ready};

fn command(cluster: &ControlPlane, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args(["remove-finalizers", "--operator-namespace", "default"])
        .args(more);
    command.env("KUBECONFIG", cluster.kubeconfig_path());
    command
}

fn remove_finalizers(cluster: &ControlPlane, more: &[&str]) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command(cluster, more).output().unwrap();
    (
        status.success(),
        format!(
            "{}{}",
            String::from_utf8(stdout).unwrap(),
            String::from_utf8(stderr).unwrap()
        ),
    )
}

/// The kinds whose objects have a finalizer of dbplane.
const KINDS: &str = "projectkeys,computes,accounts,secrets";

#[tokio::test]
async fn finalizers_are_removed_without_an_operator_and_what_stays_is_named() {
    let (cluster, platform) = (cluster().await, platform().await);
    let mut operator = Operator::start(&cluster, "operator", &["--leader-elect"]);
    operator.until_ready().await;
    let (id, key) = declare_a_compute_and_a_key(&cluster, &platform).await;

    let (done, said) = remove_finalizers(&cluster, &["-A", "--yes"]);
    assert!(
        !done && said.contains("an operator leads: operator_"),
        "{said}"
    );

    operator.process.kill().unwrap();
    cluster
        .kubectl(&["delete", KINDS, "--all", "--wait=false"])
        .await
        .unwrap();
    let (done, said) = remove_finalizers(&cluster, &["-A"]);
    let stays = [
        format!("compute {id} of project aged-wind-123456"),
        format!("stays on the platform: API key {key} (id "),
    ];
    let objects = [
        "Account default/prod",
        "Compute default/orders",
        "ProjectKey default/ci",
        "Secret default/platform-api-key",
    ];
    assert!(
        done && said.contains("4 objects have finalizers. To take them off, add --yes."),
        "{said}"
    );
    for text in objects
        .iter()
        .map(|object| (*object).to_owned())
        .chain(stays)
    {
        assert!(said.contains(&text), "{text}:\n{said}");
    }
    assert_eq!(left(&cluster).await, 4);

    only_selected_objects_are_named(&cluster).await;
    finalizers_stay_if_the_report_cannot_be_written(&cluster).await;
    all_finalizers_are_removed(&cluster).await;
    assert!(
        platform
            .requests(0)
            .iter()
            .all(|entry| entry.method != "DELETE")
    );
}

/// A Compute and a ProjectKey that are Ready. Returns the id of the compute and the name of the
/// key.
async fn declare_a_compute_and_a_key(
    cluster: &ControlPlane,
    platform: &Simulator,
) -> (String, String) {
    declare(cluster, platform).await;
    cluster.apply(KEY).await.unwrap();
    until_ready(cluster).await;
    until_condition(cluster, "projectkey/ci", "Ready").await;
    let id = cluster
        .kubectl(&["get", "compute/orders", "-o=jsonpath={.status.computeID}"])
        .await
        .unwrap();
    let key = cluster
        .kubectl(&["get", "projectkey/ci", "-o=jsonpath={.status.keyName}"])
        .await
        .unwrap();
    (id, key)
}

/// The number of objects that still exist.
async fn left(cluster: &ControlPlane) -> usize {
    let names = cluster.kubectl(&["get", KINDS, "-o=name"]).await.unwrap();
    names.lines().count()
}

async fn only_selected_objects_are_named(cluster: &ControlPlane) {
    let (done, said) = remove_finalizers(cluster, &["--yes", "--namespace=kube-system"]);
    assert!(
        done && said.contains("No finalizer of dbplane is on any object."),
        "{said}"
    );
    assert_eq!(left(cluster).await, 4, "of other namespaces");

    cluster
        .kubectl(&["label", "compute/orders", "app=web"])
        .await
        .unwrap();
    let (done, said) = remove_finalizers(cluster, &["-l", "app=web"]);
    assert!(
        done && said.contains("1 object has finalizers") && said.contains("Compute default/orders"),
        "{said}"
    );
}

async fn finalizers_stay_if_the_report_cannot_be_written(cluster: &ControlPlane) {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let unwritten = command(cluster, &["--yes"]).stdout(full).output().unwrap();
    assert!(!unwritten.status.success());
    assert_eq!(left(cluster).await, 4, "{unwritten:?}");
}

async fn all_finalizers_are_removed(cluster: &ControlPlane) {
    let (done, said) = remove_finalizers(cluster, &["--yes", "--output=json"]);
    assert!(said.contains("stays on the platform: API key"), "{said}");
    // The JSON document comes before the text for users.
    let document: Value = serde_json::Deserializer::from_str(&said)
        .into_iter()
        .next()
        .unwrap()
        .unwrap();
    let taken_off = document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|object| object["finalizers"] == "takenOff");
    assert!(done && taken_off.count() == 4, "{said}");
    wait_until("the resources to be gone", PATIENCE, async || {
        left(cluster).await == 0
    })
    .await
    .unwrap();
    let (done, said) = remove_finalizers(cluster, &["-A"]);
    assert!(
        done && said.contains("No finalizer of dbplane is on any object."),
        "{said}"
    );
}
