//! Checks a platform without a cluster. It must only read, and its output must not contain
//! identifiers.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use dbplane_simulator::world::Profile;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{self as simulator, Options, Simulator};
use serde_json::Value;
use tokio::net::TcpListener;

const KEY: &str = "demo-personal-key-not-a-secret";

async fn platform(profile: Profile) -> Simulator {
    platform_with(profile, |world| world).await
}

/// A platform with a modified sample world.
async fn platform_with(profile: Profile, change: impl FnOnce(String) -> String) -> Simulator {
    let world = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/world.yaml");
    let world = WorldFile::parse(&change(std::fs::read_to_string(world).unwrap())).unwrap();
    let mut options = Options::new(world);
    options.profile = profile;
    simulator::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), options)
        .await
        .unwrap()
}

async fn check(platform: &Simulator, key: &'static str, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .args([
            "account",
            "check",
            "--base-url",
            &platform.base_url(),
            "--api-key=-",
        ])
        .args(more);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(key.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    });
    let Output {
        status,
        stdout,
        stderr,
    } = ran.await.unwrap();
    (
        status.code(),
        format!(
            "{}{}",
            String::from_utf8(stdout).unwrap(),
            String::from_utf8(stderr).unwrap()
        ),
    )
}

const AS_ADMIN: [&str; 2] = [
    "--allow-insecure-platform",
    "--organization=org-cool-darkness-1",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_profile_of_the_simulator_is_as_described() {
    for (profile, keys) in [
        (Profile::Default, true),
        (Profile::Public, true),
        (Profile::Minimal, false),
    ] {
        let platform = platform(profile).await;
        let (code, said) = check(&platform, KEY, &AS_ADMIN).await;
        assert_eq!(code, Some(0), "{profile:?}: {said}");
        assert!(
            said.contains("computes of a project: ")
                && said.contains("What differs from docs/platform.md\n  nothing"),
            "{profile:?}: {said}"
        );
        assert_eq!(
            said.contains("keys of the organization: failed (dbplane works without it)"),
            !keys,
            "{profile:?}: {said}"
        );
        let asked = platform.requests(0);
        assert!(!asked.is_empty() && asked.iter().all(|entry| entry.method == "GET"));
        for secret in [KEY, "aged-wind", "br-main-42", "127.0.0.1"] {
            assert!(!said.contains(secret), "{secret}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_reported_by_the_exit_code() {
    let platform = platform(Profile::Default).await;
    let (code, said) = check(&platform, "canary-of-a-wrong-key", &AS_ADMIN).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("projects: failed (needed): the platform does not accept the API key (401)"),
        "{said}"
    );
    assert!(!said.contains("canary"), "{said}");
    let (code, said) = check(&platform, KEY, &[]).await;
    assert!(code == Some(1) && said.contains("https://"), "{said}");
}

/// Uses all keys of the sample world and checks the reported kinds.
#[tokio::test(flavor = "multi_thread")]
async fn the_kind_of_key_is_reported() {
    const MEMBER: &str = "demo-member-key-not-a-secret";
    const ORGANIZATION: &str = "demo-organization-key-not-a-secret";
    for profile in [Profile::Default, Profile::Public] {
        let platform = platform(profile).await;
        for (key, kind, project_keys) in [
            (KEY, "personal", "ProjectKeys: probably"),
            (
                MEMBER,
                "personal",
                "ProjectKeys: no: its person is no administrator",
            ),
            (
                ORGANIZATION,
                "organization",
                "ProjectKeys: no: the platform demands",
            ),
        ] {
            let (code, said) =
                check(&platform, key, &[&AS_ADMIN[..], &["-o", "json"]].concat()).await;
            let report: Value =
                serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
            assert_eq!(
                (code, &report["usable"]),
                (Some(0), &Value::Bool(true)),
                "{profile:?}: {said}"
            );
            assert_eq!(report["keyKind"], kind, "{profile:?}: {said}");
            assert!(
                report["key"][2].as_str().unwrap().starts_with(project_keys),
                "{profile:?}: {said}"
            );
            assert!(!said.contains(key), "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_scoped_key_is_reported() {
    const SCOPED: &str = "scoped-key-not-a-secret";
    for (profile, more) in [
        (Profile::Default, &[][..]),
        (Profile::Public, &["--project=aged-wind-123456"][..]),
    ] {
        let platform = platform_with(profile, |world| {
            let key = "{type: project, owner: org-cool-darkness-1, name: ci, project: aged-wind-123456, token: scoped-key-not-a-secret}";
            world.replace("\nkeys:\n", &format!("\nkeys:\n  - {key}\n"))
        });
        let args = [&AS_ADMIN[..], &["-o", "json"], more].concat();
        let (code, said) = check(&platform.await, SCOPED, &args).await;
        let report: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(
            (code, &report["keyKind"]),
            (Some(0), &Value::from("project-scoped")),
            "{profile:?}: {said}"
        );
    }
}

#[test]
fn without_an_account_or_a_platform_the_command_line_is_wrong() {
    for args in [
        &["account", "check"][..],
        &[
            "account",
            "check",
            "--base-url",
            "https://platform.example/v2",
        ],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_dbplane"))
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}
