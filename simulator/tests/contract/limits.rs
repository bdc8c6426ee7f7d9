//! Sizes and limits.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

/// Creates a replica of a size in the first branch of a project, and returns the answer.
async fn sized(platform: &Platform, project: &str, token: &str, min: f64, max: f64) -> Answer {
    let branch = format!("br-{}", project.split('-').next().unwrap()).replace("br-shop", "br-main");
    let endpoint = json!({
        "branch_id": branch, "type": "read_only", "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max
    });
    platform.post(&format!("/projects/{project}/endpoints"), token, json!({ "endpoint": endpoint })).await
}

/// A row of the table of sizes: CU, RAM in GB, local file cache in GB, max_connections.
const SIZES: [(f64, f64, f64, u32); 12] = [
    (0.25, 1.0, 0.8, 112),
    (0.5, 2.0, 1.6, 225),
    (1.0, 4.0, 3.2, 450),
    (2.0, 8.0, 6.4, 901),
    (3.0, 12.0, 9.6, 1351),
    (4.0, 16.0, 12.8, 1802),
    (5.0, 20.0, 16.0, 2253),
    (6.0, 24.0, 19.2, 2703),
    (7.0, 28.0, 22.4, 3154),
    (8.0, 32.0, 25.6, 3604),
    (9.0, 36.0, 28.8, 4000),
    (56.0, 224.0, 179.2, 4000),
];

#[tokio::test]
async fn size_table_rows() {
    let platform = Platform::minimal().await;
    for (cu, ram_gb, local_file_cache_gb, max_connections) in SIZES {
        let answer = sized(&platform, "shop-1", ORGANIZATION, cu, cu).await.expect(201);
        let line = platform.line(&format!("/{}", answer.text_at("/endpoint/id"))).await;
        let capacity = json!({
            "vcpu": cu, "ram_gb": ram_gb, "local_file_cache_gb": local_file_cache_gb, "max_connections": max_connections
        });
        assert_eq!(line["capacity"], capacity);
        assert_eq!(line["size"], format!("{cu} CU"));
    }
}

#[tokio::test]
async fn limit_fixed_compute_size_is_025_to_56_cu() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let existing = [0.25, 0.5, 1.0, 7.0, 9.0, 16.0, 18.0, 20.0, 38.0, 56.0];
        for cu in existing {
            sized(&platform, "shop-1", ORGANIZATION, cu, cu).await.expect(201);
        }
        for cu in [0.0, 0.1, 0.3, 0.75, 1.5, 17.0, 19.0, 55.0, 57.0, 58.0, 64.0, -1.0] {
            sized(&platform, "shop-1", ORGANIZATION, cu, cu).await.expect(400);
        }
    }
}

#[tokio::test]
async fn limit_autoscaling_range_is_025_to_16_cu() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        for (min, max) in [(0.25, 0.5), (0.25, 8.0), (8.0, 16.0), (15.0, 16.0)] {
            sized(&platform, "shop-1", ORGANIZATION, min, max).await.expect(201);
        }
        for (min, max) in [(16.0, 18.0), (1.0, 56.0), (2.0, 1.0), (1.5, 2.0)] {
            sized(&platform, "shop-1", ORGANIZATION, min, max).await.expect(400);
        }
    }
    sized(&Platform::minimal().await, "shop-1", ORGANIZATION, 0.25, 16.0).await.expect(201);
}

#[tokio::test]
async fn limit_free_plan_compute_is_1_gb_in_minimal() {
    let platform = Platform::minimal().await;
    sized(&platform, "hobby-4", FREE, 0.25, 0.25).await.expect(201);
    for (min, max) in [(0.5, 0.5), (1.0, 1.0), (0.25, 0.5)] {
        let refused = sized(&platform, "hobby-4", FREE, min, max).await.expect(400);
        assert!(refused.message().contains("free plan"), "{refused:?}");
    }
    let endpoint = json!({ "branch_id": "br-hobby", "type": "read_write" });
    let answer = platform.post("/projects/hobby-4/endpoints", FREE, json!({ "endpoint": endpoint })).await.expect(201);
    assert_eq!(answer.body["endpoint"]["autoscaling_limit_max_cu"], 0.25);
}

#[tokio::test]
async fn limit_larger_sizes_and_autoscaling_are_on_paid_plans() {
    let platform = Platform::minimal().await;
    sized(&platform, "rocket-3", LAUNCH, 0.25, 16.0).await.expect(201);
    sized(&platform, "rocket-3", LAUNCH, 56.0, 56.0).await.expect(201);
    let paid = json!({ "plan": "launch" });
    platform.console(Method::PATCH, "/organizations/org-free-3", paid).await.expect(200);
    sized(&platform, "hobby-4", FREE, 4.0, 8.0).await.expect(201);
}

#[tokio::test]
async fn limit_primary_read_write_computes_per_branch_is_1() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        platform.compute(primary()).await;
        let answer = platform.post("/projects/shop-1/endpoints", ORGANIZATION, json!({ "endpoint": primary() })).await;
        assert_eq!(answer.expect(409).message(), "read_write endpoint already exists");
    }
}

#[tokio::test]
async fn limit_read_replicas_per_branch_is_multiple() {
    let platform = Platform::minimal().await;
    for _ in 0..50 {
        platform.compute(replica()).await;
    }
}

#[tokio::test]
async fn limit_max_connections_follow_the_minimum_size() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let answer = sized(&platform, "shop-1", ORGANIZATION, 0.25, 8.0).await.expect(201);
        let line = platform.line(&format!("/{}", answer.text_at("/endpoint/id"))).await;
        assert_eq!(line["capacity"]["max_connections"], 112);
    }
}

#[tokio::test]
async fn limit_pooled_connections_shared_buffers_and_temporary_disk_are_shown_in_the_console() {
    let platform = Platform::minimal().await;
    let path = platform.compute(primary()).await;
    let line = platform.line(&path).await;
    assert_eq!(line["max_pooled_connections"], 10_000);
    assert_eq!(line["shared_buffers_mb"], 128);
    assert_eq!(line["temporary_disk_gib"], 20);
}

#[tokio::test]
async fn limit_scale_to_zero_inactivity_is_5_minutes_by_default() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.compute(primary()).await;
        platform.advance(300);
        assert_eq!(platform.states(&path).await.0, "active");
        platform.advance(2);
        assert_eq!(platform.states(&path).await.0, "idle");
    }
}

#[tokio::test]
async fn a_size_given_by_one_end_is_measured_against_the_stored_other() {
    for profile in BOTH {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let refused =
            platform.patch(&path, ORGANIZATION, json!({ "endpoint": { "autoscaling_limit_max_cu": 0.25 } })).await;
        assert_eq!(refused.expect(400).message(), "autoscaling limit min is larger than max; min:\"1\", max:\"0.25\"");
        let unchanged = platform.listed(&path).await;
        assert_eq!(unchanged["autoscaling_limit_max_cu"], Value::from(1));
    }
}
