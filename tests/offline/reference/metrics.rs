//! Compares docs/metrics.md with a page that has a line for each metric of the registry.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dbplane::leadership::Leadership;
use dbplane::platform::{Budget, Meter, Rate};
use dbplane::telemetry::metrics::{
    AccountCensus, AccountKeys, AccountLabels, Census, ConnectedAccount, CreateOutcome, KeyChange,
    KeyStage, KindCensus, Metrics,
};

use super::WRITE;

const HEAD: &str = "# Metrics

`dbplane run` serves them at `http://<--metrics-listen>/metrics`, in the OpenMetrics text format. This page is made by `make metrics` from what the program
exposes, and a test compares the two.

Labels are namespaces, the kinds and names of accounts, or from closed sets. The namespace is that of the resources, and for the metrics of accounts that of the Account.
It is empty for ClusterAccounts. Prometheus has to keep it: set `honor_labels: true` in its `scrape_configs`, as the chart's PodMonitor does. Otherwise it becomes `exported_namespace`.
Histograms have no namespace, because each has 17 series. The series of a namespace go with its last resource, and those of an account with the account.

A namespace has at most 1,000 series, all metrics together, and 100 named accounts. The rest is summed in series whose labels are `other`; of times, these have the worst one.
The oldest accounts are named. An account with all its series needs about 30 of them, so a namespace with more than 20 such accounts has some without a name.

Computes, ProjectKeys and ReadReplicaSets are named in no metric here. [A file for kube-state-metrics](../deploy/chart/monitoring/kube-state-metrics.yaml) shows each object of the five kinds
with its conditions (`kube_dbplane_compute_condition`), its sizes and its times: `--custom-resource-state-config-file`. kube-state-metrics then has to list and watch them.

