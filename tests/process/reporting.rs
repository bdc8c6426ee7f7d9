//! Diagnostics: `dbplane bugreport`, and what `dbplane status` reads from metrics.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{ControlPlane, PATIENCE, free_port, wait_until};
use crate::{KEY, Operator, cluster, declare, platform, until_condition, until_ready};

const REFUSED: &str = "
apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {name: reports}
spec:
  accountRef: {name: prod}
  projectID: aged-wind-123456
  branchID: br-nowhere-1
  type: ReadWrite
";

fn bugreport(cluster: &ControlPlane, more: &[&str]) -> String {
    said(cluster, &[&["bugreport"], more].concat())
}

/// The output of a command.
fn said(cluster: &ControlPlane, verb: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command.args(verb).args(["--operator-namespace", "default"]);
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .output()
        .unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[tokio::test]
async fn a_report_shows_problems_and_status_the_rest_of_a_budget() {
    let (cluster, platform) = (cluster().await, platform().await);
    let debug = format!("127.0.0.1:{}", free_port().unwrap());
    let operator = Operator::start(
        &cluster,
        "operator",
        &["--leader-elect", "--debug-listen", &debug],
    );
    operator.until_ready().await;
    declare(&cluster, &platform).await;
    for manifest in [KEY, REFUSED] {
        cluster.apply(manifest).await.unwrap();
    }
    until_ready(&cluster).await;
    until_condition(&cluster, "projectkey/ci", "Ready").await;
    until_condition(&cluster, "compute/reports", "Stalled").await;

    // A second process waits for the lease.
    let standby = Operator::start(&cluster, "standby", &["--leader-elect"]);
    let served = async || reqwest::get(&standby.metrics).await.is_ok();
    wait_until("the standby to serve its metrics", PATIENCE, served)
        .await
        .unwrap();

    a_report_shows_problems_without_names(&cluster, &operator.metrics).await;
    let log_page = format!("http://{debug}/debug/log");
    status_shows_the_rest_of_a_budget(&cluster, [&operator.metrics, &standby.metrics, &log_page]);
}

fn status_shows_the_rest_of_a_budget(
    cluster: &ControlPlane,
    [metrics, of_standby, log_page]: [&str; 3],
) {
    let fleet = said(
        cluster,
        &["status", "--output", "json", "--metrics-url", metrics],
    );
    let fleet: Value = serde_json::from_str(&fleet).unwrap();
    let account = &fleet["accounts"][0];
    let left = account["left"]["requests"]
        .as_u64()
        .unwrap_or_else(|| panic!("{account:#}"));
    assert!(
        (1..=account["burst"].as_u64().unwrap()).contains(&left),
        "{account:#}"
    );
    assert_eq!(
        (&account["left"]["pauseSeconds"], &fleet["notRead"]),
        (&json!(0.0), &json!([]))
    );
    let orders = |url: &str| said(cluster, &["status", "compute/orders", "--metrics-url", url]);
    let known = orders(metrics);
    assert!(
        known.contains(" at once, ") && known.contains(" left now"),
        "{known}"
    );
    for (url, why) in [
        (of_standby, "this process does not lead"),
        (
            log_page,
            "what is served there are not the metrics of dbplane",
        ),
        ("http://127.0.0.1:1/metrics", ""),
    ] {
        let unknown = orders(url);
        assert!(
            unknown.contains(&format!("the operator's metrics: {why}"))
                && !unknown.contains(" left now"),
            "{unknown}"
        );
    }
}

async fn a_report_shows_problems_without_names(cluster: &ControlPlane, metrics: &str) {
    let report = bugreport(cluster, &["--metrics-url", metrics]);
    let shown = [
        "holder: operator_",
        "isOfThisVersion: true",
        "Ready=True (Available)",
        "reason: Refused",
        "dbplane_platform_requests_total{",
        "missing: []",
    ];
    for text in shown {
        assert!(report.contains(text), "{text} is not in\n{report}");
    }
    assert!(!report.contains("isOfThisVersion: false"), "{report}");
    let secret = cluster
        .kubectl(&["get", "secret/ci-key", "-o=jsonpath={.data.api-key}"])
        .await
        .unwrap();
    let id = cluster
        .kubectl(&["get", "compute/orders", "-o=jsonpath={.status.computeID}"])
        .await
        .unwrap();
    for name in [
        "reports",
        "orders",
        "aged-wind",
        "br-nowhere",
        "org-cool",
        "demo-personal",
        &id,
        &secret,
    ] {
        assert!(!report.contains(name), "{name} is in\n{report}");
    }

    let named = bugreport(
        cluster,
        &[
            "--keep-names",
            "--all",
            "--metrics-url",
            "http://127.0.0.1:1/metrics",
        ],
    );
    for text in [
        "name: reports",
        "name: orders",
        "projectID: aged-wind-123456",
        "Connection refused",
    ] {
        assert!(named.contains(text), "{text} is not in\n{named}");
    }
    assert!(!named.contains(&secret) && !named.contains("demo-personal"));
}
