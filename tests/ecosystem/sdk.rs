//! A public SDK, unmodified, on the simulator's public profile. It covers every method for
//! projects, branches, computes, operations and keys. The SDK parses answers into typed models,
//! which validates every member.

use serde_json::{Value, json};

use crate::clients::{answer, script_of};
use crate::fixture::{ADMIN, ORGANIZATION_KEY, PROJECT};
use crate::public::{
    DEV, MAIN, ORGANIZATION, Platform, Try, assert_complete, each, of_project, text, try_all,
};

#[rustfmt::skip]
const TRIED: &[Try<Sdk>] = &[
    ("me",                    me),
    ("api_keys",              api_keys),
    ("api_key_create",        api_key_create),
    ("api_key_revoke",        api_key_revoke),
    ("projects",              projects),
    ("project",               project),
    ("project_create",        project_create),
    ("project_update",        project_update),
    ("project_delete",        project_delete),
    ("connection_uri",        connection_uri),
    ("branches",              branches),
    ("branch",                branch),
    ("branch_create",         branch_create),
    ("branch_update",         branch_update),
    ("branch_delete",         branch_delete),
    ("endpoints",             endpoints),
    ("endpoint",              endpoint),
    ("endpoint_create",       endpoint_create),
    ("endpoint_update",       endpoint_update),
    ("endpoint_start",        endpoint_start),
    ("endpoint_suspend",      endpoint_suspend),
    ("endpoint_delete",       endpoint_delete),
    ("operations",            operations),
    ("operation",             operation),
    ("databases",             databases),
    ("roles",                 roles),
];

#[rustfmt::skip]
const LEFT_OUT: &[(&str, &str)] = &[
    ("from_environ",                "makes a client that knows no address but the platform's own"),
    ("branch_set_as_primary",       "a former name of a call, which the public API does not have any more"),
    ("role_password_reveal",        "sends POST where the public API has GET"),
    ("project_permissions",         "sharing a project is not simulated"),
    ("project_permissions_grant",   "sharing a project is not simulated"),
    ("project_permissions_revoke",  "sharing a project is not simulated"),
    ("database",                    "what is in a branch is not simulated"),
    ("database_create",             "what is in a branch is not simulated"),
    ("database_update",             "what is in a branch is not simulated"),
    ("database_delete",             "what is in a branch is not simulated"),
    ("role",                        "what is in a branch is not simulated"),
    ("role_create",                 "what is in a branch is not simulated"),
    ("role_delete",                 "what is in a branch is not simulated"),
    ("role_password_reset",         "what is in a branch is not simulated"),
];

struct Sdk {
    platform: Platform,
}

impl Sdk {
    fn new(platform: Platform) -> Self {
        Self { platform }
    }

    /// The result of a method.
    fn call(&self, method: &str, arguments: Value, named: Value) -> Value {
        self.call_with(ADMIN, method, &arguments, &named)
    }

    fn call_with(&self, key: &str, method: &str, arguments: &Value, named: &Value) -> Value {
        let answer = self.ask(key, method, arguments, named);
        assert!(answer["refused"].is_null(), "{method}: {answer}");
        answer["returned"].clone()
    }

    /// The message of a refused call.
    fn refusal(&self, method: &str, arguments: Value, named: Value) -> String {
        let answer = self.ask(ADMIN, method, &arguments, &named);
        text(&answer["refused"]["message"]).to_owned()
    }

    fn ask(&self, key: &str, method: &str, arguments: &Value, named: &Value) -> Value {
        let base_url = format!("{}/", self.platform.simulator.base_url());
        let answer = ask(&base_url, key, method, arguments, named);
        assert!(
            answer["outside"].is_null(),
            "{method} left this machine: {answer}"
        );
        answer
    }

    fn compute(&self, id: &str) -> Value {
        self.platform.get(&of_project(&format!("endpoints/{id}")))["endpoint"].clone()
    }
}

fn ask(base_url: &str, key: &str, method: &str, arguments: &Value, named: &Value) -> Value {
    let question = json!({"baseUrl": base_url, "key": key, "method": method, "args": arguments, "kwargs": named});
    answer(script_of("sdk", "sdk/call.py"), &question)
}

/// All tests of methods depend on this check.
#[test]
fn requests_to_other_machines_are_detected() {
    let asked = ask("http://192.0.2.1/", ADMIN, "me", &json!([]), &json!({}));
    assert_eq!(asked, json!({"outside": "192.0.2.1"}));
}

