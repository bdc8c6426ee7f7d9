use std::sync::{Arc, Mutex};

use super::*;
use crate::telemetry::metrics::{BudgetLeft, Metrics};

fn keys() -> AccountKeys {
    let mut keys = AccountKeys::of("shop", "Account", "prod");
    keys.add(KeyStage::InUse, Some(30));
    keys.add(KeyStage::InUse, Some(20));
    keys.add(KeyStage::Lost, None);
    keys
}

fn computes() -> KindCensus {
    KindCensus {
        namespace: "shop".to_owned(),
        kind: "Compute".to_owned(),
        ready: [(("True", "Available"), 3), (("False", "Refused"), 1)].into(),
        stalled: [("Refused", 1)].into(),
        unsynced: [("DriftPersists", 2)].into(),
        waiting: [("DeletionPaused", 2)].into(),
        unreadable: 1,
    }
}

fn labels(namespace: &str, kind: &str, name: &str) -> AccountLabels {
    AccountLabels {
        namespace: namespace.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

/// An account whose credentials are missing, and another one during a pause.
fn accounts() -> Vec<AccountCensus> {
    let without_credentials = AccountCensus {
        labels: labels("shop", "Account", "prod"),
        ready: (false, "CredentialsMissing"),
        oldest: [("project", 1000)].into(),
        unreadable: [("project", 2)].into(),
        organization_keys: Some(7),
        ..AccountCensus::default()
    };
    let budget = BudgetFigures {
        requests_per_minute: 600,
        left: 0,
        pause: Duration::from_millis(12_500),
        waits: Vec::new(),
    };
    let paused = AccountCensus {
        labels: labels("", "ClusterAccount", "company"),
        connected: Some(ConnectedAccount {
            poll_interval: Duration::from_secs(60),
            budget,
        }),
        ..AccountCensus::default()
    };
    vec![without_credentials, paused]
}

/// The metrics, and the census that they show.
fn metrics() -> (Metrics, Arc<Mutex<Census>>) {
    let census = Arc::new(Mutex::new(Census {
        kinds: vec![computes()],
        accounts: accounts(),
        keys: vec![keys()],
    }));
    let metrics = Metrics::default();
    let shared = Arc::clone(&census);
    metrics.counted.by(move || shared.lock().unwrap().clone());
    (metrics, census)
}

#[test]
fn resources_accounts_and_keys_are_counted_on_request() {
    let (metrics, census) = metrics();
    let text = metrics.text().unwrap();
    for line in [
        r#"dbplane_resources{namespace="shop",kind="Compute",ready="True",reason="Available"} 3"#,
        r#"dbplane_stalled_resources{namespace="shop",kind="Compute",reason="Refused"} 1"#,
        r#"dbplane_unsynced_resources{namespace="shop",kind="Compute",reason="DriftPersists"} 2"#,
        r#"dbplane_waiting_resources{namespace="shop",kind="Compute",reason="DeletionPaused"} 2"#,
        r#"dbplane_unreadable_resources{namespace="shop",kind="Compute"} 1"#,
        r#"dbplane_account_ready{namespace="shop",kind="Account",account="prod",reason="CredentialsMissing"} 0"#,
        r#"dbplane_account_info{namespace="",kind="ClusterAccount",account="company"} 1"#,
        r#"dbplane_oldest_snapshot_timestamp_seconds{namespace="shop",kind="Account",account="prod",list="project"} 1000"#,
        r#"dbplane_unreadable_entries{namespace="shop",kind="Account",account="prod",list="project"} 2"#,
        r#"dbplane_keys{namespace="shop",kind="Account",account="prod",state="in_use"} 2"#,
        r#"dbplane_keys{namespace="shop",kind="Account",account="prod",state="previous"} 0"#,
        r#"dbplane_keys{namespace="shop",kind="Account",account="prod",state="lost"} 1"#,
        r#"dbplane_oldest_key_timestamp_seconds{namespace="shop",kind="Account",account="prod",state="in_use"} 20"#,
        r#"dbplane_organization_keys{namespace="shop",kind="Account",account="prod"} 7"#,
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is missing:\n{text}"
        );
    }
    assert!(!text.contains(
        r#"key_timestamp_seconds{namespace="shop",kind="Account",account="prod",state="lost"}"#
    ));
    *census.lock().unwrap() = Census::default();
    assert!(
        !metrics.text().unwrap().contains("prod"),
        "an account that is gone is not counted any more"
    );
}

#[test]
fn what_is_gone_has_no_series_and_a_name_cannot_break_the_text() {
    let (metrics, census) = metrics();
    metrics.steps.corrected("shop", "size");
    metrics.steps.corrected("x\"} 1\n# EOF\n", "size");
    let text = metrics.text().unwrap();
    assert!(text.contains(r#"corrected_total{namespace="shop",field="size"} 1"#));
    assert!(text.contains(r#"corrected_total{namespace="x\"} 1\n# EOF\n",field="size"} 1"#));
    assert_eq!(text.matches("\n# EOF").count(), 1, "{text}");
    assert!(
        !metrics.text().unwrap().contains("EOF\\n"),
        "no resource is in it"
    );
    *census.lock().unwrap() = Census::default();
    let last = metrics.text().unwrap();
    assert!(
        last.contains(r#"corrected_total{namespace="shop""#),
        "the last counts are shown"
    );
    assert!(!metrics.text().unwrap().contains("shop"));
}

#[test]
fn a_namespace_with_many_accounts_costs_others_nothing() {
    let (metrics, census) = metrics();
    let own = metrics.text().unwrap();
    census
        .lock()
        .unwrap()
        .accounts
        .extend((0..500).map(|number| AccountCensus {
            labels: labels("hostile", "Account", &format!("account-{number}")),
            ..accounts().remove(1)
        }));
    let text = metrics.text().unwrap();
    let of_others = |text: &str| {
        // The metrics of the process change from one request to the next.
        let lines = text.lines().filter(|line| line.contains("namespace="));
        let lines = lines.filter(|line| !line.contains("hostile"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of_others(&text), of_others(&own));
    let hostile = text
        .lines()
        .filter(|line| line.contains(r#"namespace="hostile""#));
    assert!(hostile.count() <= 1_000);
    let rest = r#"account_info{namespace="hostile",kind="Account",account="other"} 400"#;
    assert!(text.contains(rest), "{text}");
}

#[test]
fn the_text_shows_what_is_left_of_a_budget() {
    let text = metrics().0.text().unwrap();
    let left = BudgetLeft::of(&text, &labels("", "ClusterAccount", "company")).unwrap();
    assert_eq!(
        left,
        BudgetLeft {
            requests: 0,
            pause_seconds: 12.5
        }
    );
    assert_eq!(
        left.to_string(),
        "none for 13 s: the platform asked for a pause"
    );
    assert_eq!(
        BudgetLeft::of(&text, &labels("shop", "Account", "prod")),
        None,
        "nothing is known of its budget"
    );
}
