//! Commands on ProjectKeys.

use reqwest::Method;
use serde_json::json;

use crate::fixture::{Fixture, key};
use crate::support::tokens;

const CREATES: &str = "/api_keys$";

#[tokio::test]
async fn a_key_is_rotated_and_no_key_is_shown() {
    let fixture = Fixture::new("cli-rotate").await;
    fixture
        .apply(&key("ci", "  rotation: {every: 720h, overlap: 24h}\n"))
        .await;
    let before = fixture.until_ready("projectkey/ci").await;
    let mut canaries = vec![fixture.entry("ci-key", "api-key").await.unwrap()];
    fixture
        .dbplane(&["rotate", "dbkey/ci"])
        .await
        .expect(0, &["projectkey/ci done: rotated: the key is ci-"]);
    let after = fixture
        .until_replaced("projectkey/ci", &before["status"]["keyID"])
        .await;
    canaries.push(fixture.entry("ci-key", "api-key").await.unwrap());
    assert_ne!(canaries[0], canaries[1]);

    let page = fixture
        .dbplane(&["status", "dbkey/ci", "-o", "json"])
        .await
        .expect(0, &[])
        .json();
    let next: Vec<&str> = page["next"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["what"].as_str().unwrap())
        .collect();
    let revoked = format!(
        "the replaced key {} is revoked",
        before["status"]["keyName"].as_str().unwrap()
    );
    assert_eq!(next, ["the key is replaced", &revoked]);
    assert_eq!(
        page["next"][1]["at"],
        after["status"]["previousKeys"][0]["revokeAt"]
    );
    assert_eq!(page["needs"], "well");
    for output in ["text", "wide", "json", "yaml"] {
        for target in [
            &["status"][..],
            &["status", "dbkey/ci"],
            &["status", "dbacct/prod"],
        ] {
            let ran = fixture
                .dbplane(&[target, &["-o", output]].concat())
                .await
                .expect(0, &[]);
            for canary in &canaries {
                assert_eq!(
                    tokens::found([("output", &ran.out), ("errors", &ran.err)], canary),
                    [""; 0]
                );
            }
        }
    }
}

#[tokio::test]
async fn manually_revoked_keys_are_dropped() {
    let fixture = Fixture::minimal("cli-revoked").await;
    fixture.fault(json!({"method": "POST", "path": CREATES, "kind": "lose_answer"}));
    fixture.apply(&key("ci", "")).await;
    let reported = fixture
        .until_condition("projectkey/ci", "Synced", "False", "RevocationUnsupported")
        .await;
    let lost = reported["status"]["lostKeys"][0]["name"].as_str().unwrap();
    let page = fixture.dbplane(&["status", "dbkey/ci"]).await;
    page.expect(
        0,
        &[
            "needs a person (RevocationUnsupported)",
            "dbplane revoked -n cli-revoked projectkey/ci --key",
            lost,
        ],
    );
    let unknown = fixture
        .dbplane(&["revoked", "dbkey/ci", "--key", "other", "--yes"])
        .await;
    unknown.expect(
        3,
        &[
            "other is no key of it that has to be revoked by hand; those are: ",
            lost,
        ],
    );
    fixture
        .dbplane(&["revoked", "dbkey/ci", "--key", lost])
        .await
        .expect(2, &["add --yes"]);
    assert!(fixture.get("projectkey/ci").await.unwrap()["status"]["lostKeys"].is_array());

    let live = fixture.live_keys().await;
    let id = &live.iter().find(|key| key["name"] == lost).unwrap()["id"];
    fixture
        .console(Method::POST, &format!("/api_keys/{id}/revoke"), json!({}))
        .await;
    let ran = fixture
        .dbplane(&["revoked", "dbkey/ci", "--key", lost, "--yes"])
        .await;
    ran.expect(
        0,
        &[&format!("projectkey/ci done: considered revoked: {lost}\n")],
    );
    fixture
        .until_condition("projectkey/ci", "Synced", "True", "InSync")
        .await;
    fixture
        .dbplane(&["revoked", "dbkey/ci", "--key", "all", "--yes"])
        .await
        .expect(3, &["no key of it has to be"]);
}

#[tokio::test]
async fn a_rotation_that_cannot_happen_now_is_refused_at_once() {
    let fixture = Fixture::new("cli-no-rotation").await;
    let often = "  rotation: {every: 720h, overlap: 24h}\n";
    fixture.apply(&key("ci", often)).await;
    fixture.until_ready("projectkey/ci").await;
    for _ in 0..3 {
        fixture
            .dbplane(&["rotate", "dbkey", "ci"])
            .await
            .expect(0, &[]);
    }
    let before = fixture.get("projectkey/ci").await.unwrap();
    let oldest = before["status"]["previousKeys"][0]["name"]
        .as_str()
        .unwrap();
    let help = format!("dbplane revoked -n cli-no-rotation projectkey/ci --key '{oldest}'");
    let refused = fixture.dbplane(&["rotate", "dbkey/ci"]).await;
    refused.expect(3, &["3 replaced keys are still valid", &help]);
    let after = fixture.get("projectkey/ci").await.unwrap();
    for place in ["/metadata/annotations/dbplane.dev~1rotate", "/status/keyID"] {
        assert!(before.pointer(place).is_some(), "{place}");
        assert_eq!(after.pointer(place), before.pointer(place));
    }
    // The advice works.
    let live = fixture.live_keys().await;
    let id = &live.iter().find(|key| key["name"] == oldest).unwrap()["id"];
    fixture
        .console(Method::POST, &format!("/api_keys/{id}/revoke"), json!({}))
        .await;
    let revoked = ["revoked", "projectkey/ci", "--key", oldest, "--yes"];
    fixture.dbplane(&revoked).await.expect(0, &[]);
    fixture
        .until("projectkey/ci", "one less", |seen| {
            seen["status"]["previousKeys"]
                .as_array()
                .is_some_and(|keys| keys.len() == 2)
        })
        .await;
    fixture
        .dbplane(&["rotate", "dbkey/ci"])
        .await
        .expect(0, &[]);
}
