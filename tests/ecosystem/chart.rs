//! The Helm chart, with the real helm. It installs the same objects as kustomize, a real API server
//! accepts all example values, and install, upgrade and removal work. There are no nodes, so no
//! test waits for Pods.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options as World, Simulator};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{ControlPlane, Options, PATIENCE, Running, Sandbox, free_port, wait_until};
use crate::tools;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const NAMESPACE: &str = "dbplane-system";

pub struct Helm {
    sandbox: Sandbox,
}

impl Helm {
    pub fn new() -> Self {
        Self {
            sandbox: Sandbox::new("helm").unwrap(),
        }
    }

    /// The output, or the error.
    pub fn run(&self, args: &[&str]) -> Result<String, String> {
        came_out(self.command(args).output().unwrap())
    }

    /// Like `run`, but keeps the runtime free for a platform in this process.
    pub async fn run_beside(&self, args: &[&str]) -> Result<String, String> {
        let mut command = tokio::process::Command::from(self.command(args));
        came_out(command.kill_on_drop(true).output().await.unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(tools("helm").join("helm"));
        command.args(args).env_remove("KUBECONFIG");
        for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(folder, self.sandbox.folder().join(folder));
        }
        command
    }

    /// A folder for charts of tests.
    pub fn folder(&self) -> &Path {
        self.sandbox.folder()
    }

    fn template(&self, more: &[&str]) -> Result<String, String> {
        let chart = chart().display().to_string();
        self.run(
            &[
                &["template", "dbplane", &chart, "--namespace", NAMESPACE],
                more,
            ]
            .concat(),
        )
    }
}

fn came_out(
    Output {
        status,
        stdout,
        stderr,
    }: Output,
) -> Result<String, String> {
    let (stdout, stderr) = (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    );
    if status.success() {
        Ok(stdout)
    } else {
        Err(stderr)
    }
}

fn chart() -> PathBuf {
    Path::new(REPOSITORY).join("deploy/chart")
}

/// A cluster with the namespaces and the kinds of the Prometheus operator that the examples use.
async fn cluster() -> ControlPlane {
    let cluster = ControlPlane::start_with(Options::default()).await.unwrap();
    for namespace in [NAMESPACE, "shop", "bank"] {
        cluster
            .kubectl(&["create", "namespace", namespace])
            .await
            .unwrap();
    }
    for kind in ["PodMonitor", "PrometheusRule"] {
        let definition = definition(kind).to_string();
        cluster
            .kubectl_with_input(&["create", "-f", "-"], &definition)
            .await
            .unwrap();
        let name = format!("crd/{}s.monitoring.coreos.com", kind.to_lowercase());
        cluster
            .kubectl(&[
                "wait",
                "--for=condition=Established",
                "--timeout=60s",
                &name,
            ])
            .await
            .unwrap();
    }
    cluster
}

/// The definition of a kind of the Prometheus operator.
fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// The objects as the API server completes them, by kind, namespace and name, without the labels of
/// the installer.
async fn completed(cluster: &ControlPlane, manifests: &str) -> BTreeMap<String, Value> {
    let accepted = cluster
        .kubectl_with_input(
            &["create", "--dry-run=server", "-o=json", "-f", "-"],
            manifests,
        )
        .await;
    let accepted = accepted.unwrap();
    let objects = serde_json::Deserializer::from_str(&accepted)
        .into_iter::<Value>()
        .map(Result::unwrap);
    let objects = objects.flat_map(|object| match object["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![object],
    });
    objects
        .map(|mut object| (label(&object), anonymous(&mut object)))
        .collect()
}

fn label(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!(
        "{} {}/{}",
        object["kind"], metadata["namespace"], metadata["name"]
    )
}

fn anonymous(object: &mut Value) -> Value {
    let aggregated = object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten();
    let aggregated = aggregated.filter(|(name, _)| name.contains("aggregate-to"));
    let labels: BTreeMap<_, _> = aggregated
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let (namespace, name) = (
        object["metadata"]["namespace"].clone(),
        object["metadata"]["name"].clone(),
    );
    object["metadata"] = json!({"namespace": namespace, "name": name, "labels": labels});
    if let Some(template) = object.pointer_mut("/spec/template/metadata") {
        *template = Value::Null;
    }
    object.as_object_mut().unwrap().remove("status");
    object.take()
}

