//! Traces: exported spans, their ids in log lines, and the operator's behaviour without a
//! collector.

use dbplane_simulator::Simulator;
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::collector::{Collector, Span};
use crate::support::{ControlPlane, PATIENCE, Running, wait_until};
use crate::{Operator, cluster, creates, declare, platform, until_ready};

const CREATE: &str = "POST /projects/{project_id}/endpoints";
/// Longer than any test, so all spans that arrive were flushed at the stop.
const NEVER: &str = "3600000";

fn start(cluster: &ControlPlane, name: &str, variables: &[(&str, &str)]) -> Operator {
    Operator::start_in(
        variables,
        &cluster.kubeconfig_path(),
        cluster,
        name,
        &["--log-format", "json"],
    )
}

async fn stop(operator: &mut Operator) {
    operator.process.signal(Signal::SIGTERM).unwrap();
    let status = operator.process.wait(PATIENCE).await.unwrap();
    assert!(status.success(), "{status}");
}

/// The log lines about actions.
fn actions(process: &Running) -> Vec<Value> {
    let log = process.log();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["action"].is_string() && line["level"] == "INFO")
        .collect()
}

fn of_compute(spans: &[Span]) -> impl Iterator<Item = &Span> {
    spans.iter().filter(|span| {
        span.get("k8s.object.kind") == "Compute" && span.get("k8s.object.name") == "orders"
    })
}

#[tokio::test]
async fn a_pass_and_its_requests_are_a_trace() {
    let (cluster, platform, collector) =
        (cluster().await, platform().await, Collector::start().await);
    declare(&cluster, &platform).await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test",
        ),
        ("OTEL_BSP_SCHEDULE_DELAY", NEVER),
    ];
    let mut operator = start(&cluster, "operator", &variables);
    until_ready(&cluster).await;
    stop(&mut operator).await;

    let spans = collector.spans();
    let post = span_of_the_create(&spans);
    let pass = of_compute(&spans)
        .find(|span| span.id == post.parent)
        .expect("it is a part of a pass");
    is_span_of_a_pass(pass, post);
    assert!(of_compute(&spans).any(|span| span.get("dbplane.reason") == "Available"));
    let sent = platform
        .requests(0)
        .into_iter()
        .find(|entry| entry.method == "POST")
        .unwrap();
    assert_eq!(post.get("dbplane.request_id"), sent.request_id.unwrap());

    lists_are_traces_of_their_own(&spans);
    actions_are_logged_with_the_trace(&operator.process, pass, post);
}

fn span_of_the_create(spans: &[Span]) -> &Span {
    let post = spans
        .iter()
        .find(|span| span.name == CREATE)
        .expect("the create has a span");
    assert!(post.client && !post.failed, "{post:?}");
    let expected = [
        ("http.request.method", "POST"),
        ("http.response.status_code", "#201"),
        ("server.address", "127.0.0.1"),
    ];
    for (attribute, value) in expected {
        assert_eq!(post.get(attribute), value, "{post:?}");
    }
    post
}

fn is_span_of_a_pass(pass: &Span, post: &Span) {
    let expected = [
        ("k8s.namespace.name", "default"),
        ("dbplane.step", "Create"),
        ("dbplane.generation", "#1"),
    ];
    for (attribute, value) in expected {
        assert_eq!(pass.get(attribute), value, "{pass:?}");
    }
    assert!(
        pass.name == "reconcile"
            && pass.parent.is_empty()
            && pass.trace == post.trace
            && !pass.failed
    );
    for (attribute, value) in [
        ("service.name", "dbplane"),
        ("service.instance.id", "operator"),
        ("deployment.environment.name", "test"),
    ] {
        assert_eq!(pass.resource[attribute], value);
    }
}

/// Lists are not read in a pass, so their spans are roots.
fn lists_are_traces_of_their_own(spans: &[Span]) {
    let list = spans
        .iter()
        .find(|span| span.name == "observe")
        .expect("a list was read");
    assert!(
        list.parent.is_empty() && list.get("dbplane.list") == "project",
        "{list:?}"
    );
    assert!(
        spans
            .iter()
            .any(|span| span.parent == list.id && span.client),
        "{spans:#?}"
    );
}

