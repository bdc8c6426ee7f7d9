//! Keys that are revoked in the console.

use std::time::Duration;

use serde_json::json;

use crate::lab::{Lab, PROJECT};

const PROBE: &str = "GET /projects/aged-wind-123456/endpoints 401";

#[tokio::test]
async fn a_key_revoked_in_the_console_is_detected_within_a_minute() {
    let lab = Lab::start().await;
    lab.account().await;
    lab.apply(&format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {{name: ci}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  secret: {{name: ci-key}}
"
    ))
    .await;
    let key = lab.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    lab.passes(Duration::from_secs(60)).await;
    lab.is_decided("projectkey/ci").await;
    assert_eq!(lab.refused(), 0, "nobody asks a key that is listed");
    lab.revoke(&key).await;
    lab.passes(Duration::from_secs(60)).await;
    lab.until("projectkey/ci", "in doubt", |seen| {
        is_unverified(&seen["status"]["conditions"])
    })
    .await;
    assert!(
        lab.count(PROBE) >= 1,
        "the key itself was asked: {}",
        lab.requests().join("\n")
    );
    // Only lists have shown it before, so it counts as revoked after a minute of refusals.
    lab.passes(Duration::from_secs(60)).await;
    lab.until_replaced("projectkey/ci", &key).await;
    lab.stop().await;
}

fn is_unverified(conditions: &serde_json::Value) -> bool {
    let ready = conditions
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    ready.is_some_and(|ready| ready["reason"] == json!("KeyRevoked"))
}
