//! Where one point plays: a namespace, a platform, a proxy in front of both, and the operator.

use std::process::Command;
use std::sync::Arc;

use jiff::SignedDuration;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::gate::Gate;
use super::lab::Lab;
use super::manifests::{account, cluster_account, credentials, namespace, secret};
use super::modes::Side;
use super::objects::Objects;
use super::platform::Platform;
use super::proxy::{self, Behind, Door};
use super::scenarios::{Act, Scenario};
use crate::support::{Error, Result, Running, aged, free_port};

/// A Secret that is nobody's business.
pub const FOREIGN_SECRET: &str = "unrelated";
const REQUEST_TIMEOUT: &str = "2";
/// As short as the program allows without leader election, and a second for a busy machine.
const SETTLE_TIME: &str = "4";

pub struct Site {
    pub lab: Arc<Lab>,
    pub objects: Objects,
    pub platform: Platform,
    pub gate: Arc<Gate>,
    pub foreign_secret: Value,
    /// Of the API server and of the platform; both ends of the proxy go with this.
    doors: [Door; 2],
    operators: Vec<Operator>,
    elsewhere: bool,
}

struct Operator {
    process: Running,
    health: u16,
    metrics: u16,
    /// Whether it was seen to work.
    ready: bool,
}

impl Site {
    /// An account and the operators, on a platform of its own, in a namespace of that name.
    pub async fn open(lab: Arc<Lab>, scenario: &Scenario, name: &str) -> Result<Self> {
        let platform = Platform::start(scenario.profile).await?;
        let gate = Arc::new(Gate::new(scenario.repeats()));
        let objects = Objects::new(lab.client.clone(), name);
        let door = async |side, upstream: String, http: &reqwest::Client| {
            let (http, gate, objects) = (http.clone(), gate.clone(), objects.clone());
            proxy::open(Behind { side, upstream, http, gate, objects, cluster_account: name.to_owned() }).await
        };
        let base_url = platform.simulator.base_url();
        let origin = base_url.trim_end_matches("/api/v2").to_owned();
        let doors = [
            door(Side::ApiServer, lab.cluster.url(), &lab.upstream).await?,
            door(Side::Platform, origin, &lab.http).await?,
        ];
        objects.create(&namespace(name)).await?;
        objects.create(&secret(FOREIGN_SECRET, "somebody's")).await?;
        let foreign_secret = objects.get("Secret", FOREIGN_SECRET).await?.unwrap_or_default();
        let elsewhere = scenario.elsewhere;
        let mut site = Self { lab, objects, platform, gate, foreign_secret, doors, operators: Vec::new(), elsewhere };
        site.declare_account().await?;
        for _ in 0..scenario.operators {
            site.start_operator()?;
        }
        Ok(site)
    }

    async fn declare_account(&self) -> Result<()> {
        let base_url = format!("http://{}/api/v2", self.doors[1].address);
        let name = &self.objects.namespace;
        if !self.elsewhere {
            self.objects.create(&credentials()).await?;
            return self.objects.create(&account(&base_url)).await;
        }
        let other = self.credentials_namespace();
        self.objects.create(&namespace(&other)).await?;
        Objects::new(self.lab.client.clone(), &other).create(&credentials()).await?;
        self.objects.create(&cluster_account(name, &base_url, &other)).await
    }

    fn credentials_namespace(&self) -> String {
        format!("{}-accounts", self.objects.namespace)
    }

    /// Starts one more operator; faults hit the first one.
    pub fn start_operator(&mut self) -> Result<()> {
        let ports = (free_port()?, free_port()?);
        let operator = self.operator(ports)?;
        if self.operators.is_empty() {
            self.gate.aim(operator.process.id());
        }
        self.operators.push(operator);
        Ok(())
    }

