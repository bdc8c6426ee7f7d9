//! The test bed: a control plane, a simulated platform, and the release build of the operator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dbplane_simulator::world::Profile;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as PlatformOptions, Simulator};
use kube::{Api, Client};
use tokio::net::TcpListener;

use super::fleet;
use super::spent::{Counter, audit_policy};
use super::support::{ControlPlane, Error, Options, Result, Running, free_port, wait_for};

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const USER: &str = "system:serviceaccount:dbplane-system:dbplane";
pub const PATIENCE: Duration = Duration::from_secs(1200);

/// The environment of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Number of Computes to create.
    pub size: usize,
    /// True if the platform limits requests and the Account declares that limit.
    pub limited: bool,
    pub profile: Profile,
    /// Number of keys in the organization that were not created by this run.
    pub strangers: usize,
}

impl Setting {
    /// A platform without limits.
    pub fn unlimited(size: usize) -> Self {
        Self {
            size,
            limited: false,
            profile: Profile::default(),
            strangers: 0,
        }
    }
}

pub struct Bed {
    pub setting: Setting,
    pub operator: Running,
    /// The URL of the operator's metrics.
    metrics: String,
    pub platform: Simulator,
    pub counter: Counter,
    pub client: Client,
    program: PathBuf,
    cluster: ControlPlane,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bed {
    pub async fn new(program: &Path, setting: Setting) -> Result<Self> {
        let program = Path::new(REPOSITORY).join(program);
        let folder = tempfile::tempdir()?;
        let audit = folder.path().join("audit.log");
        let cluster = audited_cluster(folder.path(), &audit).await?;
        let platform = platform(setting).await?;
        cluster
            .kubectl_with_input(
                &["apply", "-f", "-"],
                &fleet::account(&platform.base_url(), setting),
            )
            .await?;
        let kubeconfig = cluster
            .kubeconfig_for_service_account("dbplane-system", "dbplane")
            .await?;
        let (operator, metrics) =
            start_operator("operator", &program, &[], &cluster, &kubeconfig).await?;
        let accounts = [
            "-n",
            fleet::NAMESPACE,
            "wait",
            "--for=condition=Ready",
            "account/prod",
            "--timeout=60s",
        ];
        cluster.kubectl(&accounts).await?;
        let (client, counter) = (cluster.client().await?, Counter::new(&audit)?);
        Ok(Self {
            setting,
            operator,
            metrics,
            platform,
            counter,
            client,
            program,
            cluster,
            kubeconfig,
            _folder: folder,
        })
    }

    /// Restarts the operator as a rollout does, with these additional flags. Ready on return.
    pub async fn restart(&mut self, flags: &[&str]) -> Result<()> {
        self.operator.terminate(PATIENCE).await?;
        (self.operator, self.metrics) = self.start("operator", flags).await?;
        Ok(())
    }

    /// Starts a second operator process; `name` is the name of its log. Ready on return.
    pub async fn another(&self, name: &str) -> Result<Running> {
        let (operator, _) = self.start(name, &[]).await?;
        Ok(operator)
    }

    async fn start(&self, name: &str, flags: &[&str]) -> Result<(Running, String)> {
        start_operator(name, &self.program, flags, &self.cluster, &self.kubeconfig).await
    }

    pub async fn create_namespace(&self, name: &str) -> Result<()> {
        self.cluster
            .kubectl(&["create", "namespace", name])
            .await
            .map(drop)
    }

    /// Number of passes that the operator has made.
    pub async fn passes(&self) -> Result<u64> {
        let text = reqwest::get(&self.metrics)
            .await
            .and_then(reqwest::Response::error_for_status);
        let text = text
            .map_err(Error::while_doing("asking for the metrics"))?
            .text()
            .await;
        let text = text.map_err(Error::while_doing("reading the metrics"))?;
        let passes = text
            .lines()
            .filter(|line| line.starts_with("dbplane_reconciles_total"));
        Ok(passes
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum())
    }

    pub fn computes(&self) -> Api<dbplane::api::Compute> {
        Api::namespaced(self.client.clone(), fleet::NAMESPACE)
    }
}

/// A control plane with dbplane's manifests. Its API server logs the operator's writes to `audit`.
async fn audited_cluster(folder: &Path, audit: &Path) -> Result<ControlPlane> {
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, audit_policy(USER))?;
    std::fs::write(audit, "")?;
    let flags = vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", audit.display()),
        "--audit-log-maxsize=2000".to_owned(),
    ];
    let cluster = ControlPlane::start_with(Options {
        api_server_flags: flags,
        ..Options::default()
    })
    .await?;
    cluster
        .kubectl(&["apply", "-k", &format!("{REPOSITORY}/deploy")])
        .await?;
    cluster
        .kubectl(&["wait", "--for=condition=Established", "crd", "--all"])
        .await?;
    Ok(cluster)
}

async fn platform(setting: Setting) -> Result<Simulator> {
    let world = WorldFile::parse(&fleet::world(setting))
        .map_err(Error::while_doing("reading the world"))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let options = PlatformOptions {
        profile: setting.profile,
        ..PlatformOptions::new(world)
    };
    let platform = simulator::serve(listener, options).await;
    platform.map_err(Error::while_doing("starting the platform"))
}

/// Starts the operator. Also returns the URL of its metrics. Ready on return.
async fn start_operator(
    name: &str,
    program: &Path,
    flags: &[&str],
    cluster: &ControlPlane,
    kubeconfig: &Path,
) -> Result<(Running, String)> {
    let metrics = format!("127.0.0.1:{}", free_port()?);
    let health = format!("127.0.0.1:{}", free_port()?);
    let mut command = Command::new(program);
    command
        .args([
            "run",
            "--leader-elect",
            "--allow-insecure-platform",
            "--health-listen",
            &health,
        ])
        .arg(format!("--metrics-listen={metrics}"))
        .args(flags)
        .env("KUBECONFIG", kubeconfig);
    let operator = cluster.sandbox().start(name, command)?;
    wait_for("the operator to be ready", PATIENCE, async || {
        reqwest::get(format!("http://{health}/readyz"))
            .await
            .ok()?
            .status()
            .is_success()
            .then_some(())
    })
    .await?;
    Ok((operator, format!("http://{metrics}/metrics")))
}
