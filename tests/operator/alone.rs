//! Tests with an operator of their own, which logs everything.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::collector::{Collector, Span};
use crate::fixture::{Fixture, Shared, compute, key_into, usual};
use crate::support::tokens;

/// A fixture with its own control plane and operator, which run until this process ends.
async fn alone(name: &str, variables: &[(&str, &str)], flags: &[&str]) -> Fixture {
    let shared: &'static Shared = Box::leak(Box::new(Shared::start_in(variables, flags).await));
    Fixture::within(shared, name, |_| {}).await
}

const CANARY: &str = "canary-4f1d9c0b7e2a-planted-as-credential";
/// The header for the trace collector, from the operator's environment.
const COLLECTOR: &str = "canary-5e0c7f1d93ab-planted-for-collector";
const REFUSED: &str = "canary-91c3d7aa05be-planted-as-refused";
/// Two pairs of database user and password; the second replaces the first.
const ROLES: [[&str; 2]; 2] = [
    [
        "canary-1d09e2f7b3c8-planted-as-user",
        "canary-c6a2405d9e1f-planted-as-password",
    ],
    [
        "canary-7fe31b84a0d2-planted-as-user",
        "canary-08b5d6c93e7a-planted-as-password",
    ],
];

/// All output of the operator, by the place where it was found.
async fn output_by_place(
    fixture: &Fixture,
    collector: &Collector,
) -> BTreeMap<&'static str, String> {
    let process = format!("/proc/{}", fixture.shared.operator.id());
    let process = |file: &str| {
        String::from_utf8_lossy(&std::fs::read(Path::new(&process).join(file)).unwrap())
            .into_owned()
    };
    let requests = fixture
        .platform
        .requests(0)
        .into_iter()
        .map(|entry| format!("{entry:?}\n"))
        .collect();
    BTreeMap::from([
        ("log", fixture.shared.operator.log()),
        ("events", objects(fixture, "events.events.k8s.io").await),
        ("resources", objects(fixture, "dbplane").await),
        ("leases", objects(fixture, "leases").await),
        ("metrics", page(&fixture.shared.metrics).await),
        (
            "audit",
            std::fs::read_to_string(&fixture.shared.audit_log).unwrap(),
        ),
        ("requests", requests),
        ("report", report(fixture)),
        ("spans", collector.text()),
        ("arguments", process("cmdline")),
        ("environment", process("environ")),
    ])
}

/// All objects of a kind.
async fn objects(fixture: &Fixture, kind: &str) -> String {
    fixture
        .shared
        .cluster
        .kubectl(&["get", kind, "-A", "-o", "yaml", "--show-managed-fields"])
        .await
        .unwrap()
}

async fn page(url: &str) -> String {
    reqwest::get(url).await.unwrap().text().await.unwrap()
}

/// A bug report with all optional contents.
fn report(fixture: &Fixture) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command.args([
        "bugreport",
        "--all",
        "--keep-names",
        "--metrics-url",
        &fixture.shared.metrics,
    ]);
    let output = command
        .env("KUBECONFIG", fixture.shared.cluster.kubeconfig_path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn found<'a>(texts: &BTreeMap<&'a str, String>, token: &str) -> Vec<&'a str> {
    tokens::found(texts.iter().map(|(place, text)| (*place, text)), token)
}

#[tokio::test]
async fn no_token_leaves_the_operator() {
    let collector = Collector::start().await;
    let headers = format!("x-collector-key={COLLECTOR}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", &headers),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let fixture = alone("canary", &variables, &usual("trace")).await;
    let tokens = exercise(&fixture).await;
    // The last span of the exercise; only the export may take longer.
    let revoked =
        |span: &Span| span.name == "DELETE /organizations/{organization_id}/api_keys/{api_key_id}";
    fixture
        .wait_until("the spans to arrive", async || {
            collector.spans().iter().any(revoked)
        })
        .await;
    let texts = output_by_place(&fixture, &collector).await;
    every_place_has_contents(&texts);
    for token in &tokens {
        assert_eq!(
            found(&texts, token),
            [""; 0],
            "a token of {} characters",
            token.len()
        );
    }
    // The token reaches the collector and is in the operator's environment, but nowhere else.
    assert!(
        collector
            .headers()
            .iter()
            .all(|headers| headers.contains(COLLECTOR))
    );
    assert_eq!(found(&texts, COLLECTOR), ["environment"]);
    the_search_finds_tokens(&fixture, &tokens, &texts["log"]).await;
}

