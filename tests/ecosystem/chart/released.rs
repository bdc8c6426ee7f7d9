//! A release of the chart: installed, upgraded and removed.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Helm, NAMESPACE, REPOSITORY, chart};
use crate::support::ControlPlane;

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
    let older = older(helm.folder()).display().to_string();
    let chart = chart().display().to_string();

    released(&["install", "dbplane", &older, "--create-namespace"]).unwrap();
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd/computes.dbplane.dev",
    ];
    cluster.kubectl(&established).await.unwrap();
    assert_eq!(
        category(&cluster).await,
        "",
        "the older definitions have no category"
    );
    declare_a_compute(&cluster).await;

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
        category(&cluster).await,
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

/// The category of Computes in the installed definition.
async fn category(cluster: &ControlPlane) -> String {
    cluster
        .kubectl(&[
            "get",
            "crd/computes.dbplane.dev",
            "-o=jsonpath={.spec.names.categories}",
        ])
        .await
        .unwrap()
}

async fn declare_a_compute(cluster: &ControlPlane) {
    let compute =
        fs::read_to_string(Path::new(REPOSITORY).join("deploy/examples/replica.yaml")).unwrap();
    cluster
        .kubectl(&["create", "namespace", "shop"])
        .await
        .unwrap();
    cluster.apply(&compute).await.unwrap();
}

/// An older chart, whose definitions lack a field.
fn older(folder: &Path) -> PathBuf {
    let copy = folder.join("older");
    copy_folder(&chart(), &copy);
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

/// Copies a folder.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if entry.is_dir() {
            copy_folder(&entry, &to);
        } else {
            fs::copy(&entry, &to).unwrap();
        }
    }
}
