//! The program: its output and its exit.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{ORGANIZATION, SCOPED};

/// A simulator process, killed on drop.
struct Process {
    child: Child,
    base_url: String,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(directory: &Path, flags: &[&str]) -> Self {
        let world = directory.join("world.yaml");
        std::fs::write(&world, crate::support::WORLD).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane-simulator"));
        command.args(["--clock-speed", "0"]).args(flags);
        command
            .env("DBPLANE_SIMULATE_LISTEN", "127.0.0.1:0")
            .env("DBPLANE_SIMULATE_WORLD", world);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self {
            child,
            base_url: line.trim_end().to_owned(),
            stdout,
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// The computes of `shop-1`.
    async fn computes(&self) -> Value {
        let request =
            reqwest::Client::new().get(format!("{}/projects/shop-1/endpoints", self.base_url));
        request
            .bearer_auth(ORGANIZATION)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }

    async fn create(&self) {
        let request =
            reqwest::Client::new().post(format!("{}/projects/shop-1/endpoints", self.base_url));
        let body = json!({ "endpoint": { "branch_id": "br-main", "type": "read_write" } });
        assert!(
            request
                .bearer_auth(ORGANIZATION)
                .json(&body)
                .send()
                .await
                .unwrap()
                .status()
                .is_success()
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn the_program_prints_its_base_url_alone_and_stops_on_sigterm_and_sigint() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Process::start(directory.path(), &[]);
        assert!(
            process.base_url.starts_with("http://127.0.0.1:")
                && process.base_url.ends_with("/api/v2")
        );
        assert_eq!(process.computes().await, json!({ "endpoints": [] }));
        let before = Instant::now();
        process.signal(signal);
        assert!(process.child.wait().unwrap().success());
        assert!(before.elapsed() < Duration::from_secs(5));
        let mut rest = String::new();
        process.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[tokio::test]
async fn the_program_keeps_its_state_when_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("world.redb");
    let flags = ["--state", state.to_str().unwrap()];
    let mut process = Process::start(directory.path(), &flags);
    process.create().await;
    let before = process.computes().await;
    process.signal(Signal::SIGKILL);
    process.child.wait().unwrap();
    let process = Process::start(directory.path(), &flags);
    assert_eq!(process.computes().await, before);
}

#[tokio::test]
async fn the_program_serves_the_profile_that_is_named() {
    let named: [(&[&str], u16, u16); 4] = [
        (&[], 200, 200),
        (&["--profile", "default"], 200, 200),
        (&["--profile", "public"], 200, 404),
        (&["--profile", "minimal"], 404, 200),
    ];
    for (flags, beyond, own_projects) in named {
        let directory = tempfile::tempdir().unwrap();
        let process = Process::start(directory.path(), flags);
        for (path, token, status) in [
            ("auth", ORGANIZATION, beyond),
            ("projects", SCOPED, own_projects),
        ] {
            let request = reqwest::Client::new()
                .get(format!("{}/{path}", process.base_url))
                .bearer_auth(token);
            assert_eq!(
                request.send().await.unwrap().status(),
                status,
                "{flags:?} {path}"
            );
        }
    }
}

/// Each wrong world file with the place that the program names.
const WRONG_WORLDS: [(&str, &str); 15] = [
    ("projects: [{id: p, owner: nobody}]", "projects[0].owner"),
    ("projects: [{id: p, owner: o, color: red}]", "projects[0].color"),
    ("organizations: [{id: o, plan: free, members: [{user: u, role: admin}]}]", "organizations[0].members[0].user"),
    ("users: [{id: u}]\nkeys: [{type: project, owner: u, name: k}]", "keys[0].project"),
    (
        "users: [{id: u}]\nprojects: [{id: p, owner: u, branches: [{id: b}], computes: [{id: old, branch: b}]}]",
        "projects[0].computes[0]",
    ),
    ("organizations: [{id: o, plan: free}]\nkeys: [{type: organization, owner: o, name: k}]", "keys[0].owner"),
    (
        "users: [{id: u}]\nprojects: [{id: p, owner: u, branches: [{id: b, parent: c}]}]",
        "projects[0].branches[0].parent",
    ),
    (
        "users: [{id: u}]\nprojects: [{id: p, owner: u, branches: [{id: b}], computes: [{branch: c}]}]",
        "projects[0].computes[0]",
    ),
    (
        "organizations: [{id: o, plan: scale}]\nprojects: [{id: p, owner: o, default_size: {min: 1, max: 56}}]",
        "projects[0].default_size: autoscaling limit max 56",
    ),
    (
        "organizations: [{id: o, plan: scale}]\nprojects: [{id: p, owner: o, default_size: {min: 4, max: 1}}]",
        "projects[0].default_size: autoscaling limit min",
    ),
    ("users: [{id: u}]\nprojects: [{id: p, owner: u, default_size: {min: 8, max: 8}}]", "projects[0].default_size"),
    (
        "users: [{id: u}]\nprojects: [{id: p, owner: u, default_suspend_timeout_seconds: 9223372036854775807}]",
        "projects[0].default_suspend_timeout_seconds",
    ),
    ("organizations: [{id: Org_1, plan: free}]", "organizations[0].id"),
    ("users: [{id: u}]\nprojects: [{id: p, owner: u, branches: [{id: b/c}]}]", "projects[0].branches[0].id"),
    (
        "users: [{id: u}]
projects:
  - {id: p, owner: u, branches: [{id: b}], computes: [{id: ep-1, branch: b}]}
  - {id: q, owner: u, branches: [{id: b}], computes: [{id: ep-2, branch: b}, {id: ep-1, branch: b, type: read_only}]}",
        "projects[1].computes[1].id",
    ),
];

#[test]
fn the_program_reports_where_a_world_file_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let world = directory.path().join("world.yaml");
    for (yaml, place) in WRONG_WORLDS {
        std::fs::write(&world, yaml).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane-simulator"));
        command
            .args(["--listen", "127.0.0.1:0", "--world"])
            .arg(&world);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut printed)
            .unwrap();
        // A simulator that accepts the file would serve forever.
        child.kill().unwrap();
        assert_eq!(printed, "", "{yaml}");
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(
            errors.contains("world.yaml") && errors.contains(place),
            "{errors}"
        );
    }
}

#[tokio::test]
async fn the_sample_world_is_what_the_demo_expects() {
    let yaml = include_str!("../../../deploy/examples/world.yaml");
    let platform = crate::support::Platform::start_with(crate::support::options(
        yaml,
        dbplane_simulator::world::Profile::Default,
    ))
    .await;
    let key = json!({ "key_name": "ci", "project_id": "aged-wind-123456" });
    let personal = "demo-personal-key-not-a-secret";
    platform
        .post("/organizations/org-cool-darkness-1/api_keys", personal, key)
        .await
        .expect(200);
    let organization = "demo-organization-key-not-a-secret";
    for (branch, is_root) in [
        ("br-main-42", true),
        ("br-dev-7", false),
        ("br-reporting-3", false),
    ] {
        let answer = platform
            .get(
                &format!("/projects/aged-wind-123456/branches/{branch}"),
                organization,
            )
            .await
            .expect(200);
        assert_eq!(answer.body["branch"]["default"], is_root);
    }
    assert_eq!(
        platform
            .get("/projects/aged-wind-123456/endpoints", organization)
            .await
            .body,
        json!({ "endpoints": [] })
    );
}
