//! Scheduled rotations of keys.

use std::time::Duration;

use serde_json::{Value, json};

use crate::consumer::Consumer;
use crate::lab::{Lab, PROJECT, minutes};

const CREATE: &str = "POST /organizations/org-cool-darkness-1/api_keys 200";
const REVOKE: &str = "DELETE /organizations/org-cool-darkness-1/api_keys/";

async fn declare(lab: &Lab, rotation: &str) {
    lab.account().await;
    lab.apply(&format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {{name: ci}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  keyName: ci
  secret: {{name: ci-key}}
  rotation: {rotation}
"
    ))
    .await;
}

/// Advances the time in steps of five minutes. All consumers use their keys in each step.
async fn pass(lab: &Lab, consumers: &[&Consumer], steps: usize) {
    for _ in 0..steps {
        lab.passes(minutes(5)).await;
        for consumer in consumers {
            consumer.uses_it().await;
        }
    }
}

#[tokio::test]
async fn a_key_is_rotated_each_hour_and_no_consumer_is_ever_refused() {
    let lab = Lab::start().await;
    declare(&lab, "{every: 1h, overlap: 30m}").await;
    let mut key = lab.until_ready("projectkey/ci").await["status"]["keyID"].clone();
    let quick = Consumer::start(&lab, "ci-key", Duration::ZERO);
    let slow = Consumer::start(&lab, "ci-key", minutes(20));
    let consumers = [&quick, &slow];
    let mut previous: Option<Value> = None;
    for rotation in 1..=3 {
        // Half an hour has passed since the last rotation, and so has the overlap.
        pass(&lab, &consumers, if previous.is_some() { 5 } else { 11 }).await;
        let early = lab.is_decided("projectkey/ci").await;
        assert_eq!(
            (&early["status"]["keyID"], lab.count(CREATE)),
            (&key, rotation),
            "not before its time"
        );
        lab.passes(minutes(5)).await;
        let rotated = lab.until_replaced("projectkey/ci", &key).await;
        let new = rotated["status"]["keyID"].clone();
        assert_eq!(rotated["status"]["previousKeys"][0]["id"], key);
        assert_eq!(
            lab.count(CREATE),
            rotation + 1,
            "one creation for each rotation"
        );
        pass(&lab, &consumers, 5).await;
        lab.is_decided("projectkey/ci").await;
        lab.until_live(&[&key, &new]).await;
        assert_eq!(lab.count(REVOKE), rotation - 1, "not within the overlap");
        pass(&lab, &consumers, 1).await;
        lab.until_live(&[&new]).await;
        lab.until("projectkey/ci", "without predecessors", |seen| {
            seen["status"]["previousKeys"] == Value::Null
        })
        .await;
        assert_eq!(lab.count(REVOKE), rotation);
        previous = Some(std::mem::replace(&mut key, new));
    }
    assert_eq!(
        (quick.refusals(), slow.refusals()),
        (Vec::new(), Vec::new())
    );
    assert_eq!(json!(lab.refused()), 0);
    drop((quick, slow));
    lab.stop().await;
}
