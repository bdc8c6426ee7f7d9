//! The operator as a process: start, stop, leader election, logs and metrics.
//!
//! Each test has its own control plane, because most of them break a part of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, not what they call"
)]

mod account_check;
mod children;
#[path = "../support/collector.rs"]
mod collector;
mod identity;
mod import;
mod large;
mod leading;
mod leaving;
mod planning;
mod pressure;
mod proxies;
mod put_back;
mod reach;
mod replicas;
mod reporting;
mod sharing;
mod starting;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod tenants;
#[path = "../support/terminal.rs"]
mod terminal;
mod terraform;
mod traces;
mod unavailable;
mod unreadable;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as PlatformOptions, Simulator};
use support::{
    ControlPlane, Forwarder, Options, PATIENCE, Running, definition_files, free_port, wait_until,
};
use tokio::net::TcpListener;

/// An operator and its URLs.
struct Operator {
    process: Running,
    health: String,
    metrics: String,
}

impl Operator {
    /// Starts the operator as cluster administrator.
    fn start(cluster: &ControlPlane, name: &str, args: &[&str]) -> Self {
        Self::start_as(&cluster.kubeconfig_path(), cluster, name, args)
    }

    /// Starts the operator as the user of a kubeconfig.
    fn start_as(kubeconfig: &Path, cluster: &ControlPlane, name: &str, args: &[&str]) -> Self {
        Self::start_in(&[], kubeconfig, cluster, name, args)
    }

    /// Starts the operator with additional environment variables.
    fn start_in(
        variables: &[(&str, &str)],
        kubeconfig: &Path,
        cluster: &ControlPlane,
        name: &str,
        args: &[&str],
    ) -> Self {
        let health = format!("127.0.0.1:{}", free_port().unwrap());
        let metrics = format!("127.0.0.1:{}", free_port().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
        command
            .args([
                "run",
                "--allow-insecure-platform",
                "--health-listen",
                &health,
                "--metrics-listen",
                &metrics,
            ])
            .args(["--identity", name])
            .args(args)
            .envs(variables.iter().copied())
            .env("KUBECONFIG", kubeconfig);
        let process = cluster
            .sandbox()
            .start(name, command)
            .unwrap()
            .log_on_panic();
        Self {
            process,
            health: format!("http://{health}"),
            metrics: format!("http://{metrics}/metrics"),
        }
    }

    /// Status and body of a health endpoint; `None` if nothing listens.
    async fn asks(&self, path: &str) -> Option<(u16, String)> {
        let answer = reqwest::get(format!("{}{path}", self.health)).await.ok()?;
        Some((answer.status().as_u16(), answer.text().await.ok()?))
    }

    async fn until_ready(&self) {
        wait_until("the operator to be ready", PATIENCE, async || {
            self.asks("/readyz")
                .await
                .is_some_and(|(status, _)| status == 200)
        })
        .await
        .unwrap();
    }
}

async fn cluster() -> ControlPlane {
    ControlPlane::start_with(Options {
        crds: definition_files(),
        ..Options::default()
    })
    .await
    .unwrap()
}

/// A breakable route to the API server, and an administrator's kubeconfig for it.
async fn forwarded(cluster: &ControlPlane) -> (Forwarder, PathBuf) {
    let direct = cluster.url().trim_start_matches("https://").to_owned();
    let forwarder = Forwarder::start(direct.clone()).await.unwrap();
    let config = fs::read_to_string(cluster.kubeconfig_path()).unwrap();
    assert!(config.contains(&direct));
    let path = cluster.sandbox().folder().join("forwarded.kubeconfig");
    fs::write(
        &path,
        config.replace(&direct, &forwarder.address().to_string()),
    )
    .unwrap();
    (forwarder, path)
}

async fn platform() -> Simulator {
    let world = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/world.yaml");
    let world = WorldFile::parse(&fs::read_to_string(world).unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    simulator::serve(listener, PlatformOptions::new(world))
        .await
        .unwrap()
}

/// Declares an Account for `platform` and a Compute in the default namespace.
async fn declare(cluster: &ControlPlane, platform: &Simulator) {
    declare_in(cluster, platform, "default", "br-main-42").await;
}

/// The same in `namespace` on `branch`.
async fn declare_in(cluster: &ControlPlane, platform: &Simulator, namespace: &str, branch: &str) {
    let more = "  organizationID: org-cool-darkness-1\n  pollInterval: 5s\n";
    account(cluster, namespace, "prod", &platform.base_url(), more).await;
    let manifest = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: orders}}
spec:
  accountRef: {{name: prod}}
  projectID: aged-wind-123456
  branchID: {branch}
  type: ReadWrite
"
    );
    cluster
        .kubectl_with_input(&["-n", namespace, "apply", "-f", "-"], &manifest)
        .await
        .unwrap();
}

/// Declares an administrator's Account at a URL; `more` is appended to its spec.
async fn account(cluster: &ControlPlane, namespace: &str, name: &str, url: &str, more: &str) {
    let manifests = format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: platform-api-key}}
stringData: {{api-key: demo-personal-key-not-a-secret}}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: {name}}}
spec:
  baseURL: {url}
  apiKeySecretRef: {{name: platform-api-key}}
{more}"
    );
    cluster
        .kubectl_with_input(&["-n", namespace, "apply", "-f", "-"], &manifests)
        .await
        .unwrap();
}

/// A ProjectKey of the same project.
const KEY: &str = "
apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {name: ci}
spec:
  accountRef: {name: prod}
  projectID: aged-wind-123456
  keyName: ci
  secret: {name: ci-key}
";

/// Number of requests to create a compute.
fn creates(platform: &Simulator) -> usize {
    let requests = platform.requests(0);
    requests
        .iter()
        .filter(|entry| entry.method == "POST" && entry.path.ends_with("/endpoints"))
        .count()
}

/// Number of requests to change a compute.
fn changes(platform: &Simulator) -> usize {
    platform
        .requests(0)
        .iter()
        .filter(|entry| entry.method == "PATCH")
        .count()
}

async fn record(cluster: &ControlPlane) -> String {
    let path = "jsonpath={.status.record}";
    cluster
        .kubectl(&["get", "compute", "orders", "-o", path])
        .await
        .unwrap()
}

async fn until_ready(cluster: &ControlPlane) {
    until_condition(cluster, "compute/orders", "Ready").await;
}

async fn until_condition(cluster: &ControlPlane, object: &str, condition: &str) {
    cluster
        .kubectl(&[
            "wait",
            "--timeout=60s",
            &format!("--for=condition={condition}"),
            object,
        ])
        .await
        .unwrap();
}
