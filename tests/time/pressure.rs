//! A platform that demands long pauses.

use serde_json::{Value, json};

use crate::lab::{Lab, PROJECT, minutes};

async fn replica(lab: &Lab, name: &str) {
    lab.apply(&format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: Compute
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectID: {PROJECT}
  branchID: br-main-42
  type: ReadOnly
"
    ))
    .await;
}

#[tokio::test]
async fn an_hour_of_refusals_causes_few_requests_and_everything_settles_afterwards() {
    let lab = Lab::start().await;
    lab.account().await;
    for name in ["one", "two", "three"] {
        replica(&lab, name).await;
        lab.until_ready(&format!("compute/{name}")).await;
    }
    lab.fault(json!({"status": 429, "times": 1_000_000}));
    let before = lab.requests().len();
    let later = ["four", "five", "six"];
    for name in later {
        replica(&lab, name).await;
    }
    lab.wait_until("the platform to refuse", async || {
        lab.requests().len() > before
    })
    .await;
    for _ in 0..60 {
        let asked = lab.requests().len();
        lab.passes(minutes(1)).await;
        lab.wait_until("the platform to be asked again", async || {
            lab.requests().len() > asked
        })
        .await;
    }
    let asked = lab.requests().len() - before;
    assert!(asked <= 240, "{asked} requests in an hour of refusals");
    let posts = lab.count("POST");
    let told = |object: &Value| {
        object["status"]["conditions"]
            .to_string()
            .contains("PlatformBusy")
    };
    lab.until("compute/four", "told why it waits", told).await;
    lab.platform.clear_faults();
    // The last requested pause is in effect.
    lab.passes(minutes(1)).await;
    for name in later {
        lab.until_ready(&format!("compute/{name}")).await;
    }
    assert_eq!(
        lab.count("POST"),
        posts + later.len(),
        "{}",
        lab.requests().join("\n")
    );
    lab.stop().await;
}
