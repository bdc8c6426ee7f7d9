//! Makes all alerts fire on an unhealthy operator, by the metrics that it really exposes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use super::{Prometheus, read};
use crate::fixture::{Fixture, Shared, account, compute, key, kill_operator};
use crate::support::{Sandbox, wait_for};

/// This alert needs lists older than five minutes, which takes too long here.
/// tests/ecosystem/alerts.yaml tests it.
const NOT_HERE: &str = "DbplaneSnapshotsStale";
/// DbplaneBudgetExhausted uses a rate over ten minutes, and the operator pauses after each 429.
const FIRING: Duration = Duration::from_secs(240);
const CREATES_OF_KEYS: &str = "^/organizations/[^/]+/api_keys$";
const CREATES_OF_COMPUTES: &str = "/endpoints$";

/// The rules without `for`, so that they fire at once.
fn without_patience(sandbox: &Sandbox) -> PathBuf {
    let rules = read("deploy/chart/monitoring/rules.yaml");
    let (patience, rest): (Vec<&str>, Vec<&str>) = rules
        .lines()
        .partition(|line| line.trim().starts_with("for: "));
    assert_eq!(patience.len(), alerts().len());
    let path = sandbox.folder().join("rules.yaml");
    fs::write(&path, rest.join("\n")).unwrap();
    path
}

fn alerts() -> BTreeSet<String> {
    let rules = read("deploy/chart/monitoring/rules.yaml");
    let named = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    named.map(str::to_owned).collect()
}

/// Adds the alerts that are firing.
async fn note(prometheus: &Prometheus, fired: &mut BTreeSet<String>) {
    let answer = prometheus.ask("alerts", &[]).await.unwrap_or_default();
    let alerts = answer
        .pointer("/data/alerts")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
    fired.extend(
        firing
            .filter_map(|alert| alert["labels"]["alertname"].as_str())
            .map(str::to_owned),
    );
}

async fn until_fired(prometheus: &Prometheus, fired: &mut BTreeSet<String>, wanted: &[&str]) {
    let what = format!("{wanted:?} to fire");
    let all = wait_for(&what, FIRING, async || {
        note(prometheus, fired).await;
        wanted
            .iter()
            .all(|alert| fired.contains(*alert))
            .then_some(())
    });
    let all = all.await;
    all.unwrap_or_else(|error| panic!("{error}, and these did: {fired:?}"));
}

/// Causes lasting faults of accounts and resources.
async fn break_accounts_and_resources(fixture: &Fixture) {
    fixture.secret("wrong-key", "of-nobody").await;
    let url = fixture.platform.base_url();
    fixture
        .apply(&account("refused", &url, "").replace("platform-api-key", "wrong-key"))
        .await;
    fixture
        .account_named("away", "http://127.0.0.1:9/api/v2")
        .await;
    fixture
        .apply(&compute("homeless", "br-dev-7", "").replace("{name: prod}", "{name: nobody}"))
        .await;
}

/// Deletes more than one object per minute.
async fn much_is_deleted(fixture: &Fixture) {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    for name in NAMES {
        fixture
            .apply(&compute(name, "br-main-42", "").replace("ReadWrite", "ReadOnly"))
            .await;
        fixture.until_ready(&format!("compute/{name}")).await;
    }
    let mut delete = vec!["delete", "compute", "--wait=false"];
    delete.extend(NAMES);
    fixture.kubectl(&delete).await;
}

#[tokio::test]
async fn alerts_fire_on_metrics_of_the_operator() {
    let flags = [
        "--leader-elect",
        "--log",
        "info",
        "--deletes-per-minute",
        "1",
    ];
    let shared: &'static Shared = Box::leak(Box::new(Shared::start_in(&[], &flags).await));
    // On this profile dbplane cannot revoke a lost key.
    let fixture = Fixture::within(shared, "alarmed", |options| {
        options.profile = Profile::Minimal
    })
    .await;
    let sandbox = Sandbox::new("alerts").unwrap();
    let prometheus = Prometheus::with(&fixture.shared.metrics, &without_patience(&sandbox));
    let mut fired = BTreeSet::new();
    fixture.account().await;
    fixture.until_ready("account/prod").await;
    break_accounts_and_resources(&fixture).await;
    until_fired(
        &prometheus,
        &mut fired,
        &[
            "DbplaneCredentialsRefused",
            "DbplanePlatformUnreachable",
            "DbplaneStalled",
        ],
    )
    .await;
    much_is_deleted(&fixture).await;
    until_fired(&prometheus, &mut fired, &["DbplaneDeletionPaused"]).await;
    fixture.fault(json!({"method": "POST", "path": CREATES_OF_KEYS, "kind": "lose_answer"}));
    fixture.fault(json!({"method": "POST", "path": CREATES_OF_COMPUTES, "kind": "drop"}));
    fixture.apply(&key("lost", "")).await;
    fixture
        .apply(&compute("unsure", "br-dev-7", "").replace("ReadWrite", "ReadOnly"))
        .await;
    until_fired(
        &prometheus,
        &mut fired,
        &["DbplaneUnresolvedCreates", "DbplaneKeysToRevoke"],
    )
    .await;
    fixture.fault(json!({"method": "GET", "status": 429, "retry_after": 1, "times": 60}));
    until_fired(&prometheus, &mut fired, &["DbplaneBudgetExhausted"]).await;
    // This alert may have fired before the first scrape.
    fired.remove("DbplaneNoLeader");
    note(&prometheus, &mut fired).await;
    assert!(!fired.contains("DbplaneNoLeader"), "{fired:?}");
    kill_operator(&shared.operator);
    until_fired(&prometheus, &mut fired, &["DbplaneNoLeader"]).await;
    let silent: Vec<String> = alerts().difference(&fired).cloned().collect();
    assert_eq!(silent, [NOT_HERE]);
}
