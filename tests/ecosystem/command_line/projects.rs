//! Commands for projects and their operations.

use serde_json::json;

use super::CommandLine;
use crate::fixture::PROJECT;
use crate::public::{DEV, MAIN, ORGANIZATION, each, of_project, text};

pub fn list(at: &CommandLine) {
    let more = json!({"project": {"name": "spare", "org_id": ORGANIZATION}});
    for _ in 0..11 {
        at.platform.create("/projects", &more);
    }
    let listed = at.json(&["projects", "list", "--org-id", ORGANIZATION]);
    let all = at
        .platform
        .get(&format!("/projects?org_id={ORGANIZATION}&limit=400"));
    assert_eq!(each(&listed, "id"), each(&all["projects"], "id"));
    assert_eq!(
        listed.as_array().unwrap().len(),
        12,
        "more than a page of the usual length"
    );
    assert!(
        at.failure(&["projects", "list"])
            .contains("org_id is required")
    );
}

pub fn create(at: &CommandLine) {
    let created = at.json(&[
        "projects",
        "create",
        "--org-id",
        ORGANIZATION,
        "--name",
        "blog",
        "--region-id",
        "aws-eu-central-1",
        "--pg-version",
        "16",
        "--cu",
        "0.5-1",
        "--database",
        "posts",
        "--role",
        "writer",
        "--block-public-connections",
        "--set-context",
    ]);
    let id = text(&created["project"]["id"]);
    let project = &at.platform.get(&format!("/projects/{id}"))["project"];
    assert_eq!(project["name"], "blog");
    assert_eq!(project["org_id"], ORGANIZATION);
    assert_eq!(
        (&project["region_id"], &project["pg_version"]),
        (&json!("aws-eu-central-1"), &json!(16))
    );
    assert_eq!(
        project["settings"],
        json!({"block_public_connections": true})
    );
    let computes = at.platform.get(&format!("/projects/{id}/endpoints"));
    let compute = &computes["endpoints"][0];
    assert_eq!(
        (
            &compute["autoscaling_limit_min_cu"],
            &compute["autoscaling_limit_max_cu"]
        ),
        (&json!(0.5), &json!(1))
    );
    let uri = text(&created["connection_uris"][0]["connection_uri"]);
    let host = text(&compute["host"]);
    assert!(
        uri.starts_with("postgresql://writer:") && uri.contains(&format!("@{host}/posts?")),
        "{uri}"
    );
    // The next command uses the new project.
    assert_eq!(each(&at.json(&["branches", "list"]), "name"), ["main"]);
}

pub fn update(at: &CommandLine) {
    let updated = at.json(&[
        "projects", "update", PROJECT, "--name", "store", "--cu", "1-2", "--hipaa",
    ]);
    assert_eq!(updated["name"], "store");
    let project = &at.platform.get(&format!("/projects/{PROJECT}"))["project"];
    assert_eq!(project["name"], "store");
    assert_eq!(
        project["default_endpoint_settings"]["autoscaling_limit_max_cu"],
        2
    );
    assert_eq!(project["settings"], json!({"hipaa": true}));
    // Absent settings stay unchanged, and a new compute gets the default settings.
    at.json(&["projects", "update", PROJECT, "--block-vpc-connections"]);
    let project = &at.platform.get(&format!("/projects/{PROJECT}"))["project"];
    assert_eq!(
        project["settings"],
        json!({"hipaa": true, "block_vpc_connections": true})
    );
    at.platform.compute(DEV);
    assert_eq!(
        at.platform.get(&of_project("endpoints"))["endpoints"][0]["autoscaling_limit_max_cu"],
        2
    );
    // This suspends running computes.
    at.json(&[
        "projects",
        "update",
        PROJECT,
        "--enable-logical-replication",
        "--yes",
    ]);
    at.platform.settle();
    assert_eq!(
        at.platform.get(&of_project("endpoints"))["endpoints"][0]["current_state"],
        "idle"
    );
}

pub fn delete(at: &CommandLine) {
    assert_eq!(at.json(&["projects", "delete", PROJECT])["id"], PROJECT);
    assert!(!at.platform.has(&format!("/projects/{PROJECT}")));
    assert!(
        at.failure(&["projects", "delete", PROJECT])
            .contains("not found")
    );
}

