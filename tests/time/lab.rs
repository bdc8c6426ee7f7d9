//! A control plane, a platform, and an operator in this process; the test controls the time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbplane::config::OperatorSettings;
use dbplane::controller::{self, Operator};
use dbplane::decide::Limits;
use dbplane::platform::{Platforms, Reach};
use dbplane::telemetry::{Metrics, Readiness};
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as Platform, Simulator};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{ControlPlane, Options, PATIENCE, definition_files, objects, wait_for};

pub const ADMIN: &str = "demo-personal-key-not-a-secret";
pub const NAMESPACE: &str = "shop";
pub const PROJECT: &str = "aged-wind-123456";

/// The operator's time: the real time plus the advance of tokio's clock.
pub fn now() -> Timestamp {
    let ahead = tokio::time::Instant::now()
        .into_std()
        .saturating_duration_since(Instant::now());
    dbplane::clock::now() + ahead
}

pub struct Lab {
    pub platform: Simulator,
    client: Client,
    stop: CancellationToken,
    operator: JoinHandle<Result<(), String>>,
    cluster: ControlPlane,
}

impl Lab {
    /// A cluster with deploy/ installed, the namespace of the examples, and a running operator.
    pub async fn start() -> Self {
        let log = tracing_subscriber::fmt()
            .with_env_filter("info,dbplane=debug")
            .with_test_writer()
            .finish();
        // The log of this thread, on which everything runs.
        let guard = tracing::subscriber::set_default(log);
        std::mem::forget(guard);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let options = Options {
            crds: definition_files(),
            ..Options::default()
        };
        let cluster = ControlPlane::start_with(options).await.unwrap();
        cluster
            .kubectl(&["apply", "-k", root.join("deploy").to_str().unwrap()])
            .await
            .unwrap();
        cluster
            .kubectl(&["create", "namespace", NAMESPACE])
            .await
            .unwrap();
        let world = std::fs::read_to_string(root.join("deploy/examples/world.yaml")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let platform = simulator::serve(listener, Platform::new(WorldFile::parse(&world).unwrap()))
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let readiness = Readiness::default();
        let operator = Operator {
            client: cluster
                .client_for_service_account("dbplane-system", "dbplane")
                .await
                .unwrap(),
            settings: settings(),
            election: None,
            readiness,
            metrics: Arc::new(Metrics::default()),
            clock: now,
        };
        let operator = tokio::spawn(controller::run(operator, stop.clone()));
        let client = cluster.client().await.unwrap();
        Self {
            platform,
            client,
            stop,
            operator,
            cluster,
        }
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Advances the time of the operator, of all timers in this process, and of the platform.
    pub async fn passes(&self, time: Duration) {
        // A request in progress would time out, as after a machine's sleep.
        let over = async || self.platform.requests(0).iter().all(|entry| entry.over);
        self.wait_until("no request to be on its way", over).await;
        self.platform.advance(time).unwrap();
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }

    /// Ends the operator as SIGTERM would.
    pub async fn stop(self) {
        self.stop.cancel();
        self.operator.await.unwrap().unwrap();
    }

    pub async fn apply(&self, manifests: &str) {
        self.cluster
            .kubectl_with_input(&["-n", NAMESPACE, "apply", "-f", "-"], manifests)
            .await
            .unwrap();
    }

    /// Applies manifests that contain their namespaces.
    pub async fn apply_anywhere(&self, manifests: &str) {
        self.cluster.apply(manifests).await.unwrap();
    }

    /// An administrator's Account `prod`.
    pub async fn account(&self) {
        let url = self.platform.base_url();
        self.apply(&format!(
            "apiVersion: v1
kind: Secret
metadata: {{name: platform-api-key}}
stringData: {{api-key: {ADMIN}}}
---
apiVersion: dbplane.dev/v1alpha1
kind: Account
metadata: {{name: prod}}
spec:
  baseURL: {url}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{name: platform-api-key}}
  pollInterval: 5s
"
        ))
        .await;
    }

    /// The object `kind/name`; null if it does not exist.
    pub async fn get(&self, object: &str) -> Value {
        let (kind, name) = object.split_once('/').unwrap();
        let found = objects(&self.client, NAMESPACE, kind)
            .get_opt(name)
            .await
            .unwrap();
        found.map_or(Value::Null, |object| serde_json::to_value(object).unwrap())
    }

    /// Waits until the object satisfies a predicate; the error shows its last state.
    pub async fn until(&self, object: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = wait_for(&format!("{object} to be {what}"), PATIENCE, async || {
            last = self.get(object).await;
            holds(&last).then(|| last.clone())
        })
        .await;
        found.unwrap_or_else(|error| {
            let seen = serde_json::to_string_pretty(&last["status"]).unwrap();
            panic!("{error}\nlast seen: {seen}\n{}", self.requests().join("\n"))
        })
    }

    pub async fn until_ready(&self, object: &str) -> Value {
        self.until(object, "ready", is_ready).await
    }

    /// Waits until the resource is ready with a new key.
    pub async fn until_replaced(&self, object: &str, old: &Value) -> Value {
        let another =
            |seen: &Value| seen["status"]["keyID"].is_i64() && seen["status"]["keyID"] != *old;
        self.until(object, "ready with another key", |seen| {
            is_ready(seen) && another(seen)
        })
        .await
    }

    pub async fn wait_until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        wait_for(what, PATIENCE, async || holds().await.then_some(()))
            .await
            .unwrap();
    }

