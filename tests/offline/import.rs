//! Imports of existing objects: from a platform without a cluster, and from a Terraform state
//! alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options, Simulator};
use tokio::net::TcpListener;

const STATE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/offline/terraform/state.json"
);
const KEY: &str = "demo-personal-key-not-a-secret";

const FROM_FILE: [&str; 7] = [
    "import",
    "--account",
    "prod",
    "-n",
    "shop",
    "--from-terraform",
    STATE,
];

struct Said {
    code: Option<i32>,
    out: String,
    notes: String,
}

/// Runs the program with this standard input and without a cluster.
fn run(args: &[&str], input: &str) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command.args(args).env("KUBECONFIG", "/no/such/kubeconfig");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A process that reads no input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let [out, notes] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Said {
        code: status.code(),
        out,
        notes,
    }
}

/// The contents of all files below a folder, by path.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(
                    path.strip_prefix(folder).unwrap().display().to_string(),
                    fs::read_to_string(&path).unwrap(),
                );
            }
        }
    }
    found
}

fn is_valid(folder: &Path, objects: &str) {
    let said = run(&["validate", folder.to_str().unwrap()], "");
    assert!(
        said.code == Some(0) && said.out.contains(objects),
        "{}{}",
        said.out,
        said.notes
    );
}

#[test]
fn a_state_of_terraform_becomes_manifests_without_any_of_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(
        &[&FROM_FILE[..], &["--out", folder.path().to_str().unwrap()]].concat(),
        "",
    );
    assert_eq!(said.code, Some(0), "{}", said.notes);
    let files = content(folder.path());
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "aged-wind-123456/br-dev-7-primary.yaml",
            "aged-wind-123456/br-main-42-primary.yaml",
            "aged-wind-123456/br-main-42-replica.yaml",
            "aged-wind-123456/br-reporting-3-primary.yaml",
            "aged-wind-123456/keys/ci-pipeline.yaml",
            "aged-wind-123456/kustomization.yaml",
            "kustomization.yaml",
        ]
    );
    is_valid(folder.path(), "5 objects checked");
    let state = fs::read_to_string(STATE).unwrap();
    assert!(state.matches("canary").count() == 11 && state.contains("Y2FuYXJ5"));
    for text in files.values().chain([&said.out, &said.notes]) {
        assert!(
            !text.contains("canary") && !text.contains("Y2FuYXJ5"),
            "{text}"
        );
    }

    manifests_show_the_state(&files);
    for stays in [
        "neon_project.shop",
        r#"neon_branch.stage["dev"]"#,
        "neon_role.app",
        "neon_database.app",
        "neon_org_api_key.all",
        "neon_api_key.laptop",
    ] {
        assert!(
            said.notes.contains(&format!("  {stays}\n")),
            "{stays}: {}",
            said.notes
        );
    }
}

fn manifests_show_the_state(files: &BTreeMap<String, String>) {
    let reporting = &files["aged-wind-123456/br-reporting-3-primary.yaml"];
    for part in [
        "computeID: ep-wide-moon-333\n",
        "min: 0.5\n      max: 8\n",
        "never: true\n",
        "geqo: \"off\"\n",
        "disabled: true\n",
        "management: Observe\n  deletion: Orphan\n",
        r#"#   terraform state rm 'module.computes.neon_endpoint.primary["reporting"]'"#,
    ] {
        assert!(reporting.contains(part), "{part}: {reporting}");
    }
    let embedded = &files["aged-wind-123456/br-main-42-primary.yaml"];
    assert!(
        embedded.contains("computeID: ep-calm-sea-111\n")
            && embedded.contains("# The compute of neon_project.shop")
    );
    assert!(
        !embedded.contains("size"),
        "the state says what the project's new computes are like, not this one: {embedded}"
    );

    // Applying a ProjectKey creates a key, so the kustomization lists it only in a comment.
    let kustomization = &files["aged-wind-123456/kustomization.yaml"];
    assert!(
        kustomization.contains("\n# - keys/ci-pipeline.yaml\n")
            && !kustomization.contains("\n- keys")
    );
}

#[test]
fn a_state_gives_the_same_files_again_and_a_stream_of_what_creates_nothing() {
    let state = fs::read_to_string(STATE).unwrap();
    let [folder, again] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    assert_eq!(
        run(
            &[&FROM_FILE[..], &["--out", folder.path().to_str().unwrap()]].concat(),
            ""
        )
        .code,
        Some(0)
    );
    let from_stdin = [
        "import",
        "--account",
        "prod",
        "-n",
        "shop",
        "--from-terraform",
        "-",
        "--out",
    ];
    assert_eq!(
        run(
            &[&from_stdin[..], &[again.path().to_str().unwrap()]].concat(),
            &state
        )
        .code,
        Some(0)
    );
    assert_eq!(content(folder.path()), content(again.path()));

    let stream = run(&FROM_FILE, "");
    assert!(
        !stream.out.contains("kind: ProjectKey") && !stream.out.contains("canary"),
        "{}",
        stream.out
    );
    let checked = run(&["validate", "-"], &stream.out);
    assert!(
        checked.code == Some(0) && checked.out.contains("4 objects checked"),
        "{}",
        checked.out
    );
}

