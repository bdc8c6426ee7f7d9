//! Accounts whose credentials are the key of a ProjectKey.

use serde_json::{Value, json};

use crate::fixture::{Fixture, PROJECT, compute, condition, key};

/// The Account `team`, or a ClusterAccount for `for_namespace`, with the key from the ProjectKey
/// `team`.
fn team(fixture: &Fixture, for_namespace: Option<&str>) -> String {
    let (kind, name, reference, more) = match for_namespace {
        None => (
            "Account",
            "team".to_owned(),
            "{name: team-key}".to_owned(),
            String::new(),
        ),
        Some(admitted) => {
            let reference = format!("{{namespace: {}, name: team-key}}", fixture.namespace);
            (
                "ClusterAccount",
                admitted.to_owned(),
                reference,
                format!("  namespaces: {{names: [{admitted}]}}\n"),
            )
        }
    };
    let url = fixture.platform.base_url();
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: {kind}
metadata: {{name: {name}}}
spec:
  baseURL: {url}
  apiKeySecretRef: {reference}
  pollInterval: 5s
{more}"
    )
}

/// An administrator's Account, a ProjectKey, and an Account with this key that a Compute uses.
async fn chain(name: &str) -> Fixture {
    let fixture = Fixture::new(name).await;
    fixture.apply(&key("team", "")).await;
    fixture.apply(&team(&fixture, None)).await;
    fixture
        .apply(&compute("orders", "br-main-42", "").replace("{name: prod}", "{name: team}"))
        .await;
    fixture.until_ready("compute/orders").await;
    fixture
}

/// The ids of the keys that were used to change computes.
fn changed_with(fixture: &Fixture) -> Vec<Option<i64>> {
    let endpoints = format!("/projects/{}/endpoints", fixture.project);
    let requests = fixture.platform.requests(0).into_iter();
    requests
        .filter(|entry| entry.method != "GET" && entry.path.starts_with(&endpoints))
        .map(|entry| entry.key_id)
        .collect()
}

fn refused(fixture: &Fixture) -> usize {
    fixture
        .platform
        .requests(0)
        .iter()
        .filter(|entry| entry.status == Some(401))
        .count()
}

async fn until_in_use(fixture: &Fixture, by: &str) {
    let waits = fixture
        .until_condition("projectkey/team", "Ready", "False", "InUse")
        .await;
    let message = condition(&waits, "Ready").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(message.contains(by), "{message}");
}

async fn assert_nothing_is_left(fixture: &Fixture) {
    assert_eq!(
        (fixture.live_keys().await, fixture.computes().await),
        (Vec::new(), Vec::<Value>::new())
    );
    assert_eq!(refused(fixture), 0, "{}", fixture.requests().join("\n"));
}

#[tokio::test]
async fn a_key_stays_as_long_as_an_account_needs_it() {
    let fixture = chain("chain").await;
    let id = fixture.get("projectkey/team").await.unwrap()["status"]["keyID"].as_i64();
    assert_eq!(
        changed_with(&fixture),
        [id],
        "the compute was created with the project's key"
    );
    fixture.delete("projectkey/team").await;
    until_in_use(
        &fixture,
        "Account chain/team, which Compute chain/orders work through",
    )
    .await;
    // The value of `deletion` makes no difference, because the Secret is deleted with the resource
    // anyway.
    fixture
        .patch("projectkey/team", json!({"deletion": "Orphan"}))
        .await;
    fixture
        .until("projectkey/team", "seen", |seen| {
            seen["status"]["observedGeneration"] == 3
        })
        .await;
    until_in_use(&fixture, "Compute chain/orders").await;
    fixture
        .patch("projectkey/team", json!({"deletion": "Revoke"}))
        .await;
    // The account still works.
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .until("compute/orders", "changed", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    fixture.until_ready("compute/orders").await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.until_gone("projectkey/team").await;
    assert_eq!(changed_with(&fixture), [id; 3]);
    assert_nothing_is_left(&fixture).await;
    fixture
        .until_condition("account/team", "Stalled", "True", "CredentialsMissing")
        .await;
}

#[tokio::test]
async fn a_namespace_with_a_key_and_the_account_that_works_with_it_is_deleted() {
    let fixture = chain("chain-goes").await;
    fixture.delete("namespace/chain-goes").await;
    fixture.until_gone("namespace/chain-goes").await;
    assert_nothing_is_left(&fixture).await;
    assert_eq!(fixture.count("DELETE"), 2);
}

#[tokio::test]
async fn a_key_in_another_namespace_stays_as_long_as_a_team_needs_it() {
    let admin = Fixture::new("chain-admin").await;
    admin.apply(&key("team", "")).await;
    admin.apply(&team(&admin, Some("chain-team"))).await;
    let team = Fixture::bare("chain-team").await;
    let account = "{kind: ClusterAccount, name: chain-team}";
    let orders = compute("orders", "br-main-42", "")
        .replace("{name: prod}", account)
        .replace(PROJECT, &admin.project);
    team.apply(&orders).await;
    team.until_ready("compute/orders").await;
    admin.delete("namespace/chain-admin").await;
    until_in_use(
        &admin,
        "ClusterAccount chain-team, which Compute chain-team/orders work through",
    )
    .await;
    team.patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    team.until("compute/orders", "changed", |seen| {
        seen["status"]["size"] == "2"
    })
    .await;
    team.delete("namespace/chain-team").await;
    admin.until_gone("namespace/chain-team").await;
    admin.until_gone("namespace/chain-admin").await;
    assert_nothing_is_left(&admin).await;
    admin
        .kubectl(&["delete", "clusteraccount", "chain-team"])
        .await;
}
