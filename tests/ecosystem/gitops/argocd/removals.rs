//! Resources that are removed from Git or together with their Application.

use serde_json::{Value, json};

use super::{Application, annotated, everything_to_deploy, in_wave, result};
use crate::fixture::{Fixture, compute, key};
use crate::gitops::{changes, everything};

#[tokio::test]
async fn objects_removed_from_git_are_out_of_sync_until_the_platform_has_deleted_them() {
    let fixture = Fixture::new("argo-pruned").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let (kept, ci) = (compute("kept", "br-main-42", ""), key("ci", ""));
    let gone = compute("gone", "br-dev-7", "");
    let all = argo.commit_one(&[&kept, &gone, &ci]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&all, "Synced", "Healthy").await;

    let fewer = argo.commit_one(&[&kept]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&fewer, "OutOfSync", "Healthy").await;
    assert_eq!(fixture.on_the_platform().await, (2, 1), "without prune");

    fixture.fault(json!({"method": "DELETE", "status": 503, "times": 1_000_000}));
    let pruned = argo.sync_until(&json!({"prune": true}), "Succeeded").await;
    assert_eq!(
        [result(&pruned, "gone"), result(&pruned, "ci")],
        ["pruned", "pruned"]
    );
    // Argo CD does not run the health script for objects in deletion.
    argo.until_shows(
        "Compute/gone",
        "OutOfSync",
        "Progressing",
        "Pending deletion",
    )
    .await;
    argo.until_shows(
        "ProjectKey/ci",
        "OutOfSync",
        "Progressing",
        "Pending deletion",
    )
    .await;
    fixture.platform.clear_faults();
    argo.until_is(&fewer, "Synced", "Healthy").await;
    assert_eq!(
        fixture.on_the_platform().await,
        (1, 0),
        "{:?}",
        changes(&fixture)
    );
    assert_eq!(fixture.count("POST"), 3, "{:?}", changes(&fixture));
}

#[tokio::test]
async fn a_protected_resource_stays_and_blocks_later_waves_unless_argo_cd_is_configured() {
    let fixture = Fixture::new("argo-protected").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let protected =
        |name: &str, branch: &str| compute(name, branch, "  deletionProtection: true\n");
    let told = annotated(
        &protected("told", "br-dev-7"),
        "argocd.argoproj.io/sync-options",
        "Prune=false",
    );
    let all = argo.commit_one(&[&protected("orders", "br-main-42"), &told]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&all, "Synced", "Healthy").await;

    let other = argo.commit_one(&[&in_wave(&key("ci", ""), "1")]);
    argo.sync(&json!({"prune": true})).await;
    let waits = argo
        .until_waiting_for("deletion of dbplane.dev/Compute/orders")
        .await;
    assert_eq!(result(&waits, "told"), "ignored (no prune)");
    fixture
        .until_condition("compute/orders", "Stalled", "True", "DeletionProtected")
        .await;
    let seen = argo.refresh("hard").await;
    assert_eq!(
        seen["status"]["operationState"]["phase"], "Running",
        "{seen}"
    );
    assert!(fixture.get("projectkey/ci").await.is_none(), "{seen}");
    assert_eq!(fixture.computes().await.len(), 2);

    fixture
        .patch("compute/orders", json!({"deletionProtection": false}))
        .await;
    argo.until_phase("Succeeded").await;
    fixture.until_gone("compute/orders").await;
    assert!(fixture.get("compute/told").await.unwrap()["metadata"]["deletionTimestamp"].is_null());
    argo.until_is(&other, "OutOfSync", "Healthy").await;
    assert_eq!(fixture.on_the_platform().await, (1, 1));
}

#[tokio::test]
async fn an_application_is_gone_once_everything_is_gone_from_the_platform() {
    let fixture = Fixture::bare("argo-deleted").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let files = everything_to_deploy(&fixture);
    let files: Vec<_> = files
        .into_iter()
        .map(|(name, text)| {
            (
                name,
                text.replace("deletionProtection: true", "deletionProtection: false"),
            )
        })
        .collect();
    let revision = argo.commit(&files);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&revision, "Synced", "Healthy").await;
    let existing = fixture.computes().await.len();

    argo.delete().await;
    argo.until("gone", Value::is_null).await;
    assert_eq!(fixture.on_the_platform().await, (0, 0), "of {existing}");
    assert_eq!(
        everything(&fixture).await.keys().collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}
