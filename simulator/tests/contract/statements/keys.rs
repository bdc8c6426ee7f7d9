//! Key types, and the states of a key.

use super::*;

async fn statuses(platform: &Platform, token: &str, paths: &[&str]) -> String {
    let mut seen = Vec::new();
    for path in paths {
        seen.push(platform.get(path, token).await.status);
    }
    joined(seen)
}

statements! {
    personal_own_projects: "a personal key reaches the account owner's personal projects", async |it| {
        statuses(&it, ADMIN, &["/projects/notes-5/endpoints"]).await
    }, same("200");
    personal_own_projects_in_the_list: "a personal key lists the account owner's personal projects", async |it| {
        projects(&it.get("/projects", ADMIN).await)
    }, contradicted("notes-5", "400");
    personal_other_people: "a personal key reaches no personal projects of others", async |it| {
        statuses(&it, MEMBER, &["/projects/notes-5/endpoints"]).await
    }, same("404");
    personal_organization: "a personal key reaches organization projects when the organization ID is given in the request", async |it| {
        statuses(&it, MEMBER, &["/projects/shop-1/endpoints?org_id=org-scale-1", "/projects/shop-1/endpoints", "/projects/shop-1/endpoints?org_id=org-launch-2"]).await
    }, contradicted("200 404 404", "200 200 200");
    personal_organization_in_the_list: "a personal key lists organization projects when the organization ID is given", async |it| {
        projects(&it.get("/projects?org_id=org-scale-1", ADMIN).await)
    }, contradicted("notes-5 other-2 shop-1", "other-2 shop-1");
    personal_access: "a personal key has the access of the account", async |it| {
        statuses(&it, STRANGER, &["/projects/shop-1/endpoints?org_id=org-scale-1", "/projects?org_id=org-scale-1"]).await
    }, same("404 404");
    organization_scope: "an organization key is for one organization and needs no org_id", async |it| {
        joined([projects(&it.get("/projects", ORGANIZATION).await), statuses(&it, ORGANIZATION, &["/projects/shop-1/endpoints", "/projects/rocket-3/endpoints"]).await])
    }, same("other-2 shop-1 200 404");
    organization_takes_org_id: "an organization key may say the organization all the same", async |it| {
        statuses(&it, ORGANIZATION, &["/projects?org_id=org-scale-1", "/projects/shop-1/endpoints?org_id=org-scale-1"]).await
    }, same("200 200");
    organization_not_personal: "an organization key cannot be used for personal projects", async |it| {
        statuses(&it, ORGANIZATION, &["/projects/notes-5/endpoints"]).await
    }, same("404");
    organization_access: "an organization key has full access to all projects of the organization", async |it| {
        let mut seen = Vec::new();
        for (project, branch) in [("shop-1", "br-dev"), ("other-2", "br-other")] {
            let path = format!("/projects/{project}/endpoints");
            let made = it.post(&path, ORGANIZATION, endpoint(json!({ "branch_id": branch, "type": "read_write" }))).await;
            it.advance(5);
            let deleted = it.delete(&format!("{path}/{}", made.text_at("/endpoint/id")), ORGANIZATION).await;
            seen.extend([made.status, deleted.status]);
        }
        joined(seen)
    }, same("201 200 201 200");
    scoped_one_project: "a project-scoped key is for one project and only that project", async |it| {
        statuses(&it, SCOPED, &["/projects/shop-1/endpoints", "/projects/other-2/endpoints", "/projects/notes-5/endpoints"]).await
    }, added("200 404 404", "200 403 403");
    scoped_list: "a project-scoped key lists its project", async |it| {
        projects(&it.get("/projects", SCOPED).await)
    }, contradicted("shop-1", "404");
    scoped_member: "a project-scoped key has member-level access", async |it| {
        it.post(COMPUTES, SCOPED, endpoint(primary())).await.status.to_string()
    }, same("201");
    scoped_no_organization: "a project-scoped key cannot perform organization actions", async |it| {
        it.post(KEYS, SCOPED, for_shop("more")).await.status.to_string()
    }, added("404", "403");
    scoped_creates_no_projects: "a project-scoped key cannot create projects", async |it| {
        it.post("/projects", SCOPED, json!({ "project": { "name": "new" } })).await.status.to_string()
    }, added("404", "405");
    scoped_deletes_no_projects: "a project-scoped key cannot delete projects", async |it| {
        joined([it.delete("/projects/shop-1", SCOPED).await.status, it.get(COMPUTES, ORGANIZATION).await.status])
    }, same("404 200");
    scoped_destroys_nothing: "a project-scoped key cannot do other destructive project operations", async |it| {
        it.delete("/projects/shop-1/branches/br-dev", SCOPED).await.status.to_string()
    }, contradicted("404", "200");
    scoped_transfer: "a project-scoped key loses access when its project is transferred out of the organization", async |it| {
        let transfer = json!({ "organization_id": "org-launch-2" });
        it.console(Method::POST, "/projects/shop-1/transfer", transfer).await.expect(200);
        joined([it.get(COMPUTES, SCOPED).await.status, it.get(COMPUTES, LAUNCH).await.status])
    }, added("404 200", "403 200");

    key_none_create: "key: (none), create, active; the secret is returned once", async |it| {
        let secret = it.project_key("ci").await.text_at("/key");
        let listed = it.console(Method::GET, "/api_keys", Value::Null).await;
        format!("{} {}", it.get(COMPUTES, &secret).await.status, listed.text.contains(&secret))
    }, same("200 false");
    key_none_create_same_name: "key: (none), create, active: whatever other keys are called, as the only condition is the creator", async |it| {
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(it.post(KEYS, ADMIN, for_shop("ci")).await.status);
        }
        joined(seen)
    }, contradicted("200 200", "200 409");
    key_none_create_long_name: "key: (none), create, active: however long its name is", async |it| {
        it.post(KEYS, ADMIN, for_shop(&"a".repeat(65))).await.status.to_string()
    }, contradicted("200", "400");
    key_active_revoke: "key: active, revoke, revoked; immediate and permanent, every later request returns 401", async |it| {
        let secret = it.project_key("ci").await.text_at("/key");
        it.revoke("ci").await.expect(200);
        let at_once = it.get(COMPUTES, &secret).await.status;
        it.advance(86_400 * 365);
        joined([at_once, it.get(COMPUTES, &secret).await.status, it.get("/projects", &secret).await.status])
    }, same("401 401 401");
    key_revoked_any: "key: revoked, any, revoked; a new key must be created", async |it| {
        let secret = it.project_key("ci").await.text_at("/key");
        it.revoke("ci").await.expect(200);
        it.revoke("ci").await.expect(200);
        let renewed = it.project_key("ci").await.text_at("/key");
        joined([it.get(COMPUTES, &secret).await.status, it.get(COMPUTES, &renewed).await.status])
    }, same("401 200");
    key_no_expiry: "keys have no expiry", async |it| {
        it.advance(86_400 * 365 * 20);
        it.get("/projects", ORGANIZATION).await.status.to_string()
    }, same("200");
}
