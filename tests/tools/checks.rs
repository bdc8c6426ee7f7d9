//! The health checks for Argo CD in deploy/argocd, as users install them into its ConfigMap.

use std::collections::BTreeSet;
use std::path::Path;

use dbplane::controller::definitions;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::judge::root;
use crate::support::{ControlPlane, Options};

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data: {url: https://argocd.example}
";

/// The ConfigMap argocd-cm by each way of installation.
pub struct Installed {
    /// With the command of the guide.
    pub patched: Value,
    /// With kustomize.
    built: Value,
}

/// Uses its own control plane for a short time.
pub async fn installed() -> &'static Installed {
    static INSTALLED: OnceCell<Installed> = OnceCell::const_new();
    INSTALLED
        .get_or_init(|| async {
            let options = Options {
                controllers: Vec::new(),
                ..Options::default()
            };
            let cluster = ControlPlane::start_with(options).await.unwrap();
            Installed {
                patched: patched(&cluster).await,
                built: built(&cluster).await,
            }
        })
        .await
}

async fn patched(cluster: &ControlPlane) -> Value {
    let guide = std::fs::read_to_string(root().join("docs/guide/gitops.md")).unwrap();
    let command = guide.lines().find_map(|line| {
        line.strip_prefix("kubectl ")
            .filter(|it| it.contains("--patch-file"))
    });
    cluster
        .kubectl(&["create", "namespace", "argocd"])
        .await
        .unwrap();
    cluster.apply(CONFIG_MAP).await.unwrap();
    let absolute = |word: &str| {
        if word.starts_with("deploy/") {
            root().join(word).display().to_string()
        } else {
            word.to_owned()
        }
    };
    let words: Vec<String> = command.unwrap().split_whitespace().map(absolute).collect();
    cluster
        .kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>())
        .await
        .unwrap();
    let found = cluster
        .kubectl(&[
            "-n",
            "argocd",
            "get",
            "configmap",
            "argocd-cm",
            "-o",
            "json",
        ])
        .await
        .unwrap();
    serde_json::from_str(&found).unwrap()
}

async fn built(cluster: &ControlPlane) -> Value {
    let overlay = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(overlay.path().join(name), text).unwrap();
    write("argocd-cm.yaml", CONFIG_MAP);
    write(
        "kustomization.yaml",
        "resources: [argocd-cm.yaml]\ncomponents: [dbplane]\n",
    );
    copy(
        &root().join("deploy/argocd"),
        &overlay.path().join("dbplane"),
    );
    let printed = cluster
        .kubectl(&["kustomize", overlay.path().to_str().unwrap()])
        .await
        .unwrap();
    serde_saphyr::from_str(&printed).unwrap()
}

/// The entries that Argo CD's own installation does not contain.
fn entries(config_map: &Value) -> BTreeSet<(String, String)> {
    let data = config_map["data"].as_object().unwrap().iter();
    let added = data
        .filter(|(name, _)| *name != "url")
        .map(|(name, text)| (name.clone(), text.as_str().unwrap().into()));
    added.collect()
}

#[tokio::test]
async fn each_kind_has_the_health_check_however_it_is_installed() {
    let script = std::fs::read_to_string(root().join("deploy/argocd/health.lua")).unwrap();
    let kinds = definitions()
        .into_iter()
        .map(|crd| (crd.spec.group, crd.spec.names.kind));
    let key = |(group, kind)| format!("resource.customizations.health.{group}_{kind}");
    let expected: BTreeSet<_> = kinds.map(|kind| (key(kind), script.clone())).collect();
    assert_eq!(expected.len(), 5);

    for config_map in [&installed().await.patched, &installed().await.built] {
        assert_eq!(entries(config_map), expected);
        assert_eq!(config_map["data"]["url"], "https://argocd.example");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
