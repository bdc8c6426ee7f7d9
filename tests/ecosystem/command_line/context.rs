//! Commands that store a project and a branch, or use the stored ones.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::CommandLine;
use crate::fixture::PROJECT;
use crate::public::{DEV, MAIN, ORGANIZATION, each, of_project, text};
use crate::tools;

fn remembered(at: &CommandLine) -> Value {
    serde_json::from_slice(&fs::read(at.file(".neon")).unwrap()).unwrap()
}

fn linked(at: &CommandLine) {
    at.text(&[
        "link",
        "--project-id",
        PROJECT,
        "--branch",
        "dev",
        "--yes",
        "--no-env-pull",
    ]);
}

pub fn link(at: &CommandLine) {
    linked(at);
    assert_eq!(
        remembered(at),
        json!({"orgId": ORGANIZATION, "projectId": PROJECT, "branch": "dev"})
    );
    let new = [
        "link",
        "--org-id",
        ORGANIZATION,
        "--project-name",
        "blog",
        "--region-id",
        "aws-us-east-2",
    ];
    at.text(&[&new[..], &["--yes", "--no-env-pull"]].concat());
    let project = text(&remembered(at)["projectId"]).to_owned();
    assert_eq!(
        at.platform.get(&format!("/projects/{project}"))["project"]["name"],
        "blog"
    );
}

pub fn set_context(at: &CommandLine) {
    at.text(&["set-context", "--project-id", PROJECT]);
    assert_eq!(
        each(&at.json(&["branches", "list"]), "project_id"),
        [PROJECT; 3]
    );
}

pub fn checkout(at: &CommandLine) {
    linked(at);
    at.text(&["checkout", "main", "--no-env-pull"]);
    assert_eq!(remembered(at)["branch"], "main");
    at.text(&["checkout", "feature", "--create", "--no-env-pull"]);
    let branches = at.platform.get(&of_project("branches?search=feature"));
    assert_eq!(each(&branches["branches"], "parent_id"), [MAIN]);
    assert!(
        at.failure(&["checkout", "no-such-branch", "--no-env-pull"])
            .contains("no-such-branch")
    );
}

/// Services that the platform lacks must not make the command fail.
pub fn status(at: &CommandLine) {
    linked(at);
    let status = at.json(&["status"]);
    assert_eq!(status["project"]["id"], PROJECT);
    assert_eq!(status["branch"]["id"], DEV);
    assert_eq!(at.text(&["status", "--current-branch"]).trim(), "dev");
}

pub fn config_status(at: &CommandLine) {
    linked(at);
    assert_eq!(at.json(&["config", "status"])["branch"]["parent"], "main");
}

/// The desired state of a branch in the syntax of the command line.
const POLICY: &str = r#"
import { defineConfig } from "@neon/config/v1";
const computeSettings = { autoscalingLimitMinCu: 1, autoscalingLimitMaxCu: 2, suspendTimeout: 600 };
export default defineConfig({ branch: () => ({ protected: true, postgres: { computeSettings } }) });
"#;

/// A linked branch with a compute and a policy.
fn with_policy(at: &CommandLine) -> String {
    let compute = at.platform.compute(DEV);
    linked(at);
    symlink(
        tools("command-line").join("node_modules"),
        at.file("node_modules"),
    )
    .unwrap();
    fs::write(at.file("neon.ts"), POLICY).unwrap();
    compute
}

/// True if branch and compute match the policy.
fn is_applied(at: &CommandLine, compute: &str) -> bool {
    let branch = at.platform.get(&of_project(&format!("branches/{DEV}")));
    let compute = &at
        .platform
        .get(&of_project(&format!("endpoints/{compute}")))["endpoint"];
    let applied = [
        &compute["autoscaling_limit_max_cu"],
        &compute["suspend_timeout_seconds"],
        &branch["branch"]["protected"],
    ];
    applied == [&json!(2), &json!(600), &json!(true)]
}

pub fn config_plan(at: &CommandLine) {
    let compute = with_policy(at);
    let plan = at.text(&["config", "plan"]);
    assert!(plan.contains("protected"), "{plan}");
    assert!(!is_applied(at, &compute));
}

pub fn config_apply(at: &CommandLine) {
    let compute = with_policy(at);
    at.text(&["config", "apply", "--update-existing"]);
    assert!(is_applied(at, &compute));
}

pub fn deploy(at: &CommandLine) {
    let compute = with_policy(at);
    at.text(&["deploy", "--update-existing"]);
    assert!(is_applied(at, &compute));
}

pub fn env_pull(at: &CommandLine) {
    at.platform.compute(DEV);
    linked(at);
    at.text(&["env", "pull", "--file", ".env"]);
    let written = fs::read_to_string(at.file(".env")).unwrap();
    let computes = at.platform.get(&of_project("endpoints"));
    let host = text(&computes["endpoints"][0]["host"]);
    assert!(written.contains(&format!("@{host}/app")), "{written}");
}
