//! Leader election: one process acts, and another one takes over.

use nix::sys::signal::Signal;

use crate::support::{ControlPlane, PATIENCE};
use crate::{Operator, changes, cluster, creates, declare, forwarded, platform, until_ready};

async fn holder(cluster: &ControlPlane) -> String {
    let path = "jsonpath={.spec.holderIdentity}";
    cluster
        .kubectl(&["-n", "default", "get", "lease", "dbplane", "-o", path])
        .await
        .unwrap_or_default()
}

/// Declares another size, and waits for it in the status.
async fn resize(cluster: &ControlPlane, size: u32) {
    let spec = format!(r#"{{"spec":{{"size":{{"fixed":{size}}}}}}}"#);
    cluster
        .kubectl(&["patch", "compute", "orders", "--type", "merge", "-p", &spec])
        .await
        .unwrap();
    let wanted = format!("--for=jsonpath={{.status.size}}={size}");
    cluster
        .kubectl(&["wait", "--timeout=60s", &wanted, "compute/orders"])
        .await
        .unwrap();
}

#[tokio::test]
async fn only_the_leader_acts_and_its_successor_takes_over() {
    let cluster = cluster().await;
    let platform = platform().await;
    let mut first = Operator::start(&cluster, "first", &["--leader-elect"]);
    first.until_ready().await;
    let second = Operator::start(&cluster, "second", &["--leader-elect"]);
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
    assert!(holder(&cluster).await.starts_with("first_"));
    assert_eq!(creates(&platform), 1);
    first.process.terminate(PATIENCE).await.unwrap();
    second.until_ready().await;
    resize(&cluster, 2).await;
    assert!(holder(&cluster).await.starts_with("second_"));
    assert_eq!(creates(&platform), 1);
}

#[tokio::test]
async fn an_isolated_leader_changes_nothing_after_its_successor_has_started() {
    let cluster = cluster().await;
    let platform = platform().await;
    let (forwarder, through) = forwarded(&cluster).await;
    let mut first = Operator::start_as(
        &through,
        &cluster,
        "first",
        &["--leader-elect", "--request-timeout=5"],
    );
    first.until_ready().await;
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
    let _second = Operator::start(&cluster, "second", &["--leader-elect"]);
    forwarder.cut();
    // The first process does not see these specs, but sees the successor's changes on the platform.
    resize(&cluster, 2).await;
    resize(&cluster, 4).await;
    assert!(
        first
            .process
            .log()
            .contains("nothing is changed until it is"),
        "{}",
        first.process.log()
    );
    forwarder.mend();
    let status = first.process.wait(PATIENCE).await.unwrap();
    assert!(
        !status.success() && first.process.log().contains("the lead is lost"),
        "{}",
        first.process.log()
    );
    resize(&cluster, 8).await;
    assert_eq!(
        changes(&platform),
        3,
        "each size is asked for once, and no other: {:?}",
        platform.requests(0)
    );
    assert!(
        !first.process.log().contains("Changed compute"),
        "{}",
        first.process.log()
    );
}

#[tokio::test]
async fn a_frozen_leader_changes_nothing_after_its_successor_has_started() {
    let cluster = cluster().await;
    let platform = platform().await;
    let mut first = Operator::start(
        &cluster,
        "first",
        &["--leader-elect", "--request-timeout=5"],
    );
    first.until_ready().await;
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
    let _second = Operator::start(&cluster, "second", &["--leader-elect"]);
    first.process.signal(Signal::SIGSTOP).unwrap();
    resize(&cluster, 2).await;
    first.process.signal(Signal::SIGCONT).unwrap();
    let status = first.process.wait(PATIENCE).await.unwrap();
    assert!(
        !status.success() && first.process.log().contains("the lead is lost"),
        "{}",
        first.process.log()
    );
    assert_eq!(changes(&platform), 1, "{:?}", platform.requests(0));
}
