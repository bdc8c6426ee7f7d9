//! Commands for branches and their contents.

use serde_json::{Value, json};

use super::CommandLine;
use crate::fixture::PROJECT;
use crate::public::{DEV, MAIN, each, of_project, text};

fn branch(at: &CommandLine, id: &str) -> Value {
    at.platform.get(&of_project(&format!("branches/{id}")))["branch"].clone()
}

fn json(at: &CommandLine, arguments: &[&str]) -> Value {
    at.json(&[&["branches"], arguments, &["--project-id", PROJECT]].concat())
}

fn failure(at: &CommandLine, arguments: &[&str]) -> String {
    at.failure(&[&["branches"], arguments, &["--project-id", PROJECT]].concat())
}

pub fn list(at: &CommandLine) {
    assert_eq!(
        json(at, &["list"]),
        at.platform.get(&of_project("branches"))["branches"]
    );
}

pub fn create(at: &CommandLine) {
    let created = json(
        at,
        &[
            "create",
            "--name",
            "feature",
            "--parent",
            "dev",
            "--cu",
            "1-2",
            "--suspend-timeout",
            "600",
        ],
    );
    let id = text(&created["branch"]["id"]);
    assert_eq!(
        (&branch(at, id)["name"], &branch(at, id)["parent_id"]),
        (&json!("feature"), &json!(DEV))
    );
    let computes = at
        .platform
        .get(&of_project(&format!("branches/{id}/endpoints")));
    assert_eq!(computes["endpoints"][0]["autoscaling_limit_max_cu"], 2);
    assert_eq!(computes["endpoints"][0]["suspend_timeout_seconds"], 600);
    let uri = text(&created["connection_uris"][0]["connection_uri"]);
    assert!(
        uri.contains(text(&computes["endpoints"][0]["host"])),
        "{uri}"
    );

    create_without_a_compute(at);
    let of_schema = json(at, &["create", "--name", "empty", "--schema-only"]);
    let of_schema = branch(at, text(&of_schema["branch"]["id"]));
    assert_eq!(
        (&of_schema["init_source"], &of_schema["parent_id"]),
        (&json!("schema-only"), &Value::Null)
    );

    create_that_expires(at);
    assert!(failure(at, &["create", "--parent", "no-such-branch"]).contains("not found"));
}

