//! Argo CD: the real application-controller deploys from a Git repository to a real control plane
//! with the operator.

mod application;
mod changes;
mod removals;
mod states;

use serde_json::Value;

use self::application::{Application, resource};
use super::examples;
use crate::fixture::{Fixture, root};

/// Sets the sync wave. Argo CD applies the next wave once the previous one is healthy.
fn in_wave(manifest: &str, wave: &str) -> String {
    annotated(manifest, "argocd.argoproj.io/sync-wave", wave)
}

fn annotated(manifest: &str, name: &str, value: &str) -> String {
    let (before, after) = manifest.split_once("metadata: {").unwrap();
    format!("{before}metadata: {{annotations: {{{name}: '{value}'}}, {after}")
}

/// The message of a resource in the result of a sync.
fn result<'a>(application: &'a Value, name: &str) -> &'a str {
    let results = application["status"]["operationState"]["syncResult"]["resources"]
        .as_array()
        .unwrap();
    results
        .iter()
        .find(|result| result["name"] == name)
        .unwrap()["message"]
        .as_str()
        .unwrap()
}

/// The files that deploy/examples deploys, and a ReadReplicaSet.
fn everything_to_deploy(fixture: &Fixture) -> Vec<(String, String)> {
    let list = std::fs::read_to_string(root().join("deploy/examples/kustomization.yaml")).unwrap();
    let list: Value = serde_saphyr::from_str(&list).unwrap();
    let mut names: Vec<&str> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    names.push("read-replica-set.yaml");
    let files: Vec<_> = examples(fixture)
        .into_iter()
        .filter(|(name, _)| names.contains(&name.as_str()))
        .collect();
    assert_eq!(files.len(), names.len());
    files
}