#[tokio::test]
async fn every_method_works_as_documented() {
    try_all(TRIED, Sdk::new).await;
}

#[test]
fn every_method_is_tried_or_left_out() {
    let methods: Vec<String> = answer(script_of("sdk", "sdk/call.py"), &Value::Null);
    assert_complete(&methods, TRIED, LEFT_OUT);
}

fn me(at: &Sdk) {
    let me = at.call("me", json!([]), json!({}));
    assert_eq!(
        (&me["email"], &me["id"]),
        (
            &json!("ada@example.com"),
            &at.platform.get("/users/me")["id"]
        )
    );
}

fn api_keys(at: &Sdk) {
    let keys = at.call("api_keys", json!([]), json!({}));
    assert_eq!(
        each(&keys, "name"),
        each(&at.platform.get("/api_keys"), "name")
    );
    assert_eq!(keys[0]["created_by"]["name"], "Ada");
}

fn api_key_create(at: &Sdk) {
    let created = at.call("api_key_create", json!([]), json!({"key_name": "desk"}));
    assert_eq!(
        each(&at.platform.get("/api_keys"), "name"),
        ["laptop", "desk"]
    );
    let me = at.call_with(text(&created["key"]), "me", &json!([]), &json!({}));
    assert_eq!(me["email"], "ada@example.com");
    let again = at.refusal("api_key_create", json!([]), json!({"key_name": "desk"}));
    assert!(again.contains("choose another unique name"), "{again}");
}

fn api_key_revoke(at: &Sdk) {
    let created = at
        .platform
        .create("/api_keys", &json!({"key_name": "desk"}));
    let revoked = at.call("api_key_revoke", json!([created["id"]]), json!({}));
    assert_eq!(revoked["revoked"], true);
    assert_eq!(each(&at.platform.get("/api_keys"), "name"), ["laptop"]);
    let refused = at.ask(text(&created["key"]), "me", &json!([]), &json!({}));
    assert_eq!(refused["refused"]["message"], "the API key was revoked");
    assert!(
        at.refusal("api_key_revoke", json!([created["id"]]), json!({}))
            .contains("not found")
    );
}

/// The method cannot name an organization; a key of an organization needs no name.
fn projects(at: &Sdk) {
    at.platform
        .create("/projects", &json!({"project": {"org_id": ORGANIZATION}}));
    let page = |named: Value| {
        at.call_with(ORGANIZATION_KEY, "projects", &json!([]), &named)["projects"].clone()
    };
    let all = at.platform.get(&format!("/projects?org_id={ORGANIZATION}"));
    let cursor = &at
        .platform
        .get(&format!("/projects?org_id={ORGANIZATION}&limit=1"))["pagination"]["cursor"];
    assert_eq!(each(&page(json!({})), "id"), each(&all["projects"], "id"));
    assert_eq!(
        each(&page(json!({"limit": 1})), "id"),
        each(&all["projects"], "id")[..1]
    );
    assert_eq!(
        each(&page(json!({"limit": 1, "cursor": cursor})), "id"),
        each(&all["projects"], "id")[1..]
    );
    assert_eq!(
        at.call("projects", json!([]), json!({"shared": true}))["projects"],
        json!([])
    );
    assert!(
        at.refusal("projects", json!([]), json!({}))
            .contains("org_id is required")
    );
}

fn project(at: &Sdk) {
    let project = at.call("project", json!([PROJECT]), json!({}))["project"].clone();
    let expected = at.platform.get(&format!("/projects/{PROJECT}"))["project"].clone();
    assert_eq!(
        (&project["name"], &project["owner_id"]),
        (&expected["name"], &expected["owner_id"])
    );
    assert!(
        at.refusal("project", json!(["no-such-project"]), json!({}))
            .contains("not found")
    );
}

fn project_create(at: &Sdk) {
    let attributes = json!({"name": "blog", "org_id": ORGANIZATION, "pg_version": 16});
    let created = at.call("project_create", json!([]), json!({"project": attributes}));
    let project = at
        .platform
        .get(&format!("/projects/{}", text(&created["project"]["id"])));
    assert_eq!(
        (
            &project["project"]["name"],
            &project["project"]["pg_version"]
        ),
        (&json!("blog"), &json!(16))
    );
    assert!(
        at.refusal("project_create", json!([]), json!({"project": {}}))
            .contains("org_id is required")
    );
}

