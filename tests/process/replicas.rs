//! ReadReplicaSets with Kubernetes' own controllers, and many replicas at once.

use dbplane_simulator::log::Entry;
use jiff::Timestamp;
use serde_json::Value;

use crate::support::{ControlPlane, Options, PATIENCE, definition_files, wait_for, wait_until};
use crate::{Operator, account, creates, platform};

const SET: &str = "
apiVersion: dbplane.dev/v1alpha1
kind: ReadReplicaSet
metadata: {name: reads}
spec:
  selector: {matchLabels: {app: reads}}
  template:
    metadata: {labels: {app: reads}}
    spec: {accountRef: {name: prod}, projectID: aged-wind-123456, branchID: br-main-42}
";

/// There is no metrics API, so the autoscaler only applies its bounds.
const AUTOSCALER: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: reads}
spec:
  scaleTargetRef: {apiVersion: dbplane.dev/v1alpha1, kind: ReadReplicaSet, name: reads}
  minReplicas: 2
  maxReplicas: 3
";

async fn apply(cluster: &ControlPlane, manifest: &str) {
    cluster.apply(manifest).await.unwrap();
}

/// Waits until the set has this many replicas, all ready.
async fn until(cluster: &ControlPlane, count: u64) {
    let mut last = Value::Null;
    let has = async || {
        let text = cluster
            .kubectl(&["get", "readreplicaset/reads", "-o", "json"])
            .await
            .ok()?;
        last = serde_json::from_str(&text).ok()?;
        let numbers = [
            &last["spec"]["replicas"],
            &last["status"]["replicas"],
            &last["status"]["readyReplicas"],
        ];
        numbers
            .into_iter()
            .all(|number| *number == count)
            .then_some(())
    };
    // Creates on a branch are sequential, so fifty take minutes when other tests run.
    let found = wait_for(&format!("{count} replicas"), PATIENCE * 5, has).await;
    found.unwrap_or_else(|error| panic!("{error}: {last:#}"));
}

#[tokio::test]
async fn an_autoscaler_keeps_a_set_within_its_bounds() {
    let mut options = Options {
        crds: definition_files(),
        ..Options::default()
    };
    options
        .controllers
        .push("horizontal-pod-autoscaler-controller".to_owned());
    let cluster = ControlPlane::start_with(options).await.unwrap();
    let platform = platform().await;
    account(
        &cluster,
        "default",
        "prod",
        &platform.base_url(),
        "  organizationID: org-cool-darkness-1\n  pollInterval: 5s\n",
    )
    .await;
    let operator = Operator::start(&cluster, "operator", &[]);
    operator.until_ready().await;
    apply(&cluster, SET).await;
    until(&cluster, 1).await;
    apply(&cluster, AUTOSCALER).await;
    until(&cluster, 2).await;
    cluster
        .kubectl(&["scale", "readreplicaset/reads", "--replicas=5"])
        .await
        .unwrap();
    until(&cluster, 3).await;
    // The manifest omits `replicas`, so applying it again changes nothing.
    apply(&cluster, SET).await;
    until(&cluster, 3).await;
}

#[tokio::test]
async fn fifty_replicas_are_created_and_deleted_within_the_budget() {
    const COUNT: usize = 50;
    let cluster = crate::cluster().await;
    let platform = platform().await;
    let budget = "  organizationID: org-cool-darkness-1\n  pollInterval: 5s\n  rateLimit: {requestsPerMinute: 600, burst: 20}\n";
    account(&cluster, "default", "prod", &platform.base_url(), budget).await;
    let operator = Operator::start(&cluster, "operator", &["--deletes-per-minute", "100"]);
    operator.until_ready().await;
    apply(
        &cluster,
        &SET.replace("spec:\n  selector", "spec:\n  replicas: 50\n  selector"),
    )
    .await;
    until(&cluster, 50).await;
    assert_eq!(creates(&platform), COUNT);
    let requests = platform.requests(0);
    assert!(
        requests.iter().all(|request| request.status != Some(429)),
        "the limit was hit"
    );
    let at = |entry: Option<&Entry>| entry.unwrap().at.parse::<Timestamp>().unwrap();
    let seconds = at(requests.last())
        .duration_since(at(requests.first()))
        .as_secs();
    let most = 20 + 10 * (usize::try_from(seconds).unwrap() + 1);
    assert!(
        requests.len() <= most,
        "{} requests in {seconds} s",
        requests.len()
    );
    cluster
        .kubectl(&[
            "delete",
            "readreplicaset/reads",
            "--cascade=foreground",
            "--timeout=240s",
        ])
        .await
        .unwrap();
    let gone = async || {
        cluster
            .kubectl(&["get", "computes", "-o", "name"])
            .await
            .is_ok_and(|left| left.is_empty())
    };
    wait_until("all Computes to be gone", PATIENCE * 3, gone)
        .await
        .unwrap();
    let mut deleted: Vec<_> = platform
        .requests(0)
        .into_iter()
        .filter(|request| request.method == "DELETE")
        .collect();
    deleted.sort_by_key(|entry| entry.path.clone());
    let lines: Vec<_> = deleted
        .iter()
        .map(|entry| format!("{} {} {:?}", entry.at, entry.path, entry.status))
        .collect();
    assert_eq!(lines.len(), COUNT, "{lines:#?}");
}