    fn operator(&self, (health, metrics): (u16, u16)) -> Result<Operator> {
        let name = &self.objects.namespace;
        let watched = match self.elsewhere {
            true => format!("{name},{}", self.credentials_namespace()),
            false => name.clone(),
        };
        let mut command = Command::new(&self.lab.program);
        command
            .args(["run", "--allow-insecure-platform", "--log", "info,dbplane=debug"])
            .args(["--request-timeout", REQUEST_TIMEOUT, "--settle-time", SETTLE_TIME])
            .args(["--watch-namespaces", &watched])
            .arg(format!("--health-listen=127.0.0.1:{health}"))
            .arg(format!("--metrics-listen=127.0.0.1:{metrics}"))
            .env("KUBECONFIG", self.lab.kubeconfig(name, &format!("http://{}", self.doors[0].address))?);
        let process = self.lab.cluster.sandbox().start(name, command)?;
        Ok(Operator { process, health, metrics, ready: false })
    }

    /// Does what people do; whatever refers to an account refers to this site's.
    pub async fn perform(&self, act: &Act) -> Result<()> {
        match act {
            Act::Create(manifest) => self.declare(manifest).await,
            Act::Change(kind, name, spec) => self.objects.patch(kind, name, &json!({"spec": spec})).await,
            Act::Delete(kind, name) => self.objects.delete(kind, name).await,
            Act::DeleteNamespace => self.objects.delete("Namespace", &self.objects.namespace).await,
            Act::Age(name) => self.age(name).await,
        }
    }

    async fn age(&self, name: &str) -> Result<()> {
        let object = self.objects.get("ProjectKey", name).await?.unwrap_or_default();
        self.objects.patch_status("ProjectKey", name, &aged(&object, SignedDuration::from_hours(2))?).await
    }

    pub async fn declare(&self, manifest: &Value) -> Result<()> {
        let mut manifest = manifest.clone();
        manifest["spec"]["accountRef"] = match self.elsewhere {
            true => json!({"kind": "ClusterAccount", "name": self.objects.namespace}),
            false => json!({"name": "prod"}),
        };
        self.objects.create(&manifest).await
    }

    /// Starts the first operator anew once it has ended; whether it has. `expected` says whether it may have.
    pub fn tend(&mut self, expected: bool) -> Result<bool> {
        for operator in &mut self.operators {
            let Some(status) = operator.process.ended()? else { continue };
            if !expected {
                let last = operator.process.last_lines(10);
                return Err(Error::new(format!("the operator ended by itself ({status}):\n{last}")));
            }
            let ports = (operator.health, operator.metrics);
            let anew = self.operator(ports)?;
            self.gate.aim(anew.process.id());
            self.operators[0] = anew;
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether every operator works. What one begins with counts as something that writes may follow.
    pub async fn all_ready(&mut self) -> bool {
        for operator in self.operators.iter_mut().filter(|operator| !operator.ready) {
            let url = format!("http://127.0.0.1:{}/readyz", operator.health);
            let answer = self.lab.http.get(url).send().await;
            if !answer.is_ok_and(|answer| answer.status().is_success()) {
                return false;
            }
            operator.ready = true;
            self.gate.touch();
        }
        true
    }

    /// Lets an operator that was stopped go on.
    pub fn thaw(&mut self) -> Result<()> {
        self.gate.touch();
        self.operators[0].process.signal(Signal::SIGCONT)
    }

    pub fn operators(&self) -> usize {
        self.operators.len()
    }

    /// Everything that operators of this site have logged.
    pub fn log(&self) -> String {
        self.operators.first().map(|operator| operator.process.log()).unwrap_or_default()
    }

    pub async fn metrics(&self) -> Result<String> {
        let mut all = String::new();
        for operator in &self.operators {
            let url = format!("http://127.0.0.1:{}/metrics", operator.metrics);
            let answer = self.lab.http.get(url).send().await.map_err(Error::while_doing("reading the metrics"))?;
            all.push_str(&answer.text().await.map_err(Error::while_doing("reading the metrics"))?);
        }
        Ok(all)
    }
}
