//! The site of one point: a namespace, a platform, a proxy in front of the platform and the API
//! server, and the operators.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::gate::{Gate, Process};
use super::lab::Lab;
use super::manifests::{account, cluster_account, credentials, namespace, secret};
use super::modes::Side;
use super::objects::Objects;
use super::platform::Platform;
use super::proxy::{self, Behind, Door};
use super::scenarios::Scenario;
use crate::support::{Error, PATIENCE, Result, Running, free_port};

/// A Secret that dbplane must not touch.
pub const FOREIGN_SECRET: &str = "unrelated";
/// The operator's own namespace.
const OWN_NAMESPACE: &str = "dbplane-system";
/// Time between two checks of a process's progress.
const LOOK: Duration = Duration::from_millis(100);
/// Timeout of one readiness check.
const LONGEST_CHECK: Duration = Duration::from_secs(2);
/// Nothing listens on this address. Each process reaches the platform through its own proxy, which
/// identifies the sender.
const BASE_URL: &str = "http://127.0.0.1:1/api/v2";
const REQUEST_TIMEOUT: &str = "2";
/// The shortest that the program accepts without leader election, plus one second for a busy
/// machine.
const SETTLE_TIME: &str = "4";
/// The same with leader election.
const SETTLE_TIME_ELECTED: &str = "18";

pub struct Site {
    pub lab: Arc<Lab>,
    pub objects: Objects,
    pub platform: Arc<Platform>,
    pub gate: Arc<Gate>,
    pub foreign_secret: Value,
    /// Two doors for each process. They close with the site.
    doors: Vec<Door>,
    operators: Vec<Operator>,
    pub elsewhere: bool,
    pub elected: bool,
    /// True if the first operator is stopped.
    stopped: bool,
    /// True if the second operator waits for the first one to end.
    relief_waits: bool,
}

#[derive(Clone, Copy)]
struct Ports {
    health: u16,
    metrics: u16,
}

struct Operator {
    number: usize,
    process: Running,
    ports: Ports,
    /// True if it was ready at least once.
    ready: bool,
}

impl Operator {
    fn known_as(&self) -> Process {
        Process {
            number: self.number,
            id: self.process.id(),
        }
    }
}

impl Site {
    /// Creates a namespace of this name with an account, its own platform, and the operators.
    pub async fn open(lab: Arc<Lab>, scenario: &Scenario, name: &str) -> Result<Self> {
        let platform = Arc::new(Platform::start(scenario.profile).await?);
        let gate = Arc::new(Gate::new(scenario.repeats()));
        let objects = Objects::new(lab.client.clone(), name);
        objects.create(&namespace(name)).await?;
        objects
            .create(&secret(FOREIGN_SECRET, "somebody's"))
            .await?;
        let foreign_secret = objects
            .get("Secret", FOREIGN_SECRET)
            .await?
            .unwrap_or_default();
        let Scenario {
            elsewhere, elected, ..
        } = *scenario;
        let (doors, operators) = (Vec::new(), Vec::new());
        let mut site = Self {
            lab,
            objects,
            platform,
            gate,
            foreign_secret,
            doors,
            operators,
            elsewhere,
            elected,
            stopped: false,
            relief_waits: false,
        };
        site.declare_account().await?;
        if elected {
            site.allow_lease().await?;
        }
        for _ in 0..scenario.operators {
            site.start_operator().await?;
        }
        Ok(site)
    }

    async fn declare_account(&self) -> Result<()> {
        let name = &self.objects.namespace;
        if !self.elsewhere {
            self.objects.create(&credentials()).await?;
            return self.objects.create(&account(BASE_URL)).await;
        }
        let other = self.credentials_namespace();
        self.objects.create(&namespace(&other)).await?;
        Objects::new(self.lab.client.clone(), &other)
            .create(&credentials())
            .await?;
        self.objects
            .create(&cluster_account(name, BASE_URL, &other))
            .await
    }

    /// Copies the permissions for the Lease into this namespace, which the kubeconfig names.
    async fn allow_lease(&self) -> Result<()> {
        let (namespace, name) = (&self.objects.namespace, "dbplane-leader-election");
        let (from, to) = (&self.lab.client, self.lab.client.clone());
        let mut role = Api::<Role>::namespaced(from.clone(), OWN_NAMESPACE)
            .get(name)
            .await?;
        let mut binding = Api::<RoleBinding>::namespaced(from.clone(), OWN_NAMESPACE)
            .get(name)
            .await?;
        role.metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        binding.metadata = role.metadata.clone();
        Api::namespaced(to.clone(), namespace)
            .create(&PostParams::default(), &role)
            .await?;
        Api::namespaced(to, namespace)
            .create(&PostParams::default(), &binding)
            .await?;
        Ok(())
    }