#[tokio::test]
async fn the_chart_installs_what_kustomize_does() {
    let (cluster, helm) = (cluster().await, Helm::new());
    for (values, folder) in [("replicas=1", "deploy"), ("replicas=2", "deploy/ha")] {
        let by_helm = completed(&cluster, &helm.template(&["--set", values]).unwrap()).await;
        let by_kustomize = completed(&cluster, &kustomized(&cluster, folder).await).await;
        assert_eq!(
            by_helm.keys().collect::<Vec<_>>(),
            by_kustomize.keys().collect::<Vec<_>>(),
            "{folder}"
        );
        for (label, object) in &by_helm {
            assert_eq!(object, &by_kustomize[label], "{folder}: {label}");
        }
    }
}

/// The containers differ: in kustomize, the scope comes from a ConfigMap, because overlays can
/// merge that.
#[tokio::test]
async fn the_chart_gives_an_operator_of_chosen_namespaces_the_rights_that_kustomize_does() {
    let (cluster, helm) = (cluster().await, Helm::new());
    let values = chart()
        .join("ci/namespaced-values.yaml")
        .display()
        .to_string();
    let by_helm = helm
        .template(&["--values", &values, "--set", "scope.namespaces={shop}"])
        .unwrap();
    let rights = async |manifests: &str| {
        let mut objects = completed(&cluster, manifests).await;
        objects.retain(|_, object| object["apiVersion"] == "rbac.authorization.k8s.io/v1");
        objects
    };
    let by_kustomize = rights(&kustomized(&cluster, "deploy/namespaced/example").await).await;
    assert_eq!(by_kustomize.len(), 6, "{:?}", by_kustomize.keys());
    assert_eq!(rights(&by_helm).await, by_kustomize);
}

/// Without the Namespace: helm creates that of the release on request, but without its labels.
async fn kustomized(cluster: &ControlPlane, folder: &str) -> String {
    let manifests = cluster
        .kubectl(&["kustomize", &format!("{REPOSITORY}/{folder}")])
        .await
        .unwrap();
    let documents = manifests.split("\n---\n").filter(|document| {
        !document.contains("\nkind: Namespace\n")
            && !document.starts_with("apiVersion: v1\nkind: Namespace")
    });
    documents.collect::<Vec<_>>().join("\n---\n")
}

#[tokio::test]
async fn the_api_server_accepts_what_is_made_of_every_example_of_values() {
    let (cluster, helm) = (cluster().await, Helm::new());
    let mut examples: Vec<_> = fs::read_dir(chart().join("ci"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    examples.sort();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let example = example.display().to_string();
        helm.run(&[
            "lint",
            "--strict",
            &chart().display().to_string(),
            "--values",
            &example,
        ])
        .unwrap();
        let objects = completed(&cluster, &helm.template(&["--values", &example]).unwrap()).await;
        let kinds: Vec<_> = objects
            .values()
            .map(|object| object["kind"].as_str().unwrap())
            .collect();
        assert!(kinds.contains(&"Deployment"), "{example}: {kinds:?}");
        if example.contains("namespaced") {
            let of_the_cluster = objects
                .values()
                .find(|object| object["metadata"]["namespace"].is_null());
            assert_eq!(of_the_cluster, None, "{example}");
        }
    }
}

/// The operator gets exactly the chart's Roles, ClusterRole and container arguments.
#[tokio::test]
async fn an_operator_of_chosen_namespaces_serves_a_shared_account_with_what_the_chart_gives_it() {
    let (cluster, helm) = (cluster().await, Helm::new());
    let platform = platform().await;
    let values = chart()
        .join("ci/shared-account-values.yaml")
        .display()
        .to_string();
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let chart = chart().display().to_string();
    let flags = [
        "--namespace",
        NAMESPACE,
        "--kubeconfig",
        &kubeconfig,
        "--values",
        &values,
    ];
    let insecure = ["--set", "operator.extraArgs={--allow-insecure-platform}"];
    helm.run(&[&["install", "dbplane", &chart], &flags[..], &insecure].concat())
        .unwrap();

    for (namespace, may) in [("shop", true), (NAMESPACE, false)] {
        let asked = [
            "auth",
            "can-i",
            "create",
            "secrets",
            "--as=system:serviceaccount:dbplane-system:dbplane",
            "-n",
        ];
        let answer = cluster.kubectl(&[&asked[..], &[namespace]].concat()).await;
        assert_eq!(answer.is_ok(), may, "{namespace}: {answer:?}");
    }

    let mut operator = deployed(&cluster).await;
    let account = format!(
        "{SHARED}  baseURL: {}
---
{}",
        platform.base_url(),
        COMPUTE_OF_SHOP
    );
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], &account)
        .await
        .unwrap();
    let wait = ["wait", "--timeout=120s"];
    cluster
        .kubectl(
            &[
                &wait[..],
                &["-n=shop", "--for=condition=Ready", "compute/reader"],
            ]
            .concat(),
        )
        .await
        .unwrap();
    let patch = r#"--patch={"stringData":{"api-key":"revoked-by-now"}}"#;
    cluster
        .kubectl(&[
            "-n",
            NAMESPACE,
            "patch",
            "secret",
            "platform-api-key",
            patch,
        ])
        .await
        .unwrap();
    let refused = "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=Unauthorized";
    cluster
        .kubectl(&[&wait[..], &[refused, "clusteraccount/company"]].concat())
        .await
        .unwrap();
    let about = [
        "-n=default",
        "get",
        "events.events.k8s.io",
        "-o=jsonpath={.items[*].regarding.kind}",
    ];
    let told = async || {
        cluster
            .kubectl(&about)
            .await
            .unwrap()
            .contains("ClusterAccount")
    };
    wait_until("an event about the account", PATIENCE, told)
        .await
        .unwrap();

    operator.terminate(PATIENCE).await.unwrap();
    let refusals: Vec<_> = operator
        .log()
        .lines()
        .filter(|line| line.contains("orbidden"))
        .map(str::to_owned)
        .collect();
    assert_eq!(refusals, Vec::<String>::new());
}

