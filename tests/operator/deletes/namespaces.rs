//! Namespaces that are deleted with everything in them: they go, and nothing is left on the platform.

use serde_json::json;

use super::{Alone, delete, message};
use crate::keys::key;
use crate::stage::{ADMIN, Stage, compute};

const OBJECTS: [&str; 4] = ["compute/orders", "compute/reader", "projectkey/cd", "projectkey/ci"];

/// Two Computes, one with its connection in a Secret, and two ProjectKeys of an account.
async fn furnish(stage: &Stage, account: &str) {
    let of = |manifest: String| manifest.replace("{name: prod}", account);
    stage.apply(&of(compute("orders", "br-main-42", "  connection: {secretName: orders-db}\n"))).await;
    stage.apply(&of(compute("reader", "br-dev-7", "").replace("ReadWrite", "ReadOnly"))).await;
    stage.apply(&of(key("ci", ""))).await;
    stage.apply(&of(key("cd", ""))).await;
    for object in OBJECTS {
        stage.until_ready(object).await;
    }
    assert!(stage.get("secret/orders-db").await.is_some() && stage.get("secret/ci-key").await.is_some());
}

async fn assert_nothing_is_left(stage: &Stage) {
    let namespace = format!("namespace/{}", stage.namespace);
    stage.until_gone(&namespace).await;
    assert!(stage.live_keys().await.is_empty(), "{:?}", stage.live_keys().await);
    assert!(stage.computes().await.is_empty(), "{:?}", stage.computes().await);
}

#[tokio::test]
async fn a_namespace_is_deleted_although_the_operator_dies_meanwhile() {
    let mut alone = Alone::new(&["--log", "info,dbplane=debug"]).await;
    let stages =
        tokio::join!(alone.stage("dies-1"), alone.stage("dies-2"), alone.stage("dies-3"), alone.stage("dies-4"));
    let stages = [stages.0, stages.1, stages.2, stages.3];
    let [one, two, three, four] = &stages;
    let prod = "{name: prod}";
    tokio::join!(furnish(one, prod), furnish(two, prod), furnish(three, prod), furnish(four, prod));
    for (before, stage) in stages.iter().enumerate() {
        // So many deletions are made; the operator dies waiting for the answer to the next.
        stage.fault(json!({"method": "DELETE", "after": before, "times": 100, "kind": "delay", "delay_ms": 4000}));
        stage.kubectl(&["delete", "namespace", &stage.namespace, "--wait=false"]).await;
        stage.wait_until("a deletion to begin", async || stage.count("DELETE") > before).await;
        alone.kill();
        // Without an operator the credentials stay as long as they are needed.
        stage
            .until("secret/platform-api-key", "being deleted", |seen| seen["metadata"]["deletionTimestamp"].is_string())
            .await;
        stage.platform.clear_faults();
        alone.start().await;
        assert_nothing_is_left(stage).await;
    }
}

#[tokio::test]
async fn a_namespace_is_deleted_whose_objects_were_deleted_in_the_wrong_order() {
    let stage = Stage::new("wrong-order").await;
    furnish(&stage, "{name: prod}").await;
    // The account first: it waits, and so does its Secret in a namespace that is being deleted.
    delete(&stage, "account/prod").await;
    let waits = stage.until_condition("account/prod", "Ready", "False", "InUse").await;
    for user in ["Compute wrong-order/orders", "Compute wrong-order/reader", "ProjectKey wrong-order/cd"] {
        assert!(message(&waits, "Ready").contains(user), "{waits}");
    }
    stage.kubectl(&["delete", "namespace", "wrong-order", "--wait=false"]).await;
    assert_nothing_is_left(&stage).await;
}

