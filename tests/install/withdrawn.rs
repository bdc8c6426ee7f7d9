//! An operator for chosen namespaces loses its rights in one of them.

use std::process::Command;

use crate::rights::{
    Installation, examples_of_a_namespace, in_shop, kubectl, until_examples_are_ready,
};
use crate::support::{ControlPlane, PATIENCE, Running, wait_until};

/// Runs `dbplane remove-finalizers` in the namespace of the examples. Returns its success and its
/// output.
fn remove_finalizers(cluster: &ControlPlane, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args(["remove-finalizers", "-n", "shop"])
        .args(more)
        .env("KUBECONFIG", cluster.kubeconfig_path());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8(text).unwrap())
        .concat();
    (output.status.success(), said)
}

/// Kubernetes deletes the Roles of a namespace in any order; here they are deleted first. The
/// operator reports that, and `dbplane remove-finalizers` unblocks the namespace. Meanwhile it stays
/// the leader for other namespaces.
#[tokio::test]
async fn a_namespace_without_rights_is_released_while_the_operator_runs() {
    let installation = Installation::new("deploy/namespaced/example").await;
    let (cluster, platform) = (&installation.cluster, &installation.platform);
    let operator = installation.start_operator().await;
    let examples =
        examples_of_a_namespace().replace("https://platform.example/api/v2", &platform.base_url());
    cluster.apply(&examples).await.unwrap();
    until_examples_are_ready(cluster).await;
    let remove = |more: &[&str]| remove_finalizers(cluster, more);
    let account = "--operator-service-account=dbplane";
    let (done, said) = remove(&["--yes", account]);
    assert!(
        !done
            && said.contains("may still do this in namespace shop: ")
            && said.contains("patch computes"),
        "{said}"
    );
    let (done, said) = remove(&["--yes"]);
    assert!(!done && said.contains("its Pod was not found"), "{said}");

    in_shop(
        cluster,
        &["delete", "rolebindings", "dbplane", "dbplane-secrets"],
    )
    .await;
    kubectl(cluster, &["delete", "namespace", "shop", "--wait=false"]).await;
    the_lost_rights_are_reported(cluster, &operator).await;

    let (done, said) = remove(&[account]);
    assert!(
        done && said.contains("stays on the platform: compute ") && said.contains("add --yes"),
        "{said}"
    );
    assert!(said.contains("stays on the platform: API key "), "{said}");
    let (done, said) = remove(&[account, "--yes"]);
    assert!(done && said.contains("were taken off"), "{said}");
    kubectl(
        cluster,
        &["wait", "--for=delete", "namespace/shop", "--timeout=60s"],
    )
    .await;
}

/// In the log and in an event, with the command that helps.
async fn the_lost_rights_are_reported(cluster: &ControlPlane, operator: &Running) {
    let reported = async || {
        operator
            .log()
            .contains("has no rights in namespace shop any more")
    };
    wait_until(
        "the operator to report that its rights are gone",
        PATIENCE,
        reported,
    )
    .await
    .unwrap();
    let advice = "dbplane remove-finalizers -n shop --operator-namespace dbplane-system --operator-service-account dbplane";
    assert!(operator.log().contains(advice), "the command that helps");
    let events = [
        "-n=dbplane-system",
        "get",
        "events.events.k8s.io",
        "-o=jsonpath={.items[*].reason}",
    ];
    let published = async || kubectl(cluster, &events).await.contains("RightsGone");
    wait_until("the event about that", PATIENCE, published)
        .await
        .unwrap();
}
