//! A resource is deleted while the outcome of its create is unknown: the result must be found and
//! deleted first.

use dbplane_simulator::world::Profile;
use serde_json::json;

use super::{is_reported, message};
use crate::fixture::{Fixture, compute, key};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";

/// Loses the next create's answer, and delays it so that the resource can be deleted before.
fn lose(fixture: &Fixture, path: &str) {
    fixture.fault(json!({"method": "POST", "path": path, "kind": "lose_answer", "delay_ms": 1500}));
}

#[tokio::test]
async fn a_create_in_progress_is_resolved_before_the_resource_is_deleted() {
    tokio::join!(
        a_compute("open-compute", Profile::Default),
        a_compute("open-compute-minimal", Profile::Minimal),
        a_key(),
        a_key_that_cannot_be_revoked(),
    );
}

async fn a_compute(name: &str, profile: Profile) {
    let fixture = Fixture::on(name, |options| options.profile = profile).await;
    fixture.account().await;
    fixture.until_ready("account/prod").await;
    lose(&fixture, "/endpoints$");
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .wait_until("the create to be sent", async || fixture.count("POST") == 1)
        .await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    let deleted = fixture.platform.requests(0);
    let deleted = deleted
        .iter()
        .filter(|entry| entry.method == "DELETE" && entry.status == Some(200))
        .count();
    assert_eq!(
        (
            fixture.count("POST"),
            deleted,
            fixture.computes().await.len()
        ),
        (1, 1, 0),
        "{:?}",
        fixture.platform.requests(0)
    );
}

async fn a_key() {
    let fixture = Fixture::new("open-key").await;
    fixture.until_ready("account/prod").await;
    lose(&fixture, "/api_keys$");
    fixture.apply(&key("ci", "")).await;
    fixture
        .wait_until("the create to be sent", async || fixture.count(CREATE) == 1)
        .await;
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    assert_eq!(
        (
            fixture.count(CREATE),
            fixture.count("DELETE"),
            fixture.live_keys().await.len()
        ),
        (1, 1, 0)
    );
}

async fn a_key_that_cannot_be_revoked() {
    let fixture = Fixture::minimal("open-key-minimal").await;
    fixture.until_ready("account/prod").await;
    lose(&fixture, "/api_keys$");
    fixture.apply(&key("ci", "")).await;
    fixture
        .wait_until("the create to be sent", async || fixture.count(CREATE) == 1)
        .await;
    fixture.delete("projectkey/ci").await;
    let reported = fixture
        .until("projectkey/ci", "reported", |seen| {
            is_reported(seen, "RevocationUnsupported")
        })
        .await;
    let live = fixture.live_keys().await;
    assert_eq!(live.len(), 1);
    assert!(
        message(&reported, "Stalled").contains(live[0]["name"].as_str().unwrap()),
        "{reported}"
    );
    assert_eq!(fixture.count(CREATE), 1);
    fixture
        .patch("projectkey/ci", json!({"deletion": "Orphan"}))
        .await;
    fixture.until_gone("projectkey/ci").await;
}
