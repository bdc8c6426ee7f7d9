//! The real application-controller and repo-server of Argo CD, and an Application with its Git
//! repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use dbplane::cluster::merge;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::fixture::{Fixture, PROJECT, Shared, free_address, root};
use crate::support::{ControlPlane, PATIENCE, Running, free_port, wait_for};
use crate::tools;

const NAMESPACE: &str = "argocd";

/// The default project, which Argo CD's API server would create.
const DEFAULT_PROJECT: &str = "apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default}
spec:
  sourceRepos: ['*']
  destinations: [{namespace: '*', server: '*'}]
  clusterResourceWhitelist: [{group: '*', kind: '*'}]
";

/// A single Argo CD for all tests.
async fn parts(shared: &'static Shared) -> &'static [Running] {
    static PARTS: OnceCell<Vec<Running>> = OnceCell::const_new();
    PARTS
        .get_or_init(async || start(shared.cluster).await)
        .await
}

async fn start(cluster: &'static ControlPlane) -> Vec<Running> {
    install(cluster).await;
    let scratch = cluster.sandbox().folder().join(NAMESPACE);
    std::fs::create_dir(&scratch).unwrap();
    let (redis, [repositories, metrics, health]) = (
        free_address(),
        [(); 3].map(|()| free_port().unwrap().to_string()),
    );
    let part = |name: &str, arguments: &[&str]| start_part(cluster, &scratch, name, arguments);
    let redis_part = part("redis", &[&redis]);
    let listens = [
        "--address=127.0.0.1",
        "--metrics-address=127.0.0.1",
        "--disable-tls",
        "--client-ca-path=",
    ];
    let ports = [
        &format!("--port={repositories}"),
        &format!("--metrics-port={metrics}"),
        &format!("--redis={redis}"),
    ];
    let repository_server = part(
        "repo-server",
        &[&listens[..], &ports.map(String::as_str)].concat(),
    );
    wait_until_healthy("the repo-server", &metrics).await;
    let controller = part(
        "application-controller",
        &[
            &format!("--namespace={NAMESPACE}"),
            &format!("--repo-server=127.0.0.1:{repositories}"),
            "--repo-server-plaintext",
            &format!("--redis={redis}"),
            &format!("--metrics-port={health}"),
            // It refreshes only on request and for events of the cluster.
            "--app-resync=3600",
            "--persist-resource-health",
        ],
    );
    wait_until_healthy("the application-controller", &health).await;
    vec![redis_part, repository_server, controller]
}

fn start_part(cluster: &ControlPlane, scratch: &Path, name: &str, arguments: &[&str]) -> Running {
    let programs = format!(
        "{}:{}",
        tools("argocd").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = Command::new(tools("argocd").join("argocd"));
    command
        .arg(name)
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .env("ARGOCD_FAKE_IN_CLUSTER", "true")
        .env("TMPDIR", scratch)
        .env("ARGOCD_ASK_PASS_SOCK", scratch.join("ask-pass.sock"))
        .env("ARGOCD_GPG_ENABLED", "false")
        .env("PATH", &programs);
    cluster
        .sandbox()
        .start(&format!("argocd-{name}"), command)
        .unwrap()
        .log_on_panic()
}

async fn wait_until_healthy(what: &str, port: &str) {
    let url = format!("http://127.0.0.1:{port}/healthz");
    wait_for(&format!("{what} to be healthy"), PATIENCE, async || {
        reqwest::get(&url)
            .await
            .ok()?
            .status()
            .is_success()
            .then_some(())
    })
    .await
    .unwrap();
}

/// Argo CD's default settings and the health check of docs/guide/gitops.md, without rules for
/// ignored differences.
async fn install(cluster: &ControlPlane) {
    cluster
        .kubectl(&["create", "namespace", NAMESPACE])
        .await
        .unwrap();
    let folder = |name: &str| tools("argocd").join(name).display().to_string();
    cluster
        .kubectl(&["apply", "--server-side", "-f", &folder("definitions")])
        .await
        .unwrap();
    let established = [
        "wait",
        "--for=condition=Established",
        "crd/applications.argoproj.io",
        "crd/appprojects.argoproj.io",
    ];
    // kubectl fails while they have no conditions at all.
    let waited = async || cluster.kubectl(&established).await.ok();
    wait_for("the kinds of Argo CD to be established", PATIENCE, waited)
        .await
        .unwrap();
    cluster
        .kubectl(&["-n", NAMESPACE, "apply", "-f", &folder("settings")])
        .await
        .unwrap();
    cluster
        .kubectl_with_input(&["-n", NAMESPACE, "apply", "-f", "-"], DEFAULT_PROJECT)
        .await
        .unwrap();
    let patch = root()
        .join("deploy/argocd/argocd-cm.yaml")
        .display()
        .to_string();
    cluster
        .kubectl(&[
            "-n",
            NAMESPACE,
            "patch",
            "configmap",
            "argocd-cm",
            "--patch-file",
            &patch,
        ])
        .await
        .unwrap();
}

/// An Application that deploys to the namespace of the fixture and has the same name.
pub struct Application<'a> {
    fixture: &'a Fixture,
    repository: PathBuf,
}

impl<'a> Application<'a> {
    /// Creates the Application with additions to its spec. Without `syncPolicy` it syncs only on
    /// request.
    pub async fn new(fixture: &'a Fixture, more: &Value) -> Self {
        parts(fixture.shared).await;
        let repository = fixture
            .shared
            .cluster
            .sandbox()
            .folder()
            .join(format!("{}.git", fixture.namespace()));
        let application = Self {
            fixture,
            repository,
        };
        application.git(&["init", "--quiet", "--initial-branch=main", "."]);
        application.commit(&[("README.md".to_owned(), "What is deployed.\n".to_owned())]);
        let mut spec = json!({
            "project": "default",
            "source": {
                "repoURL": format!("file://{}", application.repository.display()),
                "targetRevision": "main", "path": ".", "directory": {"recurse": true},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": fixture.namespace()},
        });
        merge(&mut spec, more);
        let manifest = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": fixture.namespace(), "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(manifest).unwrap();
        application
            .api()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        application
    }

    fn git(&self, arguments: &[&str]) -> String {
        std::fs::create_dir_all(&self.repository).unwrap();
        let mut command = Command::new("git");
        command
            .args([
                "-c",
                "user.name=people",
                "-c",
                "user.email=people@git.example",
            ])
            .args(arguments);
        command
            .current_dir(&self.repository)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits a revision that consists of these files, and returns its name.
    pub fn commit(&self, files: &[(String, String)]) -> String {
        std::fs::create_dir_all(&self.repository).unwrap();
        for entry in std::fs::read_dir(&self.repository)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if !entry.ends_with(".git") {
                std::fs::remove_file(entry).unwrap();
            }
        }
        for (name, text) in files {
            std::fs::write(self.repository.join(name), text).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=deploy"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Like `commit`, with a single file.
    pub fn commit_one(&self, manifests: &[&str]) -> String {
        let text = manifests
            .join("\n---\n")
            .replace(PROJECT, &self.fixture.project);
        self.commit(&[("apps.yaml".to_owned(), text)])
    }

    /// Requests a sync to the newest revision, as `argocd app sync` with these options.
    pub async fn sync(&self, options: &Value) {
        let mut sync = json!({"revision": self.git(&["rev-parse", "HEAD"])});
        merge(&mut sync, options);
        let token = format!("{:016x}", rand::random::<u64>());
        let info = json!([{"name": "token", "value": token}]);
        self.patch(&json!({"operation": {"initiatedBy": {"username": "people"}, "info": info, "sync": sync}})).await;
        let begun = |seen: &Value| {
            seen["status"]["operationState"]["operation"]["info"][0]["value"] == token.as_str()
        };
        self.until("syncing", begun).await;
    }

    /// Like `sync`, and waits for this result.
    pub async fn sync_until(&self, options: &Value, phase: &str) -> Value {
        self.sync(options).await;
        self.until_phase(phase).await
    }

    pub async fn until_phase(&self, phase: &str) -> Value {
        self.until(phase, |seen| {
            seen["status"]["operationState"]["phase"] == phase
        })
        .await
    }

    /// Waits until the running sync reports that it waits for this object.
    pub async fn until_waiting_for(&self, what: &str) -> Value {
        let says = |seen: &Value| {
            let state = &seen["status"]["operationState"];
            state["phase"] == "Running"
                && state["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(what))
        };
        self.until(&format!("waiting for {what}"), says).await
    }

    /// Does the same as `argocd app get --refresh` or `--hard-refresh`, and returns when it is
    /// done.
    pub async fn refresh(&self, how: &str) -> Value {
        self.patch(&json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": how}}}))
            .await;
        let done =
            |seen: &Value| seen["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null();
        self.until("refreshed", done).await
    }

    /// Refreshes, and waits for this sync status and health at this revision.
    pub async fn until_is(&self, revision: &str, sync: &str, health: &str) -> Value {
        let is = |seen: &Value| {
            let status = &seen["status"];
            status["sync"]["revision"] == revision
                && status["sync"]["status"] == sync
                && status["health"]["status"] == health
        };
        self.refresh("normal").await;
        self.until(&format!("{sync} and {health} at {revision}"), is)
            .await
    }

    /// Waits until the Application shows this about a resource.
    pub async fn until_shows(
        &self,
        object: &str,
        sync: &str,
        health: &str,
        message: &str,
    ) -> Value {
        let shows = |seen: &Value| resource(seen, object) == [sync, health, message];
        self.until(
            &format!("showing {object} as {sync} and {health}: {message}"),
            shows,
        )
        .await
    }

    pub async fn patch(&self, patch: &Value) {
        let name = self.fixture.namespace();
        self.api()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// `None` after its deletion.
    pub async fn find(&self) -> Option<Value> {
        let found = self.api().get_opt(self.fixture.namespace()).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// Deletes the Application with everything that it has deployed.
    pub async fn delete(&self) {
        self.api()
            .delete(
                self.fixture.namespace(),
                &kube::api::DeleteParams::default(),
            )
            .await
            .unwrap();
    }

    pub async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let what = format!("the Application to be {what}");
        let found = wait_for(&what, 2 * PATIENCE, async || {
            last = self.find().await.unwrap_or_default();
            holds(&last).then(|| last.clone())
        });
        found
            .await
            .unwrap_or_else(|error| panic!("{error}\nlast seen: {}", last["status"]))
    }

    fn api(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application");
        Api::namespaced_with(
            self.fixture.client().clone(),
            NAMESPACE,
            &ApiResource::from_gvk(&kind),
        )
    }
}

/// The sync status, health and health message of a resource (`kind/name`) in the status of an
/// Application.
pub fn resource<'a>(application: &'a Value, object: &str) -> [&'a str; 3] {
    let (kind, name) = object.split_once('/').unwrap();
    let mut listed = application["status"]["resources"]
        .as_array()
        .into_iter()
        .flatten();
    let found = listed.find(|found| found["kind"] == kind && found["name"] == name);
    let word = |field| {
        found
            .and_then(|found| found.pointer(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    ["/status", "/health/status", "/health/message"].map(word)
}
