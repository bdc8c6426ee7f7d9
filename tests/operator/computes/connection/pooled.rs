//! The connection Secret of a pooled connection.

use serde_json::json;

use super::{entry, role};
use crate::computes::{create, message};
use crate::fixture::Fixture;

const POOLED: &str = "  connection: {secretName: orders-db, database: shop, credentialsFrom: {name: orders-role}, pooled: true}\n";

#[tokio::test]
async fn it_has_the_pooled_host_if_the_platform_reports_one() {
    let fixture = Fixture::new("pooled").await;
    role(&fixture, "app", "p").await;
    create(&fixture, POOLED).await;
    let seen = fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    let direct = seen["status"]["host"].as_str().unwrap();
    let pooled = direct.replacen('.', "-pooler.", 1);
    assert_eq!(entry(&fixture, "host").await, pooled);
    assert_eq!(
        (
            entry(&fixture, "pooled-host").await,
            entry(&fixture, "direct-host").await
        ),
        (pooled.clone(), direct.into())
    );
    let uri = |host: &str| format!("postgresql://app:p@{host}:5432/shop?sslmode=require");
    assert_eq!(
        (
            entry(&fixture, "uri").await,
            entry(&fixture, "direct-uri").await
        ),
        (uri(&pooled), uri(direct))
    );
}

#[tokio::test]
async fn a_missing_pooled_host_is_reported() {
    let fixture = Fixture::minimal("unpooled").await;
    role(&fixture, "app", "p").await;
    create(&fixture, POOLED).await;
    let seen = fixture
        .until_condition("compute/orders", "Synced", "False", "ConnectionIncomplete")
        .await;
    assert!(
        message(&seen, "Synced").contains("no pooled host"),
        "{seen}"
    );
    let host = seen["status"]["host"].as_str().unwrap();
    assert_eq!(
        (
            entry(&fixture, "host").await,
            entry(&fixture, "pooled-host").await
        ),
        (host.to_owned(), String::new())
    );
    fixture
        .patch("compute/orders", json!({"connection": {"pooled": false}}))
        .await;
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
}
