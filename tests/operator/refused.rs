//! The API server refuses a status, whatever its version.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::creates::reader;
use crate::fixture::{Fixture, condition};
use crate::support::objects;

/// What the policy below does not admit.
const UNWANTED: &str = "unwanted";

/// Admits statuses of Computes that have this field with no such value. Of this namespace alone, as other tests share the cluster.
fn policy(namespace: &str, field: &str, unwanted: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {namespace}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {{apiGroups: [dbplane.dev], apiVersions: [v1alpha1], operations: [UPDATE], resources: [computes/status]}}
  validations:
    - expression: \"!has(object.status) || !has(object.status.{field}) || !object.status.{field}.matches('{unwanted}')\"
      message: this text is not admitted
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {namespace}}}
spec:
  policyName: {namespace}
  validationActions: [Deny]
  matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}}}
"
    )
}

async fn request(fixture: &Fixture, value: &str) {
    let annotation = format!("dbplane.dev/reconcile-requested-at={value}");
    fixture.kubectl(&["annotate", "--overwrite", "compute/reported", &annotation]).await;
}

/// Has the API server refuse statuses, which is tried with that Compute.
async fn refuse(fixture: &Fixture, compute: &str, field: &str, unwanted: &str) {
    fixture.apply(&policy(fixture.namespace(), field, unwanted)).await;
    let computes = objects(fixture.client(), fixture.namespace(), "compute");
    let status = Patch::Merge(json!({"status": {field: UNWANTED}}));
    let tried = PatchParams { dry_run: true, ..PatchParams::default() };
    let refused = async || computes.patch_subresource("status", compute, &tried, &status).await.is_err();
    fixture.wait_until("the policy is in force", refused).await;
}

/// What a create has made is recorded, whatever else of the status is refused.
#[tokio::test]
async fn a_create_is_recorded_although_the_status_that_tells_of_it_is_refused() {
    let fixture = Fixture::new("refused-create").await;
    let paused = "metadata: {name: probe, annotations: {dbplane.dev/paused: 'true'}}";
    fixture.apply(&reader("probe", "").replace("metadata: {name: probe}", paused)).await;
    fixture.until_condition("compute/probe", "Paused", "True", "Paused").await;
    refuse(&fixture, "probe", "host", ".*").await;
    fixture.apply(&reader("made", "")).await;
    let told = fixture.until_condition("compute/made", "Stalled", "True", "StatusRefused").await;
    assert!(told["status"]["record"].as_str().is_some_and(|record| record.contains("binding")), "{told}");
    assert_eq!(fixture.count("POST"), 1);
    fixture.kubectl(&["delete", "compute", "made", "--wait=false"]).await;
    fixture.until_gone("compute/made").await;
    assert_eq!(fixture.count("DELETE"), 1);
}

#[tokio::test]
async fn a_status_that_is_refused_is_followed_by_one_that_says_so() {
    let fixture = Fixture::new("refused-status").await;
    fixture.apply(&reader("reported", "")).await;
    let before = fixture.until_ready("compute/reported").await;
    refuse(&fixture, "reported", "lastHandledReconcileAt", UNWANTED).await;

    request(&fixture, UNWANTED).await;
    let told = fixture.until_condition("compute/reported", "Stalled", "True", "StatusRefused").await;
    let message = condition(&told, "Stalled").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("this text is not admitted"), "{message}");
    assert_eq!(fixture.event("compute/reported", "StatusRefused").await, message);
    assert_eq!(condition(&told, "Ready").unwrap()["status"], "True", "the compute can be used all the same");
    assert!(told["status"]["record"].is_string());
    for field in ["record", "computeID", "host"] {
        assert_eq!(told["status"][field], before["status"][field], "{field}");
    }

    request(&fixture, "admitted").await;
    let handled = |seen: &Value| seen["status"]["lastHandledReconcileAt"] == "admitted";
    let over = |seen: &Value| handled(seen) && condition(seen, "Stalled").is_none();
    fixture.until("compute/reported", "its status is admitted again", over).await;
}
