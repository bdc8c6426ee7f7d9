//! Limits.

use super::*;

/// The statuses of creating replicas of these sizes.
async fn made(platform: &Platform, place: (&str, &str, &str), sizes: &[(f64, f64)]) -> String {
    let (project, branch, token) = place;
    let mut seen = Vec::new();
    for (min, max) in sizes {
        let mut attributes = sized(*min, *max);
        attributes["branch_id"] = branch.into();
        attributes["type"] = "read_only".into();
        seen.push(
            platform
                .post(
                    &format!("/projects/{project}/endpoints"),
                    token,
                    endpoint(attributes),
                )
                .await
                .status,
        );
    }
    joined(seen)
}

const SCALE_PLAN: (&str, &str, &str) = ("shop-1", "br-main", ORGANIZATION);
const LAUNCH_PLAN: (&str, &str, &str) = ("rocket-3", "br-rocket", LAUNCH);
const FREE_PLAN: (&str, &str, &str) = ("hobby-4", "br-hobby", FREE);

/// Every allowed size.
fn all_sizes() -> Vec<f64> {
    let whole = (1..=16)
        .map(f64::from)
        .chain((9..=28).map(|half| f64::from(half * 2)));
    [0.25, 0.5].into_iter().chain(whole).collect()
}

statements! {
    limit_keys: "API keys per account: no strict limit", async |it| {
        let made = it.simulator.with_world(|world, now| {
            (0..10_001).filter(|n| world.console_create_personal_key("user-ada", &format!("key {n}"), now).is_ok()).count()
        });
        made.unwrap().to_string()
    }, same("10001");
    limit_fixed: "fixed compute size: 0.25 CU to 56 CU", async |it| {
        let sizes: Vec<(f64, f64)> = all_sizes().into_iter().map(|cu| (cu, cu)).collect();
        let seen = made(&it, SCALE_PLAN, &sizes).await;
        format!("{} of {}", seen.matches("201").count(), sizes.len())
    }, same("38 of 38");
    limit_autoscaling: "autoscaling range: 0.25 CU to 16 CU", async |it| {
        let all: Vec<f64> = all_sizes().into_iter().filter(|cu| *cu <= 16.0).collect();
        let pairs = all.iter().flat_map(|min| all.iter().filter(move |max| min < max).map(move |max| (*min, *max)));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let seen = made(&it, SCALE_PLAN, &pairs).await;
        format!("{} of {}", seen.matches("201").count(), pairs.len())
    }, contradicted("153 of 153", "109 of 153");
    limit_autoscaling_above: "sizes above 16 CU are fixed only", async |it| {
        made(&it, SCALE_PLAN, &[(16.0, 18.0), (18.0, 20.0), (1.0, 56.0)]).await
    }, same("400 400 400");
    limit_min_above_max: "the minimum size is no larger than the maximum", async |it| made(&it, SCALE_PLAN, &[(2.0, 1.0)]).await, same("400");
    limit_free_plan: "free plan compute: up to 1 GB RAM", async |it| {
        let answer = it.post("/projects/hobby-4/endpoints", FREE, endpoint(json!({ "branch_id": "br-hobby", "type": "read_write" }))).await;
        it.line(&format!("/{}", answer.text_at("/endpoint/id"))).await["capacity"]["ram_gb"].to_string()
    }, contradicted("1.0", "4.0");
    limit_paid_sizes: "compute sizes larger than the free plan, configurable size, autoscaling: paid plans", async |it| {
        made(&it, FREE_PLAN, &[(0.25, 0.25), (0.5, 0.5), (1.0, 1.0), (0.25, 0.5), (3.0, 3.0)]).await
    }, Expected { default: "201 422 422 422 422", public: "201 201 201 201 422", minimal: "201 400 400 400 400" };
    limit_paid_plans: "every size is for paid plans", async |it| {
        made(&it, LAUNCH_PLAN, &[(0.25, 8.0), (18.0, 18.0), (56.0, 56.0)]).await
    }, contradicted("201 201 201", "201 422 422");
    limit_primaries: "primary read-write computes per branch: 1", async |it| {
        it.compute(primary()).await;
        it.post(COMPUTES, ORGANIZATION, endpoint(primary())).await.message()
    }, same("read_write endpoint already exists");
    limit_replicas: "read replica computes per branch: multiple", async |it| {
        for _ in 0..50 {
            it.compute(replica()).await;
        }
        it.get(COMPUTES, ORGANIZATION).await.body["endpoints"].as_array().unwrap().len().to_string()
    }, same("50");
    limit_inactivity: "scale-to-zero inactivity period: 5 minutes by default", async |it| {
        let path = it.compute(primary()).await;
        it.advance(300);
        let before = it.states(&path).await.0;
        it.advance(2);
        joined([before, it.states(&path).await.0])
    }, same("active idle");
    limit_inactivity_by_plan: "scale to zero is bound to no plan", async |it| {
        let mut seen = Vec::new();
        for (project, branch, token) in [FREE_PLAN, LAUNCH_PLAN] {
            let attributes = json!({ "branch_id": branch, "type": "read_only", "suspend_timeout_seconds": 60 });
            let answer = it.post(&format!("/projects/{project}/endpoints"), token, endpoint(attributes)).await;
            seen.push(format!("{} {}", answer.status, answer.body["endpoint"]["suspend_timeout_seconds"]));
        }
        seen.join("; ")
    }, Expected { default: "201 60; 201 60", public: "201 0; 422 null", minimal: "201 null; 201 null" };
    limit_shared_buffers: "shared buffer setting: always 128 MB", async |it| {
        let path = it.compute(primary()).await;
        it.line(&path).await["shared_buffers_mb"].to_string()
    }, same("128");
    limit_file_cache: "local file cache: up to 80% of compute RAM", async |it| {
        let path = it.compute(primary()).await;
        it.line(&path).await["capacity"]["local_file_cache_gb"].to_string()
    }, same("3.2");
    limit_pooled: "pooled connections: up to 10,000", async |it| {
        let path = it.compute(primary()).await;
        it.line(&path).await["max_pooled_connections"].to_string()
    }, same("10000");
    limit_temporary_disk: "local disk for temporary files per compute: about 20 GB", async |it| {
        let mut attributes = sized(20.0, 20.0);
        attributes["branch_id"] = "br-main".into();
        attributes["type"] = "read_write".into();
        let path = it.compute(attributes).await;
        it.line(&path).await["temporary_disk_gib"].to_string()
    }, contradicted("20", "300");
    limit_rates: "rate limits of the API: not shown", async |it| {
        let yaml = WORLD.replace("  rate_limit: {enabled: false}\n", "");
        let platform = Platform::start_with(options(&yaml, it.profile)).await;
        let burst = (0..80).map(|_| platform.get("/projects", ORGANIZATION));
        let answers = futures::future::join_all(burst).await;
        if answers.iter().any(|answer| answer.status == 429) { "limited" } else { "not limited" }.to_owned()
    }, added("limited", "not limited");
}
