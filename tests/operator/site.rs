//! The environment of operator tests: a control plane with dbplane's resources installed, and an
//! operator.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::OnceCell;

use super::{free_address, root};
use crate::support::{
    ControlPlane, Options, PATIENCE, Running, Sandbox, definition_files, wait_for,
};

/// A control plane with dbplane's definitions and roles.
struct Site {
    cluster: ControlPlane,
    audit_log: PathBuf,
}

impl Site {
    /// Installs this folder. A watchdog removes everything when this process ends.
    async fn start(folder: &str) -> &'static Self {
        let audit: &'static Sandbox = Box::leak(Box::new(Sandbox::new("audit").unwrap()));
        let (policy, audit_log) = (
            audit.folder().join("policy.yaml"),
            audit.folder().join("audit.log"),
        );
        std::fs::write(&policy, AUDIT_POLICY).unwrap();
        let audited = [
            ("audit-policy-file", &policy),
            ("audit-log-path", &audit_log),
        ];
        let api_server_flags = audited
            .map(|(flag, path)| format!("--{flag}={}", path.display()))
            .to_vec();
        let options = Options {
            crds: definition_files(),
            api_server_flags,
            ..Options::default()
        };
        let cluster = ControlPlane::start_with(options).await.unwrap();
        cluster
            .kubectl(&["apply", "-k", root().join(folder).to_str().unwrap()])
            .await
            .unwrap();
        Box::leak(Box::new(Self { cluster, audit_log }))
    }
}

/// A control plane and an operator, shared by a test process or used by a single test.
pub struct Shared {
    pub cluster: &'static ControlPlane,
    pub operator: Running,
    pub metrics: String,
    /// The API server's audit log of the operator's requests, one JSON object per line.
    pub audit_log: PathBuf,
}

pub async fn shared() -> &'static Shared {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    SHARED
        .get_or_init(async || Shared::start_in(&[], &usual("info,dbplane=debug")).await)
        .await
}

impl Shared {
    /// Starts with a new control plane, and these variables and flags.
    pub async fn start_in(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        Self::start_at(Site::start("deploy").await, variables, flags).await
    }

    async fn start_at(site: &'static Site, variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let (operator, metrics) = start_operator_with(variables, &site.cluster, flags).await;
        let audit_log = site.audit_log.clone();
        Self {
            cluster: &site.cluster,
            operator: operator.log_on_panic(),
            metrics,
            audit_log,
        }
    }

    /// An operator confined to this namespace, whose Roles are installed with the namespace.
    pub async fn confined_to(namespace: &str) -> &'static Self {
        static SITE: OnceCell<&'static Site> = OnceCell::const_new();
        let site = SITE
            .get_or_init(async || Site::start("deploy/namespaced/operator").await)
            .await;
        let served = root().join("deploy/namespaced/served");
        site.cluster
            .kubectl(&["create", "namespace", namespace])
            .await
            .unwrap();
        site.cluster
            .kubectl(&["-n", namespace, "apply", "-k", served.to_str().unwrap()])
            .await
            .unwrap();
        let mut flags = usual("info,dbplane=debug").to_vec();
        // They would all use the same Lease.
        flags.retain(|flag| *flag != "--leader-elect");
        flags.extend([
            "--watch-namespaces",
            namespace,
            "--no-cluster-accounts",
            "--cluster-id",
            "abc123",
        ]);
        Box::leak(Box::new(Self::start_at(site, &[], &flags).await))
    }
}

/// True if each test has its own operator with the rights of `deploy/namespaced` in its namespace.
pub fn is_confined() -> bool {
    std::env::var("DBPLANE_TEST_RIGHTS").is_ok_and(|rights| rights == "namespaced")
}

/// Logs all requests of the operator's ServiceAccount.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, users: ['system:serviceaccount:dbplane-system:dbplane']}
  - {level: None}
";

/// The usual flags. All tests of a process share an operator, so together they would exceed the
/// limit for deletions.
pub fn usual(log: &str) -> [&str; 5] {
    [
        "--leader-elect",
        "--log",
        log,
        "--deletes-per-minute",
        "1000",
    ]
}

/// Kills a shared operator with SIGKILL.
pub fn kill_operator(operator: &Running) {
    kill(Pid::from_raw(operator.id().cast_signed()), Signal::SIGKILL).unwrap();
}

/// Starts an operator as its own ServiceAccount, waits until it is ready, and returns the URL of
/// its metrics. Without leader election, a successor starts at once.
pub async fn start_operator_with(
    variables: &[(&str, &str)],
    cluster: &ControlPlane,
    flags: &[&str],
) -> (Running, String) {
    let kubeconfig = cluster
        .kubeconfig_for_service_account("dbplane-system", "dbplane")
        .await
        .unwrap();
    let (health, metrics) = (free_address(), free_address());
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args([
            "run",
            "--allow-insecure-platform",
            "--request-timeout",
            "5",
            "--settle-time",
            "21",
        ])
        .args([
            "--health-listen",
            &health,
            "--metrics-listen",
            &metrics,
            "--key-check-interval",
            "5",
        ])
        .args(["--start-timeout", "30"])
        .args(flags)
        .envs(variables.iter().copied())
        .env("KUBECONFIG", kubeconfig);
    let operator = cluster.sandbox().start("operator", command).unwrap();
    let ready = format!("http://{health}/readyz");
    wait_for("the operator to be ready", PATIENCE, async || {
        reqwest::get(&ready)
            .await
            .ok()?
            .status()
            .is_success()
            .then_some(())
    })
    .await
    .unwrap();
    (operator, format!("http://{metrics}/metrics"))
}
