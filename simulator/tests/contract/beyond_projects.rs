//! Projects and branches beyond the specification.

use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn project_record_is_richer() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .get("/projects/shop-1", ORGANIZATION)
            .await
            .expect(200);
        let project = &answer.body["project"];
        assert_eq!(
            (&project["org_id"], &project["owner_id"]),
            (&json!("org-scale-1"), &json!("org-scale-1"))
        );
        for name in [
            "creation_source",
            "store_passwords",
            "default_endpoint_settings",
            "settings",
            "consumption_period_start",
        ] {
            assert!(project.get(name).is_some(), "{name}");
        }
        let personal = platform.get("/projects/notes-5", ADMIN).await.expect(200);
        assert_eq!(personal.body["project"].get("org_id"), None);
        assert_eq!(personal.text_at("/project/owner_id"), "user-ada");
    }
}

#[tokio::test]
async fn project_maintenance() {
    let maintenance = "maintenance_window: {weekdays: [1], start_time: '03:00', end_time: '04:00'}\n    \
                       maintenance_scheduled_for: 2026-02-07T07:00\n    region_id: aws-eu-central-1";
    let yaml = WORLD.replace("region_id: aws-eu-central-1", maintenance);
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    let answer = platform
        .get("/projects/shop-1", ORGANIZATION)
        .await
        .expect(200);
    assert_eq!(
        answer.text_at("/project/maintenance_scheduled_for"),
        "2026-02-07T07:00"
    );
    assert_eq!(
        answer.text_at("/project/settings/maintenance_window/start_time"),
        "03:00"
    );
}

#[tokio::test]
async fn projects_are_created_and_deleted() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let body =
            json!({ "project": { "name": "fresh", "org_id": "org-scale-1", "pg_version": 16 } });
        let created = platform.post("/projects", ADMIN, body).await.expect(201);
        let id = created.text_at("/project/id");
        assert_eq!(
            created.text_at("/endpoints/0/branch_id"),
            created.text_at("/branch/id")
        );
        assert_eq!(
            created.operations(),
            operations(&[("start_compute", "running")])
        );
        let path = format!("/projects/{id}");
        platform.get(&path, ORGANIZATION).await.expect(200);
        platform.delete(&path, LAUNCH).await.expect(404);
        platform.delete(&path, ORGANIZATION).await.expect(200);
        platform.get(&path, ORGANIZATION).await.expect(404);
        platform
            .post("/projects", ADMIN, json!({ "project": {} }))
            .await
            .expect(400);
        platform
            .post(
                "/projects",
                STRANGER,
                json!({ "project": { "org_id": "org-scale-1" } }),
            )
            .await
            .expect(404);
    }
}

#[tokio::test]
async fn projects_of_an_account_can_be_limited() {
    let yaml = WORLD.replace("settings:", "settings:\n  max_projects: 2");
    let platform = Platform::start_with(options(&yaml, Profile::Public)).await;
    let refused = platform
        .post("/projects", ORGANIZATION, json!({ "project": {} }))
        .await
        .expect(422);
    assert_eq!(refused.text_at("/code"), "PROJECTS_LIMIT_EXCEEDED");
    platform
        .post("/projects", LAUNCH, json!({ "project": {} }))
        .await
        .expect(201);
}

#[tokio::test]
async fn connection_uri() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let path = platform.active_primary().await;
        let host = platform.listed(&path).await["host"]
            .as_str()
            .unwrap()
            .to_owned();
        let query = "/projects/shop-1/connection_uri?database_name=app&role_name=owner";
        let uri = platform
            .get(query, ORGANIZATION)
            .await
            .expect(200)
            .text_at("/uri");
        assert!(uri.contains(&format!("@{host}/app")), "{uri}");
        let pooled = platform
            .get(&format!("{query}&pooled=true"), ORGANIZATION)
            .await
            .text_at("/uri");
        assert!(pooled.contains("-pooler."), "{pooled}");
        platform
            .get(&format!("{query}&branch_id=br-dev"), ORGANIZATION)
            .await
            .expect(404);
        platform
            .get("/projects/shop-1/connection_uri", ORGANIZATION)
            .await
            .expect(400);
        let in_capitals = platform
            .get(&format!("{query}&pooled=True"), ORGANIZATION)
            .await
            .text_at("/uri");
        assert_eq!(in_capitals, pooled);
    }
}

