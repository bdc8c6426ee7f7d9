//! The results of `make release`, used as a user would: only from its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::chart::Helm;
use crate::support::{ControlPlane, Sandbox};

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-snapshot");
/// The registry is the one in `make ecosystem`.
const IMAGE: &str = concat!(
    "registry.example/dbplane:",
    env!("CARGO_PKG_VERSION"),
    "-snapshot"
);

/// A file of the release; `{}` in the name stands for the version.
pub fn released(name: &str) -> PathBuf {
    let folder = Path::new(REPOSITORY).join("target/dist").join(VERSION);
    let file = folder.join(name.replace("{}", VERSION));
    assert!(
        file.exists(),
        "{} is not there: run make ecosystem",
        file.display()
    );
    file
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&fs::read(released(name)).unwrap()).unwrap()
}

/// Installs the release with kubectl.
pub async fn install(cluster: &ControlPlane) {
    let manifest = released("install.yaml").display().to_string();
    cluster
        .kubectl(&["apply", "--server-side", "-f", &manifest])
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
}

fn names(lines: &str) -> BTreeSet<&str> {
    lines.lines().collect()
}

async fn image_of_the_deployment(cluster: &ControlPlane) -> String {
    let path = "jsonpath={.spec.template.spec.containers[*].image}";
    cluster
        .kubectl(&[
            "-n",
            "dbplane-system",
            "get",
            "deployment",
            "dbplane",
            "-o",
            path,
        ])
        .await
        .unwrap()
}

#[tokio::test]
async fn kubectl_installs_and_removes_it() {
    let cluster = ControlPlane::start().await.unwrap();
    install(&cluster).await;
    assert_eq!(image_of_the_deployment(&cluster).await, IMAGE);
    let definitions = released("crds.yaml").display().to_string();
    let alone = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "-o=name",
        "-f",
        &definitions,
    ];
    let (alone, installed) = (
        cluster.kubectl(&alone).await,
        cluster.kubectl(&["get", "crds", "-o=name"]).await,
    );
    assert_eq!(names(&alone.unwrap()), names(&installed.unwrap()));
    let manifest = released("install.yaml").display().to_string();
    cluster
        .kubectl(&["delete", "-f", &manifest, "--timeout=60s"])
        .await
        .unwrap();
    let left = cluster
        .kubectl(&[
            "get",
            "namespaces,clusterroles,clusterrolebindings,crds",
            "-o=name",
        ])
        .await
        .unwrap();
    assert!(!left.contains("dbplane"), "{left}");
}

#[tokio::test]
async fn helm_installs_the_same_image_from_the_packaged_chart() {
    let (cluster, helm) = (ControlPlane::start().await.unwrap(), Helm::new());
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let chart = released("dbplane-{}.tgz").display().to_string();
    let place = [
        "--namespace",
        "dbplane-system",
        "--create-namespace",
        "--kubeconfig",
        &kubeconfig,
    ];
    helm.run(&[&["install", "dbplane", &chart], &place[..]].concat())
        .unwrap();
    assert_eq!(image_of_the_deployment(&cluster).await, IMAGE);
}

#[test]
fn checksums_are_those_of_all_files() {
    let sums = released("SHA256SUMS");
    let folder = sums.parent().unwrap();
    let checked = Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(folder)
        .output();
    let checked = checked.unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
    let listed: BTreeSet<_> = sums_of(&sums)
        .into_keys()
        .chain(["SHA256SUMS".to_owned()])
        .collect();
    let there: BTreeSet<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(listed, there);
}

fn sums_of(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| line.split_once("  ").unwrap());
    lines
        .map(|(sum, name)| (name.to_owned(), sum.to_owned()))
        .collect()
}

#[test]
fn the_programs_report_their_version() {
    for program in ["dbplane", "dbplane-simulator"] {
        let sandbox = Sandbox::new("release").unwrap();
        let archive = released(&format!("{program}-{{}}-linux-amd64.tar.gz"));
        unpack(&archive, sandbox.folder());
        let said = Command::new(sandbox.folder().join(program))
            .arg("--version")
            .output()
            .unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(
            said.trim_end(),
            format!("{program} {}", env!("CARGO_PKG_VERSION"))
        );
        assert!(sandbox.folder().join("LICENSE").is_file());
    }
}

