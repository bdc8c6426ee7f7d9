//! Deletion of whole namespaces, which must leave nothing on the platform.

use serde_json::json;

use super::{Alone, message};
use crate::fixture::{ADMIN, Fixture, PROJECT, compute, key};

const OBJECTS: [&str; 4] = [
    "compute/orders",
    "compute/reader",
    "projectkey/cd",
    "projectkey/ci",
];

/// Creates two Computes, one with a connection Secret, and two ProjectKeys.
async fn declare_resources(fixture: &Fixture, account: &str) {
    let of = |manifest: String| manifest.replace("{name: prod}", account);
    fixture
        .apply(&of(compute(
            "orders",
            "br-main-42",
            "  connection: {secretName: orders-db}\n",
        )))
        .await;
    fixture
        .apply(&of(
            compute("reader", "br-dev-7", "").replace("ReadWrite", "ReadOnly")
        ))
        .await;
    fixture.apply(&of(key("ci", ""))).await;
    fixture.apply(&of(key("cd", ""))).await;
    for object in OBJECTS {
        fixture.until_ready(object).await;
    }
    assert!(
        fixture.get("secret/orders-db").await.is_some()
            && fixture.get("secret/ci-key").await.is_some()
    );
}

async fn assert_nothing_is_left(fixture: &Fixture) {
    let namespace = format!("namespace/{}", fixture.namespace);
    fixture.until_gone(&namespace).await;
    assert!(
        fixture.live_keys().await.is_empty(),
        "{:?}",
        fixture.live_keys().await
    );
    assert!(
        fixture.computes().await.is_empty(),
        "{:?}",
        fixture.computes().await
    );
}

#[tokio::test]
async fn a_namespace_is_deleted_although_the_operator_dies_meanwhile() {
    let mut alone = Alone::new(&["--log", "info,dbplane=debug"]).await;
    let fixtures = tokio::join!(
        alone.fixture("dies-1"),
        alone.fixture("dies-2"),
        alone.fixture("dies-3"),
        alone.fixture("dies-4")
    );
    let fixtures = [fixtures.0, fixtures.1, fixtures.2, fixtures.3];
    let [one, two, three, four] = &fixtures;
    let prod = "{name: prod}";
    tokio::join!(
        declare_resources(one, prod),
        declare_resources(two, prod),
        declare_resources(three, prod),
        declare_resources(four, prod)
    );
    for (before, fixture) in fixtures.iter().enumerate() {
        // After this many deletions, the operator is killed while it waits for the answer to the
        // next one.
        fixture.fault(json!({"method": "DELETE", "after": before, "times": 100, "kind": "delay", "delay_ms": 4000}));
        fixture
            .kubectl(&["delete", "namespace", &fixture.namespace, "--wait=false"])
            .await;
        fixture
            .wait_until("a deletion to begin", async || {
                fixture.count("DELETE") > before
            })
            .await;
        alone.kill();
        // While the operator is down, the finalizer must keep the credentials.
        fixture
            .until("secret/platform-api-key", "being deleted", |seen| {
                seen["metadata"]["deletionTimestamp"].is_string()
            })
            .await;
        fixture.platform.clear_faults();
        alone.start().await;
        assert_nothing_is_left(fixture).await;
    }
}

#[tokio::test]
async fn a_namespace_is_deleted_whose_objects_were_deleted_in_the_wrong_order() {
    let fixture = Fixture::new("wrong-order").await;
    declare_resources(&fixture, "{name: prod}").await;
    // The account is deleted first. It waits, and so does its Secret in a namespace in deletion.
    fixture.delete("account/prod").await;
    let waits = fixture
        .until_condition("account/prod", "Ready", "False", "InUse")
        .await;
    for user in [
        "Compute wrong-order/orders",
        "Compute wrong-order/reader",
        "ProjectKey wrong-order/cd",
    ] {
        assert!(message(&waits, "Ready").contains(user), "{waits}");
    }
    fixture.delete("namespace/wrong-order").await;
    assert_nothing_is_left(&fixture).await;
}