Metrics name tenants. Let only Prometheus read them: [access to metrics](guide/teams.md#access-to-metrics).

The leader alone counts resources, accounts, budgets and keys, at each scrape. A process that waits for the lead exposes `dbplane_leader` 0 and what
describes the process itself. An outcome or a reason of a failure is `ok` or one word: `unauthorized` (401), `key_in_doubt` (nothing was sent after a first 401), `forbidden` (403), `not_found` (404), `unsupported` (the call is not
offered), `conflict` (409), `busy` (423), `throttled` (429), `rejected` (another 4xx), `gateway` (a 4xx without the platform's form, or a redirect), `server` (5xx), `transport` (nothing was sent), `unknown_outcome` (no answer),
`undecodable`, `too_large` or `other_key`. A step can also fail with `secret` or `object` (the API server did not accept a Secret, or another object), `new_key` (the platform does
not accept the key that it has created) or `not_recorded` (no call was made, since its intent could not be written). A histogram has `_bucket`, `_sum` and `_count`.

| metric | type | unit | labels | what it is |
|---|---|---|---|---|
";

/// The content of the page.
pub fn page() -> String {
    let (metrics, _account) = specimen();
    let exposed = metrics.text().unwrap();
    let mut page = HEAD.to_owned();
    for metric in described(&exposed) {
        let MetricDescription {
            name,
            type_,
            unit,
            labels,
            help,
        } = metric;
        let labels = labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect::<Vec<_>>()
            .join(", ");
        writeln!(page, "| `{name}` | {type_} | {unit} | {labels} | {help} |").unwrap();
    }
    page
}

/// Metrics with a sample of each, and the meter that keeps the series of an account.
fn specimen() -> (Metrics, Arc<dyn Meter>) {
    let metrics = Metrics::default();
    metrics.leads_while(Leadership::default());
    metrics.passes.begins("shop", "Compute").ended("ok");
    metrics.steps.failed("shop", "Compute", "change", "busy");
    metrics
        .steps
        .created("shop", "Compute", CreateOutcome::Answered);
    metrics.steps.deletes("shop", "Compute");
    metrics.steps.corrected("shop", "size");
    metrics.steps.key("shop", KeyChange::Rotated);
    let account = metrics.requests.of_account(labels());
    account.call("list_computes", "ok", 0.1);
    metrics.counted.by(census);
    (metrics, account)
}

fn labels() -> AccountLabels {
    AccountLabels {
        namespace: "shop".to_owned(),
        kind: "Account".to_owned(),
        name: "prod".to_owned(),
    }
}

fn census() -> Census {
    let mut keys = AccountKeys::of("shop", "Account", "prod");
    keys.add(KeyStage::InUse, Some(0));
    let kind = KindCensus {
        namespace: "shop".to_owned(),
        kind: "Compute".to_owned(),
        ready: [(("True", "Available"), 1)].into(),
        stalled: [("Refused", 1)].into(),
        unsynced: [("Refused", 1)].into(),
        waiting: [("DeletionPaused", 1)].into(),
        unreadable: 0,
    };
    let account = AccountCensus {
        labels: labels(),
        ready: (true, "Available"),
        connected: Some(ConnectedAccount {
            poll_interval: Duration::from_secs(30),
            budget: Budget::new(Rate::default()).figures(),
        }),
        oldest: [("project", 0)].into(),
        unreadable: [("project", 0)].into(),
        organization_keys: Some(1),
    };
    Census {
        kinds: vec![kind],
        accounts: vec![account],
        keys: vec![keys],
    }
}

#[derive(Debug, Default, PartialEq)]
struct MetricDescription<'a> {
    /// The name as queries use it.
    name: String,
    type_: &'a str,
    unit: &'a str,
    labels: Vec<&'a str>,
    help: &'a str,
}

/// The description of each metric in OpenMetrics text. The labels are those of its first sample.
fn described(text: &str) -> Vec<MetricDescription<'_>> {
    let mut all: Vec<MetricDescription> = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), help) => {
                let help = help.unwrap_or_default().trim_end_matches('.');
                all.push(MetricDescription {
                    name: name.to_owned(),
                    help,
                    ..MetricDescription::default()
                });
            }
            (Some("#"), Some(keyword), Some(_), Some(what)) => {
                let Some(metric) = all.last_mut() else {
                    continue;
                };
                match keyword {
                    "TYPE" => metric.type_ = what,
                    "UNIT" => metric.unit = what,
                    _ => {}
                }
            }
            (Some(sample), ..) if sample != "#" => {
                let Some(metric) = all.last_mut() else {
                    continue;
                };
                sampled(
                    metric,
                    line.rsplit_once(' ').map_or(line, |(series, _)| series),
                );
            }
            _ => {}
        }
    }
    all
}

fn sampled<'a>(metric: &mut MetricDescription<'a>, series: &'a str) {
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    if metric.type_ != "histogram" {
        metric.name = name.to_owned();
    }
    let names = labels
        .split(',')
        .filter_map(|label| label.split_once('='))
        .map(|(name, _)| name);
    if metric.labels.is_empty() {
        metric.labels = names.filter(|name| *name != "le").collect();
    }
}

#[tokio::test]
async fn the_page_is_what_the_program_exposes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, page()).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap() == page(),
        "docs/metrics.md is not up to date: make metrics"
    );
}

#[tokio::test]
async fn the_specimen_has_every_metric() {
    let (metrics, _account) = specimen();
    let text = metrics.text().unwrap();
    for metric in described(&text) {
        let begins = |line: &str| line.starts_with(&metric.name) && !line.starts_with('#');
        assert!(text.lines().any(begins), "{} has no sample", metric.name);
    }
}

#[test]
fn what_is_exposed_is_described() {
    let text = "# HELP a_seconds How long.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
                a_seconds_sum{kind=\"x\"} 1\na_seconds_bucket{le=\"1.0\",kind=\"x\"} 1\n\
                # HELP b Some.\n# TYPE b counter\nb_total 1\n# EOF\n";
    let a = MetricDescription {
        name: "a_seconds".to_owned(),
        type_: "histogram",
        unit: "seconds",
        labels: vec!["kind"],
        help: "How long",
    };
    let b = MetricDescription {
        name: "b_total".to_owned(),
        type_: "counter",
        unit: "",
        labels: Vec::new(),
        help: "Some",
    };
    assert_eq!(described(text), [a, b]);
}