pub fn recover(at: &CommandLine) {
    let compute = at.platform.compute(MAIN);
    at.json(&["projects", "delete", PROJECT]);
    let recoverable = at.json(&[
        "projects",
        "list",
        "--org-id",
        ORGANIZATION,
        "--recoverable-only",
    ]);
    assert_eq!(each(&recoverable, "id"), [PROJECT]);
    assert!(text(&recoverable[0]["recoverable_until"]) > text(&recoverable[0]["deleted_at"]));
    assert_eq!(at.json(&["projects", "recover", PROJECT])["id"], PROJECT);
    assert_eq!(
        each(
            &at.platform.get(&of_project("endpoints"))["endpoints"],
            "id"
        ),
        [compute]
    );
    assert_eq!(
        at.platform.get(&of_project("branches"))["branches"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        at.json(&[
            "projects",
            "list",
            "--org-id",
            ORGANIZATION,
            "--recoverable-only"
        ]),
        json!([])
    );
    assert!(
        at.failure(&["projects", "recover", PROJECT])
            .contains("not found")
    );
}

pub fn get(at: &CommandLine) {
    assert_eq!(
        at.json(&["projects", "get", PROJECT]),
        at.platform.get(&format!("/projects/{PROJECT}"))["project"]
    );
    assert!(
        at.failure(&["projects", "get", "no-such-project"])
            .contains("not found")
    );
}

pub fn operations_list(at: &CommandLine) {
    let compute = at.platform.compute(MAIN);
    at.platform.create(
        &of_project(&format!("endpoints/{compute}/restart")),
        &json!({}),
    );
    let listed = at.json(&["operations", "list", "--project-id", PROJECT]);
    assert_eq!(
        listed,
        at.platform.get(&of_project("operations"))["operations"]
    );
    assert_eq!(
        each(&listed, "action"),
        ["start_compute", "suspend_compute", "start_compute"]
    );
    assert_eq!(each(&listed, "status"), ["finished"; 3]);
}

/// Computes have only this generic command.
pub fn api(at: &CommandLine) {
    let path = of_project("endpoints");
    let call = |arguments: &[&str]| at.json(&[&["api"], arguments].concat());
    let created = call(&[
        &path,
        "-F",
        "endpoint.type=read_write",
        "-F",
        &format!("endpoint.branch_id={MAIN}"),
    ]);
    let compute = format!("{path}/{}", text(&created["endpoint"]["id"]));
    assert_eq!(created["operations"][0]["action"], "start_compute");
    at.platform.settle();
    let state = || text(&at.platform.get(&compute)["endpoint"]["current_state"]).to_owned();
    assert_eq!(state(), "active");
    call(&[&format!("{compute}/suspend"), "--method", "POST"]);
    at.platform.settle();
    assert_eq!(state(), "idle");
    call(&[&format!("{compute}/start"), "--method", "POST"]);
    at.platform.settle();
    call(&[&format!("{compute}/restart"), "--method", "POST"]);
    at.platform.settle();
    assert_eq!(state(), "active");
    let size = [
        "-F",
        "endpoint.autoscaling_limit_min_cu=1",
        "-F",
        "endpoint.autoscaling_limit_max_cu=4",
    ];
    call(&[&[compute.as_str(), "--method", "PATCH"], &size[..]].concat());
    at.platform.settle();
    assert_eq!(call(&[&compute])["endpoint"]["autoscaling_limit_max_cu"], 4);
    let replica = at.platform.compute_of(MAIN, "read_only");
    assert_eq!(call(&[&path])["endpoints"].as_array().unwrap().len(), 2);
    call(&[&format!("{path}/{replica}"), "--method", "DELETE"]);
    assert!(!at.platform.has(&format!("{path}/{replica}")));
    assert!(
        at.failure(&[
            "api",
            &path,
            "-F",
            "endpoint.type=read_write",
            "-F",
            &format!("endpoint.branch_id={MAIN}")
        ])
        .contains("already exists")
    );
}