/// Repeats the steps of krew: it gets the archive from the manifest, verifies the hash, and
/// extracts the listed files.
#[test]
fn krew_finds_the_program_and_its_pages() {
    let manifest = fs::read_to_string(released("dbplane-{}-krew.yaml")).unwrap();
    let manifest: Value = serde_saphyr::from_str(&manifest).unwrap();
    assert_eq!(manifest["spec"]["version"], format!("v{VERSION}"));
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 1, "one for each archive: {platforms:?}");
    let platform = &platforms[0];
    assert_eq!(
        platform["selector"]["matchLabels"],
        serde_json::json!({"os": "linux", "arch": "amd64"})
    );
    let (place, name) = platform["uri"].as_str().unwrap().rsplit_once('/').unwrap();
    assert_eq!(place, "https://releases.example/dbplane");
    let archive = released(name);
    assert_eq!(platform["sha256"], *sums_of(&released("SHA256SUMS"))[name]);
    let sandbox = Sandbox::new("krew").unwrap();
    unpack(&archive, sandbox.folder());
    for file in platform["files"].as_array().unwrap() {
        assert!(
            sandbox
                .folder()
                .join(file["from"].as_str().unwrap())
                .is_file(),
            "{file} is not in the archive"
        );
    }
    // krew gives the program this name.
    let program = sandbox.folder().join("kubectl-dbplane");
    std::os::unix::fs::symlink(platform["bin"].as_str().unwrap(), &program).unwrap();
    let help = Command::new(&program).arg("--help").output().unwrap();
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("Usage: kubectl dbplane")
    );
    let page = fs::read_to_string(sandbox.folder().join("man/man1/dbplane-status.1")).unwrap();
    assert!(page.contains(".TH"), "{page}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let completions = fs::read_to_string(
            sandbox
                .folder()
                .join(format!("completions/dbplane.{shell}")),
        )
        .unwrap();
        assert!(completions.contains("confirm-deletion"), "{shell}");
    }
}

/// Unpacks an archive or a layer as the current user.
pub fn unpack(archive: &Path, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--preserve-permissions", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(folder);
    assert!(tar.status().unwrap().success(), "{}", archive.display());
}

#[test]
fn bills_of_materials_name_crates_and_packages() {
    for (program, crates) in [
        ("dbplane", ["kube-client", "rustls"]),
        ("dbplane-simulator", ["axum", "redb"]),
    ] {
        let bill = json(&format!("{program}-{{}}-linux-amd64.cdx.json"));
        assert_eq!(bill["bomFormat"], "CycloneDX");
        let about = bill["metadata"]["component"]["purl"].as_str().unwrap();
        assert!(
            about.starts_with(&format!("pkg:oci/{program}@sha256%3A")),
            "{about}"
        );
        let components = bill["components"].as_array().unwrap();
        for name in crates
            .into_iter()
            .chain([program, "ca-certificates", "libc6", "libgcc-s1"])
        {
            let versions = components
                .iter()
                .filter(|component| component["name"] == name);
            assert!(versions.count() >= 1, "{program} without {name}");
        }
        let refs = components
            .iter()
            .map(|component| component["bom-ref"].as_str().unwrap());
        let refs: BTreeSet<_> = refs.chain([about]).collect();
        assert_eq!(refs.len(), components.len() + 1, "each is there once");
        for edge in bill["dependencies"].as_array().unwrap() {
            let ends = edge["dependsOn"]
                .as_array()
                .into_iter()
                .flatten()
                .chain([&edge["ref"]]);
            let unknown = ends
                .map(|end| end.as_str().unwrap())
                .find(|end| !refs.contains(end));
            assert_eq!(unknown, None, "{program}");
        }
        assert!(
            !bill.to_string().contains(REPOSITORY),
            "{program}: a path of this machine"
        );
    }
}

