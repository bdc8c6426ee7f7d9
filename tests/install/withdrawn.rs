//! An operator for chosen namespaces loses its rights in one of them.

use std::process::Command;

use crate::rights::{Installation, examples_of_a_namespace, kubectl};
use crate::support::{PATIENCE, wait_until};

/// Kubernetes deletes the Roles of a namespace in any order; here they are deleted first. The
/// operator reports that, and `dbplane remove-finalizers` unblocks the namespace. Meanwhile it stays
/// the leader for other namespaces.
#[tokio::test]
async fn a_namespace_without_rights_is_let_go_beside_the_operator() {
    let installation = Installation::new("deploy/namespaced/example").await;
    let (cluster, platform) = (&installation.cluster, &installation.platform);
    let operator = installation.start_operator().await;
    let examples =
        examples_of_a_namespace().replace("https://platform.example/api/v2", &platform.base_url());
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], &examples)
        .await
        .unwrap();
    let ready = [
        "wait",
        "-n=shop",
        "--for=condition=Ready",
        "--timeout=60s",
        "accounts,computes,projectkeys",
        "--all",
    ];
    kubectl(cluster, &ready).await;
    let remove = |more: &[&str]| {
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
    };
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

    kubectl(
        cluster,
        &[
            "-n=shop",
            "delete",
            "rolebindings",
            "dbplane",
            "dbplane-secrets",
        ],
    )
    .await;
    kubectl(cluster, &["delete", "namespace", "shop", "--wait=false"]).await;
    let told = async || {
        operator
            .log()
            .contains("has no rights in namespace shop any more")
    };
    wait_until(
        "the operator to say that its rights are gone",
        PATIENCE,
        told,
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
