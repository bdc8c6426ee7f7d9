//! The admission policy in deploy/.

use std::path::Path;

use crate::cluster;
use crate::support::{PATIENCE, wait_for};

fn manifest(name: &str, more: &str) -> String {
    format!(
        "{{apiVersion: dbplane.dev/v1alpha1, kind: Compute, metadata: {{name: {name}, namespace: protection}}, \
         spec: {{accountRef: {{name: prod}}, projectID: p, branchID: br, type: ReadWrite{more}}}}}"
    )
}

#[tokio::test]
async fn a_protected_compute_is_not_deleted_where_the_policy_is_installed() {
    let cluster = cluster().await;
    let policy =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/chart/deletion-protection.yaml");
    cluster
        .kubectl(&["create", "namespace", "protection"])
        .await
        .unwrap();
    cluster
        .kubectl(&["apply", "-f", policy.to_str().unwrap()])
        .await
        .unwrap();
    for (name, more) in [
        ("kept", ", deletionProtection: true"),
        ("orphan", ", deletionProtection: true, deletion: Orphan"),
        ("open", ", deletionProtection: false"),
        ("plain", ""),
    ] {
        cluster.apply(&manifest(name, more)).await.unwrap();
    }
    let delete = async |name: &str| {
        cluster
            .kubectl(&["-n", "protection", "delete", "compute", name])
            .await
    };
    // A new policy takes a moment to become active, so it is probed by dry runs.
    let tried = [
        "-n",
        "protection",
        "delete",
        "compute",
        "kept",
        "--dry-run=server",
    ];
    let refusal = wait_for("the policy", PATIENCE, async || {
        cluster.kubectl(&tried).await.err()
    })
    .await
    .unwrap();
    let command = r#"patch compute kept --type merge -p '{"spec":{"deletionProtection":false}}'"#;
    assert!(refusal.to_string().contains(command), "{refusal}");
    assert!(delete("kept").await.is_err());
    for name in ["orphan", "open", "plain"] {
        delete(name).await.unwrap();
    }
    cluster
        .apply(&manifest("kept", ", deletionProtection: false"))
        .await
        .unwrap();
    delete("kept").await.unwrap();
}
