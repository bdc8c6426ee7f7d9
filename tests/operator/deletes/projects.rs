//! Projects that were deleted or transferred outside of dbplane, and the evidence for that.

use dbplane_simulator::world::Profile;
use reqwest::Method;
use serde_json::{Value, json};

use super::message;
use crate::fixture::{ADMIN, Fixture, compute, key};

/// Adds a second project to the organization.
async fn with_another(name: &str, profile: Profile) -> Fixture {
    let fixture = Fixture::on(name, |options| {
        options.profile = profile;
        options
            .world
            .projects
            .iter_mut()
            .filter(|it| it.id == "quiet-sea-777777")
            .for_each(|project| {
                project.owner = "org-cool-darkness-1".to_owned();
            });
    })
    .await;
    fixture.account().await;
    fixture
}

impl Fixture {
    async fn until_seen(&self) {
        let is_seen =
            |seen: &Value| seen["status"]["seenProjects"]["projects"] == json!([self.project]);
        self.until("account/prod", "told of the project", is_seen)
            .await;
    }

    async fn delete_project(&self) {
        let url = format!(
            "{}/projects/{}?org_id=org-cool-darkness-1",
            self.platform.base_url(),
            self.project
        );
        let answer = reqwest::Client::new()
            .delete(url)
            .bearer_auth(ADMIN)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
    }

    async fn transfer_project(&self) {
        let to = json!({"organization_id": "org-dry-frost-2"});
        self.console(
            Method::POST,
            &format!("/projects/{}/transfer", self.project),
            to,
        )
        .await;
    }
}

#[tokio::test]
async fn resources_of_a_deleted_project_are_released() {
    tokio::join!(
        a_compute_of_a_deleted_project(),
        resources_of_a_transferred_project_are_released(),
        the_only_project()
    );
}

async fn a_compute_of_a_deleted_project() {
    let fixture = with_another("project-deleted", Profile::Default).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let id = fixture.until_ready("compute/orders").await["status"]["computeID"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture.until_seen().await;
    fixture.delete_project().await;
    fixture
        .until_condition("compute/orders", "Ready", "False", "Refused")
        .await;
    fixture.delete("compute/orders").await;
    let told = fixture.event("compute/orders", "ProjectGone").await;
    assert!(
        [&fixture.project, &id, "transferred"]
            .iter()
            .all(|word| told.contains(*word)),
        "{told}"
    );
    fixture.until_gone("compute/orders").await;
    // Nothing uses the account any more.
    fixture.delete("account/prod").await;
    fixture.until_gone("account/prod").await;
}

/// The platform has no call to revoke keys, and the account's Secret is deleted too, which changes
/// its version.
async fn resources_of_a_transferred_project_are_released() {
    let fixture = with_another("project-left", Profile::Minimal).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("compute/orders").await;
    fixture.until_ready("projectkey/ci").await;
    fixture.until_seen().await;
    fixture.transfer_project().await;
    fixture
        .until_condition("compute/orders", "Ready", "False", "Refused")
        .await;
    fixture
        .kubectl(&[
            "delete",
            "--wait=false",
            "secret/platform-api-key",
            "compute/orders",
            "projectkey/ci",
        ])
        .await;
    for object in ["compute/orders", "projectkey/ci"] {
        assert!(
            fixture
                .event(object, "ProjectGone")
                .await
                .contains("transferred")
        );
        fixture.until_gone(object).await;
    }
    assert_eq!(
        fixture.computes().await.len(),
        1,
        "what was transferred is still there"
    );
    assert_eq!(fixture.count("DELETE"), 0, "{:?}", fixture.requests());
}

/// A list without any other project is no evidence.
async fn the_only_project() {
    let fixture = Fixture::new("project-only").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    fixture.until_seen().await;
    fixture.delete_project().await;
    fixture.delete("compute/orders").await;
    // Projects are listed once the deletion has taken the settle time.
    let lists = fixture.count("GET /projects");
    let listed = || {
        fixture
            .requests()
            .iter()
            .filter(|request| *request == "GET /projects")
            .count()
    };
    let before = listed();
    fixture
        .wait_until("the projects to be listed again", async || {
            listed() > before
        })
        .await;
    fixture
        .wait_until("more to be read in vain", async || {
            fixture.count("GET") >= lists + 5
        })
        .await;
    let still = fixture
        .get("compute/orders")
        .await
        .expect("a person decides");
    assert!(message(&still, "Stalled").contains("Orphan"), "{still}");
    fixture
        .patch("compute/orders", json!({"deletion": "Orphan"}))
        .await;
    fixture.until_gone("compute/orders").await;
}
