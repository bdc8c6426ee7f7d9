//! The calls, and requests for calls that do not exist.

use super::*;

async fn created(platform: &Platform, attributes: Value) -> Answer {
    platform
        .post(COMPUTES, ORGANIZATION, endpoint(attributes))
        .await
}

statements! {
    responses_are_json: "requests and responses are JSON", async |it| {
        it.get("/projects", ORGANIZATION).await.headers["content-type"].to_str().unwrap().to_owned()
    }, same("application/json");
    accept_and_content_type: "an Accept header of application/json is used for responses, a Content-Type header when a body is sent", async |it| {
        let request = it.http.post(format!("{}{COMPUTES}", it.simulator.base_url())).bearer_auth(ORGANIZATION);
        let request = request.header("accept", "application/json").header("content-type", "application/json");
        let answer = request.body(endpoint(primary()).to_string()).send().await.unwrap();
        format!("{} {}", answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap())
    }, same("201 application/json");

    create_key: "POST /organizations/{org_id}/api_keys returns the API key object", async |it| {
        joined(fields(&it.project_key("ci").await.body))
    }, same("created_at created_by id key name project_id");
    create_key_body: "a key's creation is sent key_name and project_id", async |it| {
        let mut seen = Vec::new();
        for body in [json!({ "project_id": "shop-1" }), json!({ "key_name": 5, "project_id": "shop-1" }), json!({ "key_name": "a", "project_id": "nowhere" }), json!({ "key_name": "a", "project_id": "hobby-4" })] {
            seen.push(it.post(KEYS, ADMIN, body).await.status);
        }
        joined(seen)
    }, same("400 400 404 404");
    create_key_caller: "a key's creation must be called with a personal API key by an organization administrator", async |it| {
        let mut seen = Vec::new();
        for token in [ADMIN, MEMBER, STRANGER, ORGANIZATION, SCOPED] {
            seen.push(it.post(KEYS, token, for_shop(&format!("by {token}"))).await.status);
        }
        joined(seen)
    }, added("200 403 404 404 404", "200 403 404 403 403");

    list_projects: "GET /projects returns an object with projects, an array of project objects", async |it| {
        kind(&it.get("/projects", ORGANIZATION).await.expect(200).body["projects"])
    }, same("array");
    list_projects_sends_nothing: "GET /projects is sent nothing and returns the projects", async |it| {
        let more: String = (0..20).map(|n| format!("  - {{id: more-{n}, owner: org-scale-1}}\n")).collect();
        let yaml = WORLD.replace("projects:\n", &format!("projects:\n{more}"));
        let platform = Platform::start_with(options(&yaml, it.profile)).await;
        platform.get("/projects", ORGANIZATION).await.body["projects"].as_array().unwrap().len().to_string()
    }, contradicted("22", "10");

    create_compute: "POST /projects/{project_id}/endpoints returns an object with endpoint and operations", async |it| {
        joined(fields(&created(&it, primary()).await.body))
    }, same("endpoint operations");
    create_compute_branch: "a compute's creation is sent branch_id, required", async |it| {
        let mut seen = Vec::new();
        for body in [json!({ "type": "read_write" }), json!({ "branch_id": "br-nowhere", "type": "read_write" }), json!({ "branch_id": "br-other", "type": "read_write" })] {
            seen.push(created(&it, body).await.status);
        }
        joined(seen)
    }, same("400 404 404");
    create_compute_type: "a compute's creation is sent type, for example read_write", async |it| {
        let answer = created(&it, json!({ "branch_id": "br-main" })).await;
        format!("{} {}", answer.status, answer.body["endpoint"]["type"])
    }, contradicted("201 \"read_write\"", "400 null");
    create_compute_condition: "a compute's creation: the branch must not already have a primary when type is read_write", async |it| {
        it.compute(primary()).await;
        created(&it, primary()).await.status.to_string()
    }, same("409");
    create_compute_replicas: "a compute's creation: a branch may gain several read replicas", async |it| {
        for _ in 0..3 {
            it.compute(replica()).await;
        }
        it.get(COMPUTES, ORGANIZATION).await.body["endpoints"].as_array().unwrap().len().to_string()
    }, same("3");

    list_computes: "GET /projects/{project_id}/endpoints returns an object with endpoints, an array of compute objects", async |it| {
        let none = it.get(COMPUTES, ORGANIZATION).await.body["endpoints"].to_string();
        let path = it.compute(primary()).await;
        format!("{none} {}", path.ends_with(&it.get(COMPUTES, ORGANIZATION).await.text_at("/endpoints/0/id")))
    }, same("[] true");

    update_compute: "PATCH /projects/{project_id}/endpoints/{endpoint_id} returns an object with endpoint and operations", async |it| {
        let path = it.active_primary().await;
        let answer = it.patch(&path, ORGANIZATION, endpoint(json!({ "pooler_enabled": true }))).await;
        joined(fields(&answer.body))
    }, same("endpoint operations");
    update_compute_attributes: "an update is sent the attributes to change, such as branch_id", async |it| {
        let path = it.active_primary().await;
        let before = it.listed(&path).await;
        it.patch(&path, ORGANIZATION, endpoint(json!({ "pooler_enabled": true, "passwordless_access": false }))).await;
        it.advance(5);
        let after = it.listed(&path).await;
        joined(fields(&before).into_iter().filter(|name| before[name] != after[name] && *name != "updated_at"))
    }, same("passwordless_access pooler_enabled");
    update_compute_type: "an update changes what it is sent, or is refused", async |it| {
        let path = it.active_primary().await;
        it.patch(&path, ORGANIZATION, endpoint(json!({ "type": "read_only" }))).await.status.to_string()
    }, contradicted("400", "200");
    update_compute_condition: "moving to a branch that already has a primary read-write compute is not allowed", async |it| {
        let path = it.compute(replica()).await;
        it.compute(json!({ "branch_id": "br-dev", "type": "read_write" })).await;
        it.advance(5);
        it.patch(&path, ORGANIZATION, endpoint(json!({ "branch_id": "br-dev" }))).await;
        it.listed(&path).await["branch_id"].to_string()
    }, contradicted("\"br-main\"", "\"br-dev\"");

    delete_compute: "DELETE returns endpoint (the deleted compute) and operations (an empty array)", async |it| {
        let path = it.active_primary().await;
        let answer = it.delete(&path, ORGANIZATION).await;
        format!("{} {}", path.ends_with(&answer.text_at("/endpoint/id")), shown(&answer))
    }, contradicted("true []", "true [suspend_compute running]");
    delete_compute_absent: "no DELETE succeeds without the deleted compute in its answer", async |it| {
        it.delete(&format!("{COMPUTES}/ep-never-was"), ORGANIZATION).await.status.to_string()
    }, contradicted("404", "204");

    restart_compute: "POST .../restart is sent nothing", async |it| {
        let path = it.active_primary().await;
        it.push(&format!("{path}/restart"), ORGANIZATION).await.status.to_string()
    }, same("200");

    gap_listing_keys: "listing API keys through the API: not shown", async |it| {
        joined([it.get(KEYS, ADMIN).await.status, it.get("/api_keys", ADMIN).await.status])
    }, added("200 200", "405 404");
    gap_revoking_keys: "revoking API keys through the API: not shown", async |it| {
        let id = it.project_key("ci").await.body["id"].clone();
        it.delete(&format!("{KEYS}/{id}"), ADMIN).await.status.to_string()
    }, added("200", "404");
    gap_other_keys: "creation of personal and organization API keys through the API: not shown", async |it| {
        let named = |name: &str| json!({ "key_name": name });
        joined([it.post("/api_keys", ADMIN, named("a")).await.status, it.post(KEYS, ADMIN, named("b")).await.status])
    }, added("200 200", "404 400");
    gap_attributes: "request body attributes of create and update other than branch_id and type: not shown", async |it| {
        let mut attributes = primary();
        attributes["suspend_timeout_seconds"] = 600.into();
        attributes["name"] = "orders".into();
        attributes["colour"] = "red".into();
        let answer = created(&it, attributes).await;
        joined(["suspend_timeout_seconds", "name", "colour"].map(|name| answer.body["endpoint"][name].to_string()))
    }, added("600 \"orders\" null", "null null null");
    gap_paging: "paging, filtering and other query parameters: not shown", async |it| {
        projects(&it.get("/projects?limit=1", ORGANIZATION).await)
    }, added("other-2", "other-2 shop-1");
    gap_other_calls: "other calls are not shown", async |it| {
        let path = it.active_primary().await;
        let mut seen = Vec::new();
        for path in [path.as_str(), "/projects/shop-1", "/projects/shop-1/branches", "/projects/shop-1/operations", "/auth"] {
            seen.push(it.get(path, ORGANIZATION).await.status);
        }
        joined(seen)
    }, added("200 200 200 200 200", "405 404 404 404 404");
}
