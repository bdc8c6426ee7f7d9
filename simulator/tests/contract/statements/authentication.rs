//! Authentication, errors and versioning.

use super::*;

/// The status of a request with this Authorization header, or with none.
async fn status(platform: &Platform, header: Option<&str>) -> String {
    let request = platform
        .http
        .get(format!("{}/projects", platform.simulator.base_url()));
    let request = match header {
        Some(header) => request.header("authorization", header),
        None => request,
    };
    request.send().await.unwrap().status().as_u16().to_string()
}

statements! {
    authentication_1: "every request carries Authorization with Bearer followed by the API key", async |it| {
        let mut seen = Vec::new();
        for header in ["Bearer test-organization-key", "test-organization-key", "Basic dGVzdA==", "Token test-organization-key"] {
            seen.push(status(&it, Some(header)).await);
        }
        joined(seen)
    }, same("200 401 401 401");
    authentication_2: "a request without the header, or with an invalid or revoked key, fails with 401", async |it| {
        it.revoke("shop").await.expect(200);
        let mut seen = vec![status(&it, None).await];
        for token in ["no-such-key", SCOPED] {
            seen.push(it.get("/no/such/route", token).await.status.to_string());
        }
        joined(seen)
    }, same("401 401 401");
    authentication_3: "the first key must be created in the console, later keys can be created through the API", async |it| {
        let first = it.console(Method::POST, "/users/user-ada/api_keys", json!({ "key_name": "first" })).await.expect(201);
        it.post(KEYS, &first.text_at("/key"), for_shop("later")).await.status.to_string()
    }, same("200");
    authentication_4: "creation of an organization key requires a personal key of an organization administrator", async |it| {
        let mut seen = Vec::new();
        for (number, token) in [ADMIN, MEMBER, ORGANIZATION].into_iter().enumerate() {
            seen.push(it.post(KEYS, token, json!({ "key_name": number.to_string() })).await.status);
        }
        joined(seen)
    }, added("200 403 404", "400 403 403");
    authentication_5: "creation of a project-scoped key is done with a personal key through the organization endpoint", async |it| {
        joined([it.post(KEYS, ADMIN, for_shop("a")).await.status, it.post("/organizations/org-launch-2/api_keys", ADMIN, for_shop("b")).await.status])
    }, same("200 404");
    authentication_6_personal: "a personal key can be revoked only by the account owner", async |it| {
        let paths = ["/api_keys/1".to_owned(), format!("{KEYS}/1")];
        joined([
            it.delete(&paths[0], MEMBER).await.status, it.delete(&paths[1], ADMIN).await.status,
            it.delete(&paths[0], ADMIN).await.status, it.get("/projects/notes-5/endpoints", ADMIN).await.status,
        ])
    }, added("404 404 200 401", "404 404 404 200");
    authentication_6_organization: "organization keys and project-scoped keys can be revoked by organization administrators", async |it| {
        let path = format!("{KEYS}/{}", it.project_key("ci").await.body["id"]);
        joined([it.delete(&path, MEMBER).await.status, it.delete(&path, ORGANIZATION).await.status, it.delete(&path, ADMIN).await.status])
    }, added("403 404 200", "404 404 404");
    authentication_7: "a personal key gives the organization ID as org_id; where it is placed is not shown", async |it| {
        let query = format!("{COMPUTES}?org_id=org-scale-1");
        let made = it.post(&query, ADMIN, endpoint(primary())).await;
        it.advance(5);
        let path = format!("{COMPUTES}/{}", made.text_at("/endpoint/id"));
        let with = |path: String| format!("{path}?org_id=org-scale-1");
        joined([
            made.status, it.get(&query, ADMIN).await.status,
            it.push(&with(format!("{path}/restart")), ADMIN).await.status,
            { it.advance(5); it.patch(&with(path.clone()), ADMIN, endpoint(json!({ "pooler_enabled": true }))).await.status },
            { it.advance(5); it.delete(&with(path.clone()), ADMIN).await.status },
        ])
    }, same("201 200 200 200 200");
    authentication_7_changes: "a personal key changes nothing of an organization without its org_id", async |it| {
        let path = it.active_primary().await;
        joined([
            it.post(COMPUTES, ADMIN, endpoint(replica())).await.status,
            it.patch(&path, ADMIN, endpoint(json!({ "pooler_enabled": true }))).await.status,
            { it.advance(5); it.push(&format!("{path}/restart"), ADMIN).await.status },
            { it.advance(5); it.delete(&path, ADMIN).await.status },
        ])
    }, contradicted("404 404 404 404", "201 200 200 200");
    authentication_8: "the key secret is displayed once at console creation", async |it| {
        let made = it.console(Method::POST, "/organizations/org-scale-1/api_keys", json!({ "key_name": "shown" })).await.expect(201);
        let listed = it.console(Method::GET, "/api_keys", Value::Null).await;
        joined([listed.text.contains("shown"), listed.text.contains(&made.text_at("/key"))])
    }, same("true false");

    error_header_missing: "error: Authorization header missing, 401", async |it| status(&it, None).await, same("401");
    error_key_invalid: "error: API key invalid, 401", async |it| status(&it, Some("Bearer no-such-key")).await, same("401");
    error_key_revoked: "error: API key revoked, 401", async |it| {
        it.revoke("shop").await.expect(200);
        status(&it, Some("Bearer test-scoped-key")).await
    }, same("401");
    error_temporary_storage: "error: temporary storage full, SQLSTATE 53100, text ending in \"No space left on device\"", async |it| {
        let path = it.active_primary().await;
        let fill = format!("/computes/{}/fill_temporary_disk", path.rsplit_once('/').unwrap().1);
        let answer = it.console(Method::POST, &fill, Value::Null).await.expect(200);
        format!("{} {}", answer.text_at("/sqlstate"), answer.message().ends_with("No space left on device"))
    }, same("53100 true");
    error_bodies: "the shape of API error bodies: not shown", async |it| {
        joined(fields(&it.get("/projects/nowhere/endpoints", ORGANIZATION).await.expect(404).body))
    }, added("code message request_id", "message");

    versioning_1: "the API version is carried in the base address as the path segment v2", async |it| {
        let other = it.simulator.base_url().replace("/v2", "/v1");
        let answer = it.http.get(format!("{other}/projects")).bearer_auth(ORGANIZATION).send().await.unwrap();
        format!("{} {}", it.simulator.base_url().ends_with("/v2"), answer.status().as_u16())
    }, same("true 404");
}
