//! ClusterAccounts: the namespaces and the projects that they serve.

use serde_json::{Value, json};

use super::message;
use crate::fixture::{ADMIN, Fixture, PROJECT, SEVERAL_POLLS, compute, condition, key};

const BOTH: [&str; 2] = ["projectkey/ci", "compute/orders"];

async fn until_both_are_ready(fixture: &Fixture) {
    for object in BOTH {
        fixture.until_ready(object).await;
    }
}

async fn until_both_are_in_sync(fixture: &Fixture) {
    for object in BOTH {
        fixture
            .until_condition(object, "Synced", "True", "InSync")
            .await;
        fixture.until_ready(object).await;
    }
}

/// Both objects as reported with this reason.
async fn until_both_are_stalled(fixture: &Fixture, reason: &str) -> Vec<Value> {
    let mut reported = Vec::new();
    for object in BOTH {
        let seen = fixture
            .until_condition(object, "Stalled", "True", reason)
            .await;
        reported.push(seen);
    }
    reported
}

async fn label_namespace(fixture: &Fixture, label: &str) {
    fixture
        .kubectl(&["label", "namespace", fixture.namespace(), label])
        .await;
}

#[tokio::test]
async fn a_cluster_account_serves_the_namespaces_that_it_selects() {
    let fixture = Fixture::bare("cluster-account").await;
    fixture.secret("platform-api-key", ADMIN).await;
    fixture
        .cluster_account("company", "cluster-account", "")
        .await;
    for manifest in [key("ci", ""), compute("orders", "br-main-42", "")] {
        let through = manifest.replace("{name: prod}", "{name: company, kind: ClusterAccount}");
        fixture.apply(&through).await;
    }
    for denied in until_both_are_stalled(&fixture, "NamespaceNotAllowed").await {
        assert!(message(&denied, "Stalled").contains("ClusterAccount company"));
    }
    assert_eq!(fixture.count("POST"), 0);
    let allow = async |namespaces: Value| {
        fixture
            .patch("clusteraccount/company", json!({"namespaces": namespaces}))
            .await;
    };
    allow(json!({"names": ["cluster-account"]})).await;
    until_both_are_ready(&fixture).await;
    allow(json!({"names": [], "selector": {"matchLabels": {"db": "yes"}}})).await;
    until_both_are_stalled(&fixture, "NamespaceNotAllowed").await;
    label_namespace(&fixture, "db=yes").await;
    until_both_are_in_sync(&fixture).await;
    label_namespace(&fixture, "db-").await;
    until_both_are_stalled(&fixture, "NamespaceNotAllowed").await;
    assert_eq!(fixture.count("POST"), 2);
    // A resource of an account that no longer serves its namespace can still be orphaned.
    fixture
        .patch("projectkey/ci", json!({"deletion": "Orphan"}))
        .await;
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    label_namespace(&fixture, "db=yes").await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.delete("clusteraccount/company").await;
    fixture.until_gone("clusteraccount/company").await;
}

/// A second project that the administrator's key can access.
const OTHER_PROJECT: &str = "quiet-sea-777777";

/// Lists the projects that ClusterAccount `granted` serves.
async fn grant(fixture: &Fixture, projects: &[&str]) {
    let access = json!({"namespaces": {"names": ["granted"], "projects": projects}});
    fixture.patch("clusteraccount/granted", access).await;
}

/// The number of requests about the project of both objects.
fn requests_about_the_project(fixture: &Fixture) -> usize {
    fixture
        .requests()
        .into_iter()
        .filter(|request| request.contains(&fixture.project))
        .count()
}

#[tokio::test]
async fn a_cluster_account_serves_the_projects_that_it_lists() {
    let fixture = Fixture::bare("granted").await;
    fixture.secret("platform-api-key", ADMIN).await;
    let only = format!("  namespaces: {{names: [granted], projects: [{OTHER_PROJECT}]}}\n");
    fixture.cluster_account("granted", "granted", &only).await;
    let notes = compute("notes", "br-main-9", "").replace(PROJECT, OTHER_PROJECT);
    for manifest in [notes, compute("orders", "br-main-42", ""), key("ci", "")] {
        let through = manifest.replace("{name: prod}", "{name: granted, kind: ClusterAccount}");
        fixture.apply(&through).await;
    }
    fixture.until_ready("compute/notes").await;
    for refused in until_both_are_stalled(&fixture, "ProjectNotAllowed").await {
        for word in [
            "ClusterAccount granted",
            &fixture.project,
            "spec.namespaces.projects",
        ] {
            assert!(message(&refused, "Stalled").contains(word), "{refused}");
        }
    }
    nothing_is_planned_for_both(&fixture).await;
    no_request_is_about_the_project(&fixture).await;
    grant(&fixture, &[OTHER_PROJECT, &fixture.project]).await;
    until_both_are_ready(&fixture).await;
    grant(&fixture, &[OTHER_PROJECT]).await;
    until_both_are_stalled(&fixture, "ProjectNotAllowed").await;
    let before = requests_about_the_project(&fixture);
    tokio::time::sleep(SEVERAL_POLLS).await;
    assert_eq!(
        (
            requests_about_the_project(&fixture),
            fixture.count("POST"),
            fixture.computes().await.len()
        ),
        (before, 3, 2)
    );
    a_rejected_resource_is_orphaned_or_waits(&fixture).await;
    fixture.until_ready("compute/notes").await;
    fixture.delete("compute/notes").await;
    fixture.until_gone("compute/notes").await;
    fixture.delete("clusteraccount/granted").await;
    fixture.until_gone("clusteraccount/granted").await;
}

async fn nothing_is_planned_for_both(fixture: &Fixture) {
    let plan = fixture
        .dbplane(&["plan", "--allow-insecure-platform", "--output", "json"])
        .await
        .json();
    let of = |name: &str| {
        plan["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .unwrap()
    };
    for name in ["ci", "orders"] {
        assert_eq!(
            (&of(name)["steps"], &of(name)["waits"]["reason"]),
            (&json!([]), &json!("ProjectNotAllowed"))
        );
    }
}

/// The check of the credentials must not ask for the project either.
async fn no_request_is_about_the_project(fixture: &Fixture) {
    fixture
        .annotate(
            "clusteraccount/granted",
            "dbplane.dev/reconcile-requested-at=now",
        )
        .await;
    let is_checked = |seen: &Value| seen["status"]["lastHandledReconcileAt"] == "now";
    fixture
        .until("clusteraccount/granted", "to be checked again", is_checked)
        .await;
    assert_eq!(
        (requests_about_the_project(fixture), fixture.count("POST")),
        (0, 1)
    );
}

/// A rejected resource can be orphaned; otherwise its deletion waits for the project.
async fn a_rejected_resource_is_orphaned_or_waits(fixture: &Fixture) {
    fixture
        .patch("projectkey/ci", json!({"deletion": "Orphan"}))
        .await;
    fixture
        .kubectl(&["delete", "projectkey/ci", "compute/orders", "--wait=false"])
        .await;
    fixture.until_gone("projectkey/ci").await;
    let waits = |seen: &Value| {
        condition(seen, "Stalled").is_some_and(|_| message(seen, "Stalled").contains("Orphan"))
    };
    fixture
        .until("compute/orders", "to report how to orphan it", waits)
        .await;
    grant(fixture, &[OTHER_PROJECT, &fixture.project]).await;
    fixture.until_gone("compute/orders").await;
}
