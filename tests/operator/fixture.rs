//! The environment of a test: a namespace, a platform, and the shared operator.

#[path = "manifests.rs"]
mod manifests;
#[path = "site.rs"]
mod site;

use std::path::PathBuf;
use std::time::Duration;

use dbplane_simulator::world::Profile;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as Platform, Simulator};
use k8s_openapi::ByteString;
use kube::{Api, Client};
use serde_json::Value;
use tokio::net::TcpListener;

pub use self::manifests::{account, compute, key, key_into};
use self::site::is_confined;
pub use self::site::{Shared, kill_operator, shared, start_operator_with, usual};
use crate::support::{PATIENCE, free_listener, free_port, objects, wait_for};

/// Tokens in the sample world.
pub const ADMIN: &str = "demo-personal-key-not-a-secret";
pub const ORGANIZATION_KEY: &str = "demo-organization-key-not-a-secret";
/// The sample project in manifests; each test replaces it by its own.
pub const PROJECT: &str = "aged-wind-123456";

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn free_address() -> String {
    format!("127.0.0.1:{}", free_port().unwrap())
}

/// A listener for a platform. Its port is unused: an Account in a namespace in deletion may still
/// have the URL of an earlier one.
pub fn listener() -> TcpListener {
    let listener = free_listener().unwrap();
    listener.set_nonblocking(true).unwrap();
    TcpListener::from_std(listener).unwrap()
}

/// More steps than any test needs; a loop makes hundreds per second.
const MOST_STEPS: usize = 60;

/// The sample world with this project.
pub fn world(project: &str) -> WorldFile {
    let world = std::fs::read_to_string(root().join("deploy/examples/world.yaml")).unwrap();
    WorldFile::parse(&world.replace(PROJECT, project)).unwrap()
}

/// The environment of a test. On drop it fails if the operator made too many steps, as in a loop.
pub struct Fixture {
    pub shared: &'static Shared,
    /// kubectl would be too slow for repeated polling.
    client: Client,
    pub namespace: String,
    pub platform: Simulator,
    pub project: String,
}

impl Fixture {
    /// A namespace and a platform of the default profile without an account.
    pub async fn bare(name: &str) -> Self {
        Self::on(name, |_| {}).await
    }

    /// A namespace and a platform without an account.
    pub async fn on(name: &str, shape: impl FnOnce(&mut Platform)) -> Self {
        let shared = if is_confined() {
            Shared::confined_to(name).await
        } else {
            shared().await
        };
        Self::within(shared, name, shape).await
    }

    /// Like `on`, in another control plane.
    pub async fn within(
        shared: &'static Shared,
        name: &str,
        shape: impl FnOnce(&mut Platform),
    ) -> Self {
        let project = format!("{name}-123456");
        let mut options = Platform::new(world(&project));
        shape(&mut options);
        let platform = simulator::serve(listener(), options).await.unwrap();
        if !is_confined() {
            shared
                .cluster
                .kubectl(&["create", "namespace", name])
                .await
                .unwrap();
        }
        let client = shared.cluster.client().await.unwrap();
        Self {
            shared,
            client,
            namespace: name.to_owned(),
            platform,
            project,
        }
    }

    /// Like `bare`, with the administrator's Account `prod`.
    pub async fn new(name: &str) -> Self {
        let fixture = Self::bare(name).await;
        fixture.account().await;
        fixture
    }

    /// Like `new`, with the public profile.
    pub async fn public(name: &str) -> Self {
        let fixture = Self::on(name, |options| options.profile = Profile::Public).await;
        fixture.account().await;
        fixture
    }

    /// Like `new`, with the minimal profile.
    pub async fn minimal(name: &str) -> Self {
        let fixture = Self::on(name, |options| options.profile = Profile::Minimal).await;
        fixture.account().await;
        fixture
    }

    pub async fn account(&self) {
        self.account_with(ADMIN).await;
    }

    /// The Account `prod` with another API key.
    pub async fn account_with(&self, token: &str) {
        self.secret("platform-api-key", token).await;
        self.account_at(&self.platform.base_url()).await;
    }

