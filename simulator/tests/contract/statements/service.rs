//! The behaviour of the service itself.

use super::*;

statements! {
    service_1: "the service exposes over HTTP the actions that the console also offers", async |it| {
        let form = json!({ "project_id": "shop-1", "branch_id": "br-main", "type": "read_write" });
        let made = it.console(Method::POST, "/computes", form).await.expect(201);
        it.advance(5);
        let path = format!("{COMPUTES}/{}", made.text_at("/id"));
        it.patch(&path, ORGANIZATION, endpoint(sized(1.0, 4.0))).await.expect(200);
        it.line(&path).await["size"].to_string()
    }, same("\"1 - 4 CU\"");
    service_2: "requests are authorised with an API key sent as a bearer token", async |it| {
        it.get(COMPUTES, ORGANIZATION).await.status.to_string()
    }, same("200");
    service_3: "three kinds of API key exist: personal, organization, and project-scoped", async |it| {
        let listed = it.console(Method::GET, "/api_keys", Value::Null).await;
        let mut kinds: Vec<String> = listed.body.as_array().unwrap().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        joined(kinds)
    }, same("organization personal project");
    service_4: "each branch may have one primary and any number of read replicas", async |it| {
        let mut seen = Vec::new();
        for attributes in [primary(), primary(), replica(), replica(), json!({ "branch_id": "br-dev", "type": "read_write" })] {
            seen.push(it.post(COMPUTES, ORGANIZATION, endpoint(attributes)).await.status);
        }
        joined(seen)
    }, same("201 409 201 201 201");
    service_5: "a compute has a size, an optional autoscaling range and a scale-to-zero setting", async |it| {
        let path = it.compute(primary()).await;
        let line = it.line(&path).await;
        joined(["capacity", "size", "suspend_timeout_seconds"].map(|name| kind(&line[name])))
    }, same("object string integer");
    service_6: "actions that change a compute create operation records, returned together with it", async |it| {
        let path = it.active_primary().await;
        outcome(&it.patch(&path, ORGANIZATION, endpoint(json!({ "pooler_enabled": true }))).await)
    }, same("200 [apply_config running]");
    service_6_idle: "actions that change an idle compute create operation records too", async |it| {
        let path = it.idle_primary().await;
        let answer = it.patch(&path, ORGANIZATION, endpoint(sized(2.0, 2.0))).await;
        it.advance(5);
        format!("{} {}", outcome(&answer), it.state(&path).await)
    }, contradicted("200 [apply_config running] idle", "200 [] idle");
    service_6_name: "actions that change a compute create operation records: a new name too, where computes have names", async |it| {
        let path = it.active_primary().await;
        outcome(&it.patch(&path, ORGANIZATION, endpoint(json!({ "name": "orders" }))).await)
    }, Expected { default: "200 [apply_config running]", public: "200 []", minimal: "200 []" };
    service_6_nothing: "what changes nothing creates no operation records", async |it| {
        let path = it.active_primary().await;
        outcome(&it.patch(&path, ORGANIZATION, endpoint(json!({}))).await)
    }, same("200 []");
    service_7: "creating and listing API keys is also possible in the console", async |it| {
        let form = json!({ "key_name": "made here", "project_id": "shop-1" });
        let made = it.console(Method::POST, "/organizations/org-scale-1/api_keys", form).await.expect(201);
        let listed = it.console(Method::GET, "/api_keys", Value::Null).await;
        joined([it.get(COMPUTES, &made.text_at("/key")).await.status == 200, listed.text.contains("made here")])
    }, same("true true");
}
