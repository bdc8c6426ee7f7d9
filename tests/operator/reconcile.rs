//! Reads of the platform on request, long before the next poll.

use reqwest::Method;
use serde_json::{Value, json};

use crate::computes::created;
use crate::fixture::{Fixture, key};

const ASKED: &str = "2026-11-22T22:00:00Z";

async fn ask(fixture: &Fixture, object: &str) {
    fixture
        .annotate(
            object,
            &format!("dbplane.dev/reconcile-requested-at={ASKED}"),
        )
        .await;
}

fn is_handled(object: &Value) -> bool {
    object["status"]["lastHandledReconcileAt"] == ASKED
}

#[tokio::test]
async fn a_compute_is_compared_again() {
    let (fixture, id) = created("look-again", "  size: {fixed: 1}\n").await;
    fixture
        .patch("account/prod", json!({"pollInterval": "1h"}))
        .await;
    // After the interval changes, the project is read once more, and then not for an hour.
    fixture
        .until("account/prod", "observed", |account| {
            account["status"]["observedGeneration"] == account["metadata"]["generation"]
        })
        .await;
    let by_hand = json!({"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 2});
    fixture
        .console(Method::PATCH, &format!("/computes/{id}"), by_hand)
        .await;
    ask(&fixture, "compute/orders").await;
    let seen = fixture
        .until("compute/orders", "looked at", is_handled)
        .await;
    assert_eq!(seen["status"]["computeID"], id);
    fixture.event("compute/orders", "Changed").await;
    fixture
        .until("compute/orders", "as declared", |compute| {
            compute["status"]["size"] == "1"
        })
        .await;
}

/// A single 401 may be transient: the operator soon asks again, and at once on request.
#[tokio::test]
async fn the_credentials_of_an_account_are_checked_again() {
    let fixture = Fixture::bare("check-again").await;
    fixture.fault(json!({"method": "GET", "path": "^/projects$", "status": 401}));
    fixture.account().await;
    fixture.until_ready("account/prod").await;
    ask(&fixture, "account/prod").await;
    fixture.until("account/prod", "checked", is_handled).await;
}

#[tokio::test]
async fn a_key_is_checked_again() {
    let fixture = Fixture::new("check-key-again").await;
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("projectkey/ci").await;
    ask(&fixture, "projectkey/ci").await;
    fixture.until("projectkey/ci", "checked", is_handled).await;
}