    fn credentials_namespace(&self) -> String {
        format!("{}-accounts", self.objects.namespace)
    }

    /// Starts another operator. Faults hit the first one.
    pub async fn start_operator(&mut self) -> Result<()> {
        let ports = Ports {
            health: free_port()?,
            metrics: free_port()?,
        };
        let operator = self.operator(ports).await?;
        if self.operators.is_empty() {
            self.gate.aim(operator.known_as());
        }
        self.operators.push(operator);
        Ok(())
    }

    /// Starts another operator after the first one was stopped. The stopped one need not be ready
    /// until it continues.
    pub async fn start_while_the_first_is_stopped(&mut self) -> Result<()> {
        self.stopped = true;
        self.start_operator().await
    }

    /// Starts another operator and waits until it asks for the lead.
    pub async fn start_relief(&mut self) -> Result<()> {
        self.start_operator().await?;
        self.relief_waits = true;
        let begun = Instant::now();
        while !self.gate.newest_waits() {
            if begun.elapsed() > PATIENCE {
                return Err(Error::new("the second operator does not ask for the lead"));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// True once the first operator has ended as requested, while the second one waited for the
    /// lead.
    pub fn is_relieved(&mut self) -> Result<bool> {
        if !self.relief_waits {
            return Ok(true);
        }
        let former = &mut self.operators[0].process;
        let Some(status) = former.ended()? else {
            return Ok(false);
        };
        if !status.success() {
            return Err(Error::new(format!(
                "the operator did not end well ({status}):\n{}",
                former.last_lines(10)
            )));
        }
        self.operators.remove(0);
        self.relief_waits = false;
        self.gate.aim(self.operators[0].known_as());
        Ok(true)
    }

    /// Opens the proxies of a process to the API server and the platform.
    async fn doors(&self, process: usize) -> Result<[Door; 2]> {
        let origin = self
            .platform
            .simulator
            .base_url()
            .trim_end_matches("/api/v2")
            .to_owned();
        let door = async |side, upstream: String, http: &reqwest::Client| {
            let (http, gate, objects) = (http.clone(), self.gate.clone(), self.objects.clone());
            let cluster_account = objects.namespace.clone();
            let platform = self.platform.clone();
            proxy::open(Behind {
                process,
                side,
                upstream,
                http,
                gate,
                platform,
                objects,
                cluster_account,
            })
            .await
        };
        let lab = &self.lab;
        let api_server = door(Side::ApiServer, lab.cluster.url(), &lab.upstream).await?;
        Ok([api_server, door(Side::Platform, origin, &lab.http).await?])
    }

    async fn operator(&mut self, ports: Ports) -> Result<Operator> {
        let Ports { health, metrics } = ports;
        let number = self.gate.admit();
        let [api_server, platform] = self.doors(number).await?;
        let name = &self.objects.namespace;
        let watched = self.watched();
        let kubeconfig =
            self.lab
                .kubeconfig(name, number, &format!("http://{}", api_server.address))?;
        let mut command = Command::new(&self.lab.program);
        command
            .args([
                "run",
                "--allow-insecure-platform",
                "--log",
                "info,dbplane=debug",
            ])
            .args(["--request-timeout", REQUEST_TIMEOUT])
            .args(["--settle-time", self.settle_time()])
            .args(self.elected.then_some("--leader-elect"))
            .args(["--watch-namespaces", &watched])
            .arg(format!("--health-listen=127.0.0.1:{health}"))
            .arg(format!("--metrics-listen=127.0.0.1:{metrics}"))
            .env("KUBECONFIG", kubeconfig)
            .env("ALL_PROXY", format!("http://{}", platform.address));
        let process = self.lab.cluster.sandbox().start(name, command)?;
        self.doors.extend([api_server, platform]);
        Ok(Operator {
            number,
            process,
            ports,
            ready: false,
        })
    }

    fn settle_time(&self) -> &'static str {
        if self.elected {
            SETTLE_TIME_ELECTED
        } else {
            SETTLE_TIME
        }
    }

    /// The namespaces that operators watch.
    fn watched(&self) -> String {
        let name = &self.objects.namespace;
        if self.elsewhere {
            format!("{name},{}", self.credentials_namespace())
        } else {
            name.clone()
        }
    }

    /// Stops all operators with SIGTERM.
    pub async fn stop_operators(&mut self) -> Result<()> {
        for operator in &mut self.operators {
            operator.process.terminate(PATIENCE).await?;
        }
        self.operators.truncate(1);
        Ok(())
    }

    /// Runs `dbplane plan` for the namespace, with the permissions and proxies of the first
    /// operator, which has ended.
    pub async fn plan(&self) -> Result<Value> {
        let (name, number) = (&self.objects.namespace, self.operators[0].number);
        let proxy = format!("http://{}", self.doors[1].address);
        let mut command = tokio::process::Command::new(&self.lab.program);
        command
            .args([
                "plan",
                "--allow-insecure-platform",
                "--output",
                "json",
                "--namespace",
                name,
            ])
            .args([
                "--request-timeout",
                REQUEST_TIMEOUT,
                "--watch-namespaces",
                &self.watched(),
            ])
            .args(["--settle-time", self.settle_time()])
            .env(
                "KUBECONFIG",
                self.lab
                    .cluster
                    .sandbox()
                    .folder()
                    .join(format!("{name}-{number}.kubeconfig")),
            )
            .env("ALL_PROXY", proxy);
        let output = command.output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        serde_json::from_slice(&output.stdout).map_err(|error| {
            Error::new(format!(
                "no plan: {error}\n{}{}",
                text(&output.stdout),
                text(&output.stderr)
            ))
        })
    }

    /// Restarts the first operator if it has ended, and returns true if so. The end must be
    /// `expected`.
    pub async fn restart_ended(&mut self, expected: bool) -> Result<bool> {
        let mut ports = None;
        for operator in &mut self.operators {
            let Some(status) = operator.process.ended()? else {
                continue;
            };
            if !expected {
                let last = operator.process.last_lines(10);
                return Err(Error::new(format!(
                    "the operator ended by itself ({status}):\n{last}"
                )));
            }
            ports = Some(operator.ports);
        }
        let Some(ports) = ports else { return Ok(false) };
        let restarted = self.operator(ports).await?;
        self.gate.aim(restarted.known_as());
        self.operators[0] = restarted;
        Ok(true)
    }

    /// True if every operator is ready. A first success counts as a touch, because writes may
    /// follow.
    pub async fn all_ready(&mut self) -> bool {
        let asked = self.operators.iter_mut().skip(usize::from(self.stopped));
        for operator in asked.filter(|operator| !operator.ready) {
            let url = format!("http://127.0.0.1:{}/readyz", operator.ports.health);
            let answer = self.lab.http.get(url).timeout(LONGEST_CHECK).send().await;
            if !answer.is_ok_and(|answer| answer.status().is_success()) {
                return false;
            }
            operator.ready = true;
            self.gate.touch();
        }
        true
    }

    /// Resumes a stopped operator.
    pub fn thaw(&mut self) -> Result<()> {
        self.stopped = false;
        self.gate.touch();
        self.operators[0].process.signal(Signal::SIGCONT)
    }

    /// True once the process that led before it was stopped has ended, as it must. It is not
    /// restarted.
    pub fn former_leader_has_ended(&mut self) -> Result<bool> {
        let former = &mut self.operators[0].process;
        let Some(status) = former.ended()? else {
            return Ok(false);
        };
        if status.success() || !former.log().contains("the lead is lost") {
            let last = former.last_lines(10);
            return Err(Error::new(format!(
                "the former leader did not end because of the lost lead ({status}):\n{last}"
            )));
        }
        self.operators.remove(0);
        Ok(true)
    }

    /// True unless the newest operator still has to acquire the lead.
    pub fn is_led(&self) -> bool {
        !self.elected || self.relief_waits || self.gate.newest_leads()
    }

    pub fn operators(&self) -> usize {
        self.operators.len()
    }

    /// The log of this site's operators.
    pub fn log(&self) -> String {
        self.operators
            .first()
            .map(|operator| operator.process.log())
            .unwrap_or_default()
    }

    pub async fn metrics(&self) -> Result<String> {
        let mut all = String::new();
        for operator in &self.operators {
            let url = format!("http://127.0.0.1:{}/metrics", operator.ports.metrics);
            let answer = self
                .lab
                .http
                .get(url)
                .send()
                .await
                .map_err(Error::while_doing("reading the metrics"))?;
            all.push_str(
                &answer
                    .text()
                    .await
                    .map_err(Error::while_doing("reading the metrics"))?,
            );
        }
        Ok(all)
    }
}
