//! Where the tests of the operator run: a control plane with what is installed, and an operator.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::OnceCell;

use super::{free_address, root};
use crate::support::{ControlPlane, Options, PATIENCE, Running, Sandbox, definition_files, wait_for};

/// A control plane with the operator's resources and rights.
struct Site {
    cluster: ControlPlane,
    audit_log: PathBuf,
}

impl Site {
    /// With what this folder installs. Goes with this process: its folders are watched over.
    async fn start(folder: &str) -> &'static Self {
        let audit: &'static Sandbox = Box::leak(Box::new(Sandbox::new("audit").unwrap()));
        let (policy, audit_log) = (audit.folder().join("policy.yaml"), audit.folder().join("audit.log"));
        std::fs::write(&policy, AUDIT_POLICY).unwrap();
        let audited = [("audit-policy-file", &policy), ("audit-log-path", &audit_log)];
        let api_server_flags = audited.map(|(flag, path)| format!("--{flag}={}", path.display())).to_vec();
        let options = Options { crds: definition_files(), api_server_flags, ..Options::default() };
        let cluster = ControlPlane::start_with(options).await.unwrap();
        cluster.kubectl(&["apply", "-k", root().join(folder).to_str().unwrap()]).await.unwrap();
        Box::leak(Box::new(Self { cluster, audit_log }))
    }
}

/// A control plane and an operator: of this test process, or of one test.
pub struct Shared {
    pub cluster: &'static ControlPlane,
    pub operator: Running,
    pub metrics: String,
    /// What the API server was asked by the operator, one JSON object a line.
    pub audit_log: PathBuf,
}

pub async fn shared() -> &'static Shared {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    SHARED.get_or_init(async || Shared::start_in(&[], &usual("info,dbplane=debug")).await).await
}

impl Shared {
    /// On a control plane of its own, with these variables and flags.
    pub async fn start_in(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        Self::start_at(Site::start("deploy").await, variables, flags).await
    }

    async fn start_at(site: &'static Site, variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let (operator, metrics) = start_operator_with(variables, &site.cluster, flags).await;
        let audit_log = site.audit_log.clone();
        Self { cluster: &site.cluster, operator: operator.log_on_panic(), metrics, audit_log }
    }

    /// An operator for this namespace alone, which is made with the operator's Roles.
    pub async fn confined_to(namespace: &str) -> &'static Self {
        static SITE: OnceCell<&'static Site> = OnceCell::const_new();
        let site = SITE.get_or_init(async || Site::start("deploy/namespaced/operator").await).await;
        let served = root().join("deploy/namespaced/served");
        site.cluster.kubectl(&["create", "namespace", namespace]).await.unwrap();
        site.cluster.kubectl(&["-n", namespace, "apply", "-k", served.to_str().unwrap()]).await.unwrap();
        let mut flags = usual("info,dbplane=debug").to_vec();
        // All have the same Lease.
        flags.retain(|flag| *flag != "--leader-elect");
        flags.extend(["--watch-namespaces", namespace, "--no-cluster-accounts", "--cluster-id", "abc123"]);
        Box::leak(Box::new(Self::start_at(site, &[], &flags).await))
    }
}

/// Whether each test has an operator of its own, with the rights that `deploy/namespaced` gives it in the namespace of that test.
pub fn is_confined() -> bool {
    std::env::var("DBPLANE_TEST_RIGHTS").is_ok_and(|rights| rights == "namespaced")
}

/// Everything that the operator's own ServiceAccount asks.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, users: ['system:serviceaccount:dbplane-system:dbplane']}
  - {level: None}
";

/// The log filter, and more: all tests of a process delete with one operator, and more than the brake would let pass.
pub fn usual(log: &str) -> [&str; 5] {
    ["--leader-elect", "--log", log, "--deletes-per-minute", "1000"]
}

/// SIGKILL, to an operator that others look at too.
pub fn kill_operator(operator: &Running) {
    kill(Pid::from_raw(operator.id().cast_signed()), Signal::SIGKILL).unwrap();
}

/// Starts an operator as its own ServiceAccount, and waits until it works; its metrics are at the URL. Without election of a
/// leader a successor begins at once.
pub async fn start_operator_with(
    variables: &[(&str, &str)],
    cluster: &ControlPlane,
    flags: &[&str],
) -> (Running, String) {
    let kubeconfig = cluster.kubeconfig_for_service_account("dbplane-system", "dbplane").await.unwrap();
    let (health, metrics) = (free_address(), free_address());
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args(["run", "--allow-insecure-platform", "--request-timeout", "5", "--settle-time", "21"])
        .args(["--health-listen", &health, "--metrics-listen", &metrics, "--key-check-interval", "5"])
        .args(["--start-timeout", "30"])
        .args(flags)
        .envs(variables.iter().copied())
        .env("KUBECONFIG", kubeconfig);
    let operator = cluster.sandbox().start("operator", command).unwrap();
    let ready = format!("http://{health}/readyz");
    wait_for("the operator to be ready", PATIENCE, async || {
        reqwest::get(&ready).await.ok()?.status().is_success().then_some(())
    })
    .await
    .unwrap();
    (operator, format!("http://{metrics}/metrics"))
}
