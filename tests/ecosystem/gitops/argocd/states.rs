//! The states of resources in Argo CD, and the states that it waits for.

use serde_json::{Value, json};

use super::{Application, everything_to_deploy, in_wave, resource, result};
use crate::fixture::{Fixture, compute, condition, key};
use crate::gitops::changes;

/// Longer than Argo CD's poll plus the operator's first reaction.
const SLOW_START: u32 = 15_000;

const DEPLOYED: [&str; 5] = [
    "Account/prod",
    "Compute/orders",
    "Compute/orders-replica",
    "ProjectKey/ci",
    "ReadReplicaSet/orders-read",
];

#[tokio::test]
async fn everything_is_synced_and_healthy_without_rules_for_ignored_differences() {
    let fixture = Fixture::on("argo-healthy", |platform| {
        platform.world.settings.start_ms = SLOW_START
    })
    .await;
    let argo = Application::new(&fixture, &json!({})).await;
    let revision = argo.commit(&everything_to_deploy(&fixture));
    argo.sync_until(&json!({}), "Succeeded").await;

    let starts = argo.until_is(&revision, "Synced", "Progressing").await;
    assert_eq!(
        resource(&starts, "Compute/orders")[..2],
        ["Synced", "Progressing"],
        "{starts}"
    );
    let healthy = argo.until_is(&revision, "Synced", "Healthy").await;
    for name in DEPLOYED {
        let object = fixture.get(&name.to_lowercase()).await.unwrap();
        let says = condition(&object, "Ready").unwrap()["message"]
            .as_str()
            .unwrap();
        assert_eq!(
            resource(&healthy, name),
            ["Synced", "Healthy", says],
            "{name}"
        );
    }
    let resources = healthy["status"]["resources"].as_array().unwrap();
    assert!(
        resources
            .iter()
            .any(|found| found["kind"] == "ClusterAccount"),
        "{resources:?}"
    );
    assert!(
        resources.iter().all(|found| found["status"] == "Synced"),
        "{resources:?}"
    );
    assert!(healthy["spec"]["ignoreDifferences"].is_null());
}

#[tokio::test]
async fn a_stalled_compute_is_degraded_with_its_message_and_a_paused_one_is_suspended() {
    let fixture = Fixture::new("argo-states").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let (wrong, paused) = (
        compute("orders", "br-no-such-1", ""),
        compute("paused", "br-dev-7", ""),
    );
    let revision = argo.commit_one(&[&wrong, &paused]);
    argo.sync_until(&json!({}), "Succeeded").await;
    fixture.until_ready("compute/paused").await;
    fixture
        .until("compute/orders", "stalled", |seen| {
            condition(seen, "Stalled").is_some()
        })
        .await;
    fixture
        .annotate("compute/paused", "dbplane.dev/paused=true")
        .await;
    let pause = fixture
        .until("compute/paused", "paused", |seen| {
            condition(seen, "Paused").is_some()
        })
        .await;

    let of = |object: &Value, kind: &str| {
        condition(object, kind).unwrap()["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let stalled = of(&fixture.get("compute/orders").await.unwrap(), "Stalled");
    argo.until_shows("Compute/orders", "Synced", "Degraded", &stalled)
        .await;
    argo.until_shows(
        "Compute/paused",
        "Synced",
        "Suspended",
        &of(&pause, "Paused"),
    )
    .await;
    // The Application has the worst health of its resources.
    argo.until_is(&revision, "Synced", "Degraded").await;

    // A pause set by kubectl survives every sync.
    let mended = argo.commit_one(&[&compute("orders", "br-main-42", ""), &paused]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&mended, "Synced", "Suspended").await;
    fixture
        .annotate("compute/paused", "dbplane.dev/paused-")
        .await;
    argo.until_is(&mended, "Synced", "Healthy").await;
}

#[tokio::test]
async fn the_next_wave_waits_until_this_one_is_healthy_and_not_paused() {
    let fixture = Fixture::on("argo-waves", |platform| {
        platform.world.settings.start_ms = SLOW_START
    })
    .await;
    fixture.account().await;
    let argo = Application::new(&fixture, &json!({})).await;
    let declared = in_wave(&compute("orders", "br-main-42", ""), "1");
    let [ci, deploy] = ["ci", "deploy"].map(|name| in_wave(&key(name, ""), "2"));
    let first = argo.commit_one(&[&declared, &ci]);
    argo.sync(&json!({})).await;
    let waits = argo
        .until_waiting_for("healthy state of dbplane.dev/Compute/orders")
        .await;
    assert!(fixture.get("projectkey/ci").await.is_none(), "{waits}");
    argo.until_phase("Succeeded").await;
    the_key_is_younger_than_the_ready_compute(&fixture).await;
    argo.until_is(&first, "Synced", "Healthy").await;

    fixture
        .annotate("compute/orders", "dbplane.dev/paused=true")
        .await;
    fixture
        .until("compute/orders", "paused", |seen| {
            condition(seen, "Paused").is_some()
        })
        .await;
    let second = argo.commit_one(&[&declared, &ci, &deploy]);
    argo.sync(&json!({})).await;
    argo.until_waiting_for("healthy state of dbplane.dev/Compute/orders")
        .await;
    let paused = fixture.get("compute/orders").await.unwrap();
    let says = condition(&paused, "Paused").unwrap()["message"]
        .as_str()
        .unwrap();
    let seen = argo
        .until_shows("Compute/orders", "Synced", "Suspended", says)
        .await;
    assert_eq!(
        seen["status"]["operationState"]["phase"], "Running",
        "{seen}"
    );
    assert!(fixture.get("projectkey/deploy").await.is_none(), "{seen}");
    fixture
        .annotate("compute/orders", "dbplane.dev/paused-")
        .await;
    argo.until_phase("Succeeded").await;
    argo.until_is(&second, "Synced", "Healthy").await;
    assert_eq!(
        fixture.count("POST"),
        3,
        "a compute and two keys: {:?}",
        changes(&fixture)
    );
}

async fn the_key_is_younger_than_the_ready_compute(fixture: &Fixture) {
    let [orders, key] = [
        fixture.get("compute/orders").await.unwrap(),
        fixture.get("projectkey/ci").await.unwrap(),
    ];
    let ready = condition(&orders, "Ready").unwrap();
    assert_eq!(ready["status"], "True", "{orders}");
    assert!(
        ready["lastTransitionTime"].as_str() <= key["metadata"]["creationTimestamp"].as_str(),
        "{orders} {key}"
    );
}

#[tokio::test]
async fn a_stalled_compute_fails_the_sync_before_the_next_wave() {
    let fixture = Fixture::new("argo-fails").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let ci = in_wave(&key("ci", ""), "1");
    argo.commit_one(&[&compute("orders", "br-no-such-1", ""), &ci]);
    let failed = argo.sync_until(&json!({}), "Failed").await;
    let stalled = fixture.get("compute/orders").await.unwrap();
    assert_eq!(
        result(&failed, "orders"),
        condition(&stalled, "Stalled").unwrap()["message"]
            .as_str()
            .unwrap()
    );
    assert!(fixture.get("projectkey/ci").await.is_none(), "{failed}");

    let mended = argo.commit_one(&[&compute("orders", "br-main-42", ""), &ci]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&mended, "Synced", "Healthy").await;
    assert_eq!(
        fixture.on_the_platform().await,
        (1, 1),
        "{:?}",
        changes(&fixture)
    );
}