fn project_update(at: &Sdk) {
    let changed = json!({"name": "store", "settings": {"hipaa": true}});
    at.call(
        "project_update",
        json!([PROJECT]),
        json!({"project": changed}),
    );
    let project = &at.platform.get(&format!("/projects/{PROJECT}"))["project"];
    assert_eq!(
        (&project["name"], &project["settings"]),
        (&json!("store"), &json!({"hipaa": true}))
    );
}

fn project_delete(at: &Sdk) {
    at.call("project_delete", json!([PROJECT]), json!({}));
    assert!(!at.platform.has(&format!("/projects/{PROJECT}")));
}

fn connection_uri(at: &Sdk) {
    let id = at.platform.compute(MAIN);
    let uri = |named: Value| {
        text(
            &at.call(
                "connection_uri",
                json!([PROJECT, "app", "app_owner"]),
                named,
            )["uri"],
        )
        .to_owned()
    };
    let compute = at.compute(&id);
    assert!(uri(json!({})).contains(&format!("@{}/app?", text(&compute["host"]))));
    let pooled = text(&compute["hosts"]["read_write_pooled_host"]);
    assert!(uri(json!({"pooled": true})).contains(&format!("@{pooled}/app?")));
}

fn branches(at: &Sdk) {
    let branches = at.call("branches", json!([PROJECT]), json!({}));
    assert_eq!(
        each(&branches["branches"], "id"),
        each(&at.platform.get(&of_project("branches"))["branches"], "id")
    );
    let first = at.call("branches", json!([PROJECT]), json!({"limit": 1}));
    assert_eq!(first["branches"].as_array().unwrap().len(), 1);
}

fn branch(at: &Sdk) {
    let branch = at.call("branch", json!([PROJECT, DEV]), json!({}))["branch"].clone();
    assert_eq!(
        (&branch["name"], &branch["parent_id"]),
        (&json!("dev"), &json!(MAIN))
    );
}

fn branch_create(at: &Sdk) {
    let named = json!({"branch": {"name": "feature", "parent_id": DEV}, "endpoints": [{"type": "read_write"}]});
    let created = at.call("branch_create", json!([PROJECT]), named);
    assert_eq!(each(&created["operations"], "action"), ["start_compute"]);
    let path = of_project(&format!("branches/{}", text(&created["branch"]["id"])));
    assert_eq!(at.platform.get(&path)["branch"]["parent_id"], DEV);
    assert_eq!(
        each(
            &at.platform.get(&format!("{path}/endpoints"))["endpoints"],
            "type"
        ),
        ["read_write"]
    );
}

fn branch_update(at: &Sdk) {
    let named = json!({"branch": {"name": "next", "protected": true}});
    let updated = at.call("branch_update", json!([PROJECT, DEV]), named);
    assert_eq!(updated["branch"]["name"], "next");
    let branch = &at.platform.get(&of_project(&format!("branches/{DEV}")))["branch"];
    assert_eq!(
        (&branch["name"], &branch["protected"]),
        (&json!("next"), &json!(true))
    );
}

fn branch_delete(at: &Sdk) {
    assert_eq!(
        at.call("branch_delete", json!([PROJECT, DEV]), json!({}))["branch"]["id"],
        DEV
    );
    assert!(!at.platform.has(&of_project(&format!("branches/{DEV}"))));
    assert!(
        at.refusal("branch_delete", json!([PROJECT, MAIN]), json!({}))
            .contains("cannot be deleted")
    );
}