#[tokio::test]
async fn one_command_deletes_everything_credentials_first() {
    let stage = Stage::new("one-command").await;
    furnish(&stage, "{name: prod}").await;
    for object in ["secret/platform-api-key", "account/prod"].iter().chain(&OBJECTS) {
        delete(&stage, object).await;
    }
    for object in OBJECTS.iter().chain(&["account/prod", "secret/platform-api-key"]) {
        stage.until_gone(object).await;
    }
    assert!(stage.live_keys().await.is_empty() && stage.computes().await.is_empty());
}

#[tokio::test]
async fn a_namespace_is_deleted_whose_credentials_were_deleted_first() {
    let stage = Stage::new("no-credentials").await;
    furnish(&stage, "{name: prod}").await;
    // Nothing that needs the Secret goes with it, so it is let go, and nothing can be deleted on the platform.
    stage.kubectl(&["delete", "secret", "platform-api-key", "--timeout=30s"]).await;
    delete(&stage, "account/prod").await;
    for object in OBJECTS {
        delete(&stage, object).await;
        stage.until_condition(object, "Ready", "Unknown", "AccountNotReady").await;
    }
    assert_eq!((stage.count("DELETE"), stage.computes().await.len()), (0, 2));
    // Credentials that are put back let everything go.
    stage.secret("platform-api-key", ADMIN).await;
    for object in OBJECTS {
        stage.until_gone(object).await;
    }
    stage.kubectl(&["delete", "namespace", "no-credentials", "--wait=false"]).await;
    assert_nothing_is_left(&stage).await;
}

#[tokio::test]
async fn namespaces_are_deleted_whose_account_is_in_another_one() {
    let stage = Stage::bare("elsewhere").await;
    let credentials = Stage::bare("elsewhere-credentials").await;
    credentials.secret("platform-api-key", ADMIN).await;
    let other = Stage::bare("elsewhere-other").await;
    let account = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: everywhere}}
spec:
  baseURL: {}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{namespace: elsewhere-credentials, name: platform-api-key, key: api-key}}
  namespaces: {{names: [elsewhere, elsewhere-other]}}
  pollInterval: 5s
",
        stage.platform.base_url()
    );
    stage.apply(&account).await;
    let everywhere = "{name: everywhere, kind: ClusterAccount}";
    furnish(&stage, everywhere).await;
    other.apply(&key("far", "").replace("{name: prod}", everywhere)).await;
    other.until_ready("projectkey/far").await;
    // Its users of all namespaces hold it, and are named.
    delete(&stage, "clusteraccount/everywhere").await;
    let waits = stage.until_condition("clusteraccount/everywhere", "Ready", "False", "InUse").await;
    for user in ["Compute elsewhere/orders", "ProjectKey elsewhere/ci", "ProjectKey elsewhere-other/far"] {
        assert!(message(&waits, "Ready").contains(user), "{waits}");
    }
    // What is deleted last began first: the namespace of the credentials, then those of the users.
    for namespace in ["elsewhere-credentials", "elsewhere", "elsewhere-other"] {
        stage.kubectl(&["delete", "namespace", namespace, "--wait=false"]).await;
    }
    assert_nothing_is_left(&stage).await;
    assert_nothing_is_left(&other).await;
    stage.until_gone("clusteraccount/everywhere").await;
    stage.until_gone("namespace/elsewhere-credentials").await;
}

#[tokio::test]
async fn an_account_that_is_being_deleted_is_used_for_nothing_new() {
    let stage = Stage::new("account-goes").await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_ready("compute/orders").await;
    delete(&stage, "account/prod").await;
    stage.until_condition("account/prod", "Ready", "False", "InUse").await;
    stage.apply(&compute("late", "br-dev-7", "")).await;
    let told = stage.until_condition("compute/late", "Ready", "Unknown", "AccountNotReady").await;
    assert!(message(&told, "Ready").contains("being deleted"), "{told}");
    assert_eq!(stage.count("POST"), 1);
    // Nor does what has nothing on the platform hold it.
    delete(&stage, "compute/orders").await;
    stage.until_gone("account/prod").await;
    delete(&stage, "compute/late").await;
    stage.until_gone("compute/late").await;
}
