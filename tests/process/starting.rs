//! The operator waits at its start for missing dependencies and reports them.

use crate::support::{ControlPlane, PATIENCE, definition_files, free_port, wait_until};
use crate::{Operator, cluster, creates, declare, declare_in, platform, until_ready};

#[tokio::test]
async fn it_waits_for_missing_definitions_and_reports_them() {
    let cluster = ControlPlane::start().await.unwrap();
    let mut operator = Operator::start(&cluster, "operator", &[]);
    let named = async || {
        operator
            .asks("/readyz")
            .await
            .is_some_and(|(status, text)| {
                status == 503
                    && text.contains("computes.dbplane.dev")
                    && text.contains("kubectl apply -k crds/")
            })
    };
    wait_until("the missing definitions to be named", PATIENCE, named)
        .await
        .unwrap();
    assert_eq!(operator.asks("/livez").await.unwrap().0, 200);
    for crd in definition_files() {
        cluster
            .kubectl(&["apply", "-f", crd.to_str().unwrap()])
            .await
            .unwrap();
    }
    operator.until_ready().await;
    assert!(operator.process.ended().unwrap().is_none());
}

#[tokio::test]
async fn it_waits_for_the_api_server_and_for_the_platform() {
    let mut cluster = cluster().await;
    let platform = platform().await;
    declare(&cluster, &platform).await;
    let base_url = platform.base_url();
    let address = base_url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    platform.stop().await;
    cluster.stop_api_server().unwrap();
    let mut operator = Operator::start(&cluster, "operator", &[]);
    let named = async || {
        operator
            .asks("/readyz")
            .await
            .is_some_and(|(status, text)| {
                status == 503
                    && text.contains("the API server (")
                    && text.contains("Connection refused")
            })
    };
    wait_until("the API server to be named", PATIENCE, named)
        .await
        .unwrap();
    assert!(
        !operator.process.log().contains("ERROR"),
        "one line says it: {}",
        operator.process.log()
    );
    cluster.start_api_server().await.unwrap();
    operator.until_ready().await;
    // The platform is still down: the account reports that, and the process keeps running.
    let reason = "jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}";
    let unreachable = async || {
        cluster
            .kubectl(&["get", "account", "prod", "-o", reason])
            .await
            .is_ok_and(|text| text == "PlatformUnreachable")
    };
    wait_until(
        "the account to say that the platform is away",
        PATIENCE,
        unreachable,
    )
    .await
    .unwrap();
    let world = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/world.yaml");
    let world =
        dbplane_simulator::world::file::WorldFile::parse(&std::fs::read_to_string(world).unwrap())
            .unwrap();
    let listener = tokio::net::TcpListener::bind(&address).await.unwrap();
    let _platform = dbplane_simulator::serve(listener, dbplane_simulator::Options::new(world))
        .await
        .unwrap();
    until_ready(&cluster).await;
    assert!(operator.process.ended().unwrap().is_none());
}

#[tokio::test]
async fn logs_are_json_on_request_and_metrics_are_exposed() {
    let cluster = cluster().await;
    let platform = platform().await;
    declare(&cluster, &platform).await;
    let operator = Operator::start(&cluster, "operator", &["--log-format", "json"]);
    until_ready(&cluster).await;
    let log = operator.process.log();
    assert!(log.lines().count() > 3, "{log}");
    for line in log.lines() {
        let entry: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(
            entry["timestamp"].is_string() && entry["level"].is_string(),
            "{line}"
        );
    }
    let metrics = reqwest::get(&operator.metrics)
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    for expected in [
        r#"call="create_compute",outcome="ok"} 1"#,
        r#"dbplane_reconciles_total{namespace="default",kind="Compute",outcome="ok"}"#,
        "# EOF",
    ] {
        assert!(
            metrics.contains(expected),
            "{expected} is not in\n{metrics}"
        );
    }
}

#[tokio::test]
async fn the_log_filter_is_changed_at_run_time() {
    let (cluster, platform) = (cluster().await, platform().await);
    let debug = format!("127.0.0.1:{}", free_port().unwrap());
    let operator = Operator::start(
        &cluster,
        "operator",
        &["--debug-listen", &debug, "--log", "warn"],
    );
    operator.until_ready().await;
    let put = async |filter: &'static str| {
        let asked = reqwest::Client::new()
            .put(format!("http://{debug}/debug/log"))
            .body(filter)
            .send()
            .await
            .unwrap();
        (asked.status().as_u16(), asked.text().await.unwrap())
    };
    let (refused, why) = put("dbplane=loud").await;
    assert!(refused == 400 && why.contains("cannot be read"), "{why}");
    assert_eq!(
        reqwest::get(format!("http://{debug}/debug/log"))
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
        "warn\n"
    );
    assert!(!operator.process.log().contains("performing"));
    assert_eq!(
        put("warn,dbplane=debug").await,
        (200, "dbplane=debug,warn\n".to_owned())
    );
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
    assert!(
        operator.process.log().contains("performing"),
        "{}",
        operator.process.log()
    );
}

#[tokio::test]
async fn it_watches_only_the_given_namespaces() {
    let cluster = cluster().await;
    let platform = platform().await;
    for (namespace, branch) in [
        ("one", "br-main-42"),
        ("two", "br-dev-7"),
        ("three", "br-reporting-3"),
    ] {
        cluster
            .kubectl(&["create", "namespace", namespace])
            .await
            .unwrap();
        declare_in(&cluster, &platform, namespace, branch).await;
    }
    let _operator = Operator::start(&cluster, "operator", &["--watch-namespaces", "one,two"]);
    for namespace in ["one", "two"] {
        let ready = [
            "-n",
            namespace,
            "wait",
            "--timeout=60s",
            "--for=condition=Ready",
            "compute/orders",
        ];
        cluster.kubectl(&ready).await.unwrap();
    }
    let observed = "jsonpath={.items[*].status.observedGeneration} {.items[*].status.conditions}";
    let elsewhere = cluster
        .kubectl(&["-n", "three", "get", "compute,account", "-o", observed])
        .await
        .unwrap();
    assert_eq!(elsewhere.trim(), "-1 -1", "what is not watched was touched");
    assert_eq!(creates(&platform), 2);
    // A change on the platform triggers the resource in the right namespace.
    let resize = r#"{"spec":{"size":{"fixed":2}}}"#;
    cluster
        .kubectl(&[
            "-n", "two", "patch", "compute", "orders", "--type", "merge", "-p", resize,
        ])
        .await
        .unwrap();
    let resized = [
        "-n",
        "two",
        "wait",
        "--timeout=60s",
        "--for=jsonpath={.status.size}=2",
        "compute/orders",
    ];
    cluster.kubectl(&resized).await.unwrap();
}
