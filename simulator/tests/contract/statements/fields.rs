//! Resources and their fields.

use super::*;

async fn key(platform: &Platform, name: &str) -> String {
    kind(&platform.project_key("ci").await.body[name])
}

async fn project(platform: &Platform, name: &str) -> String {
    kind(&platform.get("/projects", ORGANIZATION).await.body["projects"][1][name])
}

async fn compute(platform: &Platform, name: &str) -> String {
    let path = platform.active_primary().await;
    kind(&platform.listed(&path).await[name])
}

async fn operation(platform: &Platform, name: &str) -> String {
    let answer = platform
        .post(COMPUTES, ORGANIZATION, endpoint(primary()))
        .await;
    kind(&answer.body["operations"][0][name])
}

async fn in_console(platform: &Platform, name: &str) -> String {
    let path = platform.active_primary().await;
    let replica = platform.compute(replica()).await;
    platform.advance(900);
    platform.activity(&path).await.expect(200);
    platform.advance(5);
    let text = |value: &Value| {
        if is_utc(value) {
            "time".to_owned()
        } else {
            value.as_str().unwrap().to_owned()
        }
    };
    joined([
        text(&platform.line(&path).await[name]),
        text(&platform.line(&replica).await[name]),
    ])
}

statements! {
    key_id: "API key: id, integer", async |it| key(&it, "id").await, same("integer");
    key_key: "API key: key, string, in this response only", async |it| {
        let secret = it.project_key("ci").await.text_at("/key");
        let listed = it.console(Method::GET, "/api_keys", Value::Null).await;
        format!("{} {}", secret.is_empty(), listed.text.contains(&secret))
    }, same("false false");
    key_name: "API key: name, given at creation", async |it| it.project_key("ci").await.text_at("/name"), same("ci");
    key_created_at: "API key: created_at, ISO 8601 UTC", async |it| key(&it, "created_at").await, same("time");
    key_created_by: "API key: created_by, the creating user", async |it| it.project_key("ci").await.text_at("/created_by"), same("user-ada");
    key_project_id: "API key: project_id, the project it is scoped to", async |it| it.project_key("ci").await.text_at("/project_id"), same("shop-1");

    project_id: "project: id, string", async |it| project(&it, "id").await, same("string");
    project_name: "project: name, string", async |it| project(&it, "name").await, same("string");
    project_platform_id: "project: platform_id, string", async |it| project(&it, "platform_id").await, same("string");
    project_region_id: "project: region_id, string", async |it| project(&it, "region_id").await, same("string");
    project_provisioner: "project: provisioner, string", async |it| project(&it, "provisioner").await, same("string");
    project_pg_version: "project: pg_version, integer", async |it| project(&it, "pg_version").await, same("integer");
    project_cpu_used_sec: "project: cpu_used_sec, integer", async |it| project(&it, "cpu_used_sec").await, same("integer");
    project_locked: "project: locked, boolean", async |it| project(&it, "locked").await, same("boolean");
    project_created_at: "project: created_at, ISO 8601 UTC", async |it| project(&it, "created_at").await, same("time");
    project_updated_at: "project: updated_at, ISO 8601 UTC", async |it| project(&it, "updated_at").await, same("time");
    project_proxy_host: "project: proxy_host, host name", async |it| project(&it, "proxy_host").await, same("string");
    project_size_limit: "project: branch_logical_size_limit, integer", async |it| project(&it, "branch_logical_size_limit").await, same("integer");
    project_other_fields: "project: other fields are not shown", async |it| {
        fields(&it.get("/projects", ORGANIZATION).await.body["projects"][1]).len().to_string()
    }, added("22", "12");

    compute_id: "compute: id always starts with ep-", async |it| {
        let id = it.active_primary().await;
        id.starts_with("/projects/shop-1/endpoints/ep-").to_string()
    }, same("true");
    compute_host: "compute: host, for connecting", async |it| compute(&it, "host").await, same("string");
    compute_project_id: "compute: project_id, owning project", async |it| {
        let path = it.active_primary().await;
        it.listed(&path).await["project_id"].to_string()
    }, same("\"shop-1\"");
    compute_branch_id: "compute: branch_id, the branch it belongs to", async |it| {
        let path = it.active_primary().await;
        it.listed(&path).await["branch_id"].to_string()
    }, same("\"br-main\"");
    compute_region_id: "compute: region_id", async |it| compute(&it, "region_id").await, same("string");
    compute_type: "compute: type, read_write for the primary", async |it| {
        let path = it.active_primary().await;
        it.listed(&path).await["type"].to_string()
    }, same("\"read_write\"");
    compute_type_of_a_replica: "compute: the type of a read replica is not shown", async |it| {
        let path = it.compute(replica()).await;
        it.listed(&path).await["type"].to_string()
    }, same("\"read_only\"");
    compute_min: "compute: autoscaling_limit_min_cu, number", async |it| compute(&it, "autoscaling_limit_min_cu").await, same("integer");
    compute_max: "compute: autoscaling_limit_max_cu, number", async |it| {
        let path = it.compute(json!({ "branch_id": "br-main", "type": "read_only", "autoscaling_limit_min_cu": 0.25, "autoscaling_limit_max_cu": 0.5 })).await;
        kind(&it.listed(&path).await["autoscaling_limit_max_cu"])
    }, same("number");
    compute_current_state: "compute: current_state is init, idle or active", async |it| {
        let path = it.compute(primary()).await;
        let mut seen = vec![it.states(&path).await.0];
        for seconds in [5, 600] {
            it.advance(seconds);
            seen.push(it.states(&path).await.0);
        }
        joined(seen)
    }, same("init active idle");
    compute_pending_state: "compute: pending_state, present while a change is under way", async |it| {
        let path = it.compute(primary()).await;
        let begun = it.listed(&path).await["pending_state"].to_string();
        it.advance(5);
        joined([begun, it.listed(&path).await.get("pending_state").is_none().to_string()])
    }, same("\"active\" true");
    compute_settings: "compute: settings contains pg_settings", async |it| {
        let path = it.compute(primary()).await;
        it.listed(&path).await["settings"].to_string()
    }, contradicted("{\"pg_settings\":{}}", "{}");
    compute_pg_settings: "compute: pg_settings, database settings", async |it| {
        let path = it.active_primary().await;
        let change = endpoint(json!({ "settings": { "pg_settings": { "work_mem": "64MB" } } }));
        it.patch(&path, ORGANIZATION, change).await.body["endpoint"]["settings"].to_string()
    }, same("{\"pg_settings\":{\"work_mem\":\"64MB\"}}");
    compute_pooler_enabled: "compute: pooler_enabled, boolean", async |it| compute(&it, "pooler_enabled").await, same("boolean");
    compute_pooler_mode: "compute: pooler_mode, transaction", async |it| {
        let path = it.active_primary().await;
        it.listed(&path).await["pooler_mode"].to_string()
    }, same("\"transaction\"");
    compute_disabled: "compute: disabled, boolean", async |it| compute(&it, "disabled").await, same("boolean");
    compute_passwordless_access: "compute: passwordless_access, boolean", async |it| compute(&it, "passwordless_access").await, same("boolean");
    compute_last_active: "compute: last_active, ISO 8601 UTC", async |it| compute(&it, "last_active").await, same("time");
    compute_last_active_of_a_new_one: "compute: last_active, absent on a newly created compute", async |it| {
        let path = it.compute(primary()).await;
        kind(&it.listed(&path).await["last_active"])
    }, same("absent");
    compute_created_at: "compute: created_at, ISO 8601 UTC", async |it| compute(&it, "created_at").await, same("time");
    compute_updated_at: "compute: updated_at, ISO 8601 UTC", async |it| compute(&it, "updated_at").await, same("time");
    compute_proxy_host: "compute: proxy_host, host name", async |it| compute(&it, "proxy_host").await, same("string");
    compute_other_fields: "compute: other fields are not listed", async |it| {
        let path = it.active_primary().await;
        fields(&it.listed(&path).await).len().to_string()
    }, added("28", "18");
    console_type: "in the console a compute shows its type", async |it| in_console(&it, "type").await, same("Primary Read Replica");
    console_status: "in the console a compute shows its status", async |it| in_console(&it, "status").await, same("Active Idle");
    console_size: "in the console a compute shows its size", async |it| in_console(&it, "size").await, same("1 CU 1 CU");
    console_last_active: "in the console a compute shows its last active time", async |it| in_console(&it, "last_active").await, same("time time");

    operation_id: "operation: id, UUID", async |it| {
        let answer = it.post(COMPUTES, ORGANIZATION, endpoint(primary())).await;
        joined(answer.text_at("/operations/0/id").split('-').map(str::len))
    }, same("8 4 4 4 12");
    operation_project_id: "operation: project_id, string", async |it| operation(&it, "project_id").await, same("string");
    operation_branch_id: "operation: branch_id, string", async |it| operation(&it, "branch_id").await, same("string");
    operation_endpoint_id: "operation: endpoint_id, the compute concerned", async |it| {
        let answer = it.post(COMPUTES, ORGANIZATION, endpoint(primary())).await;
        (answer.body["operations"][0]["endpoint_id"] == answer.body["endpoint"]["id"]).to_string()
    }, same("true");
    operation_action: "operation: action, string", async |it| operation(&it, "action").await, same("string");
    operation_status: "operation: status, string", async |it| operation(&it, "status").await, same("string");
    operation_failures_count: "operation: failures_count, integer", async |it| operation(&it, "failures_count").await, same("integer");
    operation_created_at: "operation: created_at, ISO 8601 UTC", async |it| operation(&it, "created_at").await, same("time");
    operation_updated_at: "operation: updated_at, ISO 8601 UTC", async |it| operation(&it, "updated_at").await, same("time");
    operation_other_fields: "operation: other fields are not listed", async |it| {
        let answer = it.post(COMPUTES, ORGANIZATION, endpoint(primary())).await;
        fields(&answer.body["operations"][0]).len().to_string()
    }, added("10", "9");
}
