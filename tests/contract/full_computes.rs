//! What the full profile does with computes beyond the specification.

use dbplane::simulator::world::Profile;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::*;

fn endpoint(attributes: Value) -> Value {
    json!({ "endpoint": attributes })
}

#[tokio::test]
async fn compute_fields_of_the_full_profile() {
    let platform = Platform::full().await;
    let mut attributes = primary();
    attributes["name"] = "orders".into();
    let path = platform.compute(attributes).await;
    platform.advance(5);
    let compute = platform.listed(&path).await;
    assert_eq!(compute["name"], "orders");
    assert_eq!(compute["suspend_timeout_seconds"], 0);
    assert_eq!(compute["settings"], json!({}), "what was never set is absent");
    for name in [
        "creation_source",
        "provisioner",
        "started_at",
        "compute_release_version",
        "hosts",
        "slug",
        "group",
    ] {
        assert!(compute.get(name).is_some(), "{name}");
    }
    let host = compute["host"].as_str().unwrap();
    assert_eq!(compute["hosts"]["read_write_host"], host);
    assert_eq!(
        compute["hosts"]["read_write_pooled_host"],
        host.replacen('.', "-pooler.", 1)
    );
    assert_eq!(platform.line(&path).await["name"], "orders");
}

#[tokio::test]
async fn compute_name_has_1_to_64_characters_and_need_not_be_unique() {
    let platform = Platform::full().await;
    let named = |name: &str| endpoint(json!({ "branch_id": "br-main", "type": "read_only", "name": name }));
    for (name, status) in [
        ("twin", 201),
        ("twin", 201),
        ("", 400),
        ("é".repeat(64).as_str(), 201),
        ("a".repeat(65).as_str(), 400),
    ] {
        platform
            .post("/projects/shop-1/endpoints", ORGANIZATION, named(name))
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn operation_has_a_total_duration() {
    let platform = Platform::full().await;
    platform.active_primary().await;
    let answer = platform.get("/projects/shop-1/operations", ORGANIZATION).await;
    assert_eq!(answer.body["operations"][0]["total_duration_ms"], 1000);
}

#[tokio::test]
async fn get_compute_and_computes_of_a_branch() {
    let platform = Platform::full().await;
    let path = platform.active_primary().await;
    assert_eq!(
        platform.get(&path, ORGANIZATION).await.expect(200).body["endpoint"],
        platform.listed(&path).await
    );
    platform.get(&format!("{path}0"), ORGANIZATION).await.expect(404);
    let of = async |branch: &str| {
        let answer = platform
            .get(&format!("/projects/shop-1/branches/{branch}/endpoints"), ORGANIZATION)
            .await
            .expect(200);
        answer.body["endpoints"].as_array().unwrap().len()
    };
    assert_eq!((of("br-main").await, of("br-dev").await), (1, 0));
}

#[tokio::test]
async fn second_primary_has_a_code() {
    let platform = Platform::full().await;
    platform.compute(primary()).await;
    let refused = platform
        .post("/projects/shop-1/endpoints", ORGANIZATION, endpoint(primary()))
        .await
        .expect(409);
    assert_eq!(refused.text_at("/code"), "ENDPOINTS_LIMIT_EXCEEDED");
}

#[tokio::test]
async fn patch_of_an_idle_compute_has_no_operations_and_stays_idle() {
    let platform = Platform::full().await;
    let path = platform.idle_primary().await;
    let change = endpoint(json!({ "autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 2 }));
    let answer = platform.patch(&path, ORGANIZATION, change).await.expect(200);
    assert_eq!(answer.operations(), operations(&[]));
    assert_eq!(answer.body["endpoint"]["autoscaling_limit_max_cu"], 2);
    assert_eq!(platform.states(&path).await, state("idle", None));
}

#[tokio::test]
async fn patch_of_an_idle_compute_has_an_operation_in_minimal() {
    let platform = Platform::minimal().await;
    let path = platform.idle_primary().await;
    let answer = platform
        .patch(&path, ORGANIZATION, endpoint(json!({ "pooler_enabled": true })))
        .await
        .expect(200);
    assert_eq!(answer.operations(), operations(&[("apply_config", "running")]));
    assert_eq!(platform.states(&path).await, state("idle", Some("idle")));
    platform.advance(1);
    assert_eq!(platform.states(&path).await, state("idle", None));
}

#[tokio::test]
async fn patch_ignores_the_type() {
    let platform = Platform::full().await;
    let path = platform.active_primary().await;
    let answer = platform
        .patch(&path, ORGANIZATION, endpoint(json!({ "type": "read_only" })))
        .await
        .expect(200);
    assert_eq!(answer.text_at("/endpoint/type"), "read_write");
}

#[tokio::test]
async fn delete_of_an_active_compute_suspends_it_and_of_an_absent_one_is_204() {
    let platform = Platform::full().await;
    let path = platform.active_primary().await;
    let answer = platform.delete(&path, ORGANIZATION).await.expect(200);
    assert_eq!(answer.operations(), operations(&[("suspend_compute", "running")]));
    let again = platform.delete(&path, ORGANIZATION).await.expect(204);
    assert_eq!(again.text, "");
    platform
        .delete("/projects/nowhere/endpoints/ep-x", ORGANIZATION)
        .await
        .expect(404);
}

#[tokio::test]
async fn delete_on_a_protected_branch_is_422() {
    let attributes = json!({ "branch_id": "br-kept", "type": "read_write" });
    let platform = Platform::full().await;
    let path = platform.compute(attributes.clone()).await;
    platform.advance(600);
    platform.delete(&path, ORGANIZATION).await.expect(422);
    let platform = Platform::minimal().await;
    let path = platform.compute(attributes).await;
    platform.delete(&path, ORGANIZATION).await.expect(200);
}

#[tokio::test]
async fn restart_of_an_idle_compute_is_refused() {
    let platform = Platform::full().await;
    let path = platform.idle_primary().await;
    platform
        .push(&format!("{path}/restart"), ORGANIZATION)
        .await
        .expect(409);
    assert_eq!(platform.states(&path).await, state("idle", None));
}

#[tokio::test]
async fn start_and_suspend() {
    let platform = Platform::full().await;
    let path = platform.idle_primary().await;
    let started = platform.push(&format!("{path}/start"), ORGANIZATION).await.expect(200);
    assert_eq!(started.operations(), operations(&[("start_compute", "running")]));
    assert_eq!(platform.states(&path).await, state("idle", Some("active")));
    let refused = platform
        .push(&format!("{path}/suspend"), ORGANIZATION)
        .await
        .expect(423);
    assert_eq!(
        refused.message(),
        "endpoint is in some transitive state, could not suspend"
    );
    platform.advance(2);
    assert_eq!(
        platform
            .push(&format!("{path}/start"), ORGANIZATION)
            .await
            .expect(200)
            .operations(),
        operations(&[])
    );
    let suspended = platform
        .push(&format!("{path}/suspend"), ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(suspended.operations(), operations(&[("suspend_compute", "running")]));
    platform.advance(2);
    assert_eq!(platform.states(&path).await, state("idle", None));
    assert_eq!(
        platform
            .push(&format!("{path}/suspend"), ORGANIZATION)
            .await
            .expect(200)
            .operations(),
        operations(&[])
    );
}

#[tokio::test]
async fn start_of_a_disabled_compute_is_refused() {
    let platform = Platform::full().await;
    let mut attributes = primary();
    attributes["disabled"] = true.into();
    let path = platform.compute(attributes).await;
    platform.advance(5);
    assert_eq!(platform.states(&path).await, state("idle", None));
    platform.push(&format!("{path}/start"), ORGANIZATION).await.expect(409);
}

#[tokio::test]
async fn conflicting_operations_are_423() {
    let platform = Platform::full().await;
    let path = platform.compute(primary()).await;
    let change = || endpoint(json!({ "pooler_enabled": true }));
    let refused = platform.patch(&path, ORGANIZATION, change()).await.expect(423);
    assert!(
        refused
            .message()
            .starts_with("project already has running conflicting operations"),
        "{refused:?}"
    );
    platform.delete(&path, ORGANIZATION).await.expect(423);
    platform
        .push(&format!("{path}/restart"), ORGANIZATION)
        .await
        .expect(423);
    platform.compute(replica()).await;
    platform.advance(2);
    platform.patch(&path, ORGANIZATION, change()).await.expect(200);
}

#[tokio::test]
async fn conflicting_operations_can_be_those_of_the_project_or_none() {
    for (setting, status) in [("conflict_scope: project", 423), ("serialise_operations: false", 200)] {
        let yaml = WORLD.replace("settings:", &format!("settings:\n  {setting}"));
        let platform = Platform::start_with(options(&yaml, Profile::Full)).await;
        let path = platform.active_primary().await;
        platform.compute(replica()).await;
        platform
            .patch(&path, ORGANIZATION, endpoint(json!({ "pooler_enabled": true })))
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn a_change_over_another_cancels_it() {
    let yaml = WORLD.replace("settings:", "settings:\n  serialise_operations: false");
    let platform = Platform::start_with(options(&yaml, Profile::Full)).await;
    let path = platform.active_primary().await;
    platform
        .push(&format!("{path}/restart"), ORGANIZATION)
        .await
        .expect(200);
    platform
        .push(&format!("{path}/suspend"), ORGANIZATION)
        .await
        .expect(200);
    let seen = platform
        .get("/projects/shop-1/operations?limit=3", ORGANIZATION)
        .await
        .operations();
    let expected = [
        ("suspend_compute", "running"),
        ("start_compute", "cancelled"),
        ("suspend_compute", "cancelled"),
    ];
    assert_eq!(seen, operations(&expected));
    platform.advance(5);
    assert_eq!(platform.states(&path).await, state("idle", None));
}

#[tokio::test]
async fn autoscaling_span_is_at_most_8_cu() {
    let platform = Platform::full().await;
    let path = platform.idle_primary().await;
    for (min, max, status) in [
        (1.0, 9.0, 200),
        (8.0, 16.0, 200),
        (0.25, 8.0, 200),
        (0.25, 9.0, 400),
        (1.0, 10.0, 400),
    ] {
        let change = endpoint(json!({ "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max }));
        platform.patch(&path, ORGANIZATION, change).await.expect(status);
    }
}

#[tokio::test]
async fn plan_ceilings_are_422() {
    let platform = Platform::full().await;
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
            .post(&format!("/projects/{project}/endpoints"), token, endpoint(attributes))
            .await
            .expect(status);
    }
}

#[tokio::test]
async fn a_compute_without_a_size_gets_1_cu_or_the_projects_default() {
    let platform = Platform::full().await;
    let path = platform.compute(primary()).await;
    assert_eq!(platform.listed(&path).await["autoscaling_limit_max_cu"], 1);
    let yaml = WORLD.replace(
        "    region_id: aws-eu-central-1",
        "    region_id: aws-eu-central-1\n    default_size: {min: 0.25, max: 4}",
    );
    let platform = Platform::start_with(options(&yaml, Profile::Full)).await;
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
    let platform = Platform::full().await;
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
        .patch(&path, ORGANIZATION, endpoint(json!({ "suspend_timeout_seconds": 60 })))
        .await
        .expect(200);
    platform.advance(62);
    assert_eq!(platform.states(&path).await.0, "idle");
}

#[tokio::test]
async fn suspend_timeout_by_plan() {
    let platform = Platform::full().await;
    let cases = [
        ("hobby-4", "br-hobby", FREE, -1, 201, 0),
        ("hobby-4", "br-hobby", FREE, 60, 201, 0),
        ("rocket-3", "br-rocket", LAUNCH, -1, 201, -1),
        ("rocket-3", "br-rocket", LAUNCH, 60, 422, 0),
    ];
    for (project, branch, token, seconds, status, shown) in cases {
        let attributes = json!({ "branch_id": branch, "type": "read_only", "suspend_timeout_seconds": seconds });
        let answer = platform
            .post(&format!("/projects/{project}/endpoints"), token, endpoint(attributes))
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
async fn a_compute_above_16_cu_never_suspends() {
    let platform = Platform::full().await;
    let mut attributes = primary();
    attributes["autoscaling_limit_min_cu"] = 18.into();
    attributes["autoscaling_limit_max_cu"] = 18.into();
    let path = platform.compute(attributes).await;
    platform.advance(86_400);
    assert_eq!(platform.states(&path).await, state("active", None));
}

#[tokio::test]
async fn temporary_disk_grows_with_the_largest_size() {
    let platform = Platform::full().await;
    let path = platform.compute(primary()).await;
    assert_eq!(platform.line(&path).await["temporary_disk_gib"], 20);
    platform.advance(5);
    let change = endpoint(json!({ "autoscaling_limit_min_cu": 4, "autoscaling_limit_max_cu": 4 }));
    platform.patch(&path, ORGANIZATION, change).await.expect(200);
    assert_eq!(platform.line(&path).await["temporary_disk_gib"], 60);
}

#[tokio::test]
async fn availability_checks_wake_an_idle_compute_for_a_moment() {
    let yaml = WORLD.replace("settings:", "settings:\n  availability_check_seconds: 3600");
    let platform = Platform::start_with(options(&yaml, Profile::Full)).await;
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
    let answer = platform.get("/projects/shop-1/operations?limit=1", ORGANIZATION).await;
    assert_eq!(answer.operations()[0].0, "check_availability");
}

#[tokio::test]
async fn computes_of_a_branch_can_be_limited() {
    let yaml = WORLD.replace("settings:", "settings:\n  max_computes_per_branch: 1");
    let platform = Platform::start_with(options(&yaml, Profile::Full)).await;
    platform.compute(primary()).await;
    let refused = platform
        .post("/projects/shop-1/endpoints", ORGANIZATION, endpoint(replica()))
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
    let platform = Platform::start_with(options(&yaml, Profile::Full)).await;
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
