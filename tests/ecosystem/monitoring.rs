//! The alerts and the dashboard with the real Prometheus, and the commands of the runbook with
//! kubectl, while an operator is running.

mod firing;
mod picture;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{Fixture, Shared, compute, free_address, key, usual};
use crate::support::{Running, Sandbox, wait_for};
use crate::tools;

/// Panels that may be empty on a healthy operator; all others must show data.
const MAY_BE_EMPTY: [&str; 7] = [
    "Not ready",
    "Need a person",
    "Wait on purpose",
    "Not as declared",
    "Cannot be read",
    "Steps that failed",
    "Requests that failed",
];

/// Rates need two scrapes; the rest is reserve for a busy machine.
const SCRAPED: Duration = Duration::from_secs(120);

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

fn promtool(folder: &Path, args: &[&str]) -> Output {
    let program = tools("prometheus").join("promtool");
    Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn every_alert_fires_when_it_should_and_not_before() {
    let sandbox = Sandbox::new("alerts").unwrap();
    for (from, to) in [
        ("deploy/chart/monitoring/rules.yaml", "rules.yaml"),
        ("tests/ecosystem/alerts.yaml", "alerts.yaml"),
    ] {
        fs::copy(repository().join(from), sandbox.folder().join(to)).unwrap();
    }
    for args in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "alerts.yaml"],
    ] {
        let Output {
            status,
            stdout,
            stderr,
        } = promtool(sandbox.folder(), &args);
        let said = [stdout, stderr]
            .map(|text| String::from_utf8(text).unwrap())
            .concat();
        assert!(status.success(), "promtool {}:\n{said}", args.join(" "));
    }
}

/// A Prometheus with the rules that scrapes an operator every second.
struct Prometheus {
    process: Running,
    url: String,
    _sandbox: Sandbox,
}

impl Prometheus {
    fn of(metrics: &str) -> Self {
        Self::with(
            metrics,
            &repository().join("deploy/chart/monitoring/rules.yaml"),
        )
    }

    fn with(metrics: &str, rules: &Path) -> Self {
        let sandbox = Sandbox::new("prometheus").unwrap();
        let target = metrics
            .trim_start_matches("http://")
            .trim_end_matches("/metrics");
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": "dbplane", "static_configs": [{"targets": [target]}]}],
        });
        let file = sandbox.folder().join("prometheus.yaml");
        fs::write(&file, config.to_string()).unwrap();
        let address = free_address();
        let mut command = Command::new(tools("prometheus").join("prometheus"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                sandbox.folder().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        let process = sandbox.start("prometheus", command).unwrap().log_on_panic();
        Self {
            process,
            url: format!("http://{address}/api/v1"),
            _sandbox: sandbox,
        }
    }

    /// The answer of Prometheus; `None` while it is unreachable.
    async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Option<Value> {
        let url =
            reqwest::Url::parse_with_params(&format!("{}/{path}", self.url), parameters).unwrap();
        reqwest::get(url).await.ok()?.json().await.ok()
    }

    async fn query(&self, query: &str) -> Value {
        self.ask("query", &[("query", query)])
            .await
            .unwrap_or_default()
    }
}

/// A query of the dashboard with default selections.
struct Query {
    panel: String,
    text: String,
}

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/chart/monitoring/dashboard.json")).unwrap()
}

/// Replaces the variables as Grafana does.
fn as_sent(expression: &str) -> String {
    expression
        .replace("$job", ".*")
        .replace("$namespace", ".*")
        .replace("$__rate_interval", "1m")
}

fn queries() -> Vec<Query> {
    let dashboard = dashboard();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            queries.push(Query {
                panel: text(&panel["title"]),
                text: as_sent(target["expr"].as_str().unwrap()),
            });
        }
    }
    queries
}