fn create_without_a_compute(at: &CommandLine) {
    let bare = json(
        at,
        &[
            "create",
            "--name",
            "bare",
            "--no-compute",
            "--protected",
            "--parent",
            "2026-01-01T00:00:00Z",
        ],
    );
    let bare = branch(at, text(&bare["id"]));
    assert_eq!(
        (&bare["protected"], &bare["parent_id"]),
        (&json!(true), &json!(MAIN))
    );
    assert_eq!(bare["parent_timestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(
        at.platform.get(&of_project("endpoints"))["endpoints"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

fn create_that_expires(at: &CommandLine) {
    let passing = json(
        at,
        &[
            "create",
            "--name",
            "passing",
            "--no-compute",
            "--expires-at",
            &in_a_week(at),
        ],
    );
    assert_eq!(
        branch(at, text(&passing["id"]))["expires_at"],
        in_a_week(at)
    );
}

/// The time in a week as the command line formats it, in whole seconds.
fn in_a_week(at: &CommandLine) -> String {
    at.platform.after_days(7)
}

pub fn reset(at: &CommandLine) {
    assert_eq!(branch(at, DEV)["last_reset_at"], Value::Null);
    let reset = json(
        at,
        &[
            "reset",
            "dev",
            "--parent",
            "--preserve-under-name",
            "before",
        ],
    );
    assert_eq!(
        (&reset["id"], &reset["last_reset_at"]),
        (&json!(DEV), &branch(at, DEV)["last_reset_at"])
    );
    assert_eq!(branch(at, DEV)["parent_id"], MAIN);
    let kept = at.platform.get(&of_project("branches?search=before"));
    assert_eq!(each(&kept["branches"], "parent_id"), [MAIN]);
    assert!(failure(at, &["reset", "main", "--parent"]).contains("no parent"));
}

pub fn restore(at: &CommandLine) {
    let compute = at.platform.compute(MAIN);
    let restored = json(
        at,
        &[
            "restore",
            "main",
            "^self@2026-01-01T00:00:00Z",
            "--preserve-under-name",
            "before",
        ],
    );
    assert!(restored.to_string().contains("before"), "{restored}");
    let main = branch(at, MAIN);
    assert_eq!(
        (&main["name"], &main["default"]),
        (&json!("main"), &json!(true))
    );
    // The old data is the parent now, also of the branches made from it; the compute stays with the
    // name.
    let before = text(&main["parent_id"]);
    assert_eq!(branch(at, before)["name"], "before");
    assert_eq!(branch(at, DEV)["parent_id"], before);
    let computes = at
        .platform
        .get(&of_project(&format!("branches/{MAIN}/endpoints")));
    assert_eq!(each(&computes["endpoints"], "id"), [compute]);
    at.platform.settle();
    assert!(
        failure(at, &["restore", "main", "^self@2026-01-01T00:00:00Z"])
            .contains("preserve_under_name")
    );
}

pub fn rename(at: &CommandLine) {
    assert_eq!(json(at, &["rename", "dev", "next"])["name"], "next");
    assert_eq!(branch(at, DEV)["name"], "next");
    assert!(failure(at, &["rename", "dev", "again"]).contains("not found"));
}

pub fn set_default(at: &CommandLine) {
    assert_eq!(json(at, &["set-default", "dev"])["default"], true);
    assert_eq!(
        (&branch(at, DEV)["default"], &branch(at, MAIN)["default"]),
        (&json!(true), &json!(false))
    );
    assert!(failure(at, &["delete", "dev"]).contains("default branch"));
}

pub fn set_expiration(at: &CommandLine) {
    assert_eq!(
        json(
            at,
            &["set-expiration", "dev", "--expires-at", &in_a_week(at)]
        )["expires_at"],
        in_a_week(at)
    );
    json(at, &["set-expiration", "dev"]);
    assert_eq!(branch(at, DEV)["expires_at"], Value::Null);
    json(
        at,
        &["set-expiration", "dev", "--expires-at", &in_a_week(at)],
    );
    at.platform.advance_days(8);
    assert!(
        !at.platform.has(&of_project(&format!("branches/{DEV}"))),
        "its time is over"
    );
    assert!(
        failure(
            at,
            &["set-expiration", "main", "--expires-at", &in_a_week(at)]
        )
        .contains("default branch")
    );
}

pub fn add_compute(at: &CommandLine) {
    let added = json(
        at,
        &["add-compute", "dev", "--type", "read_write", "--cu", "2"],
    );
    json(at, &["add-compute", "dev"]);
    let computes = at
        .platform
        .get(&of_project(&format!("branches/{DEV}/endpoints")));
    let mut kinds = each(&computes["endpoints"], "type");
    kinds.sort_unstable();
    assert_eq!(kinds, ["read_only", "read_write"]);
    let sized = &at
        .platform
        .get(&of_project(&format!("endpoints/{}", text(&added["id"]))))["endpoint"];
    assert_eq!(sized["autoscaling_limit_max_cu"], 2);
    assert!(
        failure(at, &["add-compute", "dev", "--type", "read_write"])
            .contains("read_write endpoint already exists")
    );
}

pub fn delete(at: &CommandLine) {
    at.platform.compute(DEV);
    assert_eq!(json(at, &["delete", "dev"])["id"], DEV);
    assert!(!at.platform.has(&of_project(&format!("branches/{DEV}"))));
    assert_eq!(
        at.platform.get(&of_project("endpoints"))["endpoints"],
        json!([])
    );
    assert!(failure(at, &["delete", "dev"]).contains("not found"));
    assert!(failure(at, &["delete", "main"]).contains("cannot be deleted"));
}

pub fn get(at: &CommandLine) {
    assert_eq!(json(at, &["get", "dev"]), branch(at, DEV));
    let made = at.platform.create(&of_project("branches"), &json!({}));
    let id = text(&made["branch"]["id"]);
    assert_eq!(json(at, &["get", id]), branch(at, id));
    assert!(failure(at, &["get", "br-no-such-1"]).contains("not found"));
}

/// Databases are empty, so there is no difference.
pub fn schema_diff(at: &CommandLine) {
    let diff = at.text(&[
        "branches",
        "schema-diff",
        "main",
        "dev",
        "--database",
        "app",
        "--project-id",
        PROJECT,
    ]);
    assert!(
        diff.contains(&format!("(Branch: {MAIN})")) && diff.contains(&format!("(Branch: {DEV})")),
        "{diff}"
    );
    let of_none = [
        "schema-diff",
        "main",
        "dev",
        "--database",
        "no-such-database",
    ];
    assert!(failure(at, &of_none).contains("does not exist"));
}

pub fn diff(at: &CommandLine) {
    let diff = at.text(&["diff", "main", "--branch", "dev", "--project-id", PROJECT]);
    assert!(!diff.contains("@@"), "{diff}");
    let asked = at.platform.simulator.requests(0);
    let schemas: Vec<_> = asked
        .iter()
        .filter(|request| request.path.ends_with("/schema"))
        .collect();
    assert_eq!(
        schemas
            .iter()
            .map(|request| request.status)
            .collect::<Vec<_>>(),
        [Some(200); 2]
    );
}

pub fn databases_list(at: &CommandLine) {
    let listed = at.json(&[
        "databases",
        "list",
        "--branch",
        "dev",
        "--project-id",
        PROJECT,
    ]);
    assert_eq!(
        listed,
        at.platform
            .get(&of_project(&format!("branches/{DEV}/databases")))["databases"]
    );
}

pub fn roles_list(at: &CommandLine) {
    let listed = at.json(&["roles", "list", "--branch", "dev", "--project-id", PROJECT]);
    assert_eq!(
        listed,
        at.platform
            .get(&of_project(&format!("branches/{DEV}/roles")))["roles"]
    );
}

pub fn connection_string(at: &CommandLine) {
    let string = |more: &[&str]| {
        at.text(&[&["connection-string", "dev", "--project-id", PROJECT], more].concat())
    };
    assert!(
        at.failure(&["connection-string", "dev", "--project-id", PROJECT])
            .contains("No  endpoint found")
    );
    let primary = at.platform.compute(DEV);
    let replica = at.platform.compute_of(DEV, "read_only");
    let host = |id: &str| {
        text(&at.platform.get(&of_project(&format!("endpoints/{id}")))["endpoint"]["host"])
            .to_owned()
    };
    let uri = string(&[]);
    assert!(
        uri.starts_with("postgresql://app_owner:")
            && uri.contains(&format!("@{}/app?", host(&primary))),
        "{uri}"
    );
    assert!(string(&["--endpoint-type", "read_only"]).contains(&host(&replica)));
    let hosts = &at
        .platform
        .get(&of_project(&format!("endpoints/{primary}")))["endpoint"]["hosts"];
    assert!(string(&["--pooled"]).contains(text(&hosts["read_write_pooled_host"])));
    let extended = at.json(&[
        "connection-string",
        "dev",
        "--project-id",
        PROJECT,
        "--extended",
    ]);
    assert_eq!(
        (&extended["role"], &extended["database"]),
        (&json!("app_owner"), &json!("app"))
    );
}
