//! SIGTERM: what was begun is ended and recorded.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::{PATIENCE, wait_until};
use crate::{Operator, annotation, cluster, creates, declare, platform, until_ready};

#[tokio::test]
async fn a_create_that_is_under_way_is_ended_and_recorded() {
    let cluster = cluster().await;
    let platform = platform().await;
    let slow = json!({"method": "POST", "path": "/endpoints$", "kind": "delay", "delay_ms": 3000});
    platform.order_fault(serde_json::from_value(slow).unwrap()).unwrap();
    declare(&cluster, &platform).await;
    let mut operator = Operator::start(&cluster, "operator", &[]);
    let intended = async || !annotation(&cluster, "create-intent").await.is_empty();
    wait_until("the create to be under way", PATIENCE, intended).await.unwrap();
    operator.process.signal(Signal::SIGTERM).unwrap();
    let status = operator.process.wait(PATIENCE).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(annotation(&cluster, "compute").await.contains("ep-"), "the create was not recorded");
    assert_eq!(annotation(&cluster, "create-intent").await, "");
    assert_eq!(creates(&platform), 1);
    // The next process finds it and creates nothing.
    let _next = Operator::start(&cluster, "next", &[]);
    until_ready(&cluster).await;
    assert_eq!(creates(&platform), 1);
}
