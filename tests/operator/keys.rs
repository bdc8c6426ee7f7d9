//! ProjectKeys end to end: creation, upkeep, replacement and revocation.

use serde_json::{Value, json};

use crate::fixture::{Fixture, condition, key, key_into};
use crate::support::aged;

impl Fixture {
    /// Waits until the resource is ready with a new key.
    pub async fn until_replaced(&self, object: &str, old: &Value) -> Value {
        self.until(object, "ready with another key", |seen| {
            let ready = condition(seen, "Ready").is_some_and(|ready| ready["status"] == "True");
            ready && seen["status"]["keyID"].is_i64() && seen["status"]["keyID"] != *old
        })
        .await
    }

    pub async fn until_revoked(&self, id: &Value) {
        self.wait_until(&format!("key {id} to be revoked"), async || {
            self.keys()
                .await
                .iter()
                .any(|key| key["id"] == *id && key["revoked"] == true)
        })
        .await;
    }
}

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys";

#[tokio::test]
async fn a_key_is_created_into_its_secret_and_revoked_with_it() {
    let fixture = Fixture::new("mint").await;
    let secret = "{name: ci-key, key: token, labels: {team: shop}, annotations: {example.com/note: hello},
    template: {.env: 'KEY={{ key }} ID={{keyID}} NAME={{ keyName }} PROJECT={{ projectID }} URL={{ baseURL }}'}}";
    fixture.apply(&key_into("ci", secret, "")).await;
    let ready = fixture.until_ready("projectkey/ci").await;
    let (id, name) = (
        &ready["status"]["keyID"],
        ready["status"]["keyName"].as_str().unwrap(),
    );
    assert!(name.starts_with("ci-"), "{name}");
    assert_eq!(ready["status"]["secretName"], "ci-key");
    assert_eq!(ready["status"]["observedGeneration"], 1);

    let secret = fixture.get("secret/ci-key").await.unwrap();
    let meta = &secret["metadata"];
    assert_eq!(
        meta["labels"],
        json!({"team": "shop", "app.kubernetes.io/managed-by": "dbplane"})
    );
    assert_eq!(meta["annotations"]["example.com/note"], "hello");
    assert_eq!(meta["annotations"]["dbplane.dev/key-id"], id.to_string());
    assert_eq!(meta["ownerReferences"][0]["uid"], ready["metadata"]["uid"]);
    assert_eq!(meta["ownerReferences"][0]["controller"], true);
    let token = fixture.entry("ci-key", "token").await.unwrap();
    let filled = format!(
        "KEY={token} ID={id} NAME={name} PROJECT={} URL={}",
        fixture.project,
        fixture.platform.base_url()
    );
    assert_eq!(fixture.entry("ci-key", ".env").await.unwrap(), filled);

    assert_eq!(fixture.answer_to(&token).await, 200);
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    assert_eq!(fixture.answer_to(&token).await, 401);
    assert!(fixture.live_keys().await.is_empty());
    fixture.until_gone("secret/ci-key").await;
    assert_eq!(fixture.count(CREATE), 1);
}

#[tokio::test]
async fn a_key_whose_secret_was_deleted_by_hand_is_replaced_and_reported() {
    let fixture = Fixture::new("secret-deleted").await;
    fixture.apply(&key("ci", "")).await;
    let old = fixture.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    fixture.kubectl(&["delete", "secret", "ci-key"]).await;
    let new = fixture.until_replaced("projectkey/ci", &old).await;
    let reported = fixture.event("projectkey/ci", "KeyReplaced").await;
    assert!(
        reported.contains("Secret ci-key was deleted or altered"),
        "{reported}"
    );
    fixture.until_revoked(&old).await;
    let live = fixture.live_keys().await;
    assert_eq!(
        live.iter().map(|key| &key["id"]).collect::<Vec<_>>(),
        [&new["status"]["keyID"]]
    );
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("ci-key", "api-key").await.unwrap())
            .await,
        200
    );
}

