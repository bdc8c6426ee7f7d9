//! A control plane, a platform, and operators of several versions.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use dbplane::cluster::merge;
use dbplane_simulator::world::Profile;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as Platform, Simulator};
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Version;
use crate::recorded::{
    CLUSTER_ID, CREDENTIALS, KINDS, NAMESPACE, ORGANIZATION, Object, PROJECT, Recording, TOKEN,
};
use crate::support::{
    ControlPlane, Options, PATIENCE, Running, free_listener, free_port, objects, wait_for,
};

/// A time without writes that counts as settled: longer than a poll and a check of a key.
const REST: Duration = Duration::from_secs(12);
const LONGEST: Duration = Duration::from_secs(200);

pub struct Site {
    pub cluster: ControlPlane,
    client: Client,
    pub platform: Simulator,
    pub profile: Profile,
}

/// An operator's process with the URL of its health endpoint.
pub struct Operator {
    pub process: Running,
    health: String,
}

impl Site {
    /// A platform with the branches of these objects, an account, and the definitions of this
    /// version.
    pub async fn open(version: Version, profile: Profile, branches: &[Object]) -> Self {
        let options = Options {
            crds: version.definitions(),
            ..Options::default()
        };
        let cluster = ControlPlane::start_with(options).await.unwrap();
        let client = cluster.client().await.unwrap();
        let listener = free_listener().unwrap();
        listener.set_nonblocking(true).unwrap();
        let world = WorldFile::parse(&world(branches)).unwrap();
        let options = Platform {
            profile,
            seed: 7,
            ..Platform::new(world)
        };
        let platform = simulator::serve(TcpListener::from_std(listener).unwrap(), options)
            .await
            .unwrap();
        let site = Self {
            cluster,
            client,
            platform,
            profile,
        };
        site.declare_account().await;
        site
    }

    async fn declare_account(&self) {
        let secret = |name: &str, entries: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": entries});
        self.create(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        )
        .await;
        self.create(&secret(CREDENTIALS, json!({"api-key": TOKEN})))
            .await;
        self.create(&secret("unrelated", json!({"text": "somebody's"})))
            .await;
        let account = |kind: &str, name: &str, more: Value| {
            let mut spec = json!({
                "baseURL": self.platform.base_url(), "organizationID": ORGANIZATION, "pollInterval": "5s",
                "rateLimit": {"requestsPerMinute": 60_000, "burst": 1000}, "apiKeySecretRef": {"name": CREDENTIALS},
            });
            merge(&mut spec, &more);
            json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
        };
        let (kind, more) = match self.profile {
            Profile::Minimal => (
                "ClusterAccount",
                json!({"apiKeySecretRef": {"namespace": NAMESPACE}, "namespaces": {"names": [NAMESPACE]}}),
            ),
            _ => ("Account", json!({})),
        };
        self.create(&account(kind, "prod", more)).await;
        self.create(&account(
            "Account",
            "empty",
            json!({"apiKeySecretRef": {"name": "no-such-secret"}}),
        ))
        .await;
    }

    /// The account reference for resources.
    pub fn account(&self) -> Value {
        match self.profile {
            Profile::Minimal => json!({"kind": "ClusterAccount", "name": "prod"}),
            _ => json!({"name": "prod"}),
        }
    }

    pub async fn create(&self, manifest: &Value) {
        let kind = manifest["kind"].as_str().unwrap();
        let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
        let created = objects(&self.client, NAMESPACE, kind)
            .create(&PostParams::default(), &object)
            .await;
        created.unwrap_or_else(|error| panic!("{manifest}: {error}"));
    }

