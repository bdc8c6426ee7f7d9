//! Imports existing objects of a platform: applying the manifests must change nothing there, and
//! the resources must become Ready.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options, Simulator};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::support::{ControlPlane, PATIENCE, wait_for, wait_until};
use crate::terminal::Terminal;
use crate::{Operator, account, cluster};

pub const KEY: &str = "demo-personal-key-not-a-secret";
pub const ORGANIZATION: &str = "org-cool-darkness-1";
pub const PROJECTS: [&str; 4] = ["observed-1", "observed-2", "managed-1", "managed-2"];
/// In each project.
pub const COMPUTES: usize = 125;

/// Names of computes; several computes share each name.
const NAMES: [Option<&str>; 12] = [
    None,
    Some("orders"),
    Some("Orders (EU)"),
    Some("датабаза"),
    Some("ORDERS__eu..1"),
    Some("-- true --"),
    None,
    Some("a: b # {c}"),
    Some("line\nbreak\ttab"),
    Some("an-extremely-long-name-of-a-compute-that-is-as-long-as-can-be-64"),
    Some("orders-a1b2c3-0a1b2c3d-000000ff"),
    Some("'quoted' \"twice\""),
];
const SIZES: [(f64, f64); 7] = [
    (0.25, 0.25),
    (0.25, 2.),
    (1., 1.),
    (4., 8.),
    (16., 16.),
    (0.5, 16.),
    (56., 56.),
];
const SUSPENSIONS: [Option<i64>; 7] = [
    None,
    Some(0),
    Some(-1),
    Some(60),
    Some(300),
    Some(5430),
    Some(604_800),
];

/// A compute of each shape: every branch has a primary, and every second compute is a read replica.
fn compute(project: usize, index: usize) -> Value {
    let (min, max) = SIZES[index % SIZES.len()];
    let mut compute = json!({
        "id": format!("ep-{project}-{index:03}"),
        "branch": format!("br-{project}-{}", index / 2),
        "type": if index.is_multiple_of(2) { "read_write" } else { "read_only" },
        "size": {"min": min, "max": max},
        "disabled": index % 11 == 5,
        "active": index % 13 == 3,
    });
    if let Some(seconds) = SUSPENSIONS[(index / 2) % SUSPENSIONS.len()] {
        compute["suspend_timeout_seconds"] = seconds.into();
    }
    if let Some(name) = NAMES[index % NAMES.len()] {
        compute["name"] = name.into();
    }
    compute
}

/// Attributes that the world file cannot express are set by a later change.
fn change(index: usize) -> Option<Value> {
    Some(match index % 8 {
        1 => json!({"pooler_enabled": true, "pooler_mode": "transaction"}),
        3 => json!({"passwordless_access": false}),
        5 => json!({"settings": {"pg_settings": {
            "geqo": "on", "work_mem": "64MB", "a.b": "0123", "search_path": "\"$user\", public # 'x': {y}",
            "log_line_prefix": "%m [%p] ", "c": "1:30", "d": "null", "e": "1e3", "f": "~", "g": "yes", "h": "-",
            "long": "a setting that is longer than the eighty characters after which some writers of YAML fold a text",
        }}}),
        7 => json!({
            "pooler_enabled": true, "passwordless_access": false, "settings": {"pg_settings": {"work_mem": "1"}},
        }),
        _ => return None,
    })
}

