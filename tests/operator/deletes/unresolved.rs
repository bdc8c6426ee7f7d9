//! A create whose outcome is open when the resource is deleted: what it brought forth is found and goes first.

use dbplane_simulator::world::Profile;
use serde_json::json;

use super::{delete, is_told, message};
use crate::keys::key;
use crate::stage::{Stage, compute};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";

/// The answer to the next create is lost, and late enough for the resource to be deleted before that is known.
fn lose(stage: &Stage, path: &str) {
    stage.fault(json!({"method": "POST", "path": path, "kind": "lose_answer", "delay_ms": 1500}));
}

#[tokio::test]
async fn an_open_create_is_resolved_before_the_resource_goes() {
    tokio::join!(
        a_compute("open-compute", Profile::Default),
        a_compute("open-compute-minimal", Profile::Minimal),
        a_key(),
        a_key_that_cannot_be_revoked(),
    );
}

async fn a_compute(name: &str, profile: Profile) {
    let stage = Stage::on(name, |options| options.profile = profile).await;
    stage.account().await;
    stage.until_ready("account/prod").await;
    lose(&stage, "/endpoints$");
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.wait_until("the create to be sent", async || stage.count("POST") == 1).await;
    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    let deleted = stage.platform.requests(0);
    let deleted = deleted.iter().filter(|entry| entry.method == "DELETE" && entry.status == Some(200)).count();
    assert_eq!(
        (stage.count("POST"), deleted, stage.computes().await.len()),
        (1, 1, 0),
        "{:?}",
        stage.platform.requests(0)
    );
}

async fn a_key() {
    let stage = Stage::new("open-key").await;
    stage.until_ready("account/prod").await;
    lose(&stage, "/api_keys$");
    stage.apply(&key("ci", "")).await;
    stage.wait_until("the create to be sent", async || stage.count(CREATE) == 1).await;
    delete(&stage, "projectkey/ci").await;
    stage.until_gone("projectkey/ci").await;
    assert_eq!((stage.count(CREATE), stage.count("DELETE"), stage.live_keys().await.len()), (1, 1, 0));
}

async fn a_key_that_cannot_be_revoked() {
    let stage = Stage::minimal("open-key-minimal").await;
    stage.until_ready("account/prod").await;
    lose(&stage, "/api_keys$");
    stage.apply(&key("ci", "")).await;
    stage.wait_until("the create to be sent", async || stage.count(CREATE) == 1).await;
    delete(&stage, "projectkey/ci").await;
    let told = stage.until("projectkey/ci", "told", |seen| is_told(seen, "RevocationUnsupported")).await;
    let live = stage.live_keys().await;
    assert_eq!(live.len(), 1);
    assert!(message(&told, "Stalled").contains(live[0]["name"].as_str().unwrap()), "{told}");
    assert_eq!(stage.count(CREATE), 1);
    stage.patch("projectkey/ci", json!({"deletion": "Orphan"})).await;
    stage.until_gone("projectkey/ci").await;
}
