//! `dbplane account check` with Accounts of a cluster.

use std::path::Path;

use tokio::process::Command;

use crate::import::{KEY, ORGANIZATION};
use crate::{account, cluster, platform};

async fn check(kubeconfig: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .args(["account", "check", "--allow-insecure-platform"])
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .await
        .unwrap();
    let said = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .concat();
    assert!(!said.contains(KEY), "{said}");
    (output.status.code(), said)
}

/// A ClusterAccount, and an Account whose Secret lacks the entry.
fn further_accounts(url: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: company}}
spec:
  baseURL: {url}
  organizationID: {ORGANIZATION}
  apiKeySecretRef: {{namespace: default, name: platform-api-key}}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: incomplete, namespace: default}}
spec:
  baseURL: {url}
  apiKeySecretRef: {{name: platform-api-key, key: other}}
"
    )
}

#[tokio::test]
async fn an_account_of_the_cluster_is_checked_with_the_rights_of_the_user() {
    let cluster = cluster().await;
    let platform = platform().await;
    let url = platform.base_url();
    account(
        &cluster,
        "default",
        "prod",
        &url,
        &format!("  organizationID: {ORGANIZATION}\n"),
    )
    .await;
    cluster.apply(&further_accounts(&url)).await.unwrap();
    let admin = cluster.kubeconfig_path();
    for named in [
        &["prod"][..],
        &["Account/prod", "-n", "default"],
        &["clusteraccount/company"],
    ] {
        let (code, said) = check(&admin, named).await;
        assert!(
            code == Some(0) && said.contains("kind of key: personal"),
            "{named:?}: {said}"
        );
    }
    let nobody = cluster
        .kubeconfig_for_service_account("default", "default")
        .await
        .unwrap();
    for (kubeconfig, named, why) in [
        (&admin, "missing", "cannot read Account default/missing"),
        (
            &admin,
            "incomplete",
            "Secret default/platform-api-key has no entry other",
        ),
        (&nobody, "prod", "cannot read Account default/prod"),
    ] {
        let (code, said) = check(kubeconfig, &[named, "-n", "default"]).await;
        assert!(code == Some(1) && said.contains(why), "{named}: {said}");
    }
    assert!(
        platform
            .requests(0)
            .iter()
            .all(|entry| entry.method == "GET")
    );
}
