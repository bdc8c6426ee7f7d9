//! Commands for the account and its keys.

use std::fs;

use serde_json::{Value, json};

use super::CommandLine;
use crate::fixture::{ADMIN, PROJECT};
use crate::public::{ORGANIZATION, each, text};

const OF_ORGANIZATION: &str = "/organizations/org-cool-darkness-1/api_keys";

pub fn me(at: &CommandLine) {
    let me = at.json(&["me"]);
    assert_eq!(me["email"], "ada@example.com");
    assert_eq!(me["id"], at.platform.get("/users/me")["id"]);
}

pub fn orgs_list(at: &CommandLine) {
    assert_eq!(each(&at.json(&["orgs", "list"]), "id"), [ORGANIZATION]);
}

pub fn api_keys_list(at: &CommandLine) {
    assert_eq!(each(&at.json(&["api-keys", "list"]), "name"), ["laptop"]);
    at.platform.create(
        OF_ORGANIZATION,
        &json!({"key_name": "ci", "project_id": PROJECT}),
    );
    let keys = at.json(&["api-keys", "list", "--org-id", ORGANIZATION]);
    assert_eq!(each(&keys, "name"), ["operator", "ci"]);
    assert_eq!(keys[1]["project_id"], PROJECT);
    assert_eq!(keys[1]["created_by"]["name"], "Ada");
}

pub fn api_keys_create(at: &CommandLine) {
    let personal = at.json(&["api-keys", "create", "--name", "desk"]);
    let of_organization = at.json(&[
        "api-keys",
        "create",
        "--name",
        "all",
        "--org-id",
        ORGANIZATION,
    ]);
    let of_project = at.json(&[
        "api-keys",
        "create",
        "--name",
        "ci",
        "--project-id",
        PROJECT,
    ]);
    assert_eq!(
        each(&at.platform.get("/api_keys"), "name"),
        ["laptop", "desk"]
    );
    assert_eq!(
        each(&at.platform.get(OF_ORGANIZATION), "name"),
        ["operator", "all", "ci"]
    );
    keys_work_within_their_scope(at, &[&personal, &of_organization], &of_project);

    assert!(
        at.failure(&["api-keys", "create", "--name", "desk"])
            .contains("choose another unique name for api key")
    );
}

fn keys_work_within_their_scope(at: &CommandLine, of_all: &[&Value], of_project: &Value) {
    let projects = |key: &Value| {
        at.json(&[
            "projects",
            "list",
            "--org-id",
            ORGANIZATION,
            "--api-key",
            text(&key["key"]),
        ])
    };
    for key in of_all {
        assert_eq!(each(&projects(key), "id"), [PROJECT]);
    }
    let branches = [
        "branches",
        "list",
        "--project-id",
        PROJECT,
        "--api-key",
        text(&of_project["key"]),
    ];
    assert_eq!(at.json(&branches).as_array().unwrap().len(), 3);
    let outside = [
        "projects",
        "list",
        "--org-id",
        ORGANIZATION,
        "--api-key",
        text(&of_project["key"]),
    ];
    assert!(
        at.failure(&outside)
            .contains("not allowed to perform actions outside the project")
    );
}

pub fn api_keys_revoke(at: &CommandLine) {
    let personal = at
        .platform
        .create("/api_keys", &json!({"key_name": "desk"}));
    at.json(&["api-keys", "revoke", &personal["id"].to_string()]);
    assert_eq!(each(&at.platform.get("/api_keys"), "name"), ["laptop"]);
    assert!(
        at.failure(&["me", "--api-key", text(&personal["key"])])
            .contains("rejected the API key")
    );

    let of_project = at.platform.create(
        OF_ORGANIZATION,
        &json!({"key_name": "ci", "project_id": PROJECT}),
    );
    let id = of_project["id"].to_string();
    let revoked = at.json(&["api-keys", "revoke", &id, "--org-id", ORGANIZATION]);
    assert_eq!(revoked["revoked"], true);
    assert_eq!(
        each(&at.platform.get(OF_ORGANIZATION), "name"),
        ["operator"]
    );
    assert!(
        at.failure(&["api-keys", "revoke", &id, "--org-id", ORGANIZATION])
            .contains("No API key with id")
    );
}

/// Creates a profile with the administrator's key.
fn with_profile(at: &CommandLine) {
    at.text(&["profile", "create", "work", "--api-key", ADMIN]);
}

/// The key in the profile.
fn stored(at: &CommandLine) -> Value {
    serde_json::from_slice(&fs::read(at.file(".config/neon/credentials.work.json")).unwrap())
        .unwrap()
}

pub fn profile_list(at: &CommandLine) {
    with_profile(at);
    let profiles = at.json(&["profile", "list"]);
    assert_eq!(each(&profiles, "name"), ["DEFAULT", "work"]);
    assert_eq!(each(&profiles, "account"), ["-", "ada@example.com"]);
    assert_eq!(each(&profiles, "auth"), ["-", "api key"]);
}

pub fn profile_create(at: &CommandLine) {
    with_profile(at);
    assert_eq!(stored(at)["api_key"], ADMIN);
    let wrong = at.failure(&["profile", "create", "other", "--api-key", "of-nobody"]);
    assert!(wrong.contains("rejected the key"), "{wrong}");
}

pub fn profile_rotate_key(at: &CommandLine) {
    with_profile(at);
    let first = at.json(&["profile", "rotate-key", "work"]);
    let second = at.json(&["profile", "rotate-key", "work"]);
    assert_ne!(first["keyId"], second["keyId"]);
    // The first generated key is revoked; the key from the user is not, as the command line did not
    // create it.
    let left = at.platform.get("/api_keys");
    let ids: Vec<&Value> = left
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["id"])
        .collect();
    assert_eq!(ids, [&json!(1), &second["keyId"]]);
    assert_eq!(
        at.json(&["me", "--api-key", text(&stored(at)["api_key"])])["email"],
        "ada@example.com"
    );
}

pub fn profile_remove(at: &CommandLine) {
    with_profile(at);
    at.json(&["profile", "rotate-key", "work"]);
    at.text(&["profile", "remove", "work", "--yes"]);
    assert_eq!(each(&at.platform.get("/api_keys"), "name"), ["laptop"]);
    assert!(!at.file(".config/neon/credentials.work.json").exists());
}
