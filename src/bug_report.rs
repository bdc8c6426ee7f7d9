//! Collects a bug report from the cluster and the operator. It writes nothing to the cluster and
//! reads no Secret.

mod cluster;
mod redact;
mod resources;
mod words;

use kube::Client;
use serde_json::{Value, json};

pub use self::redact::Names;
use crate::telemetry::{Source, served};

/// The data to collect.
#[derive(Clone, Debug)]
pub struct BugReportScope {
    /// `None` for all.
    pub namespace: Option<String>,
    /// Also resources that match their spec.
    pub all: bool,
    pub operator_namespace: String,
    pub metrics: Option<Source>,
}

/// The collected data, with the original names.
#[derive(Debug, Default)]
pub struct BugReport {
    /// By title. Each value is an object with one field.
    pub sections: Vec<(&'static str, Value)>,
    pub names: Names,
    /// The parts that could not be read, with the reasons.
    pub missing: Vec<String>,
}

impl BugReport {
    fn add(&mut self, title: &'static str, field: &str, found: Result<Value, String>) {
        match found {
            Ok(value) => {
                self.names.add_from(&value);
                self.sections.push((title, json!({field: value})));
            }
            Err(error) => self.missing.push(format!("{field}: {error}")),
        }
    }

    /// The installation, and how it runs.
    async fn add_installation(&mut self, client: &Client, operator: &str) {
        let versions = cluster::versions(client).await;
        self.add("What runs where", "versions", versions);
        let definitions = cluster::definitions(client).await;
        self.add(
            "The definitions that are installed",
            "definitions",
            definitions,
        );
        let lease = cluster::lease(client, operator).await;
        self.add("The lease that says who leads", "lease", lease);
        let deployments = cluster::deployments(client, operator).await;
        self.add("How the operator is installed", "deployments", deployments);
        let pods = cluster::pods(client, operator).await;
        self.add("How its Pods do", "pods", pods);
    }

    async fn add_resources(&mut self, client: &Client, scope: &BugReportScope) {
        let resources = resources::all(client, scope.namespace.as_deref()).await;
        self.missing.extend(resources.missing.iter().cloned());
        for object in &resources.found {
            self.names.add_from(object);
        }
        self.add(
            "How many resources are in which state",
            "resources",
            Ok(resources.counts()),
        );
        let title = if scope.all {
            "All resources"
        } else {
            "Resources that are not as declared"
        };
        self.add(title, "shown", Ok(resources.shown(scope.all)));
    }

    /// The metrics of the operator's process.
    async fn add_process(&mut self, scope: &BugReportScope) {
        if let Some(source) = &scope.metrics {
            let text = served(source).await;
            self.names
                .add_from_metrics(text.as_deref().unwrap_or_default());
            let lines =
                text.map(|text| text.lines().filter(|line| !line.starts_with('#')).collect());
            self.add("Metrics", "metrics", lines);
        }
    }
}

pub async fn collect(client: &Client, scope: &BugReportScope) -> BugReport {
    let mut report = BugReport::default();
    report
        .add_installation(client, &scope.operator_namespace)
        .await;
    report.add_resources(client, scope).await;
    let events = cluster::events(client, scope.namespace.as_deref()).await;
    report.add("The last events", "events", events);
    report.add_process(scope).await;
    report
}