fn every_place_has_contents(texts: &BTreeMap<&str, String>) {
    for (place, word) in [
        ("log", "TRACE"),
        ("events", "KeyCreated"),
        ("resources", "dbplane.dev/record"),
        ("leases", "dbplane"),
        ("metrics", "dbplane_platform_requests_total"),
        ("audit", "projectkeys"),
        ("requests", "api_keys"),
        ("report", "dbplane_platform_requests_total"),
        ("spans", "/organizations/{organization_id}/api_keys"),
        ("arguments", "--leader-elect"),
        ("environment", "KUBECONFIG"),
    ] {
        assert!(
            texts[place].contains(word),
            "{place} is not what it should be"
        );
    }
}

/// The search must find the credential and the key in Base64 in their Secrets.
async fn the_search_finds_tokens(fixture: &Fixture, tokens: &[String], log: &str) {
    let secrets = BTreeMap::from([(
        "secrets",
        fixture.kubectl(&["get", "secrets", "-o", "yaml"]).await,
    )]);
    let in_use = fixture.entry("ci-key", "api-key").await.unwrap();
    let credential = fixture.entry("platform-api-key", "api-key").await.unwrap();
    let url = fixture.entry("orders-db", "URL").await.unwrap();
    assert!(
        ROLES[1].iter().all(|token| url.contains(token)),
        "the connection Secret has the present user and password"
    );
    for token in [in_use, credential, ROLES[1][1].to_owned()].iter() {
        assert!(tokens.contains(token));
        assert_eq!(found(&secrets, token), ["secrets"]);
    }
    let log = BTreeMap::from([("log", format!("{log} Authorization: Bearer {CANARY}"))]);
    assert_eq!(found(&log, CANARY), ["log"]);
}

/// Gets every token used, refused, echoed by the platform, created, replaced and revoked, and
/// returns them all.
async fn exercise(fixture: &Fixture) -> Vec<String> {
    let form = json!({"key_name": "operator-of-canaries"});
    let made = fixture
        .console(reqwest::Method::POST, "/users/user-ada/api_keys", form)
        .await;
    let credential = made["key"].as_str().unwrap().to_owned();
    let mut tokens = vec![CANARY.to_owned(), REFUSED.to_owned(), credential.clone()];
    // The platform echoes the token in an error.
    let echo = json!({"message": format!("no such key: {CANARY}"), "code": CANARY});
    fixture.fault(json!({"method": "GET", "path": "^/projects", "status": 401, "body": echo}));
    fixture.account_with(CANARY).await;
    fixture
        .until_condition("account/prod", "Stalled", "True", "Unauthorized")
        .await;
    fixture.secret("platform-api-key", REFUSED).await;
    fixture
        .until_condition("account/prod", "Stalled", "True", "Unauthorized")
        .await;
    fixture.secret("platform-api-key", &credential).await;
    fixture.until_ready("account/prod").await;
    let secret = "{name: ci-key, template: {url: 'https://{{ key }}@example.com'}}";
    fixture.apply(&key_into("ci", secret, "")).await;
    fixture.apply(&key_into("cd", "{name: cd-key}", "")).await;
    let first = fixture.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    fixture.until_ready("projectkey/cd").await;
    tokens.push(fixture.entry("ci-key", "api-key").await.unwrap());
    tokens.push(fixture.entry("cd-key", "api-key").await.unwrap());
    let cut = json!({"method": "POST", "path": "/api_keys$", "kind": "cut_body"});
    fixture.fault(cut);
    fixture.kubectl(&["delete", "secret", "ci-key"]).await;
    fixture.until_replaced("projectkey/ci", &first).await;
    tokens.push(fixture.entry("ci-key", "api-key").await.unwrap());
    tokens.extend(connect(fixture).await);
    fixture.delete("projectkey/cd").await;
    fixture.until_gone("projectkey/cd").await;
    assert_eq!(
        fixture
            .live_keys()
            .await
            .iter()
            .filter(|key| key["project_id"] == fixture.project)
            .count(),
        1
    );
    tokens
}

/// Writes connection Secrets with credentials, with other ones, and without any.
async fn connect(fixture: &Fixture) -> impl Iterator<Item = String> {
    let connection = "{secretName: orders-db, database: shop, credentialsFrom: {name: orders-role}, template: {URL: '{{ uri }}'}}";
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            &format!("  connection: {connection}\n"),
        ))
        .await;
    for [user, password] in [ROLES[0], ROLES[1]] {
        fixture
            .until_condition("compute/orders", "Synced", "False", "ConnectionIncomplete")
            .await;
        let role = json!({"username": user, "password": password});
        let role = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-role"}, "stringData": role});
        fixture.apply(&role.to_string()).await;
        fixture
            .until_condition("compute/orders", "Synced", "True", "InSync")
            .await;
        if password == ROLES[0][1] {
            fixture.kubectl(&["delete", "secret", "orders-role"]).await;
        }
    }
    ROLES.into_iter().flatten().map(str::to_owned)
}
