//! Rotations on request, and the previous key as an entry in the Secret.

use dbplane::decide::names::{REVOKED_KEYS, ROTATE};
use serde_json::Value;

use crate::fixture::{Fixture, key_into};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";

#[tokio::test]
async fn a_key_is_replaced_on_request_and_the_previous_one_stays_in_the_secret_until_it_is_revoked()
{
    let fixture = Fixture::new("on-request").await;
    let secret = "{name: ci-key, key: token, previousKey: before, type: example.com/api-key,
    template: {organizationID: org-cool-darkness-1}}";
    fixture
        .apply(&key_into(
            "ci",
            secret,
            "  rotation: {every: 8760h, overlap: 24h}\n",
        ))
        .await;
    let first = fixture.until_ready("projectkey/ci").await;
    let (id, name) = (
        &first["status"]["keyID"],
        first["status"]["keyName"].as_str().unwrap(),
    );
    let token = fixture.entry("ci-key", "token").await.unwrap();
    assert_eq!(fixture.entry("ci-key", "before").await, None);
    assert_eq!(
        fixture.get("secret/ci-key").await.unwrap()["type"],
        "example.com/api-key"
    );

    fixture
        .annotate("projectkey/ci", &format!("{ROTATE}=one"))
        .await;
    let second = fixture.until_replaced("projectkey/ci", id).await;
    assert_eq!(
        (
            &second["status"]["previousKeys"][0]["id"],
            &second["status"]["lastHandledRotate"]
        ),
        (id, &"one".into())
    );
    assert!(second["status"]["previousKeys"][0]["revokeAt"].is_string());
    assert_eq!(
        fixture.entry("ci-key", "before").await.as_ref(),
        Some(&token)
    );
    let new = fixture.entry("ci-key", "token").await.unwrap();
    assert_eq!(
        (
            fixture.answer_to(&token).await,
            fixture.answer_to(&new).await
        ),
        (200, 200)
    );

    revoke_and_confirm(&fixture, id, name).await;
    assert_eq!(fixture.entry("ci-key", "token").await, Some(new));
    assert_eq!(
        fixture.entry("ci-key", "organizationID").await.as_deref(),
        Some("org-cool-darkness-1")
    );
    assert_eq!(fixture.count(CREATE), 2);
}

/// The user revokes a key, and confirms it by its name.
async fn revoke_and_confirm(fixture: &Fixture, id: &Value, name: &str) {
    fixture.revoke(id).await;
    fixture
        .annotate("projectkey/ci", &format!("{REVOKED_KEYS}={name}"))
        .await;
    fixture
        .until("projectkey/ci", "without predecessors", |seen| {
            seen["status"]["previousKeys"] == Value::Null
        })
        .await;
    fixture
        .wait_until("the key before to leave the Secret", async || {
            fixture.entry("ci-key", "before").await.is_none()
        })
        .await;
}
