//! Resources declared from a Terraform state: applying them must change nothing on the platform.

use std::fs;

use dbplane_simulator::Simulator;
use serde_json::{Map, Value, json};

use crate::import::{
    COMPUTES, KEY, ORGANIZATION, PROJECTS, import, is_planned, large_platform, last_request,
    until_all_are_ready, until_looked_at_again, was_only_read,
};
use crate::{Operator, account, cluster};

/// Attributes of a compute, in the names of the platform and of the two public providers.
const ATTRIBUTES: [(&str, [&str; 2]); 8] = [
    ("project_id", ["project_id", "project_id"]),
    ("branch_id", ["branch_id", "branch_id"]),
    ("type", ["type", "type"]),
    (
        "autoscaling_limit_min_cu",
        ["autoscaling_limit_min_cu", "min_cu"],
    ),
    (
        "autoscaling_limit_max_cu",
        ["autoscaling_limit_max_cu", "max_cu"],
    ),
    (
        "suspend_timeout_seconds",
        ["suspend_timeout_seconds", "suspend_timeout"],
    ),
    ("pooler_enabled", ["pooler_enabled", "pooler_enabled"]),
    ("disabled", ["disabled", "disabled"]),
];

/// The computes of a project in a provider's state.
async fn state(platform: &Simulator, project: &str, provider: usize) -> Value {
    let url = format!(
        "{}/projects/{project}/endpoints?org_id={ORGANIZATION}",
        platform.base_url()
    );
    let answer = reqwest::Client::new()
        .get(url)
        .bearer_auth(KEY)
        .send()
        .await
        .unwrap();
    let shown: Value = answer.json().await.unwrap();
    let instance = |compute: &Value| {
        let mut attributes = Map::from_iter([("id".to_owned(), compute["id"].clone())]);
        for (shown, names) in ATTRIBUTES {
            attributes.insert(names[provider].to_owned(), compute[shown].clone());
        }
        attributes.insert(
            "pg_settings".to_owned(),
            compute["settings"]["pg_settings"].clone(),
        );
        json!({"index_key": compute["id"], "schema_version": 0, "attributes": attributes, "sensitive_attributes": []})
    };
    let instances: Vec<Value> = shown["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(instance)
        .collect();
    json!({"version": 4, "resources": [
        {"mode": "managed", "type": "neon_endpoint", "name": "all", "instances": instances},
    ]})
}

#[tokio::test]
async fn applying_an_import_from_terraform_changes_nothing_on_the_platform() {
    let cluster = cluster().await;
    let platform = large_platform().await;
    let more = format!("  organizationID: {ORGANIZATION}\n  pollInterval: 5s\n");
    account(&cluster, "default", "prod", &platform.base_url(), &more).await;
    let before = last_request(&platform);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: String| folder.path().join(name).display().to_string();
    let projects = &PROJECTS[..2];
    for (provider, project) in projects.iter().enumerate() {
        let (file, out) = (path(format!("{project}.json")), path((*project).to_owned()));
        fs::write(&file, state(&platform, project, provider).await.to_string()).unwrap();
        let said = import(
            &cluster,
            &[
                "--from-terraform",
                &file,
                "--management",
                "Full",
                "--out",
                &out,
            ],
        )
        .await;
        assert!(
            said.contains("declared 125 computes of 1 project"),
            "{said}"
        );
        is_planned(&cluster, &["-f", &out], (2, "Plan: computes: 125 to link.")).await;
        cluster.kubectl(&["apply", "-k", &out]).await.unwrap();
    }
    let operator = Operator::start(&cluster, "operator", &[]);
    operator.until_ready().await;
    until_all_are_ready(&cluster, COMPUTES * projects.len()).await;
    // Differences would have been corrected by then.
    until_looked_at_again(&platform, projects).await;
    is_planned(&cluster, &[], (0, "Plan: nothing to do.")).await;
    was_only_read(&platform, before);
}
