//! Resources that users and tools rewrite: replaced, without annotations, or with old annotations.

use dbplane::decide::names::{FINALIZER, RECORD};
use serde_json::{Value, json};

use crate::computes::{is_restarted, polls, writes};
use crate::creates::{id, reader};
use crate::fixture::{Fixture, compute, condition, key};

/// Waits until a resource has its record and its finalizer again.
async fn restored(fixture: &Fixture, object: &str, record: &Value) -> Value {
    let seen = fixture
        .until(object, "as it was recorded", |seen| {
            seen["metadata"]["annotations"][RECORD] == *record
                && seen["metadata"]["finalizers"] == json!([FINALIZER])
        })
        .await;
    assert!(condition(&seen, "Stalled").is_none(), "{seen}");
    seen
}

fn record(object: &Value) -> Value {
    assert!(
        object["metadata"]["annotations"][RECORD].is_string(),
        "{object}"
    );
    object["status"]["record"].clone()
}

#[tokio::test]
async fn a_replaced_resource_keeps_its_objects_on_the_platform() {
    let fixture = Fixture::new("replaced").await;
    let manifests = [
        (
            "compute/orders",
            compute("orders", "br-main-42", "  restartToken: one\n"),
        ),
        ("compute/reader", reader("reader", "")),
        ("projectkey/ci", key("ci", "")),
    ];
    for (_, manifest) in &manifests {
        fixture.apply(manifest).await;
    }
    fixture.until_ready("compute/orders").await;
    fixture
        .patch("compute/orders", json!({"restartToken": "two"}))
        .await;
    fixture
        .until("compute/orders", "restarted", |seen| {
            is_restarted(seen, "two")
        })
        .await;
    for (object, manifest) in &manifests {
        let ready = fixture.until_ready(object).await;
        let before = (record(&ready), writes(&fixture).len());
        fixture
            .replace(&manifest.replace("restartToken: one", "restartToken: two"))
            .await;
        let after = restored(&fixture, object, &before.0).await;
        for field in ["computeID", "keyID"] {
            assert_eq!(after["status"][field], ready["status"][field], "{object}");
        }
        polls(&fixture, 1).await;
        fixture.until_ready(object).await;
        assert_eq!(
            writes(&fixture).len(),
            before.1,
            "{object}: nothing is created, restarted or revoked"
        );
    }
    for (object, _) in &manifests {
        fixture.delete(object).await;
        fixture.until_gone(object).await;
    }
    assert_eq!(fixture.on_the_platform().await, (0, 0));
}

#[tokio::test]
async fn an_older_record_is_ignored() {
    let fixture = Fixture::new("older").await;
    fixture.apply(&reader("reader", "")).await;
    let first = fixture.until_ready("compute/reader").await;
    fixture
        .console(
            reqwest::Method::DELETE,
            &format!("/computes/{}", id(&first)),
            json!({}),
        )
        .await;
    let second = fixture.until("compute/reader", "created again", |seen| {
        seen["status"]["computeID"] != first["status"]["computeID"]
    });
    second.await;
    let second = fixture.until_ready("compute/reader").await;
    assert_ne!(id(&second), id(&first));
    let older = format!("{RECORD}={}", record(&first).as_str().unwrap());
    fixture.annotate("compute/reader", &older).await;
    restored(&fixture, "compute/reader", &record(&second)).await;
    fixture
        .annotate("compute/reader", &format!("{RECORD}-"))
        .await;
    restored(&fixture, "compute/reader", &record(&second)).await;
    polls(&fixture, 1).await;
    assert_eq!(
        id(&fixture.until_ready("compute/reader").await),
        id(&second)
    );
    assert_eq!(
        (fixture.computes().await.len(), fixture.count("POST")),
        (1, 2),
        "{:?}",
        writes(&fixture)
    );
}
