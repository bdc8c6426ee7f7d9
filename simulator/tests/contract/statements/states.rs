//! The states of a compute, their transitions, and the effects of changed settings.

use super::*;

const ANY: [&str; 4] = ["init", "idle", "active", "disabled"];

/// Runs `act` on a primary in each state and collects the results.
async fn in_any_state(platform: &Platform, act: impl AsyncFn(&Platform, &str) -> String) -> String {
    let mut seen = Vec::new();
    for state in ANY {
        let platform = Platform::start(platform.profile).await;
        let path = platform.primary_that_is(state).await;
        seen.push(format!("{state}: {}", act(&platform, &path).await));
    }
    seen.join("; ")
}

/// Resizes an active compute and returns the result.
async fn resized(platform: &Platform, from: (f64, f64), to: (f64, f64)) -> String {
    let mut attributes = sized(from.0, from.1);
    attributes["branch_id"] = "br-main".into();
    let path = platform
        .compute({
            attributes["type"] = "read_write".into();
            attributes
        })
        .await;
    platform.advance(5);
    let answer = platform
        .patch(&path, ORGANIZATION, endpoint(sized(to.0, to.1)))
        .await;
    platform.advance(5);
    format!(
        "{}, {} interruption, {}",
        outcome(&answer),
        platform.line(&path).await["interruptions"],
        platform.state(&path).await
    )
}