#[tokio::test]
async fn what_command_lines_ask_for_besides() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        assert_eq!(
            platform
                .get("/projects/shared", ADMIN)
                .await
                .expect(200)
                .body["projects"],
            json!([])
        );
        let databases = platform
            .get("/projects/shop-1/branches/br-main/databases", ORGANIZATION)
            .await
            .expect(200);
        let roles = platform
            .get("/projects/shop-1/branches/br-main/roles", ORGANIZATION)
            .await
            .expect(200);
        assert_eq!(
            databases.text_at("/databases/0/owner_name"),
            roles.text_at("/roles/0/name")
        );
        let password = "/projects/shop-1/branches/br-main/roles/app_owner/reveal_password";
        assert!(
            platform.get(password, ORGANIZATION).await.expect(200).body["password"].is_string()
        );
        let regions = platform.get("/regions", ADMIN).await.expect(200);
        assert!(regions.text.contains("aws-eu-central-1"));
    }
}

#[tokio::test]
async fn branches_are_created_and_deleted() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let body = json!({ "branch": { "name": "new" }, "endpoints": [{ "type": "read_write", "autoscaling_limit_max_cu": 2 }] });
        let created = platform
            .post("/projects/shop-1/branches", ORGANIZATION, body)
            .await
            .expect(201);
        assert_eq!(created.text_at("/branch/parent_id"), "br-main");
        assert_eq!(
            created.operations(),
            operations(&[("start_compute", "running")])
        );
        let id = created.text_at("/branch/id");
        assert_eq!(created.text_at("/endpoints/0/branch_id"), id);
        let refused = json!({ "endpoints": [{ "type": "read_only" }, { "type": "read_write", "autoscaling_limit_max_cu": 17 }] });
        platform
            .post("/projects/shop-1/branches", ORGANIZATION, refused)
            .await
            .expect(400);
        let branches = platform
            .get("/projects/shop-1/branches", ORGANIZATION)
            .await;
        assert_eq!(
            branches.body["branches"].as_array().unwrap().len(),
            4,
            "a refused branch leaves nothing behind"
        );
        let recorded = platform
            .get("/projects/shop-1/operations", ORGANIZATION)
            .await
            .operations();
        assert_eq!(
            recorded,
            operations(&[("start_compute", "running")]),
            "nor do its computes leave operations"
        );
        let gone = if profile == Profile::Public { 204 } else { 404 };
        for (branch, status) in [
            ("br-main", 422),
            ("br-kept", 422),
            (id.as_str(), 200),
            (id.as_str(), gone),
            ("br-dev", 200),
        ] {
            platform
                .delete(&format!("/projects/shop-1/branches/{branch}"), ORGANIZATION)
                .await
                .expect(status);
        }
        assert_eq!(
            platform
                .get("/projects/shop-1/endpoints", ORGANIZATION)
                .await
                .body,
            json!({ "endpoints": [] })
        );
    }
}

#[tokio::test]
async fn projects_are_renamed() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let answer = platform
            .patch(
                "/projects/shop-1",
                ORGANIZATION,
                json!({ "project": { "name": "store" } }),
            )
            .await
            .expect(200);
        assert_eq!(
            (answer.text_at("/project/name"), &answer.body["operations"]),
            ("store".to_owned(), &json!([]))
        );
    }
}

