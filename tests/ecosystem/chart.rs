//! The Helm chart, with the real helm. It installs the same objects as kustomize, a real API server
//! accepts all example values, and install, upgrade and removal work. There are no nodes, so no
//! test waits for Pods.

mod helm;
mod operated;
mod released;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

pub use self::helm::Helm;
use crate::support::{ControlPlane, Options};

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const NAMESPACE: &str = "dbplane-system";

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
    let openshift = of_openshift();
    let prometheus = "metrics.podMonitor.enabled=true,metrics.prometheusRule.enabled=true";
    for (values, folder, component) in [
        (["--set", "replicas=1"], "deploy", None),
        (["--set", "replicas=2"], "deploy/ha", None),
        (
            ["--set", "leaderReader.enabled=true"],
            "deploy",
            Some("leader-reader"),
        ),
        (["--set", prometheus], "deploy", Some("prometheus")),
        (["--values", &openshift], "deploy", Some("openshift")),
    ] {
        let overlay = overlay(folder, component);
        let by_helm = completed(&cluster, &helm.template(&values).unwrap()).await;
        let by_kustomize = completed(&cluster, &kustomized(&cluster, overlay.path()).await).await;
        assert_eq!(
            by_helm.keys().collect::<Vec<_>>(),
            by_kustomize.keys().collect::<Vec<_>>(),
            "{folder} {component:?}"
        );
        for (label, object) in &by_helm {
            assert_eq!(
                object, &by_kustomize[label],
                "{folder} {component:?}: {label}"
            );
        }
    }
}

/// An overlay as users write it, which needs no namespace of its own.
fn overlay(folder: &str, component: Option<&str>) -> TempDir {
    let overlay = tempfile::tempdir_in(Path::new(REPOSITORY).join("target")).unwrap();
    let components = component.map(|name| format!("../../deploy/{name}"));
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [format!("../../{folder}")],
        "components": Vec::from_iter(components),
    });
    fs::write(
        overlay.path().join("kustomization.yaml"),
        kustomization.to_string(),
    )
    .unwrap();
    overlay
}

fn of_openshift() -> String {
    let values = chart().join("ci/openshift-values.yaml");
    values.display().to_string()
}

/// OpenShift gives each Pod a user and groups of its namespace, and refuses others.
#[test]
fn no_user_is_fixed_on_openshift_and_the_pod_stays_restricted() {
    let made = Helm::new()
        .template(&["--values", &of_openshift()])
        .unwrap();
    let made: Vec<Value> = serde_saphyr::from_multiple(&made).unwrap();
    let is_deployment = |object: &&Value| object["kind"] == "Deployment";
    let pod = &made.iter().find(is_deployment).unwrap()["spec"]["template"]["spec"];
    let of_pod = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    assert_eq!(pod["securityContext"], of_pod);
    let of_container = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    });
    for container in pod["containers"].as_array().unwrap() {
        assert_eq!(container["securityContext"], of_container);
    }
    let pod = pod.to_string();
    for field in ["runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"] {
        assert!(!pod.contains(field), "{pod}");
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
    let folder = Path::new(REPOSITORY).join("deploy/namespaced/example");
    let by_kustomize = rights(&kustomized(&cluster, &folder).await).await;
    assert_eq!(by_kustomize.len(), 6, "{:?}", by_kustomize.keys());
    assert_eq!(rights(&by_helm).await, by_kustomize);
}

/// `tests/install` has the same for the other ways to install.
#[tokio::test]
async fn a_chart_that_is_applied_again_changes_nothing() {
    let (cluster, helm) = (cluster().await, Helm::new());
    let made = helm.template(&[]).unwrap();
    let apply = async || {
        let args = ["apply", "-f", "-"];
        cluster.kubectl_with_input(&args, &made).await.unwrap()
    };
    let first = apply().await;
    let second = apply().await;
    assert_eq!(second.lines().count(), first.lines().count());
    for line in second.lines() {
        assert!(line.ends_with(" unchanged"), "{line}");
    }
}

/// Without the Namespace: helm creates that of the release on request, but without its labels.
async fn kustomized(cluster: &ControlPlane, folder: &Path) -> String {
    let mut kubectl = cluster.kubectl_command();
    let output = kubectl.arg("kustomize").arg(folder).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let manifests = String::from_utf8(output.stdout).unwrap();
    let documents = manifests.split("\n---\n").filter(|document| {
        !document.contains("\nkind: Namespace\n")
            && !document.starts_with("apiVersion: v1\nkind: Namespace")
    });
    documents.collect::<Vec<_>>().join("\n---\n")
}

fn examples_of_values() -> Vec<String> {
    let files = fs::read_dir(chart().join("ci")).unwrap();
    let mut examples: Vec<_> = files
        .map(|entry| entry.unwrap().path().display().to_string())
        .collect();
    examples.sort();
    assert!(examples.len() >= 4, "{examples:?}");
    examples
}

#[tokio::test]
async fn the_api_server_accepts_the_chart_with_every_example_of_values() {
    let (cluster, helm) = (cluster().await, Helm::new());
    for example in examples_of_values() {
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

#[test]
fn helm_has_no_remarks_on_the_chart() {
    let (helm, chart) = (Helm::new(), chart().display().to_string());
    let examples = examples_of_values();
    let sets_of_values = examples
        .iter()
        .map(|example| vec!["--values", example.as_str()]);
    for values in sets_of_values.chain([vec![]]) {
        let lint = [&["lint", "--strict", &chart][..], &values].concat();
        let said = helm.run_quietly(&lint).unwrap();
        assert!(!said.contains('['), "{values:?}: {said}");
    }
    let folder = helm.folder().display().to_string();
    helm.run_quietly(&["package", &chart, "--destination", &folder])
        .unwrap();
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
        fs::read_to_string(
            Path::new(REPOSITORY)
                .join("deploy/chart/monitoring")
                .join(name),
        )
        .unwrap()
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
