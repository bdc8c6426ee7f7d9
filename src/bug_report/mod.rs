//! What a report of a problem needs, collected from the cluster and from the operator. Nothing is written, and no Secret is read.

mod cluster;
mod redact;
mod resources;
mod words;

use kube::Client;
use serde_json::{Value, json};

pub use self::redact::Names;
use crate::telemetry::served;

/// What to collect.
#[derive(Clone, Debug)]
pub struct Scope {
    /// All where there is none.
    pub namespace: Option<String>,
    /// Also resources that are as declared.
    pub all: bool,
    pub operator_namespace: String,
    pub metrics_url: Option<String>,
    pub state_url: Option<String>,
}

/// What was collected, with names as they are.
#[derive(Debug, Default)]
pub struct Report {
    /// By title; each is an object with one field.
    pub sections: Vec<(&'static str, Value)>,
    pub names: Names,
    /// What could not be read, and why.
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
    report.add("What runs where", "versions", cluster::versions(client).await);
    report.add("The definitions that are installed", "definitions", cluster::definitions(client).await);
    let operator = &scope.operator_namespace;
    report.add("The lease that says who leads", "lease", cluster::lease(client, operator).await);
    report.add("How the operator is installed", "deployments", cluster::deployments(client, operator).await);
    report.add("How its Pods do", "pods", cluster::pods(client, operator).await);
    let resources = resources::all(client, scope.namespace.as_deref()).await;
    report.missing.extend(resources.missing.iter().cloned());
    resources.found.iter().for_each(|object| report.names.learn(object));
    report.add("How many resources are in which state", "resources", Ok(resources.counts()));
    let title = if scope.all { "All resources" } else { "Resources that are not as declared" };
    report.add(title, "shown", Ok(resources.shown(scope.all)));
    let events = cluster::events(client, scope.namespace.as_deref()).await;
    report.add("The last events", "events", events);
    if let Some(url) = &scope.metrics_url {
        let lines = served(url).await.map(|text| text.lines().filter(|line| !line.starts_with('#')).collect());
        report.add("Metrics", "metrics", lines);
    }
    if let Some(url) = &scope.state_url {
        let read = |text: String| serde_json::from_str(&text).map_err(|error| error.to_string());
        report.add("What the operator knows", "state", served(url).await.and_then(read));
    }
    report
}
