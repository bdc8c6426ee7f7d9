//! A slow or silent platform of one tenant must not delay other tenants.

use dbplane_simulator::Simulator;
use tokio::net::TcpListener;

use crate::support::{ControlPlane, PATIENCE, wait_until};
use crate::{KEY, Operator, account, cluster, platform};

/// An Account at `url` in `namespace` with the budget `rate`.
async fn limited(cluster: &ControlPlane, namespace: &str, name: &str, url: &str, rate: &str) {
    let more = format!("  organizationID: org-cool-darkness-1\n  rateLimit: {rate}\n");
    account(cluster, namespace, name, url, &more).await;
}

async fn key(cluster: &ControlPlane, namespace: &str, name: &str) {
    let manifest = KEY.replace("ci", name);
    cluster
        .kubectl_with_input(&["-n", namespace, "apply", "-f", "-"], &manifest)
        .await
        .unwrap();
}

const USUAL: &str = "{requestsPerMinute: 600, burst: 20}";

/// A tenant with a fast platform must be served within the timeout of a single request to a silent
/// platform.
async fn is_served(cluster: &ControlPlane, platform: &Simulator) {
    cluster
        .kubectl(&["create", "namespace", "quick"])
        .await
        .unwrap();
    limited(cluster, "quick", "prod", &platform.base_url(), USUAL).await;
    key(cluster, "quick", "ci").await;
    let ready = [
        "-n",
        "quick",
        "wait",
        "--timeout=25s",
        "--for=condition=Ready",
        "projectkey/ci",
    ];
    cluster.kubectl(&ready).await.unwrap();
}

#[tokio::test]
async fn passes_that_wait_for_the_budget_of_an_account_block_no_other_account() {
    let cluster = cluster().await;
    let platform = platform().await;
    let operator = Operator::start(&cluster, "operator", &["--concurrency", "2"]);
    operator.until_ready().await;
    cluster
        .kubectl(&["create", "namespace", "slow"])
        .await
        .unwrap();
    limited(
        &cluster,
        "slow",
        "prod",
        &platform.base_url(),
        "{requestsPerMinute: 8, burst: 4}",
    )
    .await;
    for number in 1..=6 {
        key(&cluster, "slow", &format!("key-{number}")).await;
    }
    let created = || {
        platform
            .requests(0)
            .iter()
            .any(|entry| entry.method == "POST")
    };
    wait_until(
        "a key of the slow account to be created",
        PATIENCE,
        async || created(),
    )
    .await
    .unwrap();
    is_served(&cluster, &platform).await;
    let names = [
        "-n",
        "slow",
        "get",
        "projectkeys",
        "-o",
        "jsonpath={.items[*].status.keyName}",
    ];
    let created = cluster.kubectl(&names).await.unwrap();
    assert!(
        created.split_whitespace().count() < 6,
        "the slow tenant was to wait still, and has {created}"
    );
}

#[tokio::test]
async fn a_platform_that_never_answers_blocks_no_other_account() {
    let cluster = cluster().await;
    let platform = platform().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v2", silent.local_addr().unwrap());
    let mut held = Vec::new();
    let operator = Operator::start(&cluster, "operator", &["--concurrency", "2"]);
    operator.until_ready().await;
    cluster
        .kubectl(&["create", "namespace", "slow"])
        .await
        .unwrap();
    for name in ["one", "two", "three"] {
        limited(&cluster, "slow", name, &url, USUAL).await;
    }
    // Accepts connections and never answers.
    for _ in 0..2 {
        held.push(
            tokio::time::timeout(PATIENCE, silent.accept())
                .await
                .unwrap()
                .unwrap(),
        );
    }
    is_served(&cluster, &platform).await;
    drop(held);
}
