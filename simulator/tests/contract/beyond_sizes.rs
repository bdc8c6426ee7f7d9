//! Sizes, scale to zero and declared computes beyond the specification.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

fn endpoint(attributes: Value) -> Value {
    json!({ "endpoint": attributes })
}

#[tokio::test]
async fn public_autoscaling_span_is_at_most_8_cu() {
    let platform = Platform::public().await;
    let path = platform.idle_primary().await;
    for (min, max, status) in [
        (1.0, 9.0, 200),
        (8.0, 16.0, 200),
        (0.25, 8.0, 200),
        (0.25, 9.0, 400),
        (1.0, 10.0, 400),
    ] {
        let change =
            endpoint(json!({ "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max }));
        platform
            .patch(&path, ORGANIZATION, change)
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn public_plan_ceilings_are_422() {
    let platform = Platform::public().await;
    let cases = [
        ("hobby-4", "br-hobby", FREE, 2.0, 201),
        ("hobby-4", "br-hobby", FREE, 3.0, 422),
        ("rocket-3", "br-rocket", LAUNCH, 16.0, 201),
        ("rocket-3", "br-rocket", LAUNCH, 18.0, 422),
        ("shop-1", "br-main", ORGANIZATION, 56.0, 201),
    ];
    for (project, branch, token, cu, status) in cases {
        let attributes = json!({
            "branch_id": branch, "type": "read_only", "autoscaling_limit_min_cu": cu, "autoscaling_limit_max_cu": cu
        });
        platform
            .post(
                &format!("/projects/{project}/endpoints"),
                token,
                endpoint(attributes),
            )
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn a_compute_without_a_size_gets_1_cu_or_the_projects_default() {
    let platform = Platform::public().await;
    let path = platform.compute(primary()).await;
    assert_eq!(platform.listed(&path).await["autoscaling_limit_max_cu"], 1);
    let yaml = WORLD.replace(
        "    region_id: aws-eu-central-1",
        "    region_id: aws-eu-central-1\n    default_size: {min: 0.25, max: 4}",
    );
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    let path = platform.compute(primary()).await;
    let compute = platform.listed(&path).await;
    assert_eq!(
        (
            &compute["autoscaling_limit_min_cu"],
            &compute["autoscaling_limit_max_cu"]
        ),
        (&json!(0.25), &json!(4))
    );
}

#[tokio::test]
async fn suspend_timeout_is_configurable_on_the_scale_plan() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        for (seconds, status) in [
            (60, 200),
            (-1, 200),
            (0, 200),
            (604_800, 200),
            (604_801, 400),
            (-2, 400),
        ] {
            platform
                .patch(
                    &path,
                    ORGANIZATION,
                    endpoint(json!({ "suspend_timeout_seconds": seconds })),
                )
                .await
                .expect(status);
            platform.advance(2);
        }
        platform
            .patch(
                &path,
                ORGANIZATION,
                endpoint(json!({ "suspend_timeout_seconds": 60 })),
            )
            .await
            .expect(200);
        platform.advance(62);
        assert_eq!(platform.states(&path).await.0, "idle");
    }
}

#[tokio::test]
async fn public_suspend_timeout_by_plan() {
    let platform = Platform::public().await;
    let cases = [
        ("hobby-4", "br-hobby", FREE, -1, 201, 0),
        ("hobby-4", "br-hobby", FREE, 60, 201, 0),
        ("rocket-3", "br-rocket", LAUNCH, -1, 201, -1),
        ("rocket-3", "br-rocket", LAUNCH, 60, 422, 0),
    ];
    for (project, branch, token, seconds, status, shown) in cases {
        let attributes =
            json!({ "branch_id": branch, "type": "read_only", "suspend_timeout_seconds": seconds });
        let answer = platform
            .post(
                &format!("/projects/{project}/endpoints"),
                token,
                endpoint(attributes),
            )
            .await
            .expect(status);
        if status == 201 {
            assert_eq!(
                answer.body["endpoint"]["suspend_timeout_seconds"], shown,
                "ignored without a word on the free plan"
            );
        }
    }
}

#[tokio::test]
async fn public_temporary_disk_grows_with_the_largest_size() {
    let platform = Platform::public().await;
    let path = platform.compute(primary()).await;
    assert_eq!(platform.line(&path).await["temporary_disk_gib"], 20);
    platform.advance(5);
    let change = endpoint(json!({ "autoscaling_limit_min_cu": 4, "autoscaling_limit_max_cu": 4 }));
    platform
        .patch(&path, ORGANIZATION, change)
        .await
        .expect(200);
    assert_eq!(platform.line(&path).await["temporary_disk_gib"], 60);
}

#[tokio::test]
async fn availability_checks_wake_an_idle_compute_for_a_moment() {
    let yaml = WORLD.replace("settings:", "settings:\n  availability_check_seconds: 3600");
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    let path = platform.active_primary().await;
    platform.advance(310);
    let before = platform.listed(&path).await;
    platform.advance(3580);
    let mut woken = false;
    for _ in 0..100 {
        platform
            .simulator
            .advance(std::time::Duration::from_millis(400))
            .unwrap();
        let compute = platform
            .simulator
            .with_world(|world, _| world.console_computes(None)[0].status)
            .unwrap();
        woken |= compute == "Active";
    }
    assert!(woken);
    assert_eq!(
        platform.listed(&path).await["last_active"],
        before["last_active"],
        "a check is no activity"
    );
    let answer = platform
        .get("/projects/shop-1/operations?limit=1", ORGANIZATION)
        .await;
    assert_eq!(answer.operations()[0].0, "check_availability");
}

#[tokio::test]
async fn computes_of_a_branch_can_be_limited() {
    let yaml = WORLD.replace("settings:", "settings:\n  max_computes_per_branch: 1");
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    platform.compute(primary()).await;
    let refused = platform
        .post(
            "/projects/shop-1/endpoints",
            ORGANIZATION,
            endpoint(replica()),
        )
        .await
        .expect(422);
    assert_eq!(refused.text_at("/code"), "ENDPOINTS_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn computes_of_the_world_file_exist_from_the_beginning() {
    let computes = "computes: [{id: ep-old-1, branch: br-main, size: {min: 0.25, max: 2}}, {branch: br-dev, active: true, name: hot}]";
    let yaml = WORLD.replace(
        "    region_id: aws-eu-central-1",
        &format!("    region_id: aws-eu-central-1\n    {computes}"),
    );
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    assert_eq!(
        platform.states("/projects/shop-1/endpoints/ep-old-1").await,
        state("idle", None)
    );
    let lines = platform
        .console(Method::GET, "/computes?project_id=shop-1", Value::Null)
        .await
        .expect(200);
    let line = lines
        .body
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["id"] == "ep-old-1")
        .cloned()
        .unwrap();
    assert_eq!(
        (&line["size"], &line["status"]),
        (&json!("0.25 - 2 CU"), &json!("Idle"))
    );
    assert!(lines.text.contains("\"hot\""), "{}", lines.text);
    assert_eq!(
        platform
            .get("/projects/shop-1/operations", ORGANIZATION)
            .await
            .operations(),
        operations(&[])
    );
}
