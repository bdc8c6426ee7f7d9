//! The real kustomize-controller of Flux, and a Kustomization with its source.

use std::process::Command;

use dbplane::cluster::merge;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::source::Source;
use crate::fixture::{Fixture, Shared, condition, free_address};
use crate::support::{PATIENCE, Running, wait_for};
use crate::tools;

/// The name of the Kustomization and its source.
const NAME: &str = "apps";

/// A single controller for all tests.
async fn controller(shared: &'static Shared) {
    static CONTROLLER: OnceCell<Running> = OnceCell::const_new();
    CONTROLLER
        .get_or_init(|| async {
            let cluster = &shared.cluster;
            let definitions = tools("flux").join("definitions").display().to_string();
            cluster
                .kubectl(&["apply", "--server-side", "-f", &definitions])
                .await
                .unwrap();
            cluster
                .kubectl(&[
                    "wait",
                    "--for=condition=Established",
                    "--timeout=60s",
                    "crd",
                    "--all",
                ])
                .await
                .unwrap();
            let (health, scratch) = (free_address(), cluster.sandbox().folder().join("flux"));
            std::fs::create_dir(&scratch).unwrap();
            let mut command = Command::new(tools("flux").join("kustomize-controller"));
            command
                .args([
                    "--metrics-addr=0",
                    "--log-level=debug",
                    &format!("--health-addr={health}"),
                ])
                .env("KUBECONFIG", cluster.kubeconfig_path())
                // The controller cleans this folder at its start.
                .env("TMPDIR", scratch);
            let controller = cluster
                .sandbox()
                .start("kustomize-controller", command)
                .unwrap()
                .log_on_panic();
            let ready = format!("http://{health}/readyz");
            wait_for("kustomize-controller to be ready", PATIENCE, async || {
                reqwest::get(&ready)
                    .await
                    .ok()?
                    .status()
                    .is_success()
                    .then_some(())
            })
            .await
            .unwrap();
            controller
        })
        .await;
}

/// A Kustomization in the namespace of the fixture.
pub struct Flux<'a> {
    fixture: &'a Fixture,
    source: Source,
}

impl<'a> Flux<'a> {
    pub async fn new(fixture: &'a Fixture) -> Self {
        controller(fixture.shared).await;
        let flux = Self {
            fixture,
            source: Source::serve(),
        };
        let spec = json!({"url": "https://git.example/apps", "interval": "1h"});
        flux.create("source.toolkit.fluxcd.io", "GitRepository", &spec)
            .await;
        flux
    }

    /// Applies the Kustomization with additions to its spec. It reconciles only on request or for a
    /// new revision.
    pub async fn declare(&self, more: &Value) {
        let source = json!({"kind": "GitRepository", "name": NAME});
        let mut spec = json!({"interval": "1h", "timeout": "2m", "prune": true, "path": "./", "sourceRef": source});
        merge(&mut spec, more);
        self.create("kustomize.toolkit.fluxcd.io", "Kustomization", &spec)
            .await;
    }

    /// Publishes a new revision with these files as source-controller does, and returns its name.
    pub async fn commit(&self, files: &[(String, String)]) -> String {
        let artifact = self.source.publish(files);
        let now = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
        let ready = json!({"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact", "lastTransitionTime": now});
        let status = json!({"status": {
            "conditions": [ready],
            "artifact": {
                "url": artifact.url, "path": NAME, "revision": artifact.revision, "digest": artifact.digest,
                "size": artifact.size, "lastUpdateTime": now,
            },
        }});
        let api = self.api("source.toolkit.fluxcd.io", "GitRepository");
        api.patch_status(NAME, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
        artifact.revision
    }

    /// Like `commit`, with a single file.
    pub async fn commit_one(&self, manifests: &[&str]) -> String {
        let text = manifests
            .join("\n---\n")
            .replace(crate::fixture::PROJECT, &self.fixture.project);
        self.commit(&[("apps.yaml".to_owned(), text)]).await
    }

    pub async fn patch(&self, spec: &Value) {
        let patch = json!({"spec": spec});
        self.kustomizations()
            .patch(NAME, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Does the same as `flux reconcile kustomization`, and returns when it is done.
    pub async fn reconcile(&self) -> Value {
        let token = format!("{:016x}", rand::random::<u64>());
        let patch =
            json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": token}}});
        self.kustomizations()
            .patch(NAME, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        let done = |seen: &Value| {
            seen["status"]["lastHandledReconcileAt"] == token.as_str()
                && condition(seen, "Reconciling").is_none()
        };
        self.until("reconciled", done).await
    }

    pub async fn get(&self) -> Value {
        serde_json::to_value(self.kustomizations().get(NAME).await.unwrap()).unwrap()
    }

    pub async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let what = format!("the Kustomization to be {what}");
        let found = wait_for(&what, 2 * PATIENCE, async || {
            last = self.get().await;
            holds(&last).then(|| last.clone())
        });
        found
            .await
            .unwrap_or_else(|error| panic!("{error}\nlast seen: {}", last["status"]))
    }

    /// Waits for this condition about a revision.
    pub async fn until_reports(&self, revision: &str, status: &str, reason: &str) -> Value {
        let says = |seen: &Value| {
            let ready = condition(seen, "Ready");
            seen["status"]["lastAttemptedRevision"] == revision
                && ready.is_some_and(|ready| ready["status"] == status && ready["reason"] == reason)
        };
        self.until(&format!("Ready={status} {reason} at {revision}"), says)
            .await
    }

    pub async fn until_ready(&self, revision: &str) -> Value {
        let applied = |seen: &Value| seen["status"]["lastAppliedRevision"] == revision;
        self.until(&format!("at {revision}"), applied).await;
        self.until_reports(revision, "True", "ReconciliationSucceeded")
            .await
    }

    async fn create(&self, group: &str, kind: &str, spec: &Value) {
        let manifest = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": NAME}, "spec": spec});
        let object: DynamicObject = serde_json::from_value(manifest).unwrap();
        self.api(group, kind)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub fn kustomizations(&self) -> Api<DynamicObject> {
        self.api("kustomize.toolkit.fluxcd.io", "Kustomization")
    }

    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let client: Client = self.fixture.client().clone();
        let plural = if kind == "GitRepository" {
            "gitrepositories"
        } else {
            "kustomizations"
        };
        let resource = ApiResource {
            plural: plural.to_owned(),
            ..resource
        };
        Api::namespaced_with(client, self.fixture.namespace(), &resource)
    }
}
