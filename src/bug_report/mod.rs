//! Collects a bug report from the cluster and the operator. It writes nothing to the cluster and
//! reads no Secret.

mod cluster;
mod redact;
mod resources;
mod words;

use kube::Client;
use serde_json::{Value, json};

pub use self::redact::Names;
use crate::telemetry::served;

/// The data to collect.
#[derive(Clone, Debug)]
pub struct Scope {
    /// `None` for all.
    pub namespace: Option<String>,
    /// Also resources that match their spec.
    pub all: bool,
    pub operator_namespace: String,
    pub metrics_url: Option<String>,
}

/// The collected data, with the original names.
#[derive(Debug, Default)]
pub struct Report {
    /// By title. Each value is an object with one field.
    pub sections: Vec<(&'static str, Value)>,
    pub names: Names,
    /// The parts that could not be read, with the reasons.
    pub missing: Vec<String>,
}

impl Report {
    fn add(&mut self, title: &'static str, field: &str, found: Result<Value, String>) {
        match found {
            Ok(value) => {
                self.names.learn(&value);
                self.sections.push((title, json!({field: value})));
            }
            Err(error) => self.missing.push(format!("{field}: {error}")),
        }
    }
}

pub async fn collect(client: &Client, scope: &Scope) -> Report {
    let mut report = Report::default();
    report.add(
        "What runs where",
        "versions",
        cluster::versions(client).await,
    );
    report.add(
        "The definitions that are installed",
        "definitions",
        cluster::definitions(client).await,
    );
    let operator = &scope.operator_namespace;
    report.add(
        "The lease that says who leads",
        "lease",
        cluster::lease(client, operator).await,
    );
    report.add(
        "How the operator is installed",
        "deployments",
        cluster::deployments(client, operator).await,
    );
    report.add(
        "How its Pods do",
        "pods",
        cluster::pods(client, operator).await,
    );
    let resources = resources::all(client, scope.namespace.as_deref()).await;
    report.missing.extend(resources.missing.iter().cloned());
    resources
        .found
        .iter()
        .for_each(|object| report.names.learn(object));
    report.add(
        "How many resources are in which state",
        "resources",
        Ok(resources.counts()),
    );
    let title = if scope.all {
        "All resources"
    } else {
        "Resources that are not as declared"
    };
    report.add(title, "shown", Ok(resources.shown(scope.all)));
    let events = cluster::events(client, scope.namespace.as_deref()).await;
    report.add("The last events", "events", events);
    if let Some(url) = &scope.metrics_url {
        let lines = served(url)
            .await
            .map(|text| text.lines().filter(|line| !line.starts_with('#')).collect());
        report.add("Metrics", "metrics", lines);
    }
    report
}
