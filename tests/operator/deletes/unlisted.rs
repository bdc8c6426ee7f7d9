//! A successful list that lacks a compute: dbplane must neither drop the binding nor create another
//! compute.

use dbplane_simulator::world::Profile;
use reqwest::Method;
use serde_json::{Value, json};

use super::message;
use crate::fixture::{Fixture, compute};

#[tokio::test]
async fn a_list_without_the_compute_proves_nothing() {
    tokio::join!(
        is_deleted_anyway(
            "unlisted-null",
            Profile::Default,
            json!({"endpoints": null})
        ),
        is_deleted_anyway("unlisted-empty", Profile::Minimal, json!({"endpoints": []})),
        is_not_created_again("unlisted", Profile::Default),
        is_not_created_again("unlisted-minimal", Profile::Minimal),
        is_not_created_again("unlisted-public", Profile::Public),
    );
}

/// A ready replica that later lists omit.
async fn unlisted(name: &str, profile: Profile, list: Value) -> (Fixture, String) {
    let fixture = Fixture::on(name, |options| options.profile = profile).await;
    fixture.account().await;
    fixture
        .apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    let ready = fixture.until_ready("compute/reader").await;
    fixture.fault(json!({"method": "GET", "path": "/endpoints$", "status": 200, "body": list, "times": 1_000_000}));
    (
        fixture,
        ready["status"]["computeID"].as_str().unwrap().to_owned(),
    )
}

async fn is_deleted_anyway(name: &str, profile: Profile, list: Value) {
    let (fixture, _) = unlisted(name, profile, list).await;
    fixture.delete("compute/reader").await;
    fixture.until_gone("compute/reader").await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (1, 0),
        "{:?}",
        fixture.requests()
    );
}

async fn is_not_created_again(name: &str, profile: Profile) {
    let (fixture, id) = unlisted(name, profile, json!({"endpoints": []})).await;
    let asked = fixture
        .until("compute/reader", "known to exist", |seen| {
            message(seen, "Ready").contains("exists, but is not in")
        })
        .await;
    assert_eq!(asked["status"]["computeID"], *id);
    fixture.platform.clear_faults();
    fixture.until_ready("compute/reader").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (1, 1),
        "{:?}",
        fixture.requests()
    );
    fixture
        .console(Method::DELETE, &format!("/computes/{id}"), json!({}))
        .await;
    fixture
        .wait_until("another create", async || fixture.count("POST") == 2)
        .await;
    fixture.until_ready("compute/reader").await;
    assert_eq!(fixture.computes().await.len(), 1);
}
