//! What needs an operator of its own: one that logs everything.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::keys::key_into;
use crate::stage::{PROJECT, Shared, Stage, compute};
use crate::support::tokens;

/// A stage with a control plane and an operator of its own, for as long as this process lasts.
async fn alone(name: &str, log: &str) -> Stage {
    let shared: &'static Shared = Box::leak(Box::new(Shared::start(log).await));
    Stage::within(shared, name, |_| {}).await
}

const CANARY: &str = "canary-4f1d9c0b7e2a-planted-as-credential";
const REFUSED: &str = "canary-91c3d7aa05be-planted-as-refused";

/// Everything that leaves the operator, by the place that it was found in.
async fn leavings(stage: &Stage) -> BTreeMap<&'static str, String> {
    let cluster = &stage.shared.cluster;
    let kinds = "accounts,clusteraccounts,computes,projectkeys";
    let process = format!("/proc/{}", stage.shared.operator.id());
    let process =
        |file: &str| String::from_utf8_lossy(&std::fs::read(Path::new(&process).join(file)).unwrap()).into_owned();
    let requests = stage.platform.requests(0).into_iter().map(|entry| format!("{entry:?}\n")).collect();
    BTreeMap::from([
        ("log", stage.shared.operator.log()),
        (
            "events",
            cluster
                .kubectl(&["get", "events.events.k8s.io", "-A", "-o", "yaml", "--show-managed-fields"])
                .await
                .unwrap(),
        ),
        ("resources", cluster.kubectl(&["get", kinds, "-A", "-o", "yaml", "--show-managed-fields"]).await.unwrap()),
        ("leases", cluster.kubectl(&["get", "leases", "-A", "-o", "yaml", "--show-managed-fields"]).await.unwrap()),
        ("metrics", reqwest::get(&stage.shared.metrics).await.unwrap().text().await.unwrap()),
        ("audit", std::fs::read_to_string(&stage.shared.audit_log).unwrap()),
        ("requests", requests),
        ("arguments", process("cmdline")),
        ("environment", process("environ")),
    ])
}

fn found<'a>(texts: &BTreeMap<&'a str, String>, token: &str) -> Vec<&'a str> {
    tokens::found(texts.iter().map(|(place, text)| (*place, text)), token)
}

#[tokio::test]
async fn no_token_leaves_the_operator() {
    let stage = alone("canary", "trace").await;
    let tokens = exercise(&stage).await;
    let texts = leavings(&stage).await;
    for (place, word) in [
        ("log", "TRACE"),
        ("events", "KeyCreated"),
        ("resources", "dbplane.dev/keys"),
        ("leases", "dbplane"),
        ("metrics", "dbplane_platform_requests_total"),
        ("audit", "projectkeys"),
        ("requests", "api_keys"),
        ("arguments", "--leader-elect"),
        ("environment", "KUBECONFIG"),
    ] {
        assert!(texts[place].contains(word), "{place} is not what it should be");
    }
    for token in &tokens {
        assert_eq!(found(&texts, token), [""; 0], "a token of {} characters", token.len());
    }
    // The search finds what is there: the credential and the key in use, in Base64 in their Secrets.
    let secrets = BTreeMap::from([("secrets", stage.kubectl(&["get", "secrets", "-o", "yaml"]).await)]);
    let in_use = stage.entry("ci-key", "api-key").await.unwrap();
    let credential = stage.entry("platform-api-key", "api-key").await.unwrap();
    for token in [&in_use, &credential] {
        assert!(tokens.contains(token));
        assert_eq!(found(&secrets, token), ["secrets"]);
    }
    let log = BTreeMap::from([("log", format!("{} Authorization: Bearer {CANARY}", texts["log"]))]);
    assert_eq!(found(&log, CANARY), ["log"]);
}

/// Has every token used, refused, repeated by the platform, minted, replaced and revoked. Returns them all.
async fn exercise(stage: &Stage) -> Vec<String> {
    let form = json!({"key_name": "operator-of-canaries"});
    let made = stage.console(reqwest::Method::POST, "/users/user-ada/api_keys", form).await;
    let credential = made["key"].as_str().unwrap().to_owned();
    let mut tokens = vec![CANARY.to_owned(), REFUSED.to_owned(), credential.clone()];
    // A platform that repeats what it was sent, in an error.
    let echo = json!({"message": format!("no such key: {CANARY}"), "code": CANARY});
    stage.fault(json!({"method": "GET", "path": "^/projects", "status": 401, "body": echo}));
    stage.account_with(CANARY).await;
    stage.until_condition("account/prod", "Stalled", "True", "Unauthorized").await;
    stage.secret("platform-api-key", REFUSED).await;
    stage.until_condition("account/prod", "Stalled", "True", "Unauthorized").await;
    stage.secret("platform-api-key", &credential).await;
    stage.until_ready("account/prod").await;
    let secret = "{name: ci-key, template: {url: 'https://{{ key }}@example.com'}}";
    stage.apply(&key_into("ci", secret, "")).await;
    stage.apply(&key_into("cd", "{name: cd-key}", "")).await;
    let first = stage.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    stage.until_ready("projectkey/cd").await;
    tokens.push(stage.entry("ci-key", "api-key").await.unwrap());
    tokens.push(stage.entry("cd-key", "api-key").await.unwrap());
    let cut = json!({"method": "POST", "path": "/api_keys$", "kind": "cut_body"});
    stage.fault(cut);
    stage.kubectl(&["delete", "secret", "ci-key"]).await;
    stage.until_replaced("projectkey/ci", &first).await;
    tokens.push(stage.entry("ci-key", "api-key").await.unwrap());
    stage.apply(&compute("orders", "br-main-42", "  connection: {secretName: orders-db}\n")).await;
    stage.until_ready("compute/orders").await;
    stage.kubectl(&["delete", "projectkey", "cd", "--wait=false"]).await;
    stage.until_gone("projectkey/cd").await;
    assert_eq!(stage.live_keys().await.iter().filter(|key| key["project_id"] == PROJECT).count(), 1);
    tokens
}