#[tokio::test]
async fn one_command_deletes_everything_credentials_first() {
    let fixture = Fixture::new("one-command").await;
    declare_resources(&fixture, "{name: prod}").await;
    for object in ["secret/platform-api-key", "account/prod"]
        .iter()
        .chain(&OBJECTS)
    {
        fixture.delete(object).await;
    }
    for object in OBJECTS
        .iter()
        .chain(&["account/prod", "secret/platform-api-key"])
    {
        fixture.until_gone(object).await;
    }
    assert!(fixture.live_keys().await.is_empty() && fixture.computes().await.is_empty());
}

#[tokio::test]
async fn a_namespace_is_deleted_whose_credentials_were_deleted_first() {
    let fixture = Fixture::new("no-credentials").await;
    declare_resources(&fixture, "{name: prod}").await;
    // The Secret alone is deleted, so it loses its finalizer. Then nothing can be deleted on the
    // platform.
    fixture
        .kubectl(&["delete", "secret", "platform-api-key", "--timeout=30s"])
        .await;
    fixture.delete("account/prod").await;
    for object in OBJECTS {
        fixture.delete(object).await;
        fixture
            .until_condition(object, "Ready", "Unknown", "AccountNotReady")
            .await;
    }
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (0, 2)
    );
    // Restoring the credentials unblocks all deletions.
    fixture.secret("platform-api-key", ADMIN).await;
    for object in OBJECTS {
        fixture.until_gone(object).await;
    }
    fixture.delete("namespace/no-credentials").await;
    assert_nothing_is_left(&fixture).await;
}

#[tokio::test]
async fn namespaces_are_deleted_whose_account_is_in_another_one() {
    let fixture = Fixture::bare("elsewhere").await;
    let credentials = Fixture::bare("elsewhere-credentials").await;
    credentials.secret("platform-api-key", ADMIN).await;
    let other = Fixture::bare("elsewhere-other").await;
    let served = "  namespaces: {names: [elsewhere, elsewhere-other]}\n";
    fixture
        .cluster_account("everywhere", "elsewhere-credentials", served)
        .await;
    let everywhere = "{name: everywhere, kind: ClusterAccount}";
    declare_resources(&fixture, everywhere).await;
    other
        .apply(
            &key("far", "")
                .replace("{name: prod}", everywhere)
                .replace(PROJECT, &fixture.project),
        )
        .await;
    other.until_ready("projectkey/far").await;
    // Users in all namespaces keep the account, and its condition lists them.
    fixture.delete("clusteraccount/everywhere").await;
    let waits = fixture
        .until_condition("clusteraccount/everywhere", "Ready", "False", "InUse")
        .await;
    for user in [
        "Compute elsewhere/orders",
        "ProjectKey elsewhere/ci",
        "ProjectKey elsewhere-other/far",
    ] {
        assert!(message(&waits, "Ready").contains(user), "{waits}");
    }
    // This order is the worst case: the namespace of the credentials first, then those of the
    // users.
    for namespace in ["elsewhere-credentials", "elsewhere", "elsewhere-other"] {
        fixture
            .kubectl(&["delete", "namespace", namespace, "--wait=false"])
            .await;
    }
    assert_nothing_is_left(&fixture).await;
    assert_nothing_is_left(&other).await;
    fixture.until_gone("clusteraccount/everywhere").await;
    fixture.until_gone("namespace/elsewhere-credentials").await;
}

#[tokio::test]
async fn an_account_in_deletion_is_not_used_for_new_resources() {
    let fixture = Fixture::new("account-goes").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    fixture.delete("account/prod").await;
    fixture
        .until_condition("account/prod", "Ready", "False", "InUse")
        .await;
    fixture.apply(&compute("late", "br-dev-7", "")).await;
    let reported = fixture
        .until_condition("compute/late", "Ready", "Unknown", "AccountNotReady")
        .await;
    assert!(
        message(&reported, "Ready").contains("being deleted"),
        "{reported}"
    );
    assert_eq!(fixture.count("POST"), 1);
    // A resource without anything on the platform must not keep the account.
    fixture.delete("compute/orders").await;
    fixture.until_gone("account/prod").await;
    fixture.delete("compute/late").await;
    fixture.until_gone("compute/late").await;
}
