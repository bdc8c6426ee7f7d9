//! Looking at the platform anew because people ask for it, long before that would be due.

use reqwest::Method;
use serde_json::{Value, json};

use crate::computes::created;
use crate::fixture::{Fixture, key};

const ASKED: &str = "2026-11-22T22:00:00Z";

async fn ask(fixture: &Fixture, object: &str) {
    fixture.kubectl(&["annotate", object, &format!("dbplane.dev/reconcile-requested-at={ASKED}")]).await;
}

fn is_handled(object: &Value) -> bool {
    object["status"]["lastHandledReconcileAt"] == ASKED
}

#[tokio::test]
async fn a_compute_is_compared_anew() {
    let (fixture, id) = created("look-again", "  size: {fixed: 1}\n").await;
    fixture.patch("account/prod", json!({"pollInterval": "1h"})).await;
    // With the new interval the project is read once more, and then for an hour not.
    fixture
        .until("account/prod", "observed", |account| {
            account["status"]["observedGeneration"] == account["metadata"]["generation"]
        })
        .await;
    let by_hand = json!({"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 2});
    fixture.console(Method::PATCH, &format!("/computes/{id}"), by_hand).await;
    ask(&fixture, "compute/orders").await;
    let seen = fixture.until("compute/orders", "looked at", is_handled).await;
    assert_eq!(seen["status"]["computeID"], id);
    fixture.event("compute/orders", "Changed").await;
    fixture.until("compute/orders", "as declared", |compute| compute["status"]["size"] == "1").await;
}

/// One 401 may be a mistake of a moment: the platform is asked again soon, and at once where a person asks for that.
#[tokio::test]
async fn the_credentials_of_an_account_are_checked_anew() {
    let fixture = Fixture::bare("check-again").await;
    fixture.fault(json!({"method": "GET", "path": "^/projects$", "status": 401}));
    fixture.account().await;
    fixture.until_ready("account/prod").await;
    ask(&fixture, "account/prod").await;
    fixture.until("account/prod", "checked", is_handled).await;
}

#[tokio::test]
async fn a_key_is_checked_anew() {
    let fixture = Fixture::new("check-key-again").await;
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("projectkey/ci").await;
    ask(&fixture, "projectkey/ci").await;
    fixture.until("projectkey/ci", "checked", is_handled).await;
}
