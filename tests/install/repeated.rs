//! An installation that is applied again changes nothing: Flux, Argo CD and kubectl would otherwise
//! report a change each time.

use std::process::Command;

use crate::support::{ControlPlane, Options};

/// Applies twice with `apply`, and asserts that the second time nothing is changed.
async fn assert_comes_to_rest(apply: impl AsyncFn(&ControlPlane) -> String, at_least: usize) {
    let cluster = ControlPlane::start_with(Options::default()).await.unwrap();
    let first = apply(&cluster).await;
    assert!(first.lines().count() >= at_least, "{first}");
    let second = apply(&cluster).await;
    let changed: Vec<_> = second
        .lines()
        .filter(|line| !line.ends_with(" unchanged"))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
    assert_eq!(second.lines().count(), first.lines().count(), "{second}");
}

#[tokio::test]
async fn by_kustomize() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
    let apply = async |cluster: &ControlPlane| {
        let args = ["apply", "-k", folder];
        cluster.kubectl(&args).await.unwrap()
    };
    assert_comes_to_rest(apply, 15).await;
}

#[tokio::test]
async fn by_the_printed_definitions() {
    let output = Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .arg("crds")
        .output()
        .unwrap();
    let definitions = String::from_utf8(output.stdout).unwrap();
    let apply = async |cluster: &ControlPlane| {
        let args = ["apply", "-f", "-"];
        cluster
            .kubectl_with_input(&args, &definitions)
            .await
            .unwrap()
    };
    assert_comes_to_rest(apply, 5).await;
}