#[test]
fn the_provenance_is_about_every_file_and_image() {
    let statements = ["provenance.json", "provenance-linux-amd64.json"].map(json);
    for statement in &statements {
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    }
    let subjects = statements
        .iter()
        .flat_map(|statement| statement["subject"].as_array().unwrap());
    let mut subjects: BTreeMap<_, _> = subjects
        .map(|subject| {
            (
                subject["name"].as_str().unwrap(),
                subject["digest"]["sha256"].as_str().unwrap(),
            )
        })
        .collect();
    for program in ["dbplane", "dbplane-simulator"] {
        let reference = IMAGE.replace("dbplane:", &format!("{program}:"));
        let digest = subjects.remove(&*reference).unwrap();
        let about = json(&format!("{program}-{{}}-linux-amd64.cdx.json"))["metadata"]["component"]
            ["purl"]
            .to_string();
        assert!(about.contains(digest), "{about}");
    }
    let sums = sums_of(&released("SHA256SUMS"));
    let files = sums
        .iter()
        .filter(|(name, _)| !name.starts_with("provenance"));
    assert_eq!(
        subjects,
        files
            .map(|(name, sum)| (name.as_str(), sum.as_str()))
            .collect()
    );
    let build = &statements[1]["predicate"]["buildDefinition"];
    let materials = build["resolvedDependencies"].as_array().unwrap();
    let commit = materials[0]["digest"]["gitCommit"].as_str().unwrap();
    assert!(
        commit.len() == 40
            && build["externalParameters"]["revision"]
                .as_str()
                .unwrap()
                .starts_with(commit)
    );
    let pins = fs::read_to_string(Path::new(REPOSITORY).join("release/packages.sha256")).unwrap();
    let used = pins.lines().filter(|pin| !pin.ends_with("_arm64.deb"));
    for pin in used {
        let (sum, name) = pin.split_once("  ").unwrap();
        assert!(
            materials
                .iter()
                .any(|one| one["name"] == name && one["digest"]["sha256"] == sum),
            "{name}"
        );
    }
}

#[test]
fn the_notes_match_the_changelog() {
    let notes = fs::read_to_string(released("RELEASE_NOTES.md")).unwrap();
    let changelog = fs::read_to_string(Path::new(REPOSITORY).join("CHANGELOG.md")).unwrap();
    assert!(
        notes.contains("### Added") && !notes.contains("\n## "),
        "{notes}"
    );
    assert!(changelog.contains(notes.trim()), "{notes}");
}

/// The check comes before any build.
#[test]
fn a_version_of_another_commit_and_changes_without_a_commit_are_refused() {
    let sandbox = Sandbox::new("release").unwrap();
    let clone = sandbox.folder().join("clone");
    let cloned = Command::new("git")
        .args(["clone", "--quiet", "--", REPOSITORY])
        .arg(&clone)
        .status();
    assert!(cloned.unwrap().success());
    let refusal = |version: &str| {
        let mut make = Command::new(clone.join("release/make"));
        make.args(["release", version]).env_remove("SNAPSHOT");
        let output = make.output().unwrap();
        assert!(!output.status.success(), "{version}");
        String::from_utf8(output.stderr).unwrap()
    };
    for version in [
        "9.9.9",
        concat!(env!("CARGO_PKG_VERSION"), "1"),
        concat!(env!("CARGO_PKG_VERSION"), "-"),
    ] {
        let refusal = refusal(version);
        assert!(
            refusal.contains(&format!("{version} is not a version of this commit")),
            "{refusal}"
        );
    }
    assert!(refusal("").contains("which version?"));
    fs::write(clone.join("CHANGELOG.md"), "").unwrap();
    let refusal = refusal(env!("CARGO_PKG_VERSION"));
    assert!(refusal.contains("something is not committed"), "{refusal}");
}

/// They push to a registry in their process.
#[test]
fn the_assembler_passes_its_tests() {
    let tested = Command::new("go")
        .args(["test", "./..."])
        .current_dir(Path::new(REPOSITORY).join("release/assemble"))
        .env("GOWORK", "off")
        .output()
        .unwrap();
    assert!(
        tested.status.success(),
        "{}{}",
        String::from_utf8_lossy(&tested.stdout),
        String::from_utf8_lossy(&tested.stderr)
    );
}