fn endpoints(at: &Sdk) {
    let ids = [
        at.platform.compute(MAIN),
        at.platform.compute_of(MAIN, "read_only"),
    ];
    let listed = at.call("endpoints", json!([PROJECT]), json!({}));
    let mut listed = each(&listed["endpoints"], "id");
    listed.sort_unstable();
    let mut expected = ids.each_ref().map(String::as_str);
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

fn endpoint(at: &Sdk) {
    let id = at.platform.compute(MAIN);
    let compute = at.call("endpoint", json!([PROJECT, id]), json!({}))["endpoint"].clone();
    assert_eq!(
        (&compute["current_state"], &compute["host"]),
        (&json!("active"), &at.compute(&id)["host"])
    );
}

fn endpoint_create(at: &Sdk) {
    let attributes = json!({"branch_id": DEV, "type": "read_write", "autoscaling_limit_max_cu": 2});
    let create = || json!({"endpoint": attributes});
    let created = at.call("endpoint_create", json!([PROJECT]), create());
    assert_eq!(created["endpoint"]["pending_state"], "active");
    assert_eq!(each(&created["operations"], "status"), ["running"]);
    let compute = at.compute(text(&created["endpoint"]["id"]));
    assert_eq!(
        (&compute["branch_id"], &compute["autoscaling_limit_max_cu"]),
        (&json!(DEV), &json!(2))
    );
    assert!(
        at.refusal("endpoint_create", json!([PROJECT]), create())
            .contains("already exists")
    );
}

fn endpoint_update(at: &Sdk) {
    let id = at.platform.compute(MAIN);
    let change = |attributes: Value| json!({"endpoint": attributes});
    let sizes = json!({"autoscaling_limit_min_cu": 1, "autoscaling_limit_max_cu": 4, "suspend_timeout_seconds": 600});
    let updated = at.call(
        "endpoint_update",
        json!([PROJECT, id]),
        change(sizes.clone()),
    );
    assert_eq!(
        each(&updated["operations"], "action"),
        ["apply_config", "suspend_compute", "start_compute"]
    );
    let busy = at.refusal(
        "endpoint_update",
        json!([PROJECT, id]),
        change(json!({"autoscaling_limit_max_cu": 2})),
    );
    assert!(busy.contains("conflicting operations"), "{busy}");
    let compute = at.compute(&id);
    for (name, value) in sizes.as_object().unwrap() {
        assert_eq!(compute[name], *value, "{name}");
    }
}

fn endpoint_start(at: &Sdk) {
    let id = at.platform.compute(MAIN);
    at.platform
        .create(&of_project(&format!("endpoints/{id}/suspend")), &json!({}));
    assert_eq!(at.compute(&id)["current_state"], "idle");
    let started = at.call("endpoint_start", json!([PROJECT, id]), json!({}));
    assert_eq!(each(&started["operations"], "action"), ["start_compute"]);
    at.platform.settle();
    assert_eq!(at.compute(&id)["current_state"], "active");
}

fn endpoint_suspend(at: &Sdk) {
    let id = at.platform.compute(MAIN);
    let suspended = at.call("endpoint_suspend", json!([PROJECT, id]), json!({}));
    assert_eq!(
        each(&suspended["operations"], "action"),
        ["suspend_compute"]
    );
    at.platform.settle();
    assert_eq!(at.compute(&id)["current_state"], "idle");
}

fn endpoint_delete(at: &Sdk) {
    let id = at.platform.compute(MAIN);
    assert_eq!(
        at.call("endpoint_delete", json!([PROJECT, id]), json!({}))["endpoint"]["id"],
        *id
    );
    assert!(!at.platform.has(&of_project(&format!("endpoints/{id}"))));
}

fn operations(at: &Sdk) {
    at.platform.compute(MAIN);
    at.platform.compute(DEV);
    let listed = at.call("operations", json!([PROJECT]), json!({}));
    let expected = at.platform.get(&of_project("operations"));
    assert_eq!(
        each(&listed["operations"], "id"),
        each(&expected["operations"], "id")
    );
    assert_eq!(each(&listed["operations"], "status"), ["finished"; 2]);
    let cursor = &at.platform.get(&of_project("operations?limit=1"))["pagination"]["cursor"];
    let rest = at.call("operations", json!([PROJECT]), json!({"cursor": cursor}));
    assert_eq!(
        each(&rest["operations"], "id"),
        each(&expected["operations"], "id")[1..]
    );
}

fn operation(at: &Sdk) {
    let compute = at.platform.compute(MAIN);
    let id = at.platform.get(&of_project("operations"))["operations"][0]["id"].clone();
    let operation = at.call("operation", json!([PROJECT, id]), json!({}))["operation"].clone();
    assert_eq!(
        (&operation["endpoint_id"], &operation["action"]),
        (&json!(compute), &json!("start_compute"))
    );
}

fn databases(at: &Sdk) {
    let databases = at.call("databases", json!([PROJECT, DEV]), json!({}));
    let expected = at
        .platform
        .get(&of_project(&format!("branches/{DEV}/databases")));
    assert_eq!(
        each(&databases["databases"], "name"),
        each(&expected["databases"], "name")
    );
}

fn roles(at: &Sdk) {
    let roles = at.call("roles", json!([PROJECT, DEV]), json!({}));
    let expected = at
        .platform
        .get(&of_project(&format!("branches/{DEV}/roles")));
    assert_eq!(
        each(&roles["roles"], "name"),
        each(&expected["roles"], "name")
    );
}
