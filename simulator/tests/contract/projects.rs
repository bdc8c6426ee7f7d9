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
