//! Measures the released program: what it spends on the platform and on the API server, and how much memory it takes.
//!
//! `make measure` runs it; `-- --quiet-seconds N` sets how long it watches the quiet (600 by default).

#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as PlatformOptions, Simulator};
use support::{ControlPlane, Error, Options, Result, Running, free_port, wait_for};
use tokio::net::TcpListener;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const OPERATOR: &str = "system:serviceaccount:dbplane-system:dbplane";
const PROJECT: &str = "aged-wind-123456";
const PATIENCE: Duration = Duration::from_secs(600);
/// Only metadata: who asked for what.
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

struct Bench {
    operator: Running,
    cluster: ControlPlane,
    platform: Simulator,
    audit: PathBuf,
    _folder: tempfile::TempDir,
}

/// Requests since a moment.
#[derive(Clone, Copy, Default)]
struct Spent {
    platform_lists: usize,
    platform_changes: usize,
    kubernetes_reads: usize,
    kubernetes_writes: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let quiet = std::env::args().skip_while(|arg| arg != "--quiet-seconds").nth(1).and_then(|text| text.parse().ok());
    let quiet = Duration::from_secs(quiet.unwrap_or(600));
    let bench = Bench::start().await?;
    println!("resident memory with no Compute: {} KiB", bench.operator.resident_kib()?);

    let begin = Instant::now();
    let before = bench.spent()?;
    bench.declare(0..100).await?;
    bench.all_ready(100).await?;
    println!("100 Computes created and Ready in {:.1} s", begin.elapsed().as_secs_f64());
    let created = bench.settled().await?;
    report("creating 100 Computes", created.since(before));

    let before = bench.spent()?;
    tokio::time::sleep(quiet).await;
    report(&format!("{} quiet seconds with 100 Computes", quiet.as_secs()), bench.spent()?.since(before));

    let begin = Instant::now();
    bench.declare(100..1000).await?;
    bench.all_ready(1000).await?;
    println!(
        "900 more created and Ready in {:.1} s (the budget allows 12,000 requests a minute)",
        begin.elapsed().as_secs_f64()
    );
    println!("resident memory with 1,000 Computes: {} KiB", bench.operator.resident_kib()?);
    Ok(())
}

impl Bench {
    async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (policy, audit) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        std::fs::write(&policy, AUDIT_POLICY)?;
        let flags =
            vec![format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", audit.display())];
        let cluster = ControlPlane::start_with(Options { api_server_flags: flags, ..Options::default() }).await?;
        cluster.kubectl(&["apply", "-k", &format!("{REPOSITORY}/deploy")]).await?;
        cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let world = WorldFile::parse(&world()).map_err(Error::while_doing("reading the world"))?;
        let platform = simulator::serve(listener, PlatformOptions::new(world)).await;
        let platform = platform.map_err(Error::while_doing("starting the platform"))?;
        let operator = operator(&cluster).await?;
        cluster.kubectl_with_input(&["apply", "-f", "-"], &account(&platform.base_url())).await?;
        Ok(Self { operator, cluster, platform, audit, _folder: folder })
    }

    async fn declare(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let manifests: Vec<String> = numbers.map(compute).collect();
        for some in manifests.chunks(100) {
            self.cluster.kubectl_with_input(&["create", "-f", "-"], &some.join("---\n")).await?;
        }
        Ok(())
    }

    async fn all_ready(&self, count: usize) -> Result<()> {
        let ready = async || {
            let path = "jsonpath={range .items[*]}{.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}{end}";
            let text = self.cluster.kubectl(&["-n", "shop", "get", "computes", "-o", path]).await.ok()?;
            (text.lines().filter(|line| *line == "True").count() == count).then_some(())
        };
        wait_for(&format!("{count} Computes to be Ready"), PATIENCE, ready).await
    }

    /// What was spent once nothing is written any more.
    async fn settled(&self) -> Result<Spent> {
        let mut last = usize::MAX;
        loop {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let spent = self.spent()?;
            if spent.kubernetes_writes == last {
                return Ok(spent);
            }
            last = spent.kubernetes_writes;
        }
    }

    fn spent(&self) -> Result<Spent> {
        let mut spent = Spent::default();
        for request in self.platform.requests(0) {
            match request.method.to_string().as_str() {
                "GET" => spent.platform_lists += 1,
                _ => spent.platform_changes += 1,
            }
        }
        for line in std::fs::read_to_string(&self.audit)?.lines() {
            let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            if entry["user"]["username"] != OPERATOR {
                continue;
            }
            match entry["verb"].as_str() {
                Some("get" | "list" | "watch") => spent.kubernetes_reads += 1,
                _ => spent.kubernetes_writes += 1,
            }
        }
        Ok(spent)
    }
}

impl Spent {
    fn since(self, before: Self) -> Self {
        Self {
            platform_lists: self.platform_lists - before.platform_lists,
            platform_changes: self.platform_changes - before.platform_changes,
            kubernetes_reads: self.kubernetes_reads - before.kubernetes_reads,
            kubernetes_writes: self.kubernetes_writes - before.kubernetes_writes,
        }
    }
}

fn report(what: &str, spent: Spent) {
    println!(
        "{what}: platform {} lists and {} changes; Kubernetes {} reads and {} writes",
        spent.platform_lists, spent.platform_changes, spent.kubernetes_reads, spent.kubernetes_writes
    );
}

async fn operator(cluster: &ControlPlane) -> Result<Running> {
    let kubeconfig = cluster.kubeconfig_for_service_account("dbplane-system", "dbplane").await?;
    let health = format!("127.0.0.1:{}", free_port()?);
    let mut command = Command::new(Path::new(REPOSITORY).join("target/release/dbplane"));
    command
        .args(["run", "--allow-insecure-platform", "--health-listen", &health])
        .arg(format!("--metrics-listen=127.0.0.1:{}", free_port()?))
        .env("KUBECONFIG", kubeconfig);
    let operator = cluster.sandbox().start("operator", command)?;
    wait_for("the operator to be ready", PATIENCE, async || {
        reqwest::get(format!("http://{health}/readyz")).await.ok()?.status().is_success().then_some(())
    })
    .await?;
    Ok(operator)
}

/// One project with a branch for each Compute, and no limits but those under test.
fn world() -> String {
    let branches: String = (0..1000).map(|number| format!("      - {{id: br-{number}}}\n")).collect();
    format!(
        "settings: {{rate_limit: {{enabled: false}}, serialise_operations: false}}
users: [{{id: user-ada}}]
organizations:
  - {{id: org-cool-darkness-1, plan: scale, members: [{{user: user-ada, role: admin}}]}}
projects:
  - id: {PROJECT}
    owner: org-cool-darkness-1
    branches:
{branches}keys: [{{type: personal, owner: user-ada, name: laptop, token: measuring-key-not-a-secret}}]
"
    )
}

fn account(base_url: &str) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {{name: platform-api-key, namespace: shop}}
stringData: {{api-key: measuring-key-not-a-secret}}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: prod, namespace: shop}}
spec:
  baseURL: {base_url}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{name: platform-api-key}}
  rateLimit: {{requestsPerMinute: 12000, burst: 100}}
  pollInterval: 30s
"
    )
}

fn compute(number: usize) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: compute-{number}, namespace: shop}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  branchID: br-{number}
  type: ReadWrite
  size: {{autoscaling: {{min: 0.25, max: 2}}}}
  scaleToZero: {{never: true}}
"
    )
}