/// A platform with all these computes.
pub async fn large_platform() -> Simulator {
    let project = |number: usize, id: &str| {
        let branches: Vec<Value> = (0..=COMPUTES / 2)
            .map(|n| json!({"id": format!("br-{number}-{n}")}))
            .collect();
        let computes: Vec<Value> = (0..COMPUTES).map(|index| compute(number, index)).collect();
        json!({"id": id, "owner": ORGANIZATION, "branches": branches, "computes": computes})
    };
    let world = json!({
        "settings": {"rate_limit": {"enabled": false}, "inactivity_seconds": 300},
        "users": [{"id": "user-ada"}],
        "organizations": [{"id": ORGANIZATION, "plan": "scale", "members": [{"user": "user-ada", "role": "admin"}]}],
        "projects": PROJECTS.iter().enumerate().map(|(number, id)| project(number, id)).collect::<Vec<_>>(),
        "keys": [
            {"type": "personal", "owner": "user-ada", "name": "laptop", "token": KEY},
            {"type": "project", "owner": ORGANIZATION, "name": "ci # \n of everything", "project": PROJECTS[2]},
        ],
    });
    let world = WorldFile::parse(&world.to_string()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let platform = simulator::serve(listener, Options::new(world))
        .await
        .unwrap();
    let client = reqwest::Client::new();
    for (number, project) in PROJECTS.iter().enumerate() {
        for index in 0..COMPUTES {
            let Some(change) = change(index) else {
                continue;
            };
            let path = format!(
                "projects/{project}/endpoints/ep-{number}-{index:03}?org_id={ORGANIZATION}"
            );
            let request = client
                .patch(format!("{}/{path}", platform.base_url()))
                .bearer_auth(KEY);
            let answer = request
                .json(&json!({"endpoint": change}))
                .send()
                .await
                .unwrap();
            assert!(
                answer.status().is_success(),
                "{change}: {}",
                answer.text().await.unwrap()
            );
        }
    }
    platform
}

/// Checks the summary of the plan and its exit code.
pub async fn is_planned(cluster: &ControlPlane, args: &[&str], plan: (i32, &str)) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .args([
            "plan",
            "--allow-insecure-platform",
            "--detailed-exitcode",
            "-n",
            "default",
        ])
        .args(args)
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .output()
        .await
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    );
    let end: Vec<&str> = stdout.lines().rev().take(20).collect();
    assert_eq!(
        (status.code(), end.get(1)),
        (Some(plan.0), Some(&plan.1)),
        "{args:?}: {stderr}\n{end:#?}"
    );
}

pub async fn import(cluster: &ControlPlane, args: &[&str]) -> String {
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_dbplane"))
        .args([
            "import",
            "--allow-insecure-platform",
            "--account",
            "prod",
            "-n",
            "default",
        ])
        .args(args)
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{args:?}: {said}");
    said
}

/// The contents of all files below a folder, by path.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

async fn computes(cluster: &ControlPlane) -> Vec<Value> {
    let text = cluster
        .kubectl(&["get", "computes", "-A", "-o", "json"])
        .await
        .unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["items"]
        .as_array()
        .unwrap()
        .clone()
}

fn is_ready(compute: &Value) -> bool {
    let conditions = compute["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

pub fn last_request(platform: &Simulator) -> u64 {
    platform.requests(0).last().unwrap().n
}

/// The number of lists of the project's computes since this request.
fn lists(platform: &Simulator, project: &str, since: u64) -> usize {
    let path = format!("/projects/{project}/endpoints");
    platform
        .requests(since)
        .iter()
        .filter(|entry| entry.method == "GET" && entry.path.contains(&path))
        .count()
}

pub async fn until_all_are_ready(cluster: &ControlPlane, count: usize) {
    let mut last = Vec::new();
    let all = async || {
        last = computes(cluster).await;
        (last.len() == count && last.iter().all(is_ready)).then_some(())
    };
    let ready = wait_for("all imported Computes to be Ready", PATIENCE * 5, all).await;
    let late = last.iter().find(|compute| !is_ready(compute));
    ready.unwrap_or_else(|error| {
        panic!(
            "{error}: {}",
            late.map_or(String::new(), |compute| format!("{compute:#}"))
        )
    });
    for compute in &last {
        assert_eq!(compute["status"]["computeID"], compute["spec"]["computeID"]);
    }
}

/// Waits until everything in these projects was read twice more.
pub async fn until_looked_at_again(platform: &Simulator, projects: &[&str]) {
    let seen = last_request(platform);
    let again = async || {
        projects
            .iter()
            .all(|project| lists(platform, project, seen) >= 2)
    };
    wait_until("further lists of all projects", PATIENCE, again)
        .await
        .unwrap();
}

/// Checks that there were only reads since this request.
pub fn was_only_read(platform: &Simulator, before: u64) {
    let since = platform.requests(before);
    assert_eq!(since[0].n, before + 1, "the log has forgotten some");
    let changes: Vec<_> = since
        .into_iter()
        .filter(|entry| entry.method != "GET")
        .collect();
    assert!(changes.is_empty(), "{changes:#?}");
}

#[tokio::test]
async fn applying_an_import_of_five_hundred_computes_changes_nothing_on_the_platform() {
    let cluster = cluster().await;
    let platform = large_platform().await;
    let before = last_request(&platform);
    let more = format!("  organizationID: {ORGANIZATION}\n  pollInterval: 5s\n");
    account(&cluster, "default", "prod", &platform.base_url(), &more).await;

    let folder = tempfile::tempdir().unwrap();
    for (number, way) in WAYS.iter().enumerate() {
        import_twice_and_apply(&cluster, folder.path(), number, way).await;
    }
    let keys = content(&folder.path().join("once-2"))["managed-1/kustomization.yaml"].clone();
    assert!(keys.contains("#   ci #   of everything (id "), "{keys}");

    let operator = Operator::start(&cluster, "operator", &[]);
    operator.until_ready().await;
    until_all_are_ready(&cluster, COMPUTES * PROJECTS.len()).await;
    // Differences would have been corrected by then.
    until_looked_at_again(&platform, &PROJECTS).await;

    change_to_full_management(&cluster, &folder.path().join("once-0")).await;
    until_looked_at_again(&platform, &PROJECTS).await;
    is_planned(&cluster, &[], (0, "Plan: nothing to do.")).await;

    was_only_read(&platform, before);

    let rest = folder.path().join("rest");
    let said = import(&cluster, &["--out", rest.to_str().unwrap()]).await;
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("left out: compute ep-"))
            .count(),
        500,
        "{said}"
    );
    assert!(
        said.contains("declared 0 computes of 0 projects, "),
        "{said}"
    );
}