    /// The Account `prod` for the platform at this URL.
    pub async fn account_at(&self, base_url: &str) {
        self.account_named("prod", base_url).await;
    }

    pub async fn account_named(&self, name: &str, base_url: &str) {
        self.apply(&account(name, base_url, "")).await;
    }

    /// A ClusterAccount with the API key in Secret `platform-api-key` of a namespace; `more` is
    /// appended to its spec.
    pub async fn cluster_account(&self, name: &str, namespace: &str, more: &str) {
        let base_url = self.platform.base_url();
        self.apply(&format!(
            "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: {name}}}
spec:
  baseURL: {base_url}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{namespace: {namespace}, name: platform-api-key}}
  pollInterval: 5s
{more}"
        ))
        .await;
    }

    pub async fn secret(&self, name: &str, token: &str) {
        self.apply(&format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{api-key: {token}}}\n"
        ))
        .await;
    }

    pub async fn apply(&self, manifest: &str) {
        self.send("apply", manifest).await;
    }

    /// Sends a PUT of the manifest, as `kubectl replace` and forcing tools do.
    pub async fn replace(&self, manifest: &str) {
        self.send("replace", manifest).await;
    }

    async fn send(&self, verb: &str, manifest: &str) {
        let arguments = ["-n", &self.namespace, verb, "-f", "-"];
        let manifest = manifest.replace(PROJECT, &self.project);
        self.shared
            .cluster
            .kubectl_with_input(&arguments, &manifest)
            .await
            .unwrap();
    }

    pub async fn kubectl(&self, args: &[&str]) -> String {
        let mut all = vec!["-n", self.namespace.as_str()];
        all.extend(args);
        self.shared.cluster.kubectl(&all).await.unwrap()
    }

    /// Deletes the object `kind/name`, and does not wait for its end.
    pub async fn delete(&self, object: &str) {
        self.kubectl(&["delete", object, "--wait=false"]).await;
    }

    pub async fn delete_all(&self, kind: &str) {
        self.kubectl(&["delete", kind, "--all", "--wait=false"])
            .await;
    }

    /// Sets an annotation (`name=value`) or removes it (`name-`).
    pub async fn annotate(&self, object: &str, annotation: &str) {
        self.kubectl(&["annotate", "--overwrite", object, annotation])
            .await;
    }

    pub async fn patch(&self, object: &str, spec: Value) {
        let patch = serde_json::json!({"spec": spec}).to_string();
        self.kubectl(&["patch", object, "--type", "merge", "-p", &patch])
            .await;
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The object `kind/name`, if it exists.
    pub async fn get(&self, object: &str) -> Option<Value> {
        let (kind, name) = object.split_once('/').unwrap();
        let found = objects(&self.client, &self.namespace, kind)
            .get_opt(name)
            .await
            .unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    /// Waits until the object satisfies a predicate; the error shows its last state.
    pub async fn until(&self, object: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = wait_for(&format!("{object} to be {what}"), PATIENCE, async || {
            last = self.get(object).await.unwrap_or_default();
            holds(&last).then(|| last.clone())
        })
        .await;
        found.unwrap_or_else(|error| {
            let seen = serde_json::to_string_pretty(&last["status"]).unwrap();
            panic!(
                "{error}\nlast seen: {seen}\n{}\n{}",
                self.requests().join("\n"),
                self.text(30)
            )
        })
    }

    pub async fn until_condition(
        &self,
        object: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> Value {
        self.until(object, &format!("{kind}={status} {reason}"), |seen| {
            condition(seen, kind).is_some_and(|condition| {
                condition["status"] == status && condition["reason"] == reason
            })
        })
        .await
    }

    /// Also waits for the copy of the record in the annotation, which is written last.
    pub async fn until_ready(&self, object: &str) -> Value {
        self.until_condition(object, "Ready", "True", "Available")
            .await;
        // Restarts and further computes of a create are recorded only in the status.
        let recorded = |text: &Value| {
            let mut record: Value = serde_json::from_str(text.as_str()?).ok()?;
            record
                .as_object_mut()?
                .retain(|field, _| !["restart", "seal", "made", "twins"].contains(&field.as_str()));
            Some(record)
        };
        let is_copied = |seen: &Value| {
            let [status, copy] = [
                &seen["status"]["record"],
                &seen["metadata"]["annotations"]["dbplane.dev/record"],
            ];
            status.is_null() || recorded(status) == recorded(copy)
        };
        self.until(object, "with a copy of its record", is_copied)
            .await
    }

    pub async fn until_gone(&self, object: &str) {
        self.until(object, "gone", Value::is_null).await;
    }

    /// The operator's last log lines about this namespace.
    fn text(&self, lines: usize) -> String {
        let log = self.shared.operator.log();
        let quoted = format!("\"{}\"", self.namespace);
        let mine: Vec<&str> = log.lines().filter(|line| line.contains(&quoted)).collect();
        mine[mine.len().saturating_sub(lines)..].join("\n")
    }

    pub async fn computes(&self) -> Vec<Value> {
        let url = format!("{}/computes", self.platform.console_url());
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    pub async fn keys(&self) -> Vec<Value> {
        let url = format!("{}/api_keys", self.platform.console_url());
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    pub async fn console(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.platform.console_url());
        let answer = reqwest::Client::new()
            .request(method, url)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap_or_default()
    }

    /// The API requests so far as "METHOD path".
    pub fn requests(&self) -> Vec<String> {
        self.platform
            .requests(0)
            .into_iter()
            .map(|entry| format!("{} {}", entry.method, entry.path))
            .collect()
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

    /// An entry of a Secret as text.
    pub async fn entry(&self, secret: &str, entry: &str) -> Option<String> {
        let secret = self.get(&format!("secret/{secret}")).await?;
        let bytes: ByteString = serde_json::from_value(secret["data"].get(entry)?.clone()).unwrap();
        Some(String::from_utf8(bytes.0).unwrap())
    }

    /// The status of a request for the project's computes with this token.
    pub async fn answer_to(&self, token: &str) -> u16 {
        let url = format!(
            "{}/projects/{}/endpoints",
            self.platform.base_url(),
            self.project
        );
        reqwest::Client::new()
            .get(url)
            .bearer_auth(token)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    }

    /// The valid keys of the project.
    pub async fn live_keys(&self) -> Vec<Value> {
        let mut keys = self.keys().await;
        keys.retain(|key| key["project_id"] == self.project && key["revoked"] == false);
        keys
    }

    /// The number of computes, and of valid keys of the project.
    pub async fn on_the_platform(&self) -> (usize, usize) {
        (self.computes().await.len(), self.live_keys().await.len())
    }

    pub async fn revoke(&self, id: &Value) {
        self.console(
            reqwest::Method::POST,
            &format!("/api_keys/{id}/revoke"),
            serde_json::json!({}),
        )
        .await;
    }

    /// Waits for an event with this reason about an object and returns its message.
    pub async fn event(&self, object: &str, reason: &str) -> String {
        let (_, name) = object.split_once('/').unwrap();
        let events: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let what = format!("an event {reason} about {object}");
        let found = wait_for(&what, PATIENCE, async || {
            let listed = events
                .list(&kube::api::ListParams::default())
                .await
                .unwrap();
            listed.into_iter().find_map(|event| {
                let about = event.regarding.and_then(|regarding| regarding.name);
                (event.reason.as_deref() == Some(reason) && about.as_deref() == Some(name))
                    .then_some(event.note)
            })
        });
        found.await.unwrap().unwrap_or_default()
    }

    pub async fn wait_until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        wait_for(what, PATIENCE, async || holds().await.then_some(()))
            .await
            .unwrap();
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if is_confined() {
            kill_operator(&self.shared.operator);
        }
        let steps = self.text(usize::MAX).matches("performing").count();
        assert!(
            std::thread::panicking() || steps <= MOST_STEPS,
            "{steps} steps:\n{}",
            self.text(30)
        );
    }
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Longer than several polls of the platform.
pub const SEVERAL_POLLS: Duration = Duration::from_secs(12);