statements! {
    none_create: "compute: (none), create, init with pending_state active; start_compute running", async |it| {
        let answer = it.post(COMPUTES, ORGANIZATION, endpoint(primary())).await;
        let states = (answer.text_at("/endpoint/current_state"), answer.text_at("/endpoint/pending_state"));
        format!("{} pending {} {}", states.0, states.1, shown(&answer))
    }, same("init pending active [start_compute running]");
    none_create_disabled: "compute: (none), create, whatever its attributes", async |it| {
        let mut attributes = primary();
        attributes["disabled"] = true.into();
        let answer = it.post(COMPUTES, ORGANIZATION, endpoint(attributes)).await;
        format!("pending {} {}", answer.text_at("/endpoint/pending_state"), shown(&answer))
    }, contradicted("pending active [start_compute running, suspend_compute scheduling]", "pending idle [suspend_compute running]");
    none_create_condition: "compute: (none), create: the branch has no primary (for type read_write)", async |it| {
        it.compute(primary()).await;
        let again = it.post(COMPUTES, ORGANIZATION, endpoint(primary())).await.status;
        joined([again, it.post(COMPUTES, ORGANIZATION, endpoint(replica())).await.status])
    }, same("409 201");
    idle_activity: "compute: idle, any activity, active", async |it| {
        let path = it.idle_primary().await;
        it.activity(&path).await.expect(200);
        let begun = it.state(&path).await;
        it.advance(5);
        format!("{begun}; {}", it.state(&path).await)
    }, same("idle, pending active; active");
    idle_activity_operation: "compute: idle, any activity: a start_compute operation occurs", async |it| {
        let path = it.idle_primary().await;
        it.activity(&path).await.expect(200);
        it.newest_operation().await
    }, added("start_compute", "404");
    idle_activity_disabled: "compute: idle, any activity: what a disabled one does is not shown", async |it| {
        let path = it.primary_that_is("disabled").await;
        let refused = it.activity(&path).await.status;
        it.advance(5);
        format!("{refused} {}", it.state(&path).await)
    }, same("409 idle");
    active_inactivity: "compute: active, inactivity of 5 minutes by default, idle", async |it| {
        let path = it.active_primary().await;
        it.activity(&path).await.expect(200);
        it.advance(299);
        let before = it.state(&path).await;
        it.advance(2);
        format!("{before}; {}", it.state(&path).await)
    }, same("active; idle");
    active_inactivity_operation: "compute: active, inactivity: a suspend_compute operation occurs", async |it| {
        it.idle_primary().await;
        it.newest_operation().await
    }, added("suspend_compute", "404");
    active_inactivity_of_a_large_one: "compute: active, inactivity, idle: of any size", async |it| {
        let mut attributes = sized(20.0, 20.0);
        attributes["branch_id"] = "br-main".into();
        attributes["type"] = "read_write".into();
        let path = it.compute(attributes).await;
        it.advance(600);
        it.state(&path).await
    }, contradicted("idle", "active");
    active_inactivity_condition: "compute: active, inactivity: only where scale to zero is enabled", async |it| {
        let path = it.active_primary().await;
        let id = path.rsplit_once('/').unwrap().1;
        let never = json!({ "suspend_timeout_seconds": -1 });
        it.console(Method::PATCH, &format!("/computes/{id}"), never).await.expect(200);
        it.advance(86_400);
        it.state(&path).await
    }, same("active");
    any_move: "compute: any, update with a new branch_id, state as before with pending_state idle; apply_config running and suspend_compute scheduling", async |it| {
        in_any_state(&it, async |it, path| {
            let answer = it.patch(path, ORGANIZATION, endpoint(json!({ "branch_id": "br-dev" }))).await;
            format!("{} {}", outcome(&answer), it.state(path).await)
        }).await
    }, contradicted(
        "init: 200 [apply_config running, suspend_compute scheduling] init, pending idle; idle: 200 [apply_config running, suspend_compute scheduling] idle, pending idle; active: 200 [apply_config running, suspend_compute scheduling] active, pending idle; disabled: 200 [apply_config running, suspend_compute scheduling] idle, pending idle",
        "init: 423 init, pending active; idle: 200 [apply_config running, suspend_compute scheduling] idle, pending idle; active: 200 [apply_config running, suspend_compute scheduling] active, pending idle; disabled: 200 [apply_config running, suspend_compute scheduling] idle, pending idle",
    );
    any_move_condition: "compute: any, update with a new branch_id: the target branch has no primary read-write compute", async |it| {
        let path = it.active_primary().await;
        it.compute(json!({ "branch_id": "br-dev", "type": "read_write" })).await;
        let replica = it.compute(replica()).await;
        it.advance(5);
        let to = endpoint(json!({ "branch_id": "br-dev" }));
        let moved = [it.patch(&path, ORGANIZATION, to.clone()).await.status, it.patch(&replica, ORGANIZATION, to).await.status];
        joined(moved)
    }, contradicted("409 409", "409 200");
    any_restart: "compute: any, restart call, suspended then started again", async |it| {
        in_any_state(&it, async |it, path| {
            let answer = it.push(&format!("{path}/restart"), ORGANIZATION).await;
            it.advance(5);
            format!("{} {}", outcome(&answer), it.state(path).await)
        }).await
    }, contradicted(
        "init: 200 [suspend_compute running, start_compute scheduling] active; idle: 200 [suspend_compute running, start_compute scheduling] active; active: 200 [suspend_compute running, start_compute scheduling] active; disabled: 200 [suspend_compute running, start_compute scheduling] active",
        "init: 423 active; idle: 409 idle; active: 200 [suspend_compute running, start_compute scheduling] active; disabled: 409 idle",
    );
    any_restart_interrupts: "compute: any, restart call: existing connections are interrupted", async |it| {
        let path = it.active_primary().await;
        it.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
        it.advance(5);
        it.line(&path).await["interruptions"].to_string()
    }, same("1");
    any_delete: "compute: any, delete, removed; permanent, the returned operations list is empty", async |it| {
        in_any_state(&it, async |it, path| {
            let answer = it.delete(path, ORGANIZATION).await;
            it.advance(3600);
            format!("{} {}", outcome(&answer), kind(&it.listed(path).await))
        }).await
    }, contradicted(
        "init: 200 [] absent; idle: 200 [] absent; active: 200 [] absent; disabled: 200 [] absent",
        "init: 423 object; idle: 200 [] absent; active: 200 [suspend_compute running] absent; disabled: 200 [] absent",
    );
    any_delete_on_a_protected_branch: "compute: any, delete, removed: on any branch, as no condition is named", async |it| {
        let path = it.compute(json!({ "branch_id": "br-kept", "type": "read_write" })).await;
        it.advance(600);
        outcome(&it.delete(&path, ORGANIZATION).await)
    }, contradicted("200 []", "422");

    effect_1: "changing the size of a fixed-size compute restarts it and disconnects", async |it| {
        resized(&it, (1.0, 1.0), (2.0, 2.0)).await
    }, same("200 [apply_config running, suspend_compute scheduling, start_compute scheduling], 1 interruption, active");
    effect_2: "editing the minimum or maximum autoscaling size restarts it and disconnects", async |it| {
        let mut seen = Vec::new();
        for to in [(2.0, 4.0), (1.0, 8.0)] {
            let platform = Platform::start(it.profile).await;
            seen.push(resized(&platform, (1.0, 4.0), to).await);
        }
        seen.dedup();
        seen.join("; ")
    }, same("200 [apply_config running, suspend_compute scheduling, start_compute scheduling], 1 interruption, active");
    effect_3: "an automatic resize within the range causes no restart and no disconnect", async |it| {
        let mut attributes = sized(1.0, 4.0);
        attributes["branch_id"] = "br-main".into();
        attributes["type"] = "read_write".into();
        let path = it.compute(attributes).await;
        it.advance(5);
        let id = path.rsplit_once('/').unwrap().1;
        let mut seen = Vec::new();
        for load in [3.5, 9.0, 0.1] {
            let activity = json!({ "load_cu": load });
            it.console(Method::POST, &format!("/computes/{id}/activity"), activity).await.expect(200);
            let line = it.line(&path).await;
            seen.push(format!("{} CU {} {}", line["current_size"], line["interruptions"], it.state(&path).await));
        }
        seen.join("; ")
    }, same("4 CU 0 active; 4 CU 0 active; 1 CU 0 active");
    effect_4: "changes take effect immediately", async |it| {
        let path = it.active_primary().await;
        let answer = it.patch(&path, ORGANIZATION, endpoint(sized(2.0, 4.0))).await;
        joined([&answer.body["endpoint"]["autoscaling_limit_min_cu"], &it.listed(&path).await["autoscaling_limit_max_cu"]])
    }, same("2 4");
    effect_5: "without scale to zero it must be restarted to pick up updates, released weekly", async |it| {
        let path = it.active_primary().await;
        let id = path.rsplit_once('/').unwrap().1;
        it.console(Method::PATCH, &format!("/computes/{id}"), json!({ "suspend_timeout_seconds": -1 })).await.expect(200);
        let first = it.line(&path).await["release"].clone();
        it.advance(15 * 86_400);
        let second = it.line(&path).await["release"].clone();
        it.push(&format!("{path}/restart"), ORGANIZATION).await.expect(200);
        it.advance(5);
        joined([first == second, it.line(&path).await["release"] == second])
    }, same("true false");
}