#[tokio::test]
async fn an_altered_key_is_replaced_and_foreign_entries_stay() {
    let fixture = Fixture::new("secret-altered").await;
    let secret = "{name: ci-key, labels: {team: shop}, template: {url: 'a-{{ keyID }}', other: b}}";
    fixture.apply(&key_into("ci", secret, "")).await;
    let first = fixture.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    let token = fixture.entry("ci-key", "api-key").await.unwrap();

    // Labels and entries of the spec change. The key and foreign fields stay; fields that are no
    // longer declared are removed.
    let patch = json!({"stringData": {"mine": "kept"}, "metadata": {"labels": {"mine": "kept"}}})
        .to_string();
    fixture
        .kubectl(&["patch", "secret", "ci-key", "--type", "merge", "-p", &patch])
        .await;
    let change =
        json!({"secret": {"labels": {"team": null, "tier": "web"}, "template": {"other": null}}});
    fixture.patch("projectkey/ci", change).await;
    let changed = fixture
        .until("secret/ci-key", "as declared", |seen| {
            seen["metadata"]["labels"]["tier"] == "web" && seen["data"]["other"].is_null()
        })
        .await;
    let labels = json!({"mine": "kept", "tier": "web", "app.kubernetes.io/managed-by": "dbplane"});
    assert_eq!(changed["metadata"]["labels"], labels);
    assert_eq!(fixture.entry("ci-key", "mine").await.unwrap(), "kept");
    assert_eq!(
        fixture.entry("ci-key", "url").await.unwrap(),
        format!("a-{first}")
    );
    assert_eq!(fixture.entry("ci-key", "api-key").await.unwrap(), token);
    assert_eq!(fixture.count(CREATE), 1);

    let patch = json!({"stringData": {"api-key": "something else"}}).to_string();
    fixture
        .kubectl(&["patch", "secret", "ci-key", "--type", "merge", "-p", &patch])
        .await;
    let second = fixture.until_replaced("projectkey/ci", &first).await;
    fixture.until_revoked(&first).await;
    assert_eq!(fixture.entry("ci-key", "mine").await.unwrap(), "kept");
    assert_eq!(
        fixture.entry("ci-key", "url").await.unwrap(),
        format!("a-{}", second["status"]["keyID"])
    );
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("ci-key", "api-key").await.unwrap())
            .await,
        200
    );
}

#[tokio::test]
async fn a_foreign_secret_is_never_written() {
    let fixture = Fixture::new("secret-foreign").await;
    fixture.secret("ci-key", "theirs").await;
    let before = fixture.get("secret/ci-key").await;
    fixture.apply(&key("ci", "")).await;
    fixture
        .until_condition("projectkey/ci", "Stalled", "True", "SecretNotOurs")
        .await;
    assert_eq!(fixture.get("secret/ci-key").await, before);
    assert_eq!(fixture.count(CREATE), 0);
    fixture.kubectl(&["delete", "secret", "ci-key"]).await;
    fixture.until_ready("projectkey/ci").await;
}

#[tokio::test]
async fn of_two_keys_for_one_secret_the_older_owns_it() {
    let fixture = Fixture::new("two-keys").await;
    fixture
        .apply(&key_into("zz-first", "{name: shared}", ""))
        .await;
    let first = fixture.until_ready("projectkey/zz-first").await;
    fixture
        .apply(&key_into("aa-second", "{name: shared}", ""))
        .await;
    let stalled = fixture
        .until_condition(
            "projectkey/aa-second",
            "Stalled",
            "True",
            "ClaimedByAnother",
        )
        .await;
    let message = condition(&stalled, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("ProjectKey zz-first"), "{message}");
    assert_eq!(fixture.count(CREATE), 1);
    let secret = fixture.get("secret/shared").await.unwrap();
    assert_eq!(
        secret["metadata"]["ownerReferences"][0]["uid"],
        first["metadata"]["uid"]
    );
    // After the older one is deleted, the other one gets the Secret.
    fixture.delete("projectkey/zz-first").await;
    fixture.until_ready("projectkey/aa-second").await;
}