const SHARED: &str = "apiVersion: v1
kind: Secret
metadata: {name: platform-api-key, namespace: dbplane-system}
stringData: {api-key: demo-personal-key-not-a-secret}
---
apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {name: company}
spec:
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {namespace: dbplane-system, name: platform-api-key}
  namespaces: {names: [shop]}
";
const COMPUTE_OF_SHOP: &str = "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {name: reader, namespace: shop}
spec:
  accountRef: {kind: ClusterAccount, name: company}
  projectID: aged-wind-123456
  branchID: br-main-42
  type: ReadOnly
";

async fn platform() -> Simulator {
    let world =
        fs::read_to_string(Path::new(REPOSITORY).join("deploy/examples/world.yaml")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    simulator::serve(listener, World::new(WorldFile::parse(&world).unwrap()))
        .await
        .unwrap()
}

/// Runs the program with the arguments and the token of its Deployment, on free ports.
async fn deployed(cluster: &ControlPlane) -> Running {
    let container = "-o=jsonpath={.spec.template.spec.containers[0].args}";
    let args = cluster
        .kubectl(&["-n", NAMESPACE, "get", "deployment", "dbplane", container])
        .await
        .unwrap();
    let args: Vec<String> = serde_json::from_str(&args).unwrap();
    let here = |arg: &String| match arg.split_once("=0.0.0.0:") {
        Some((flag, _)) => format!("{flag}=127.0.0.1:{}", free_port().unwrap()),
        None => arg.clone(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command.args(args.iter().map(here));
    command.env(
        "KUBECONFIG",
        cluster
            .kubeconfig_for_service_account(NAMESPACE, "dbplane")
            .await
            .unwrap(),
    );
    cluster
        .sandbox()
        .start("operator", command)
        .unwrap()
        .log_on_panic()
}

#[test]
fn the_chart_has_the_alerts_with_their_pages_and_the_dashboard() {
    let values = [
        "metrics.prometheusRule.enabled=true",
        "metrics.prometheusRule.runbooks=https://git.example/runbook/",
        "metrics.dashboard.enabled=true",
    ];
    let made = Helm::new().template(&["--set", &values.join(",")]).unwrap();
    let made: Vec<Value> = serde_saphyr::from_multiple(&made).unwrap();
    let of = |kind: &str| made.iter().find(|object| object["kind"] == kind).unwrap();
    let file = |name: &str| {
        fs::read_to_string(Path::new(REPOSITORY).join("deploy/monitoring").join(name)).unwrap()
    };
    let rules = file("rules.yaml").replace(
        "runbook_url: docs/runbook/",
        "runbook_url: https://git.example/runbook/",
    );
    let rules: Value = serde_saphyr::from_str(&rules).unwrap();
    assert_eq!(of("PrometheusRule")["spec"], rules);
    let dashboard = of("ConfigMap");
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    assert_eq!(dashboard["data"]["dbplane.json"], file("dashboard.json"));
}

#[test]
fn wrong_values_are_refused() {
    let helm = Helm::new();
    for (value, complaint) in [
        ("replicas=-1", "replicas"),
        ("replica=2", "replica"),
        ("operator.clusterID=ABC", "clusterID"),
        (
            "operator.allowedPlatforms={https://a.example/v2}",
            "allowedPlatforms",
        ),
        ("image.digest=sha256:1", "digest"),
        ("secrets.access=none", "access"),
        ("metrics.prometheusRule.runbooks=", "runbooks"),
        (
            "scope.namespaces={shop}",
            "operator.clusterID together with scope.namespaces",
        ),
        (
            "secrets.access=namespaces",
            "whoever serves all namespaces needs their Secrets",
        ),
    ] {
        let refusal = helm.template(&["--set", value]).unwrap_err();
        assert!(refusal.contains(complaint), "{value}: {refusal}");
    }
}

#[tokio::test]
async fn a_release_is_installed_upgraded_and_removed_and_resources_outlive_it() {
    let (cluster, helm) = (ControlPlane::start().await.unwrap(), Helm::new());
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let released = |args: &[&str]| {
        helm.run(
            &[
                args,
                &["--namespace", NAMESPACE, "--kubeconfig", &kubeconfig],
            ]
            .concat(),
        )
    };
    let (older, chart) = (
        older(&helm.sandbox).display().to_string(),
        chart().display().to_string(),
    );

    released(&["install", "dbplane", &older, "--create-namespace"]).unwrap();
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd/computes.dbplane.dev",
    ];
    cluster.kubectl(&established).await.unwrap();
    let definition = [
        "get",
        "crd/computes.dbplane.dev",
        "-o=jsonpath={.spec.names.categories}",
    ];
    assert_eq!(
        cluster.kubectl(&definition).await.unwrap(),
        "",
        "the older definitions have no category"
    );
    let compute =
        fs::read_to_string(Path::new(REPOSITORY).join("deploy/examples/replica.yaml")).unwrap();
    cluster
        .kubectl(&["create", "namespace", "shop"])
        .await
        .unwrap();
    cluster
        .kubectl_with_input(&["apply", "-f", "-"], &compute)
        .await
        .unwrap();

    released(&["upgrade", "dbplane", &chart, "--set", "replicas=2"]).unwrap();
    let deployment = [
        "-n",
        NAMESPACE,
        "get",
        "deployment",
        "dbplane",
        "-o=jsonpath={.spec.replicas}",
    ];
    assert_eq!(cluster.kubectl(&deployment).await.unwrap(), "2");
    assert_eq!(
        cluster.kubectl(&definition).await.unwrap(),
        r#"["dbplane"]"#,
        "the definitions were upgraded"
    );

    released(&["uninstall", "dbplane"]).unwrap();
    assert!(
        cluster
            .kubectl(&deployment)
            .await
            .unwrap_err()
            .to_string()
            .contains("NotFound")
    );
    let computes = cluster
        .kubectl(&["get", "computes", "--all-namespaces", "-o=name"])
        .await
        .unwrap();
    assert!(
        computes.contains("compute.dbplane.dev/"),
        "the resources are still there"
    );
}

/// An older chart, whose definitions lack a field.
fn older(sandbox: &Sandbox) -> PathBuf {
    let copy = sandbox.folder().join("older");
    copy_followed(&chart(), &copy);
    let edit = |file: &Path, old: &str, new: &str| {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(old), "{}", file.display());
        fs::write(file, text.replace(old, new)).unwrap();
    };
    edit(
        &copy.join("Chart.yaml"),
        "\nversion: ",
        "\nversion: 0.0.0-before.",
    );
    for definition in fs::read_dir(copy.join("definitions")).unwrap() {
        let definition = definition.unwrap().path();
        if definition
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("dbplane.dev_"))
        {
            edit(&definition, "    categories:\n    - dbplane\n", "");
        }
    }
    copy
}

/// Copies a folder and resolves its links.
fn copy_followed(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if entry.is_dir() {
            copy_followed(&entry, &to);
        } else {
            fs::copy(&entry, &to).unwrap();
        }
    }
}
