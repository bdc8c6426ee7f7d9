//! GitOps tools that keep resources as they are declared in Git.

mod argocd;
mod flux;
mod helm;
mod kustomization;
mod source;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::api::ListParams;
use serde_json::Value;

use crate::fixture::{Fixture, root};
use crate::support::{PATIENCE, objects, wait_for};

/// deploy/examples adapted to this fixture: its namespace, its project, and the URL of its
/// platform.
fn examples(fixture: &Fixture) -> Vec<(String, String)> {
    let folder = root().join("deploy/examples");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let adapted = |text: String| {
        text.replace(
            "https://platform.example/api/v2",
            &fixture.platform.base_url(),
        )
        .replace("shop", fixture.namespace())
        .replace("company", &format!("{}-company", fixture.namespace()))
        .replace(crate::fixture::PROJECT, &fixture.project)
    };
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files
        .iter()
        .map(|path| (name(path), adapted(std::fs::read_to_string(path).unwrap())))
        .collect()
}

/// All declared and generated objects in the namespace of the fixture, by kind and name.
async fn everything(fixture: &Fixture) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for kind in [
        "Account",
        "ClusterAccount",
        "Compute",
        "ProjectKey",
        "ReadReplicaSet",
        "Secret",
    ] {
        let listed = objects(fixture.client(), fixture.namespace(), kind)
            .list(&ListParams::default())
            .await
            .unwrap();
        // ClusterAccounts of other tests are ignored.
        let mine = |name: &str| kind != "ClusterAccount" || name.starts_with(fixture.namespace());
        for object in listed
            .into_iter()
            .filter(|object| object.metadata.name.as_deref().is_some_and(mine))
        {
            found.insert(
                format!("{kind}/{}", object.metadata.name.clone().unwrap()),
                serde_json::to_value(object).unwrap(),
            );
        }
    }
    found
}

/// The operator's write requests to the API server so far, as verb and URI. Its lease is ignored.
fn writes(fixture: &Fixture) -> Vec<String> {
    let log = std::fs::read_to_string(&fixture.shared.audit_log).unwrap();
    let asked = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let asked =
        asked.filter(|entry| !matches!(entry["verb"].as_str(), Some("get" | "list" | "watch")));
    let asked = asked.filter(|entry| entry["objectRef"]["namespace"] == fixture.namespace());
    asked
        .map(|entry| {
            format!(
                "{} {}",
                entry["verb"].as_str().unwrap(),
                entry["requestURI"].as_str().unwrap()
            )
        })
        .collect()
}

/// The changes that were sent to the platform: method and path.
fn changes(fixture: &Fixture) -> Vec<String> {
    fixture
        .requests()
        .into_iter()
        .filter(|request| !request.starts_with("GET "))
        .collect()
}

/// Waits until nothing changes for longer than a poll and a check of the keys. Returns the objects
/// and all requests so far.
async fn at_rest(fixture: &Fixture) -> (BTreeMap<String, Value>, Vec<String>, Vec<String>) {
    const REST: Duration = Duration::from_secs(12);
    let (mut last, mut since) = (None, Instant::now());
    let found = wait_for("nothing to be written", 2 * PATIENCE, async || {
        let now = (everything(fixture).await, writes(fixture), changes(fixture));
        if last.as_ref() != Some(&now) {
            (last, since) = (Some(now), Instant::now());
        }
        (since.elapsed() > REST).then(|| last.clone().unwrap())
    });
    found.await.unwrap()
}
