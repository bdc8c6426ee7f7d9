//! A slow API server, and specs that change faster than the platform's rate limit allows.

use std::time::{Duration, Instant};

use dbplane::api::Compute;
use dbplane_simulator::Simulator;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::support::{ControlPlane, PATIENCE, wait_for};
use crate::{
    Operator, account, changes, cluster, creates, declare, forwarded, platform, until_ready,
};

const REPLICAS: usize = 10;
/// Latency between API server and operator in each direction.
const LATENCY: Duration = Duration::from_millis(150);
const PER_MINUTE: usize = 60;
const BURST: usize = 10;

async fn replicas(cluster: &ControlPlane, platform: &Simulator) {
    account(
        cluster,
        "default",
        "prod",
        &platform.base_url(),
        "  organizationID: org-cool-darkness-1\n",
    )
    .await;
    let replica = |number: usize| {
        format!(
            "---
apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: replica-{number}}}
spec:
  accountRef: {{name: prod}}
  projectID: aged-wind-123456
  branchID: br-main-42
  type: ReadOnly
"
        )
    };
    let manifests: String = (0..REPLICAS).map(replica).collect();
    cluster.apply(&manifests).await.unwrap();
}

#[tokio::test]
async fn with_a_slow_api_server_everything_is_created_once_and_the_lead_is_kept() {
    let (cluster, platform) = (cluster().await, platform().await);
    let (forwarder, through) = forwarded(&cluster).await;
    let operator = Operator::start_as(&through, &cluster, "operator", &["--leader-elect"]);
    operator.until_ready().await;
    forwarder.slow(LATENCY);
    replicas(&cluster, &platform).await;
    let ready = [
        "wait",
        "--timeout=120s",
        "--for=condition=Ready",
        "compute",
        "--all",
    ];
    cluster.kubectl(&ready).await.unwrap();
    assert_eq!(creates(&platform), REPLICAS);
    assert!(
        !operator.process.log().contains("the lead is lost"),
        "{}",
        operator.process.log()
    );
}

async fn resize(computes: &Api<Compute>, size: f64) {
    let size = json!({"spec": {"size": {"fixed": size}}});
    computes
        .patch("orders", &PatchParams::default(), &Patch::Merge(&size))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_storm_of_changes_stays_within_the_budget_and_ends_as_declared() {
    let (cluster, platform) = (cluster().await, platform().await);
    let operator = Operator::start(&cluster, "operator", &[]);
    operator.until_ready().await;
    declare(&cluster, &platform).await;
    let limit = format!("  rateLimit: {{requestsPerMinute: {PER_MINUTE}, burst: {BURST}}}\n");
    let more = format!("  organizationID: org-cool-darkness-1\n{limit}");
    account(&cluster, "default", "prod", &platform.base_url(), &more).await;
    until_ready(&cluster).await;
    let before = operator.process.resident_kib().unwrap();
    let computes: Api<Compute> = Api::default_namespaced(cluster.client().await.unwrap());
    let begun = Instant::now();
    for number in 0..500 {
        resize(&computes, [0.25, 0.5, 1.0, 2.0][number % 4]).await;
    }
    resize(&computes, 4.0).await;
    let in_force = async || {
        let status = computes.get_status("orders").await.ok()?.status?;
        (status.size.as_deref() == Some("4")).then_some(())
    };
    wait_for("the last size to be in force", 2 * PATIENCE, in_force)
        .await
        .unwrap();
    let allowed =
        BURST + (begun.elapsed().as_secs_f64() * PER_MINUTE as f64 / 60.0).ceil() as usize;
    let sent = changes(&platform);
    assert!(sent <= allowed, "{sent} changes in {:?}", begun.elapsed());
    let grown = operator
        .process
        .resident_kib()
        .unwrap()
        .saturating_sub(before);
    assert!(
        grown < 16 * 1024,
        "{grown} KiB more are kept after 500 changes"
    );
}
