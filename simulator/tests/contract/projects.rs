//! Projects: their fields and their list.

use crate::support::*;

const SPECIFIED: [&str; 12] = [
    "branch_logical_size_limit",
    "cpu_used_sec",
    "created_at",
    "id",
    "locked",
    "name",
    "pg_version",
    "platform_id",
    "provisioner",
    "proxy_host",
    "region_id",
    "updated_at",
];

#[tokio::test]
async fn project_fields() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = platform.get("/projects", ORGANIZATION).await.expect(200);
        let project = &answer.body["projects"][1];
        let present = fields(project);
        assert!(SPECIFIED.iter().all(|name| present.contains(name)), "{project}");
        for text in ["id", "name", "platform_id", "region_id", "provisioner", "proxy_host"] {
            assert!(project[text].is_string(), "{text}");
        }
        for integer in ["pg_version", "cpu_used_sec", "branch_logical_size_limit"] {
            assert!(project[integer].is_u64(), "{integer}");
        }
        assert!(project["locked"].is_boolean());
        assert!(is_utc(&project["created_at"]) && is_utc(&project["updated_at"]));
        assert_eq!(project["region_id"], "aws-eu-central-1");
    }
}

#[tokio::test]
async fn project_fields_other_than_those_listed_are_not_in_minimal() {
    let platform = Platform::minimal().await;
    let answer = platform.get("/projects", ORGANIZATION).await.expect(200);
    assert_eq!(fields(&answer.body), ["projects"]);
    assert_eq!(fields(&answer.body["projects"][0]), SPECIFIED);
}

#[tokio::test]
async fn project_cpu_used_sec_counts_computing_weighted_by_size() {
    let platform = Platform::minimal().await;
    let mut attributes = primary();
    attributes["autoscaling_limit_min_cu"] = 2.into();
    attributes["autoscaling_limit_max_cu"] = 2.into();
    platform.compute(attributes).await;
    platform.advance(1000);
    let answer = platform.get("/projects", ORGANIZATION).await;
    let used = answer.body["projects"][1]["cpu_used_sec"].as_u64().unwrap();
    assert!((600..=604).contains(&used), "300 seconds at 2 CU: {used}");
}

#[tokio::test]
async fn list_projects_without_query_lists_all_in_minimal() {
    let platform = Platform::minimal().await;
    let answer = platform.get("/projects?limit=1&search=nothing", ORGANIZATION).await.expect(200);
    assert_eq!(answer.body["projects"].as_array().unwrap().len(), 2);
}