#[tokio::test]
async fn a_project_is_created_as_it_was_asked_for() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let body = json!({ "project": {
            "name": "fresh",
            "branch": { "name": "production", "database_name": "posts" },
            "default_endpoint_settings": { "autoscaling_limit_min_cu": 0.5, "autoscaling_limit_max_cu": 2 },
            "settings": { "hipaa": true, "quota": { "active_time_seconds": 10 }, "of_no_platform": 1 },
        } });
        let created = platform
            .post("/projects", ORGANIZATION, body)
            .await
            .expect(201);
        assert_eq!(created.text_at("/branch/name"), "production");
        let settings = json!({ "hipaa": true, "quota": { "active_time_seconds": 10 } });
        assert_eq!(created.body["project"]["settings"], settings);
        assert_eq!(
            created.body["project"]["default_endpoint_settings"]["autoscaling_limit_max_cu"],
            2
        );
        assert_eq!(
            created.body["endpoints"][0]["autoscaling_limit_min_cu"],
            0.5
        );
        assert_eq!(created.text_at("/databases/0/name"), "posts");
        assert_eq!(created.text_at("/roles/0/name"), "posts_owner");
        let host = created.text_at("/endpoints/0/host");
        assert_eq!(
            created.text_at("/connection_uris/0/connection_parameters/host"),
            host
        );
        let uri = created.text_at("/connection_uris/0/connection_uri");
        assert!(
            uri.starts_with("postgresql://posts_owner:")
                && uri.contains(&format!("@{host}/posts?")),
            "{uri}"
        );
        let nulls = json!({ "project": { "branch": null, "settings": null, "default_endpoint_settings": null } });
        platform
            .post("/projects", ORGANIZATION, nulls)
            .await
            .expect(201);
        let too_large = json!({ "project": { "default_endpoint_settings": { "autoscaling_limit_max_cu": 17.5 } } });
        platform
            .post("/projects", ORGANIZATION, too_large)
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn a_branch_comes_with_a_way_to_connect() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let with_compute = json!({ "endpoints": [{ "type": "read_write" }] });
        let created = platform
            .post("/projects/shop-1/branches", ORGANIZATION, with_compute)
            .await
            .expect(201);
        let uri = created.text_at("/connection_uris/0/connection_uri");
        assert!(uri.contains(&created.text_at("/endpoints/0/host")), "{uri}");
        assert_eq!(
            created.text_at("/roles/0/branch_id"),
            created.text_at("/branch/id")
        );
        let without = platform
            .post("/projects/shop-1/branches", ORGANIZATION, json!({}))
            .await
            .expect(201);
        assert_eq!(without.body["connection_uris"], json!([]));
    }
}

#[tokio::test]
async fn a_change_of_a_project_leaves_what_it_does_not_name() {
    for profile in BEYOND {
        let platform = Platform::start(profile).await;
        let change = async |attributes| {
            let body = json!({ "project": attributes });
            platform.patch("/projects/shop-1", ORGANIZATION, body).await
        };
        let sizes = json!({ "autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 4 });
        change(json!({ "default_endpoint_settings": sizes }))
            .await
            .expect(200);
        change(json!({ "settings": { "block_public_connections": true } }))
            .await
            .expect(200);
        let changed = change(json!({ "name": "store", "settings": { "hipaa": true } }))
            .await
            .expect(200);
        let project = &changed.body["project"];
        assert_eq!(
            project["settings"],
            json!({ "block_public_connections": true, "hipaa": true })
        );
        assert_eq!(
            project["default_endpoint_settings"]["autoscaling_limit_max_cu"],
            4
        );
        let compute = platform.compute(primary()).await;
        assert_eq!(
            platform.listed(&compute).await["autoscaling_limit_min_cu"],
            2
        );
        change(json!({ "default_endpoint_settings": { "suspend_timeout_seconds": 604_801 } }))
            .await
            .expect(400);
        change(json!({ "settings": { "maintenance_window": "now" } }))
            .await
            .expect(400);
    }
}

#[tokio::test]
async fn logical_replication_suspends_what_runs_and_stays() {
    let platform = Platform::public().await;
    let compute = platform.active_primary().await;
    let change = async |on: bool| {
        let body = json!({ "project": { "settings": { "enable_logical_replication": on } } });
        platform.patch("/projects/shop-1", ORGANIZATION, body).await
    };
    let enabled = change(true).await.expect(200);
    assert_eq!(
        enabled.operations(),
        operations(&[("suspend_compute", "running")])
    );
    platform.advance(5);
    assert_eq!(platform.states(&compute).await, state("idle", None));
    assert_eq!(change(true).await.expect(200).operations(), []);
    change(false).await.expect(400);
}
