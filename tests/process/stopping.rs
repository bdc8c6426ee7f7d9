//! SIGTERM: the operator completes and records actions in progress.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{PATIENCE, wait_until};
use crate::{
    KEY, Operator, cluster, creates, declare, forwarded, platform, record, until_condition,
    until_ready,
};

#[tokio::test]
async fn a_create_in_progress_is_finished_and_recorded() {
    let cluster = cluster().await;
    let platform = platform().await;
    let slow = json!({"method": "POST", "path": "/endpoints$", "kind": "delay", "delay_ms": 3000});
    platform
        .order_fault(serde_json::from_value(slow).unwrap())
        .unwrap();
    declare(&cluster, &platform).await;
    let mut operator = Operator::start(&cluster, "operator", &[]);
    let intended = async || record(&cluster).await.contains("intent");
    wait_until("the create to be under way", PATIENCE, intended)
        .await
        .unwrap();
    operator.process.signal(Signal::SIGTERM).unwrap();
    let status = operator.process.wait(PATIENCE).await.unwrap();
    assert!(status.success(), "{status}");
    let log = operator.process.log();
    assert!(
        log.contains("no pass is running any more"),
        "the operator did not end by itself, but when its time was over: {log}"
    );
    let record = record(&cluster).await;
    assert!(
        record.contains("binding") && !record.contains("intent"),
        "the create was not recorded: {record}"
    );
    assert_eq!(creates(&platform), 1);
    // The next process finds the result and creates nothing.
    let _next = Operator::start(&cluster, "next", &[]);
    until_ready(&cluster).await;
    assert_eq!(creates(&platform), 1);
}

#[tokio::test]
async fn a_key_created_during_an_outage_of_the_api_server_is_saved_before_the_exit() {
    let cluster = cluster().await;
    let platform = platform().await;
    declare(&cluster, &platform).await;
    let (forwarder, through) = forwarded(&cluster).await;
    let mut operator =
        Operator::start_as(&through, &cluster, "operator", &["--request-timeout", "5"]);
    until_ready(&cluster).await;
    let slow = json!({"method": "POST", "path": "/api_keys$", "kind": "delay", "delay_ms": 3000});
    platform
        .order_fault(serde_json::from_value(slow).unwrap())
        .unwrap();
    let keys = || {
        platform
            .requests(0)
            .iter()
            .filter(|entry| entry.method == "POST" && entry.path.ends_with("/api_keys"))
            .count()
    };
    cluster.apply(KEY).await.unwrap();
    wait_until("the key's creation to begin", PATIENCE, async || {
        keys() == 1
    })
    .await
    .unwrap();
    forwarder.close();
    let in_hand = async || operator.process.log().contains("Created key");
    wait_until("the key to arrive", PATIENCE, in_hand)
        .await
        .unwrap();
    operator.process.signal(Signal::SIGTERM).unwrap();
    let trying = async || operator.process.log().contains("a key is not saved yet");
    wait_until("the operator to try to save it", PATIENCE, trying)
        .await
        .unwrap();
    forwarder.mend();
    let status = operator.process.wait(PATIENCE).await.unwrap();
    assert!(status.success(), "{status}");
    let entry = ["get", "secret", "ci-key", "-o", "jsonpath={.data.api-key}"];
    assert!(
        !cluster.kubectl(&entry).await.unwrap().is_empty(),
        "the key did not reach its Secret"
    );
    // The next process finds the key in the Secret.
    let _next = Operator::start(&cluster, "next", &[]);
    until_condition(&cluster, "projectkey/ci", "Ready").await;
    assert_eq!(keys(), 1);
}
