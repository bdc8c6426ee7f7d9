//! The storage of the API server is restored to an earlier state while the operator runs, so
//! resource versions go backwards.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::support::{ControlPlane, Options, PATIENCE, definition_files, wait_until};
use crate::{Operator, creates, declare, platform, until_condition, until_ready};

/// More than the API server creates by itself during the test.
const VERSIONS: usize = 2000;

/// Raises the versions before the restore so far that they are not reached again.
async fn use_up_versions(cluster: &ControlPlane) {
    cluster
        .kubectl(&["create", "configmap", "versions"])
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await.unwrap(), "default");
    for count in 0..VERSIONS {
        let patch = Patch::Merge(json!({"data": {"count": count.to_string()}}));
        maps.patch("versions", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

async fn replica(cluster: &ControlPlane, name: &str) {
    let manifest = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec: {{accountRef: {{name: prod}}, projectID: aged-wind-123456, branchID: br-main-42, type: ReadOnly}}
"
    );
    cluster.apply(&manifest).await.unwrap();
}

/// The compute of each Compute.
async fn computes(cluster: &ControlPlane) -> String {
    let path = "jsonpath={range .items[*]}{.metadata.name}={.status.computeID} {end}";
    cluster
        .kubectl(&["get", "computes", "-o", path])
        .await
        .unwrap_or_default()
}

/// The restored status lacks both bindings. A wrong decision would create the replica again and
/// treat the primary as foreign.
#[tokio::test]
async fn nothing_is_created_twice_after_a_restore_of_the_storage() {
    // Controllers would not notice the restore either, so none run.
    let options = Options {
        controllers: Vec::new(),
        crds: definition_files(),
        ..Options::default()
    };
    let mut cluster = ControlPlane::start_with(options).await.unwrap();
    let platform = platform().await;
    declare(&cluster, &platform).await;
    replica(&cluster, "replica").await;
    cluster.back_up_storage().await.unwrap();
    let operator = Operator::start(&cluster, "operator", &[]);
    until_ready(&cluster).await;
    until_condition(&cluster, "compute/replica", "Ready").await;
    let before = computes(&cluster).await;
    assert!(
        before.contains("orders=ep-") && before.contains("replica=ep-"),
        "{before}"
    );
    replica(&cluster, "later").await;
    until_condition(&cluster, "compute/later", "Ready").await;
    use_up_versions(&cluster).await;
    cluster.put_back_storage().await.unwrap();

    resize(&cluster).await;
    let bound = async || computes(&cluster).await == before;
    wait_until("both to have their computes", PATIENCE, bound)
        .await
        .unwrap();
    cluster
        .kubectl(&["delete", "compute", "replica", "--timeout=90s"])
        .await
        .unwrap();
    assert_eq!(creates(&platform), 3, "one each");
    let deleted = platform
        .requests(0)
        .iter()
        .filter(|request| request.method == "DELETE")
        .count();
    assert_eq!(deleted, 1);
    the_restore_is_reported_once(&cluster, &operator.process.log()).await;
}

/// Edits the primary, and waits until the edit takes effect.
async fn resize(cluster: &ControlPlane) {
    let resized = r#"{"spec":{"size":{"fixed":2}}}"#;
    let edit = [
        "patch", "compute", "orders", "--type", "merge", "-p", resized,
    ];
    wait_until("the API server to take an edit", PATIENCE, async || {
        cluster.kubectl(&edit).await.is_ok()
    })
    .await
    .unwrap();
    let takes_effect = [
        "wait",
        "--timeout=90s",
        "--for=jsonpath={.status.size}=2",
        "compute/orders",
    ];
    cluster.kubectl(&takes_effect).await.unwrap();
}

async fn the_restore_is_reported_once(cluster: &ControlPlane, log: &str) {
    assert_eq!(log.matches("storage was put back").count(), 1, "{log}");
    assert!(
        log.contains("nothing manages any more what it has on the platform: compute ep-"),
        "{log}"
    );
    let published = [
        "get",
        "events.events.k8s.io",
        "-A",
        "-o",
        "jsonpath={.items[*].reason}",
    ];
    let published = cluster.kubectl(&published).await.unwrap();
    assert_eq!(
        published.matches("StoragePutBack").count(),
        1,
        "{published}"
    );
}
