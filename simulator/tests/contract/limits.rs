//! Sizes and limits.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

/// Creates a replica of this size on the first branch of a project.
async fn sized(platform: &Platform, project: &str, token: &str, min: f64, max: f64) -> Answer {
    let branch = format!("br-{}", project.split('-').next().unwrap()).replace("br-shop", "br-main");
    let endpoint = json!({
        "branch_id": branch, "type": "read_only", "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max
    });
    platform
        .post(
            &format!("/projects/{project}/endpoints"),
            token,
            json!({ "endpoint": endpoint }),
        )
        .await
}

#[tokio::test]
async fn limit_larger_sizes_and_autoscaling_are_on_paid_plans() {
    let platform = Platform::minimal().await;
    sized(&platform, "rocket-3", LAUNCH, 0.25, 16.0)
        .await
        .expect(201);
    sized(&platform, "rocket-3", LAUNCH, 56.0, 56.0)
        .await
        .expect(201);
    let paid = json!({ "plan": "launch" });
    platform
        .console(Method::PATCH, "/organizations/org-free-3", paid)
        .await
        .expect(200);
    sized(&platform, "hobby-4", FREE, 4.0, 8.0)
        .await
        .expect(201);
}

#[tokio::test]
async fn a_size_given_by_one_end_is_measured_against_the_stored_other() {
    for profile in Profile::ALL {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let refused = platform
            .patch(
                &path,
                ORGANIZATION,
                json!({ "endpoint": { "autoscaling_limit_max_cu": 0.25 } }),
            )
            .await;
        assert_eq!(
            refused.expect(400).message(),
            "autoscaling limit min is larger than max; min:\"1\", max:\"0.25\""
        );
        let unchanged = platform.listed(&path).await;
        assert_eq!(unchanged["autoscaling_limit_max_cu"], Value::from(1));
    }
}
