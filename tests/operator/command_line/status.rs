//! The output of `dbplane status`: a list, a single resource, and with --watch.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use regex::Regex;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::Ran;
use crate::computes::created;
use crate::fixture::{Fixture, compute, key};
use crate::support::{PATIENCE, Sandbox};
use crate::terminal::Terminal;

const CLOSED: &str = "  size: {fixed: 1}\n  disruption: {policy: Window, window: {schedule: 0 0 29 2 *, duration: 1m}}\n";

/// A Compute that waits for its window, one whose branch is taken, and a healthy ProjectKey.
async fn fleet(name: &str) -> Fixture {
    let (fixture, _) = created(name, CLOSED).await;
    fixture
        .kubectl(&["label", "compute", "orders", "app=shop"])
        .await;
    fixture.apply(&key("ci", "")).await;
    fixture.apply(&compute("rival", "br-main-42", "")).await;
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture.until_ready("projectkey/ci").await;
    fixture
        .until_condition("compute/rival", "Stalled", "True", "ClaimedByAnother")
        .await;
    fixture
        .until("compute/orders", "waiting", |seen| {
            seen["status"]["waiting"].is_object()
        })
        .await;
    fixture
}

fn names(items: &Value) -> Vec<&str> {
    items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_fleet_shows_resources_that_need_a_person_first() {
    let fixture = fleet("cli-fleet").await;
    let shown = fixture.dbplane(&["status"]).await;
    let shown = shown.expect(
        0,
        &[
            "dbplane in namespace cli-fleet; the operator ",
            "compute/rival  ClaimedByAnother",
        ],
    );
    let place = |word: &str| {
        shown
            .out
            .find(word)
            .unwrap_or_else(|| panic!("{word} is missing: {}", shown.out))
    };
    assert!(
        place("Needs a person\n") < place("Waits for time\n")
            && place("Waits for time\n") < place("Accounts\n")
    );
    assert!(
        shown
            .out
            .ends_with("What to do: dbplane status -n cli-fleet compute/rival\n"),
        "{}",
        shown.out
    );
    assert!(
        fixture
            .dbplane(&["status", "-o", "wide"])
            .await
            .expect(0, &["MESSAGE"])
            .out
            .len()
            > shown.out.len()
    );

    the_fleet_as_data(&fixture).await;
    a_selection_of_the_fleet(&fixture).await;
}

async fn the_fleet_as_data(fixture: &Fixture) {
    let document = fixture
        .dbplane(&["status", "-o", "json"])
        .await
        .expect(0, &[])
        .json();
    assert_eq!(
        (names(&document["needsPerson"]), names(&document["waits"])),
        (vec!["rival"], vec!["orders"])
    );
    assert_eq!(document["needsPerson"][0]["reason"], "ClaimedByAnother");
    let counts = document["counts"].as_array().unwrap();
    let computes = counts
        .iter()
        .find(|count| count["kind"] == "Compute")
        .unwrap();
    assert_eq!(
        *computes,
        json!({"kind": "Compute", "all": 2, "needsPerson": 1, "waits": 1, "underWay": 0, "well": 0})
    );
    let account = &document["accounts"][0];
    assert_eq!(
        (&account["ready"], &account["resources"], &account["state"]),
        (&json!("True"), &json!(3), &json!("well"))
    );
    assert_eq!(document["notRead"], json!([]));
    let yaml = fixture.dbplane(&["status", "-o", "yaml"]).await;
    assert_eq!(
        serde_saphyr::from_str::<Value>(&yaml.out).unwrap(),
        document
    );
}

async fn a_selection_of_the_fleet(fixture: &Fixture) {
    let selected = fixture
        .dbplane(&["status", "-l", "app=shop", "-o", "json"])
        .await
        .json();
    assert_eq!(
        (names(&selected["needsPerson"]), names(&selected["waits"])),
        (vec![], vec!["orders"])
    );
    fixture
        .dbplane(&["status", "--exit-status"])
        .await
        .expect(3, &["compute/rival"]);
    fixture
        .dbplane(&["status", "--exit-status", "-l", "app=shop"])
        .await
        .expect(0, &["compute/orders"]);
}

#[tokio::test]
async fn a_page_shows_what_differs_and_what_helps() {
    let fixture = fleet("cli-page").await;
    a_page_as_data(&fixture).await;
    a_page_as_text(&fixture).await;
    fixture
        .dbplane(&["status", "account/prod"])
        .await
        .expect(0, &["account/prod in namespace cli-page: is well"]);
    fixture
        .dbplane(&["status", "compute/none"])
        .await
        .expect(1, &["there is no compute/none in namespace cli-page"]);
    fixture
        .dbplane(&["status", "pods/none"])
        .await
        .expect(2, &["pods is no kind of dbplane"]);
    a_page_as_text_of_80_columns(&fixture).await;
}

async fn a_page_as_text_of_80_columns(fixture: &Fixture) {
    let kubeconfig = fixture.shared.cluster.kubeconfig_path();
    let page = fixture.get("compute/rival").await.unwrap();
    let conditions = page["status"]["conditions"].as_array().unwrap();
    let message = conditions[0]["message"].as_str().unwrap();
    let colours = Regex::new("\x1b\\[[0-9;?]*[A-Za-z]").unwrap();
    let drawn_over = Regex::new("(?m)^[^\n]*\r([^\r\n])").unwrap();
    let microseconds = Regex::new(r":\d\d\.\d+Z").unwrap();
    for args in [&["status"][..], &["status", "compute", "rival"]] {
        let command = fixture.command(&kubeconfig, args);
        let (status, shown) = Terminal::of_width(80).with_person(command, "").await;
        assert!(status.success(), "{shown}");
        let shown = colours.replace_all(&shown, "");
        let shown = drawn_over.replace_all(&shown, "$1");
        for line in shown
            .lines()
            .filter(|line| !line.contains(": dbplane ") && !line.contains("kubectl "))
        {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let words: Vec<&str> = shown.split_whitespace().collect();
        let message: Vec<&str> = message.split_whitespace().collect();
        assert!(
            words.windows(message.len()).any(|part| part == message),
            "{message:?}: {shown}"
        );
        assert!(!microseconds.is_match(&shown), "{shown}");
    }
}

#[tokio::test]
async fn flags_are_those_of_kubectl() {
    let (fixture, _) = created("cli-flags", "").await;
    let kubeconfig = fixture.shared.cluster.kubeconfig_path();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .env_clear()
        .args(["status", "-n", "cli-flags", "--kubeconfig"]);
    command.arg(&kubeconfig);
    let shown = Ran::of(command).await;
    shown.expect(0, &["dbplane in namespace cli-flags", "Compute  1"]);
    fixture
        .dbplane(&["status", "compute", "orders"])
        .await
        .expect(0, &["compute/orders in namespace cli-flags"]);
    let nobody = fixture.dbplane(&["status", "--as", "nobody"]).await;
    nobody.expect(1, &["you may not read the resources of dbplane"]);
    let member = ["status", "--as", "nobody", "--as-group", "system:masters"];
    fixture.dbplane(&member).await.expect(0, &["Compute  1"]);
    fixture
        .dbplane(&["status", "--as-group", "system:masters"])
        .await
        .expect(2, &["--as <USER>"]);
    let without_lease = ["remove-finalizers", "--operator-namespace", "cli-flags"];
    for verb in [&["status"][..], &["plan"], &without_lease] {
        for selector in ["app in (a", "=", "a=b=c"] {
            let ran = fixture.dbplane(&[verb, &["-l", selector]].concat()).await;
            let ran = ran.expect(2, &["is no selector: "]);
            assert_eq!(ran.out, "");
        }
    }
}

#[tokio::test]
async fn names_of_resources_are_completed() {
    let (fixture, _) = created("cli-complete", "").await;
    let folder = Sandbox::new("complete").unwrap();
    for name in ["kubectl-dbplane", "kubectl_complete-dbplane"] {
        symlink(env!("CARGO_BIN_EXE_dbplane"), folder.folder().join(name)).unwrap();
    }
    for (words, completed) in [
        (
            &["status", "-n", "cli-complete", "compute/or"][..],
            "compute/orders\t\n:4\n",
        ),
        (
            &["restart", "-n", "cli-complete", "dbc", ""],
            "orders\t\n:4\n",
        ),
        (
            &["restart", "-n", "cli-complete", "read"],
            "readreplicaset\t\n:4\n",
        ),
        (&["status", "-n", "cli-comp"], "cli-complete\t\n:4\n"),
    ] {
        let mut command = Command::from(fixture.shared.cluster.kubectl_command());
        command
            .env("PATH", folder.folder())
            .args(["__complete", "dbplane"])
            .args(words);
        let ran = Ran::of(command).await;
        // kubectl leaves out empty descriptions.
        let out = ran.out.replace('\t', "");
        assert_eq!(out, completed.replace('\t', ""), "{ran:?}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbplane"));
    command
        .env_clear()
        .env("KUBECONFIG", fixture.shared.cluster.kubeconfig_path());
    command
        .envs([
            ("DBPLANE_COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", "4"),
            ("_CLAP_IFS", "\n"),
        ])
        .args([
            "--",
            "dbplane",
            "restart",
            "-n",
            "cli-complete",
            "compute/o",
        ]);
    Ran::of(command).await.expect(0, &["compute/orders"]);
}

async fn a_page_as_data(fixture: &Fixture) {
    let page = fixture
        .dbplane(&["status", "compute/orders", "-o", "json"])
        .await
        .expect(0, &[])
        .json();
    let seen = fixture.get("compute/orders").await.unwrap();
    assert_eq!(
        (&page["needs"], &page["declared"]),
        (&json!("waits"), &seen["spec"])
    );
    assert_eq!(page["there"]["computeID"], seen["status"]["computeID"]);
    assert!(
        page["there"]["record"].is_null()
            && page["differs"]
                .as_str()
                .unwrap()
                .contains("size is 1, declared is 2")
    );
    assert_eq!(
        page["next"][0]["what"],
        "what waits is done: size is 1, declared is 2"
    );
    assert_eq!(page["lastOperation"], seen["status"]["lastOperation"]);
    assert_eq!(
        (&page["account"]["name"], &page["account"]["ready"]),
        (&json!("prod"), &json!("True"))
    );
    let events = page["events"].as_array().unwrap();
    assert!(
        events.iter().any(|event| event["reason"] == "Created"),
        "{page}"
    );
}

async fn a_page_as_text(fixture: &Fixture) {
    let text = fixture.dbplane(&["status", "dbc/rival"]).await;
    let words = [
        "compute/rival in namespace cli-page: needs a person (ClaimedByAnother)",
        "Compute cli-page/orders",
        "kubectl -n cli-page describe compute rival",
    ];
    let text = text.expect(0, &words);
    for section in [
        "Declared",
        "Conditions",
        "Account",
        "Operator",
        "What ClaimedByAnother means, and what to do",
    ] {
        assert!(
            text.out.contains(&format!("\n{section}\n")),
            "{section}: {}",
            text.out
        );
    }
}

#[tokio::test]
async fn missing_rights_to_read_are_reported() {
    let fixture = Fixture::bare("cli-nobody").await;
    let nobody = fixture
        .shared
        .cluster
        .kubeconfig_for_service_account(&fixture.namespace, "default")
        .await
        .unwrap();
    let ran = fixture.dbplane_as(&nobody, &["status"]).await;
    let words = "you may not read the resources of dbplane in namespace cli-nobody: ask for the role view there, or name another one with -n\n";
    let ran = ran.expect(1, &[words]);
    assert_eq!((ran.out.as_str(), ran.err.lines().count()), ("", 1));
}

#[tokio::test]
async fn kubectl_runs_it_as_a_plugin() {
    let (fixture, _) = created("cli-plugin", "").await;
    let folder = Sandbox::new("plugin").unwrap();
    symlink(
        env!("CARGO_BIN_EXE_dbplane"),
        folder.folder().join("kubectl-dbplane"),
    )
    .unwrap();
    let kubectl = |args: &[&str]| {
        let mut command = Command::from(fixture.shared.cluster.kubectl_command());
        command.env("PATH", folder.folder()).args(args);
        Ran::of(command)
    };
    let shown = kubectl(&["dbplane", "status", "-n", "cli-plugin"]).await;
    shown.expect(0, &["dbplane in namespace cli-plugin", "Compute  1"]);
    fixture
        .dbplane(&["pause", "compute/orders"])
        .await
        .expect(0, &[]);
    let fleet = kubectl(&["dbplane", "status", "-n", "cli-plugin"]).await;
    fleet.expect(
        0,
        &["What to do: kubectl dbplane status -n cli-plugin compute/orders"],
    );
    let help = kubectl(&["dbplane", "restart", "--help"]).await;
    help.expect(
        0,
        &[
            "Usage: kubectl dbplane restart ",
            "\n  kubectl dbplane restart -n shop compute/orders",
        ],
    );
    kubectl(&["dbplane", "restart"])
        .await
        .expect(2, &["Usage: kubectl dbplane restart "]);
}

/// Reads until the output contains `word`.
async fn read_until(child: &mut Child, text: &mut String, word: &str) {
    let out = child.stdout.as_mut().unwrap();
    let read = tokio::time::timeout(PATIENCE, async {
        let mut buffer = [0; 4096];
        while !text.contains(word) {
            let count = out.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0, "it has ended: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    });
    read.await
        .unwrap_or_else(|_| panic!("{word} never came: {text}"));
}

#[tokio::test]
async fn a_watched_fleet_is_shown_again_with_each_change() {
    let (fixture, _) = created("cli-watch", "").await;
    let mut command = fixture.command(
        &fixture.shared.cluster.kubeconfig_path(),
        &["status", "--watch"],
    );
    let mut child = command
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut text = String::new();
    read_until(&mut child, &mut text, "Accounts\n").await;
    assert!(!text.contains("Paused"), "{text}");
    fixture
        .annotate("compute/orders", "dbplane.dev/paused=true")
        .await;
    read_until(
        &mut child,
        &mut text,
        "What to do: dbplane status -n cli-watch compute/orders\n",
    )
    .await;
    assert!(
        text.contains("compute/orders  Paused") && !text.contains('\x1b'),
        "{text}"
    );
    let pictures = text.matches("dbplane in namespace").count();
    assert!((2..10).contains(&pictures), "{pictures} pictures: {text}");
    kill(
        Pid::from_raw(child.id().unwrap().cast_signed()),
        Signal::SIGINT,
    )
    .unwrap();
    let ended = tokio::time::timeout(PATIENCE, child.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.code(), Some(0));
}