/// The flags for the import of each project.
const WAYS: [&[&str]; 4] = [
    &["--project", PROJECTS[0]],
    &["--project", PROJECTS[1], "--all-fields"],
    &["--project", PROJECTS[2], "--management", "Full"],
    &[
        "--project",
        PROJECTS[3],
        "--management",
        "full",
        "--all-fields",
    ],
];

/// Imports a project twice, with the same result, and applies the manifests.
async fn import_twice_and_apply(
    cluster: &ControlPlane,
    folder: &Path,
    number: usize,
    way: &[&str],
) {
    let [once, again] = ["once", "again"].map(|name| folder.join(format!("{name}-{number}")));
    for out in [&once, &again] {
        let said = import(cluster, &[way, &["--out", out.to_str().unwrap()]].concat()).await;
        assert!(
            said.contains("declared 125 computes of 1 project, "),
            "{said}"
        );
    }
    let files = content(&once);
    assert_eq!(
        files,
        content(&again),
        "the same account gives the same files"
    );
    assert_eq!(files.len(), COMPUTES + 2);
    is_planned(
        cluster,
        &["-f", once.to_str().unwrap()],
        (2, "Plan: computes: 125 to link."),
    )
    .await;
    // Compute names repeat in other projects, so each import has to find unused names.
    all_are_applied(cluster, &once, " created").await;
}

/// Applies a folder, and checks that kubectl reports this result for all of its Computes.
async fn all_are_applied(cluster: &ControlPlane, folder: &Path, result: &str) {
    let applied = cluster
        .kubectl(&["apply", "-k", folder.to_str().unwrap()])
        .await
        .unwrap();
    assert_eq!(
        applied
            .lines()
            .filter(|line| line.ends_with(result))
            .count(),
        COMPUTES,
        "{applied}"
    );
}

/// The change from Observe to Full, as in the guide.
async fn change_to_full_management(cluster: &ControlPlane, observed: &Path) {
    for (name, text) in content(observed) {
        std::fs::write(
            observed.join(name),
            text.replace("\n  management: Observe\n", "\n  management: Full\n"),
        )
        .unwrap();
    }
    all_are_applied(cluster, observed, " configured").await;
    let managed = async || {
        let all = computes(cluster).await;
        let is_seen =
            |one: &Value| one["status"]["observedGeneration"] == one["metadata"]["generation"];
        all.iter()
            .all(|compute| is_ready(compute) && is_seen(compute))
    };
    wait_until("all Computes to be Ready again", PATIENCE * 5, managed)
        .await
        .unwrap();
}

#[tokio::test]
async fn progress_is_shown_on_a_terminal() {
    let cluster = cluster().await;
    let platform = crate::platform().await;
    account(
        &cluster,
        "default",
        "prod",
        &platform.base_url(),
        &format!("  organizationID: {ORGANIZATION}\n"),
    )
    .await;
    let slow = json!({"method": "GET", "kind": "delay", "delay_ms": 600, "times": 100});
    platform
        .order_fault(serde_json::from_value(slow).unwrap())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let import = ["import", "--account", "prod", "--out", &out];
    for (args, shows) in [
        (&["account", "check", "prod"][..], "reading the platform"),
        (&import, "projects"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
        command
            .args(args)
            .args(["--allow-insecure-platform", "-n", "default"]);
        command.env("KUBECONFIG", cluster.kubeconfig_path());
        let (output, shown) = Terminal::open().of(command).await;
        assert!(output.status.success(), "{args:?}: {output:?} {shown:?}");
        assert!(
            shown.contains(shows) && shown.contains("\r\x1b[2K"),
            "{args:?}: {shown:?}"
        );
    }
}