#[tokio::test]
async fn a_key_that_was_revoked_in_the_console_is_recreated_or_reported() {
    let fixture = Fixture::new("key-revoked").await;
    fixture.apply(&key("again", "")).await;
    fixture
        .apply(&key("reporting", "  onRevoked: Report\n"))
        .await;
    let again = fixture.until_ready("projectkey/again").await["status"]["keyID"].clone();
    let reported = fixture.until_ready("projectkey/reporting").await["status"]["keyID"].clone();
    fixture.revoke(&again).await;
    fixture.revoke(&reported).await;
    let replaced = fixture.until_replaced("projectkey/again", &again).await;
    assert_eq!(replaced["status"]["previousKeys"], Value::Null);
    assert!(
        fixture
            .event("projectkey/again", "KeyReplaced")
            .await
            .contains("was revoked")
    );
    assert_eq!(
        fixture
            .answer_to(&fixture.entry("again-key", "api-key").await.unwrap())
            .await,
        200
    );
    let stalled = fixture
        .until_condition("projectkey/reporting", "Stalled", "True", "KeyRevoked")
        .await;
    assert_eq!(stalled["status"]["keyID"], reported);
    fixture.event("projectkey/reporting", "KeyRevoked").await;
    assert_eq!(fixture.count(CREATE), 3);
    fixture
        .patch("projectkey/reporting", json!({"onRevoked": "Recreate"}))
        .await;
    fixture
        .until_replaced("projectkey/reporting", &reported)
        .await;
}

/// Makes the current key `hours` older.
async fn age(fixture: &Fixture, object: &str, hours: i64) {
    let seen = fixture.get(object).await.unwrap();
    let aged = aged(&seen, jiff::SignedDuration::from_hours(hours)).unwrap();
    fixture
        .kubectl(&[
            "patch",
            object,
            "--subresource=status",
            "--type=merge",
            "-p",
            &aged.to_string(),
        ])
        .await;
}

#[tokio::test]
async fn a_key_that_is_due_is_rotated_and_its_predecessor_stays_for_the_overlap() {
    let fixture = Fixture::new("rotation").await;
    fixture
        .apply(&key("long", "  rotation: {every: 1h, overlap: 30m}\n"))
        .await;
    fixture
        .apply(&key("short", "  rotation: {every: 1h, overlap: 0s}\n"))
        .await;
    let long = fixture.until_ready("projectkey/long").await["status"]["keyID"].clone();
    let short = fixture.until_ready("projectkey/short").await["status"]["keyID"].clone();
    let token = fixture.entry("long-key", "api-key").await.unwrap();
    age(&fixture, "projectkey/long", 2).await;
    age(&fixture, "projectkey/short", 2).await;
    let rotated = fixture.until_replaced("projectkey/long", &long).await;
    assert_eq!(rotated["status"]["previousKeys"][0]["id"], long);
    assert!(rotated["status"]["rotatedAt"].is_string());
    assert_eq!(fixture.answer_to(&token).await, 200);
    assert_ne!(fixture.entry("long-key", "api-key").await.unwrap(), token);
    fixture.until_replaced("projectkey/short", &short).await;
    fixture.until_revoked(&short).await;
    fixture
        .until("projectkey/short", "without predecessors", |seen| {
            seen["status"]["previousKeys"].is_null()
        })
        .await;
    // The deletion also revokes the previous key.
    fixture.delete("projectkey/long").await;
    fixture.until_gone("projectkey/long").await;
    assert_eq!(fixture.answer_to(&token).await, 401);
}

#[tokio::test]
async fn orphan_leaves_the_key_valid() {
    let fixture = Fixture::new("orphan").await;
    fixture.apply(&key("ci", "  deletion: Orphan\n")).await;
    fixture.until_ready("projectkey/ci").await;
    let token = fixture.entry("ci-key", "api-key").await.unwrap();
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    assert_eq!(fixture.answer_to(&token).await, 200);
}
