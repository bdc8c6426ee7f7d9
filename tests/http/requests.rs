//! The sent requests: lines 1 to 3 and 6 of the checklist for the wire format.

use dbplane::domain::{
    ComputeChange, ComputeUnits, Fault, KeyId, NewCompute, Role, Settings, SuspendAfter,
};
use dbplane::platform::{Endpoint, Platform};
use secrecy::SecretString;
use serde_json::json;

use crate::server::{EP, ORG, P, Request, Server, TOKEN, answer, options, platform};

const COMPUTE: &str =
    r#"{"endpoint":{"id":"ep-a","branch_id":"br-a","type":"read_write"},"operations":[]}"#;
const KEY: &str = r#"{"id":1,"key":"the-new-secret","name":"n"}"#;

fn new_compute() -> NewCompute {
    NewCompute {
        branch_id: "br-a".into(),
        role: Role::Primary,
        name: None,
        settings: Settings::default(),
    }
}

fn respond(request: &Request) -> crate::server::Act {
    let body = match (request.method.as_str(), path(request)) {
        ("POST", path) if path.ends_with("api_keys") => KEY,
        ("GET", path) if path.ends_with("endpoints") => r#"{"endpoints":[]}"#,
        ("GET", path) if path.ends_with("operations") => r#"{"operations":[]}"#,
        ("GET", path) if path.ends_with("api_keys") => "[]",
        ("GET", path) if path.ends_with("branches") => r#"{"branches":[{"id":"br-a"}]}"#,
        ("GET", path) if path.ends_with("projects") => r#"{"projects":[]}"#,
        ("DELETE", path) if path.contains("api_keys") => r#"{"id":1,"revoked":true}"#,
        _ => COMPUTE,
    };
    answer(200, body)
}

async fn every_call(platform: &impl Platform) {
    platform.list_projects().await.unwrap();
    platform.list_computes(&P).await.unwrap();
    assert!(platform.has_compute(&P, &EP).await.unwrap());
    assert!(platform.has_branch(&P, &"br-a".into()).await.unwrap());
    platform.create_compute(&P, &new_compute()).await.unwrap();
    platform
        .update_compute(&P, &EP, &ComputeChange::default())
        .await
        .unwrap();
    platform.delete_compute(&P, &EP).await.unwrap();
    platform.restart_compute(&P, &EP).await.unwrap();
    platform.create_key(&ORG, "n", &P).await.unwrap();
    platform.list_operations(&P, &EP).await.unwrap();
    platform.list_keys(&ORG).await.unwrap();
    platform.revoke_key(&ORG, KeyId(i64::MAX)).await.unwrap();
    platform
        .probe_key(&SecretString::from("other"), &P)
        .await
        .unwrap();
}

#[tokio::test]
async fn every_call_asks_for_its_resource_and_names_the_organization() {
    let resources = [
        "GET /api/v2/projects",
        "GET /api/v2/projects/p/endpoints",
        "GET /api/v2/projects/p/endpoints/ep-a",
        "GET /api/v2/projects/p/branches",
        "POST /api/v2/projects/p/endpoints",
        "PATCH /api/v2/projects/p/endpoints/ep-a",
        "DELETE /api/v2/projects/p/endpoints/ep-a",
        "POST /api/v2/projects/p/endpoints/ep-a/restart",
        "POST /api/v2/organizations/org-a/api_keys",
        "GET /api/v2/projects/p/operations",
        "GET /api/v2/organizations/org-a/api_keys",
        "DELETE /api/v2/organizations/org-a/api_keys/9223372036854775807",
        "GET /api/v2/projects/p/endpoints",
    ];
    // One call uses its own page size.
    let plain = |line: String| {
        line.trim_end_matches("limit=100")
            .trim_end_matches(['&', '?'])
            .to_owned()
    };
    let lines = |server: &Server| server.lines().into_iter().map(plain).collect::<Vec<_>>();
    let server = Server::scripted(respond).await;
    every_call(&server.platform()).await;
    assert_eq!(
        lines(&server),
        resources.map(|resource| format!("{resource}?org_id=org-a"))
    );

    let server = Server::scripted(respond).await;
    every_call(&platform(Endpoint {
        organization_id: None,
        ..server.endpoint()
    }))
    .await;
    assert_eq!(
        lines(&server),
        resources,
        "an account without an organization names none"
    );
}

/// The path of a request without the query.
fn path(request: &Request) -> &str {
    request.target.split('?').next().unwrap()
}

