//! Duplicate computes from a proxy that sends requests twice.

use serde_json::{Value, json};

use crate::lab::{Lab, PROJECT, minutes};

fn declared(name: &str, type_: &str, disabled: bool) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  branchID: br-main-42
  type: {type_}
  disabled: {disabled}
"
    )
}

fn synced(object: &Value) -> &str {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let synced = conditions.into_iter().find(|condition| condition["type"] == "Synced");
    synced.and_then(|synced| synced["reason"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn what_a_repeated_create_has_made_is_deleted_after_a_day_without_use() {
    let lab = Lab::start().await;
    lab.account().await;
    // An existing compute shows that the platform has names.
    lab.apply(&declared("orders", "ReadWrite", false)).await;
    lab.until_ready("compute/orders").await;
    lab.fault(json!({"method": "POST", "path": "/endpoints$", "kind": "repeat"}));
    // The compute must not start, as a started one would count as used.
    lab.apply(&declared("reader", "ReadOnly", true)).await;
    let named = lab.until("compute/reader", "named", |seen| synced(seen) == "StrayCompute").await;
    let own = named["status"]["computeID"].as_str().unwrap().to_owned();
    lab.apply(&declared("reader", "ReadOnly", false)).await;
    lab.wait_until("the compute to be enabled", async || lab.count("PATCH") == 1).await;
    lab.passes(minutes(5)).await;
    let used = format!("{}/computes/{own}/activity", lab.platform.console_url());
    let answer = reqwest::Client::new().post(used).json(&json!({})).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    lab.passes(minutes(23 * 60)).await;
    assert_eq!(synced(&lab.is_decided("compute/reader").await), "StrayCompute");
    assert_eq!(lab.count("DELETE"), 0);
    lab.passes(minutes(60)).await;
    lab.wait_until("the second compute to be deleted", async || lab.count("DELETE") == 1).await;
    assert_eq!(lab.count(&format!("DELETE /projects/{PROJECT}/endpoints/{own}")), 0);
    lab.until("compute/reader", "alone", |seen| synced(seen) == "InSync").await;
    assert_eq!((lab.count("DELETE"), lab.count("POST")), (1, 2));
    lab.stop().await;
}
