//! Leader election: one acts, another takes over.

use crate::support::PATIENCE;
use crate::{Operator, cluster, creates, declare, platform, until_ready};

#[tokio::test]
async fn one_acts_and_the_other_takes_over_when_it_leaves() {
    let cluster = cluster().await;
    let platform = platform().await;
    let mut first = Operator::start(&cluster, "first", &["--leader-elect"]);
    first.until_ready().await;
    let holder = async || {
        let path = "jsonpath={.spec.holderIdentity}";
        cluster.kubectl(&["-n", "default", "get", "lease", "dbplane", "-o", path]).await.unwrap_or_default()
    };
    let second = Operator::start(&cluster, "second", &["--leader-elect"]);
    declare(&cluster, &platform).await;
    until_ready(&cluster).await;
    assert_eq!(holder().await, "first");
    assert_eq!(creates(&platform), 1);
    first.process.terminate(PATIENCE).await.unwrap();
    second.until_ready().await;
    cluster
        .kubectl(&["patch", "compute", "orders", "--type", "merge", "-p", r#"{"spec":{"size":{"fixed":2}}}"#])
        .await
        .unwrap();
    cluster.kubectl(&["wait", "--timeout=60s", "--for=jsonpath={.status.size}=2", "compute/orders"]).await.unwrap();
    assert_eq!(holder().await, "second");
    assert_eq!(creates(&platform), 1);
}