#[tokio::test]
async fn every_request_has_exactly_the_expected_headers() {
    let server = Server::scripted(respond).await;
    every_call(&server.platform()).await;
    let requests = server.requests();
    let probe = requests.len() - 1;
    for (index, request) in requests.iter().enumerate() {
        let key = if index == probe { "other" } else { TOKEN };
        assert_eq!(
            request.header("authorization"),
            [format!("Bearer {key}")],
            "{}",
            request.line()
        );
        assert_eq!(request.header("accept"), ["application/json"]);
        assert_eq!(
            request.header("user-agent"),
            [concat!("dbplane/", env!("CARGO_PKG_VERSION"))]
        );
        let typed: &[&str] = if request.body.is_empty() {
            &[]
        } else {
            &["application/json"]
        };
        assert_eq!(request.header("content-type"), typed, "{}", request.line());
        let bodied = matches!(request.method.as_str(), "PATCH")
            || (request.method == "POST" && !path(request).ends_with("restart"));
        assert_eq!(!request.body.is_empty(), bodied, "{}", request.line());
    }
}

#[tokio::test]
async fn all_calls_share_one_connection() {
    let server = Server::scripted(respond).await;
    every_call(&server.platform()).await;
    let connections: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(connections, [0; 13]);
}

#[tokio::test]
async fn bodies_are_wrapped_and_contain_only_declared_fields() {
    let server = Server::scripted(respond).await;
    let platform = server.platform();
    let mut new = new_compute();
    platform.create_compute(&P, &new).await.unwrap();
    new.role = Role::Replica;
    new.name = Some("mark".to_owned());
    new.settings.min = ComputeUnits::new(0.25);
    new.settings.max = ComputeUnits::new(8.0);
    platform.create_compute(&P, &new).await.unwrap();
    let mut change = ComputeChange::default();
    change.settings.min = ComputeUnits::new(2.0);
    change.settings.suspend_after = Some(SuspendAfter::Never);
    change
        .settings
        .postgres
        .0
        .insert("work_mem".to_owned(), "64MB".to_owned());
    platform.update_compute(&P, &EP, &change).await.unwrap();
    platform.create_key(&ORG, "n", &P).await.unwrap();
    let bodies: Vec<_> = server.requests().iter().map(Request::json).collect();
    assert_eq!(
        bodies,
        [
            json!({"endpoint": {"branch_id": "br-a", "type": "read_write"}}),
            json!({"endpoint": {"branch_id": "br-a", "type": "read_only", "name": "mark",
                "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 8}}),
            json!({"endpoint": {"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 2,
                "suspend_timeout_seconds": -1, "settings": {"pg_settings": {"work_mem": "64MB"}}}}),
            json!({"key_name": "n", "project_id": "p"}),
        ]
    );
}

#[tokio::test]
async fn a_trailing_slash_makes_no_difference_and_segments_are_encoded() {
    let server = Server::scripted(respond).await;
    let mut endpoint = server.endpoint();
    endpoint.base_url.push('/');
    platform(endpoint)
        .list_computes(&"a b/../c?d".into())
        .await
        .unwrap();
    assert_eq!(
        server.lines(),
        ["GET /api/v2/projects/a%20b%2F..%2Fc%3Fd/endpoints?org_id=org-a"]
    );
}

#[tokio::test]
async fn an_identifier_that_changes_the_path_is_not_sent() {
    let server = Server::scripted(respond).await;
    for odd in ["", ".", ".."] {
        let fault = server
            .platform()
            .delete_compute(&P, &odd.into())
            .await
            .unwrap_err();
        assert!(matches!(fault, Fault::Rejected { .. }), "{fault}");
    }
    assert_eq!(server.lines().len(), 0);
}

#[tokio::test]
async fn a_key_from_a_file_may_end_with_a_line_break() {
    let server = Server::scripted(respond).await;
    let platform = dbplane::platform::HttpPlatform::new(
        server.endpoint(),
        SecretString::from(" k\n"),
        &options(),
    )
    .unwrap();
    platform.list_projects().await.unwrap();
    platform
        .probe_key(&SecretString::from("other\n"), &P)
        .await
        .unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), ["Bearer k"]);
    assert_eq!(requests[1].header("authorization"), ["Bearer other"]);
}

#[tokio::test]
async fn a_branch_is_missing_only_if_a_list_lacks_it() {
    let server = Server::scripted(|request: &Request| match path(request) {
        path if path.contains("without") => {
            answer(404, r#"{"message":"this route does not exist"}"#)
        }
        path if path.contains("odd") => answer(200, r#"{"branches":[{"name":"no id"}]}"#),
        _ => answer(200, r#"{"branches":[{"id":"br-a"}]}"#),
    })
    .await;
    let (platform, branch) = (server.platform(), "br-b".into());
    assert!(!platform.has_branch(&P, &branch).await.unwrap());
    for project in ["without", "odd"] {
        let answered = platform.has_branch(&project.into(), &branch).await;
        assert!(answered.is_err(), "{project}: {answered:?}");
    }
}