#[test]
fn changed_files_are_overwritten_only_with_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "import",
        "--account",
        "prod",
        "--from-terraform",
        STATE,
        "--out",
        folder.path().to_str().unwrap(),
    ];
    assert_eq!(run(&args, "").code, Some(0));
    assert_eq!(
        run(&args, "").code,
        Some(0),
        "the same files are no reason to refuse"
    );
    let mine = folder.path().join("aged-wind-123456/br-dev-7-primary.yaml");
    let old = folder.path().join("aged-wind-123456/gone.yaml");
    fs::write(&mine, "mine").unwrap();
    fs::write(&old, "kind: Compute").unwrap();
    fs::remove_file(folder.path().join("kustomization.yaml")).unwrap();
    let said = run(&args, "");
    assert!(
        said.code == Some(1)
            && said.notes.contains("br-dev-7-primary.yaml")
            && said.notes.contains("--force"),
        "{}",
        said.notes
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    assert!(
        !folder.path().join("kustomization.yaml").exists(),
        "all files or none"
    );
    let said = run(&[&args[..], &["--force"]].concat(), "");
    assert!(
        said.code == Some(0) && said.notes.contains("gone.yaml"),
        "{}",
        said.notes
    );
    assert!(
        fs::read_to_string(&mine)
            .unwrap()
            .contains("ep-dry-lake-222")
            && old.exists()
    );
}

#[test]
fn an_invalid_state_is_refused_and_not_quoted() {
    let said = run(
        &["import", "--account", "prod", "--from-terraform", "-"],
        "key = \"canary\"",
    );
    assert!(
        said.code == Some(1)
            && said.notes.contains("terraform state pull")
            && !said.notes.contains("canary"),
        "{}",
        said.notes
    );
    let said = run(
        &[
            "import",
            "--account",
            "prod",
            "--from-terraform",
            "/no/such/state",
        ],
        "",
    );
    assert!(
        said.code == Some(1) && said.notes.contains("/no/such/state"),
        "{}",
        said.notes
    );
    for wrong in [
        &["import"][..],
        &["import", "--account", "Compute/prod"],
        &[
            "import",
            "--account",
            "prod",
            "--base-url",
            "https://platform.example/v2",
        ],
        &["import", "--account", "prod", "--force"],
    ] {
        assert_eq!(run(wrong, "").code, Some(2), "{wrong:?}");
    }
}

async fn platform() -> Simulator {
    let world = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/world.yaml");
    let computes = "    computes:
      - {id: ep-one, branch: br-main-42, name: orders, size: {min: 0.25, max: 2}}
      - {id: ep-two, branch: br-main-42, type: read_only, name: orders, suspend_timeout_seconds: -1, size: {min: 1, max: 1}}
    branches:
      - {id: br-main-42,";
    let world = fs::read_to_string(world)
        .unwrap()
        .replace("    branches:\n      - {id: br-main-42,", computes);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    simulator::serve(listener, Options::new(WorldFile::parse(&world).unwrap()))
        .await
        .unwrap()
}

/// Imports with the administrator's key on standard input.
async fn import(platform: &Simulator, more: &[&str]) -> Said {
    let url = platform.base_url();
    let args = [
        "import",
        "--account",
        "prod",
        "--allow-insecure-platform",
        "--api-key=-",
        "--organization=org-cool-darkness-1",
    ];
    let args: Vec<String> = args
        .iter()
        .chain(more)
        .map(|arg| (*arg).to_owned())
        .chain(["--base-url".to_owned(), url])
        .collect();
    let run = move || run(&args.iter().map(String::as_str).collect::<Vec<_>>(), KEY);
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_imported_without_a_cluster_and_by_reads_alone() {
    let platform = platform().await;
    let folder = tempfile::tempdir().unwrap();
    let said = import(&platform, &["--out", folder.path().to_str().unwrap()]).await;
    assert_eq!(said.code, Some(0), "{}", said.notes);
    is_valid(folder.path(), "2 objects checked");
    let files = content(folder.path());
    assert_eq!(files.len(), 4, "{files:#?}");
    assert!(files["aged-wind-123456/orders.yaml"].contains("computeID: ep-one\n"));
    let stream = import(
        &platform,
        &["--all-fields", "--cluster-account", "--management=Full"],
    )
    .await;
    for part in [
        "kind: ClusterAccount\n",
        "after: 5m\n",
        "passwordlessAccess: true\n",
        "management: Full\n",
    ] {
        assert!(stream.out.contains(part), "{part}: {}", stream.out);
    }
    let asked = platform.requests(0);
    assert!(!asked.is_empty() && asked.iter().all(|entry| entry.method == "GET"));
    for text in files
        .values()
        .chain([&said.notes, &stream.out, &stream.notes])
    {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_if_a_project_cannot_be_read() {
    let platform = platform().await;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let said = import(
        &platform,
        &[
            "--project",
            "aged-wind-123456,no-such-project",
            "--out",
            out.to_str().unwrap(),
        ],
    )
    .await;
    assert!(
        said.code == Some(1) && said.notes.contains("no-such-project"),
        "{}",
        said.notes
    );
    assert!(!out.exists());
}