/// Each action has one line, which refers to the trace and the request.
fn actions_are_logged_with_the_trace(process: &Running, pass: &Span, post: &Span) {
    let actions = actions(process);
    let names: Vec<_> = actions
        .iter()
        .map(|line| line["action"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["protect_secret", "create"]);
    let create = &actions[1];
    for (field, value) in [
        ("kind", "Compute"),
        ("namespace", "default"),
        ("name", "orders"),
        ("event", "Created"),
        ("project", "aged-wind-123456"),
        ("request_id", post.get("dbplane.request_id")),
        ("trace_id", &pass.trace),
        ("span_id", &pass.id),
    ] {
        assert_eq!(create[field], value, "{field} of {create}");
    }
    assert!(
        create["compute"]
            .as_str()
            .is_some_and(|id| id.starts_with("ep-")),
        "{create}"
    );
}

#[tokio::test]
async fn an_unavailable_collector_delays_nothing() {
    let (cluster, platform, collector) =
        (cluster().await, platform().await, Collector::start().await);
    declare(&cluster, &platform).await;
    collector.refuse(true);
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str());
    let mut operator = start(
        &cluster,
        "refused",
        &[endpoint, ("OTEL_BSP_SCHEDULE_DELAY", "50")],
    );
    until_ready(&cluster).await;
    // Each batch is sent four times.
    wait_until("batches to be refused", PATIENCE, async || {
        collector.refused() > 8
    })
    .await
    .unwrap();
    collector.refuse(false);
    let again = async || operator.process.log().contains("traces are exported again");
    wait_until("traces to be exported again", PATIENCE, again)
        .await
        .unwrap();
    stop(&mut operator).await;
    let log = operator.process.log();
    assert_eq!(log.matches("traces cannot be exported").count(), 1, "{log}");
    assert!(log.contains("the collector answers 503"), "{log}");

    // A collector that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", NEVER),
    ];
    let mut operator = Operator::start_in(
        &variables,
        &cluster.kubeconfig_path(),
        &cluster,
        "silent",
        &[],
    );
    let _held = silent.accept().await.unwrap();
    cluster
        .kubectl(&["delete", "compute", "orders", "--timeout=60s"])
        .await
        .unwrap();
    stop(&mut operator).await;
    let log = operator.process.log();
    assert!(log.contains("the last traces were not exported"), "{log}");
    let deleted = log
        .lines()
        .find(|line| line.contains("action=\"delete\""))
        .unwrap();
    let (pass, ids) = (
        "reconcile{kind=Compute namespace=\"default\" name=\"orders\"",
        " trace_id=",
    );
    assert!(
        deleted.contains(pass) && deleted.contains(ids) && deleted.contains(" span_id="),
        "{deleted}"
    );
    assert_eq!(creates(&platform), 1);
}

#[tokio::test]
async fn disabled_traces_leave_no_trace_ids() {
    let (cluster, platform, collector) =
        (cluster().await, platform().await, Collector::start().await);
    declare(&cluster, &platform).await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ];
    let mut operator = start(&cluster, "off", &variables);
    until_ready(&cluster).await;
    stop(&mut operator).await;
    assert!(collector.headers().is_empty());
    let actions = actions(&operator.process);
    assert!(
        actions.len() == 2 && actions.iter().all(|line| line["trace_id"].is_null()),
        "{actions:?}"
    );
    a_narrow_log_filter_keeps_names_and_spans(&cluster, &platform, &collector).await;
}

/// If the log filter excludes passes, log lines still name the object, and spans are still
/// exported.
async fn a_narrow_log_filter_keeps_names_and_spans(
    cluster: &ControlPlane,
    platform: &Simulator,
    collector: &Collector,
) {
    cluster
        .kubectl(&[
            "patch",
            "compute",
            "orders",
            "--type=merge",
            "-p",
            r#"{"spec":{"size":{"fixed":2}}}"#,
        ])
        .await
        .unwrap();
    let refused = serde_json::json!({"method": "PATCH", "path": "/endpoints/", "status": 423});
    platform
        .order_fault(serde_json::from_value(refused).unwrap())
        .unwrap();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str())];
    let mut operator = Operator::start_in(
        &variables,
        &cluster.kubeconfig_path(),
        cluster,
        "narrow",
        &["--log-format", "json", "--log", "warn"],
    );
    let failed = async || operator.process.log().contains("a step failed");
    wait_until("a step to fail", PATIENCE, failed)
        .await
        .unwrap();
    stop(&mut operator).await;
    let log = operator.process.log();
    let line = log
        .lines()
        .find(|line| line.contains("a step failed"))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&line["name"], &line["action"], &line["reason"]),
        (&"orders".into(), &"change".into(), &"busy".into())
    );
    let spans = collector.spans();
    let refused = spans
        .iter()
        .find(|span| span.get("http.response.status_code") == "#423")
        .unwrap();
    assert!(
        refused.failed && refused.get("error.type") == "busy" && refused.trace == line["trace_id"],
        "{refused:?}"
    );
}