/// Produces some of everything that has a metric: a create, a corrected drift, a rotation, a
/// deletion.
async fn at_work(fixture: &Fixture) {
    fixture
        .apply(&compute("orders", "br-main-42", "  size: {fixed: 1}\n"))
        .await;
    fixture
        .apply(&compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly"))
        .await;
    fixture.apply(&key("ci", "")).await;
    let orders = fixture.until_ready("compute/orders").await;
    fixture.until_ready("compute/reader").await;
    let before = fixture.until_ready("projectkey/ci").await;
    let path = format!(
        "/computes/{}",
        orders["status"]["computeID"].as_str().unwrap()
    );
    fixture
        .console(
            reqwest::Method::PATCH,
            &path,
            json!({"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 2}),
        )
        .await;
    fixture
        .annotate("projectkey/ci", "dbplane.dev/rotate=now")
        .await;
    let used = before["status"]["keyID"].clone();
    fixture
        .until("projectkey/ci", "rotated", |seen| {
            seen["status"]["keyID"] != used
        })
        .await;
    fixture.kubectl(&["delete", "compute", "reader"]).await;
    for batch in 0..BATCHES {
        let readers = (0..BATCH).map(|number| {
            let compute = compute(&format!("reader-{batch}-{number}"), "br-dev-7", "");
            format!("---\n{}", compute.replace("ReadWrite", "ReadOnly"))
        });
        fixture.apply(&readers.collect::<String>()).await;
        for number in 0..BATCH {
            fixture
                .until_ready(&format!("compute/reader-{batch}-{number}"))
                .await;
        }
    }
}

/// Size of a batch of creates, and number of batches.
const BATCH: usize = 8;
const BATCHES: usize = 5;

#[tokio::test]
async fn every_query_of_the_dashboard_and_of_the_alerts_is_answered() {
    // Uses its own operator, because platforms of other tests end, which would trigger alerts.
    let shared: &'static Shared = Box::leak(Box::new(
        Shared::start_in(&[], &usual("info,dbplane=debug")).await,
    ));
    let fixture = Fixture::within(shared, "monitored", |_| {}).await;
    fixture.account().await;
    let prometheus = Prometheus::of(&fixture.shared.metrics);
    at_work(&fixture).await;
    let queries = queries();
    let titles: BTreeSet<&str> = queries.iter().map(|query| query.panel.as_str()).collect();
    assert!(
        MAY_BE_EMPTY.iter().all(|title| titles.contains(title)),
        "{titles:?}"
    );
    let mut empty = BTreeMap::new();
    let answered = wait_for("every panel to show something", SCRAPED, async || {
        empty.clear();
        for Query { panel, text } in &queries {
            let answer = prometheus.query(text).await;
            let results = answer
                .pointer("/data/result")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            assert_ne!(answer["status"], "error", "{panel}: {text}: {answer}");
            if results == 0 && !MAY_BE_EMPTY.contains(&panel.as_str()) {
                empty.insert(text.clone(), panel.clone());
            }
        }
        empty.is_empty().then_some(())
    });
    let answered = answered.await;
    assert!(
        answered.is_ok(),
        "{}: {empty:#?}\n{}",
        answered.unwrap_err(),
        prometheus.process.last_lines(20)
    );
    alerts_are_evaluated(&prometheus).await;
    let drawn = repository().join("target/ecosystem/dashboard.svg");
    picture::draw(&prometheus, &dashboard(), &drawn)
        .await
        .unwrap();
    let picture = fs::read_to_string(drawn).unwrap();
    for query in &queries {
        assert!(
            picture.contains(&query.panel),
            "{} is not drawn",
            query.panel
        );
    }
}

/// On a healthy operator no alert fires, and all can be evaluated.
async fn alerts_are_evaluated(prometheus: &Prometheus) {
    let rules = wait_for("the rules to be evaluated", SCRAPED, async || {
        let answer = prometheus.ask("rules", &[]).await?;
        let groups = answer.pointer("/data/groups")?.as_array()?.clone();
        let rules: Vec<Value> = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap())
            .cloned()
            .collect();
        rules
            .iter()
            .all(|rule| rule["health"] != "unknown")
            .then_some(rules)
    });
    let rules = rules.await.unwrap();
    let file = read("deploy/chart/monitoring/rules.yaml");
    let (alerts, recorded): (Vec<_>, Vec<_>) =
        rules.iter().partition(|rule| rule["type"] == "alerting");
    let in_file = |kind: &str| file.matches(kind).count();
    assert_eq!(
        (alerts.len(), recorded.len()),
        (in_file("- alert:"), in_file("- record:"))
    );
    for rule in alerts {
        assert_eq!(
            (&rule["health"], &rule["state"]),
            (&json!("ok"), &json!("inactive")),
            "{rule}"
        );
    }
    for rule in recorded {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

/// The commands of a page in order.
fn commands(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

/// Each page has its own resources, because its commands may change them.
#[tokio::test]
async fn the_commands_of_the_runbook_work() {
    let mut pages: Vec<PathBuf> = fs::read_dir(repository().join("docs/runbook"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    pages.retain(|page| page.file_stem().is_some_and(|name| name != "README"));
    pages.sort();
    let fixture = Fixture::new("runbook").await;
    for page in pages {
        let alert = page.file_stem().unwrap().to_str().unwrap();
        let (kind, name) = subject(&fixture, alert).await;
        let commands = commands(&page);
        assert!(!commands.is_empty(), "{alert}");
        for command in commands {
            let environment = [
                ("KIND", kind),
                ("NAMESPACE", "runbook"),
                ("NAME", name.as_str()),
            ];
            let Output {
                status,
                stdout,
                stderr,
            } = bash(&fixture, &command, &environment);
            let said = [stdout, stderr]
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .concat();
            assert!(status.success(), "{alert}: {command}\n{said}");
        }
    }
}

/// The subject of a page's commands: an account, a key, or a Compute that no other page uses.
async fn subject(fixture: &Fixture, alert: &str) -> (&'static str, String) {
    match alert {
        "DbplaneCredentialsRefused" | "DbplaneSnapshotsStale" | "DbplaneBudgetExhausted" => {
            ("account", "prod".to_owned())
        }
        "DbplaneKeysToRevoke" => {
            fixture.apply(&key("lost", "")).await;
            fixture.until_ready("projectkey/lost").await;
            ("projectkey", "lost".to_owned())
        }
        _ => {
            let name = alert.to_lowercase();
            fixture
                .apply(&compute(&name, "br-main-42", "").replace("ReadWrite", "ReadOnly"))
                .await;
            fixture.until_ready(&format!("compute/{name}")).await;
            ("compute", name)
        }
    }
}

/// Runs a command in bash with kubectl on the PATH.
fn bash(fixture: &Fixture, command: &str, environment: &[(&str, &str)]) -> Output {
    let kubectl = fixture.shared.cluster.kubectl_command();
    let folder = Path::new(kubectl.get_program())
        .parent()
        .unwrap()
        .display()
        .to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", command])
        .env("PATH", path)
        .envs(environment.iter().copied());
    bash.envs(
        kubectl
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    bash.output().unwrap()
}
