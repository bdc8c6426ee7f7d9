//! Diagnostics: `/debug/state` and `dbplane bugreport`.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{ControlPlane, PATIENCE, free_port, wait_until};
use crate::{KEY, Operator, cluster, declare, platform, until_ready};

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
async fn the_state_of_the_process_and_a_report_show_what_is_wrong() {
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
        cluster
            .kubectl_with_input(&["apply", "-f", "-"], manifest)
            .await
            .unwrap();
    }
    until_ready(&cluster).await;
    cluster
        .kubectl(&[
            "wait",
            "--timeout=60s",
            "--for=condition=Ready",
            "projectkey/ci",
        ])
        .await
        .unwrap();
    cluster
        .kubectl(&[
            "wait",
            "--timeout=60s",
            "--for=condition=Stalled",
            "compute/reports",
        ])
        .await
        .unwrap();

    let page = format!("http://{debug}/debug/state");
    let state = async |query: &str| -> Value {
        reqwest::get(format!("{page}?{query}"))
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    };
    let all = state("").await;
    assert_eq!(
        (&all["identity"], &all["mayChange"]),
        (&"operator".into(), &true.into()),
        "{all:#}"
    );
    assert_eq!(all["resources"].as_array().unwrap().len(), 4);
    assert_eq!(all["accounts"][0]["budget"]["requestsPerMinute"], 600);
    let settled = async || {
        let reports = state("kind=compute&namespace=default&name=reports").await;
        let [reports] = reports["resources"].as_array().unwrap().as_slice() else {
            panic!("{reports:#}")
        };
        reports["last"]["report"]["health"]["is"] == "Stalled"
            && reports["last"]["next"]["atTheLatest"].is_string()
    };
    wait_until(
        "the page to say that the compute is stalled",
        PATIENCE,
        settled,
    )
    .await
    .unwrap();
    let orders = state("kind=Compute&name=orders").await["resources"][0].clone();
    assert_eq!(
        orders["last"]["report"]["health"]["reason"], "Available",
        "{orders:#}"
    );
    assert!(orders["last"]["step"]["step"].is_string(), "{orders:#}");
    let lists = all["lists"].as_array().unwrap();
    assert!(
        lists
            .iter()
            .any(|list| list["of"]["project"] == "aged-wind-123456"),
        "{lists:#?}"
    );

    // A second process waits for the lease and reports that.
    let waits = format!("127.0.0.1:{}", free_port().unwrap());
    let standby = Operator::start(
        &cluster,
        "standby",
        &["--leader-elect", "--debug-listen", &waits],
    );
    let said = async || {
        let Ok(answer) = reqwest::get(format!("http://{waits}/debug/state")).await else {
            return false;
        };
        answer.status() == 503
            && answer
                .text()
                .await
                .unwrap()
                .contains("the lead, which another process has")
    };
    wait_until("the standby to say what it waits for", PATIENCE, said)
        .await
        .unwrap();

    reports_tell_what_is_wrong_without_names(&cluster, &operator.metrics, &page).await;
    status_tells_what_is_left_of_a_budget(&cluster, [&operator.metrics, &standby.metrics, &page]);
}

fn status_tells_what_is_left_of_a_budget(
    cluster: &ControlPlane,
    [metrics, of_standby, page]: [&str; 3],
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
        (page, "what is served there are not the metrics of dbplane"),
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

async fn reports_tell_what_is_wrong_without_names(
    cluster: &ControlPlane,
    metrics: &str,
    page: &str,
) {
    let report = bugreport(cluster, &["--metrics-url", metrics, "--state-url", page]);
    let shown = [
        "holder: operator_",
        "isOfThisVersion: true",
        "Ready=True (Available)",
        "reason: Refused",
        "dbplane_platform_requests_total{",
        "requestsPerMinute: 600",
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

    // The operator's state covers all namespaces, regardless of the namespace of the requested
    // resources.
    let elsewhere = bugreport(
        cluster,
        &["--namespace", "kube-public", "--state-url", page],
    );
    assert!(elsewhere.contains("requestsPerMinute: 600"), "{elsewhere}");
    for name in ["reports", "orders", "aged-wind", "br-nowhere", &id] {
        assert!(!elsewhere.contains(name), "{name} is in\n{elsewhere}");
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
