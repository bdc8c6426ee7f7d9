//! What takes the settle time or longer, all at once.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::{created, delete, message, writes};
use crate::stage::{Stage, compute};

/// What the operator is started with, less a second for the clocks' grain.
const SETTLE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn absence_proves_something_only_after_the_settle_time() {
    tokio::join!(
        a_create_that_was_dropped_is_made_once_it_is_certain(),
        a_create_that_failed_is_made_once_it_is_certain(),
        a_compute_that_someone_else_deleted_is_recreated(),
        an_imported_compute_that_someone_else_deleted_is_reported(),
        a_platform_that_can_no_longer_be_read_is_reported(),
        an_unresolved_create_is_resolved_before_the_resource_is_deleted(),
    );
}

async fn a_create_that_was_dropped_is_made_once_it_is_certain() {
    let stage = Stage::new("create-dropped").await;
    stage.fault(json!({"method": "POST", "kind": "drop"}));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_condition("compute/orders", "Reconciling", "True", "ConfirmingCreate").await;
    let begun = Instant::now();
    stage.wait_until("the second create", async || stage.count("POST") == 2).await;
    assert!(begun.elapsed() + Duration::from_secs(4) >= SETTLE, "after {:?}", begun.elapsed());
    stage.until_ready("compute/orders").await;
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 1));
}

async fn a_create_that_failed_is_made_once_it_is_certain() {
    let stage = Stage::new("create-failed").await;
    stage.fault(json!({"method": "POST", "status": 500, "body": "<html>broken</html>"}));
    stage.apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly")).await;
    stage.until_condition("compute/reader", "Reconciling", "True", "ConfirmingCreate").await;
    stage.until_ready("compute/reader").await;
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 1));
}

async fn a_compute_that_someone_else_deleted_is_recreated() {
    let (stage, id) = created("recreate", "  connection: {secretName: orders-db}\n").await;
    stage.console(Method::DELETE, &format!("/computes/{id}"), json!({})).await;
    stage.until_condition("compute/orders", "Ready", "Unknown", "ComputeNotFound").await;
    let begun = Instant::now();
    stage.wait_until("another create", async || stage.count("POST") == 2).await;
    assert!(begun.elapsed() + Duration::from_secs(4) >= SETTLE, "after {:?}", begun.elapsed());
    let ready = stage.until_ready("compute/orders").await;
    assert_ne!(ready["status"]["computeID"], *id);
    assert_eq!((stage.count("POST"), stage.computes().await.len()), (2, 1));
}

async fn an_imported_compute_that_someone_else_deleted_is_reported() {
    let stage = Stage::new("import-gone").await;
    let id = super::by_hand(&stage, "br-main-42", "read_write").await;
    stage.apply(&compute("orders", "br-main-42", &format!("  computeID: {id}\n"))).await;
    stage.until_ready("compute/orders").await;
    stage.console(Method::DELETE, &format!("/computes/{id}"), json!({})).await;
    let stalled = stage.until_condition("compute/orders", "Stalled", "True", "ComputeNotFound").await;
    assert!(message(&stalled, "Stalled").contains(&id), "{stalled}");
    delete(&stage, "compute/orders").await;
    stage.until_gone("compute/orders").await;
    assert_eq!(writes(&stage).len(), 0);
}

async fn a_platform_that_can_no_longer_be_read_is_reported() {
    let (stage, _) = created("unreadable", "").await;
    stage.fault(json!({"kind": "drop", "times": 1_000_000}));
    let told = stage.until_condition("compute/orders", "Ready", "Unknown", "PlatformUnreachable").await;
    assert!(told["status"]["host"].is_string(), "what was seen stays: {told}");
    stage.platform.clear_faults();
    stage.until_ready("compute/orders").await;
    assert_eq!(writes(&stage).len(), 1);
}

async fn an_unresolved_create_is_resolved_before_the_resource_is_deleted() {
    let stage = Stage::new("create-then-delete").await;
    stage.fault(json!({"method": "POST", "kind": "drop"}));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_condition("compute/orders", "Reconciling", "True", "ConfirmingCreate").await;
    delete(&stage, "compute/orders").await;
    let begun = Instant::now();
    stage.until_gone("compute/orders").await;
    assert!(begun.elapsed() + Duration::from_secs(4) >= SETTLE, "after {:?}", begun.elapsed());
    assert_eq!((stage.count("POST"), stage.count("DELETE"), stage.computes().await.len()), (1, 0, 0));
}
