//! Tests that take at least the settle time, run concurrently.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::{created, message, writes};
use crate::fixture::{Fixture, compute};

/// The operator's settle time less a second, for the resolution of clocks.
const SETTLE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn absence_is_proof_only_after_the_settle_time() {
    tokio::join!(
        a_dropped_create_is_repeated_when_its_absence_is_certain(),
        a_failed_create_is_repeated_when_its_absence_is_certain(),
        a_compute_deleted_outside_of_dbplane_is_recreated(),
        a_compute_deleted_outside_of_dbplane_is_only_reported_if_the_spec_declares_it(),
        an_imported_compute_deleted_outside_of_dbplane_is_reported(),
        an_unreadable_platform_is_reported(),
        an_unresolved_create_is_resolved_before_the_resource_is_deleted(),
    );
}

async fn a_dropped_create_is_repeated_when_its_absence_is_certain() {
    let fixture = Fixture::new("create-dropped").await;
    fixture.fault(json!({"method": "POST", "kind": "drop"}));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .until_condition("compute/orders", "Reconciling", "True", "ConfirmingCreate")
        .await;
    let begun = Instant::now();
    fixture
        .wait_until("the second create", async || fixture.count("POST") == 2)
        .await;
    assert!(
        begun.elapsed() + Duration::from_secs(4) >= SETTLE,
        "after {:?}",
        begun.elapsed()
    );
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 1)
    );
}

async fn a_failed_create_is_repeated_when_its_absence_is_certain() {
    let fixture = Fixture::new("create-failed").await;
    fixture.fault(json!({"method": "POST", "status": 500, "body": "<html>broken</html>"}));
    fixture
        .apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    fixture
        .until_condition("compute/reader", "Reconciling", "True", "ConfirmingCreate")
        .await;
    fixture.until_ready("compute/reader").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 1)
    );
}

async fn a_compute_deleted_outside_of_dbplane_is_recreated() {
    let (fixture, id) = created(
        "recreate",
        "  connection: {secretName: orders-db, template: {URL: 'postgresql://{{ host }}'}}\n",
    )
    .await;
    fixture
        .console(Method::DELETE, &format!("/computes/{id}"), json!({}))
        .await;
    fixture
        .until_condition("compute/orders", "Ready", "Unknown", "ComputeNotFound")
        .await;
    let begun = Instant::now();
    fixture
        .wait_until("another create", async || fixture.count("POST") == 2)
        .await;
    assert!(
        begun.elapsed() + Duration::from_secs(4) >= SETTLE,
        "after {:?}",
        begun.elapsed()
    );
    let ready = fixture.until_ready("compute/orders").await;
    assert_ne!(ready["status"]["computeID"], *id);
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 1)
    );
    let url = format!("postgresql://{}", ready["status"]["host"].as_str().unwrap());
    let follows = async || fixture.entry("orders-db", "URL").await.as_ref() == Some(&url);
    fixture
        .wait_until("the connection Secret to follow the host", follows)
        .await;
    let event = fixture.event("compute/orders", "Recreated").await;
    assert!(
        event.contains(&id) && event.contains("host is another one"),
        "{event}"
    );
}

async fn a_compute_deleted_outside_of_dbplane_is_only_reported_if_the_spec_declares_it() {
    let (fixture, id) = created("report-gone", "  onMissing: Report\n").await;
    fixture
        .console(Method::DELETE, &format!("/computes/{id}"), json!({}))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "ComputeNotFound")
        .await;
    assert!(
        message(&stalled, "Stalled").contains("onMissing"),
        "{stalled}"
    );
    assert_eq!(fixture.count("POST"), 1);
    fixture
        .patch("compute/orders", json!({"onMissing": "Recreate"}))
        .await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        (fixture.count("POST"), fixture.computes().await.len()),
        (2, 1)
    );
}

async fn an_imported_compute_deleted_outside_of_dbplane_is_reported() {
    let fixture = Fixture::new("import-gone").await;
    let id = super::by_hand(&fixture, "br-main-42", "read_write").await;
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            &format!("  computeID: {id}\n"),
        ))
        .await;
    fixture.until_ready("compute/orders").await;
    fixture
        .console(Method::DELETE, &format!("/computes/{id}"), json!({}))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "ComputeNotFound")
        .await;
    assert!(message(&stalled, "Stalled").contains(&id), "{stalled}");
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    assert_eq!((fixture.count("POST"), fixture.count("DELETE")), (0, 1));
}

async fn an_unreadable_platform_is_reported() {
    let (fixture, _) = created("unreadable", "").await;
    fixture.fault(json!({"kind": "drop", "times": 1_000_000}));
    let reported = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "PlatformUnreachable")
        .await;
    assert!(
        reported["status"]["host"].is_string(),
        "what was seen stays: {reported}"
    );
    fixture.platform.clear_faults();
    fixture.until_ready("compute/orders").await;
    assert_eq!(writes(&fixture).len(), 1);
}

async fn an_unresolved_create_is_resolved_before_the_resource_is_deleted() {
    let fixture = Fixture::new("create-then-delete").await;
    fixture.fault(json!({"method": "POST", "kind": "drop"}));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .until_condition("compute/orders", "Reconciling", "True", "ConfirmingCreate")
        .await;
    fixture.delete("compute/orders").await;
    let begun = Instant::now();
    fixture.until_gone("compute/orders").await;
    assert!(
        begun.elapsed() + Duration::from_secs(4) >= SETTLE,
        "after {:?}",
        begun.elapsed()
    );
    assert_eq!(
        (
            fixture.count("POST"),
            fixture.count("DELETE"),
            fixture.computes().await.len()
        ),
        (1, 0, 0)
    );
}