    pub async fn patch(&self, kind: &str, name: &str, patch: &Value) {
        let api = objects(&self.client, NAMESPACE, kind);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        objects(&self.client, NAMESPACE, kind)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// All objects of a kind by name.
    pub async fn all(&self, kind: &str) -> BTreeMap<String, Value> {
        let listed = objects(&self.client, NAMESPACE, kind)
            .list(&ListParams::default())
            .await
            .unwrap();
        let named = |mut object: DynamicObject| {
            // Items of a list have no kind of their own.
            object.types = None;
            let mut object = serde_json::to_value(object).unwrap();
            let version = if kind == "Secret" {
                "v1"
            } else {
                "dbplane.dev/v1alpha1"
            };
            merge(&mut object, &json!({"apiVersion": version, "kind": kind}));
            (
                object["metadata"]["name"].as_str().unwrap().to_owned(),
                object,
            )
        };
        listed.items.into_iter().map(named).collect()
    }

    /// Records the cluster and the platform.
    pub async fn record(&self) -> Recording {
        let mut found = BTreeMap::new();
        for kind in KINDS {
            found.insert(
                kind.to_owned(),
                self.all(kind).await.into_values().collect(),
            );
        }
        let world = self.platform.with_world(|world, now| {
            world.advance_to(now);
            world.clone()
        });
        Recording::new(self.platform.now(), found, world.unwrap())
    }

    /// Starts an operator and waits until it is ready; with leader election it may still wait for
    /// the lease.
    pub async fn start(&self, version: Version, name: &str, flags: &[&str]) -> Operator {
        let operator = self.launch(version, name, flags);
        operator.until_ready().await;
        operator
    }

    pub fn launch(&self, version: Version, name: &str, flags: &[&str]) -> Operator {
        let (health, metrics) = (free_port().unwrap(), free_port().unwrap());
        let mut command = Command::new(version.program());
        command
            .args([
                "run",
                "--allow-insecure-platform",
                "--log",
                "info,dbplane=debug",
                "--identity",
                name,
            ])
            .args([
                "--request-timeout",
                "5",
                "--settle-time",
                "45",
                "--key-check-interval",
                "5",
                "--cluster-id",
                CLUSTER_ID,
            ])
            .args(["--deletes-per-minute", "1000"])
            .args(flags)
            .arg(format!("--health-listen=127.0.0.1:{health}"))
            .arg(format!("--metrics-listen=127.0.0.1:{metrics}"))
            .env("KUBECONFIG", self.cluster.kubeconfig_path());
        let process = self
            .cluster
            .sandbox()
            .start(name, command)
            .unwrap()
            .log_on_panic();
        Operator {
            process,
            health: format!("http://127.0.0.1:{health}/readyz"),
        }
    }

    /// The number of requests to the platform so far.
    pub fn requests(&self) -> u64 {
        self.platform.requests(0).last().map_or(0, |entry| entry.n)
    }

    /// The changes requested since then: method, path and status.
    pub fn asked(&self, since: u64) -> Vec<(String, String, Option<u16>)> {
        let entries = self
            .platform
            .requests(since)
            .into_iter()
            .filter(|entry| entry.method != "GET");
        entries
            .map(|entry| (entry.method, entry.path, entry.status))
            .collect()
    }

    /// The changes that were executed and answered.
    pub fn changes(&self, since: u64) -> Vec<(String, String)> {
        let done = |status: Option<u16>| status.is_some_and(|status| matches!(status, 200..=203));
        self.asked(since)
            .into_iter()
            .filter(|(.., status)| done(*status))
            .map(|(method, path, _)| (method, path))
            .collect()
    }

    /// Waits until neither side changes any more.
    pub async fn until_at_rest(&self) {
        let (mut last, mut since) = (None, Instant::now());
        let found = wait_for("nothing to be written", LONGEST, async || {
            let now = (self.versions().await, self.asked(0).len());
            if last.as_ref() != Some(&now) {
                (last, since) = (Some(now), Instant::now());
            }
            (since.elapsed() > REST).then_some(())
        });
        found.await.unwrap();
    }

    /// The resource versions of all objects.
    pub async fn versions(&self) -> BTreeMap<(&'static str, String), String> {
        let mut versions = BTreeMap::new();
        for kind in KINDS {
            for (name, object) in self.all(kind).await {
                versions.insert(
                    (kind, name),
                    object["metadata"]["resourceVersion"].to_string(),
                );
            }
        }
        versions
    }

    /// Waits until nothing is missing; the error lists missing items.
    pub async fn until(&self, what: &str, mut missing: impl AsyncFnMut() -> Vec<String>) {
        let mut last = Vec::new();
        let found = wait_for(what, LONGEST, async || {
            last = missing().await;
            last.is_empty().then_some(())
        });
        let found = found.await;
        found.unwrap_or_else(|error| panic!("{error}: {last:#?}"));
    }
}

impl Operator {
    pub async fn is_ready(&self) -> bool {
        reqwest::get(&self.health)
            .await
            .is_ok_and(|answer| answer.status().is_success())
    }

    pub async fn until_ready(&self) {
        wait_for("the operator to be ready", PATIENCE, async || {
            self.is_ready().await.then_some(())
        })
        .await
        .unwrap();
    }
}

/// Computes stay active, as no client connects to them.
fn world(objects: &[Object]) -> String {
    let branches: Vec<String> = objects
        .iter()
        .flat_map(|object| [object.branch(), object.other_branch()])
        .map(|id| format!("{{id: {id}}}"))
        .collect();
    let foreign = objects
        .iter()
        .filter_map(|object| Some((object.foreign()?, object.branch())));
    let foreign: Vec<String> = foreign
        .map(|(id, branch)| format!("{{id: {id}, branch: {branch}, active: true}}"))
        .collect();
    format!(
        "settings: {{start_ms: 200, inactivity_seconds: 864000, rate_limit: {{enabled: false}}}}
users: [{{id: user-ada}}]
organizations: [{{id: {ORGANIZATION}, plan: scale, members: [{{user: user-ada, role: admin}}]}}]
projects: [{{id: {PROJECT}, owner: {ORGANIZATION}, branches: [{}], computes: [{}]}}]
keys: [{{type: personal, owner: user-ada, name: admin, token: {TOKEN}}}]
",
        branches.join(", "),
        foreign.join(", ")
    )
}
