//! ProjectKeys, end to end.

use crate::stage::{PROJECT, Stage};

fn key(name: &str, more: &str) -> String {
    format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ProjectKey
metadata: {{name: {name}}}
spec:
  accountRef: {{name: prod}}
  projectId: {PROJECT}
  keyName: {name}
  secret: {{name: {name}-key}}
{more}"
    )
}

#[tokio::test]
async fn a_key_is_minted_into_its_secret_and_revoked_with_it() {
    let stage = Stage::new("mint").await;
    stage.apply(&key("ci", "")).await;
    let ready = stage.until_ready("projectkey/ci").await;
    let secret = stage.get("secret/ci-key").await.unwrap();
    assert_eq!(secret["metadata"]["annotations"]["dbplane.dev/key-id"], ready["status"]["keyId"].to_string());
    assert!(secret["data"]["api-key"].as_str().is_some_and(|value| !value.is_empty()));
    stage.kubectl(&["delete", "projectkey", "ci", "--wait=false"]).await;
    stage.until_gone("projectkey/ci").await;
    let keys = stage.keys().await;
    let ours = keys.iter().find(|seen| seen["id"] == ready["status"]["keyId"]).unwrap();
    assert_eq!(ours["revoked"], true);
    stage.until_gone("secret/ci-key").await;
}