    /// Requests a reconcile with a fresh read of the platform, and waits for it.
    pub async fn is_decided(&self, object: &str) -> Value {
        let request = now().to_string();
        let patch =
            json!({"metadata": {"annotations": {"dbplane.dev/reconcile-requested-at": request}}});
        let (kind, name) = object.split_once('/').unwrap();
        let patch = (PatchParams::default(), Patch::Merge(&patch));
        objects(&self.client, NAMESPACE, kind)
            .patch(name, &patch.0, &patch.1)
            .await
            .unwrap();
        self.until(object, "decided on", |seen| {
            seen["status"]["lastHandledReconcileAt"] == request.as_str()
        })
        .await
    }

    /// The API requests so far as "METHOD path status".
    pub fn requests(&self) -> Vec<String> {
        let line = |entry: simulator::log::Entry| {
            format!(
                "{} {} {}",
                entry.method,
                entry.path,
                entry
                    .status
                    .map_or_else(String::new, |code| code.to_string())
            )
        };
        self.platform.requests(0).into_iter().map(line).collect()
    }

    pub fn count(&self, start: &str) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.starts_with(start))
            .count()
    }

    pub fn fault(&self, order: Value) {
        self.platform
            .order_fault(serde_json::from_value(order).unwrap())
            .unwrap();
    }

    /// Number of requests with a rejected key.
    pub fn refused(&self) -> usize {
        self.platform
            .requests(0)
            .iter()
            .filter(|entry| entry.status == Some(401))
            .count()
    }

    /// The ids of the project's valid keys.
    pub async fn live_keys(&self) -> Vec<Value> {
        let url = format!("{}/api_keys", self.platform.console_url());
        let keys: Vec<Value> = reqwest::get(url).await.unwrap().json().await.unwrap();
        let live = |key: &&Value| key["project_id"] == PROJECT && key["revoked"] == false;
        keys.iter()
            .filter(live)
            .map(|key| key["id"].clone())
            .collect()
    }

    /// Revokes a key in the console.
    pub async fn revoke(&self, id: &Value) {
        let url = format!("{}/api_keys/{id}/revoke", self.platform.console_url());
        let answer = reqwest::Client::new()
            .post(url)
            .json(&json!({}))
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
    }

    /// Waits until the project has exactly these valid keys.
    pub async fn until_live(&self, keys: &[&Value]) {
        let expected = json!(keys);
        self.wait_until(&format!("the keys {expected} to be left"), async || {
            json!(self.live_keys().await) == expected
        })
        .await;
    }
}

fn settings() -> OperatorSettings {
    let request_timeout = Duration::from_secs(10);
    OperatorSettings {
        reach: Reach {
            insecure: true,
            ..Reach::default()
        },
        watch_namespaces: Vec::new(),
        credentials_namespaces: Vec::new(),
        cluster_accounts: true,
        cluster_id: None,
        request_timeout,
        concurrency: 16,
        platforms: Platforms::default(),
        list_memory: 32 << 20,
        limits: Limits {
            settle: Duration::from_secs(21),
            ..Limits::default()
        },
        identity: "time".to_owned(),
    }
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    conditions
        .clone()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

pub fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}
