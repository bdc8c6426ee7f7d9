//! The API server rejects statuses regardless of their version.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::creates::reader;
use crate::fixture::{Fixture, condition, key};
use crate::support::objects;

/// The value that the policy rejects.
const UNWANTED: &str = "unwanted";

/// Rejects statuses of Computes in which this field matches. It is limited to this namespace, as
/// other tests share the cluster.
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
    fixture.annotate("compute/reported", &annotation).await;
}

/// Makes the API server reject statuses, and probes this with the Compute until the policy is
/// active.
async fn refuse(fixture: &Fixture, compute: &str, field: &str, unwanted: &str) {
    fixture
        .apply(&policy(fixture.namespace(), field, unwanted))
        .await;
    let computes = objects(fixture.client(), fixture.namespace(), "compute");
    let status = Patch::Merge(json!({"status": {field: UNWANTED}}));
    let tried = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let refused = async || {
        computes
            .patch_subresource("status", compute, &tried, &status)
            .await
            .is_err()
    };
    fixture.wait_until("the policy is in force", refused).await;
}

/// Rejects finalizers on objects of these kinds in this namespace.
fn no_finalizers(namespace: &str, resources: &str) -> String {
    policy(namespace, "unused", "unused")
        .replace("[computes/status]", resources)
        .replace("message: this text is not admitted", "message: finalizers are not admitted")
        .replace(
            "\"!has(object.status) || !has(object.status.unused) || !object.status.unused.matches('unused')\"",
            "\"!has(object.metadata.finalizers) || object.metadata.finalizers.size() == 0\"",
        )
}

/// Makes the API server reject finalizers, and probes this with an object until the policy is
/// active.
async fn refuse_finalizers(fixture: &Fixture, resources: &str) {
    // The account is not used yet, so it has no finalizer.
    let (kind, probe) = if resources == "[accounts]" {
        ("account", "prod")
    } else {
        ("compute", "probe")
    };
    if kind == "compute" {
        let paused = "{name: probe, annotations: {dbplane.dev/paused: 'true'}}";
        fixture
            .apply(&reader("probe", "").replace("{name: probe}", paused))
            .await;
    }
    fixture
        .apply(&no_finalizers(fixture.namespace(), resources))
        .await;
    let tried = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/try"]}}));
    let objects = objects(fixture.client(), fixture.namespace(), kind);
    let in_force = async || objects.patch(probe, &tried, &patch).await.is_err();
    fixture.wait_until("the policy is in force", in_force).await;
}

async fn the_object_reports_the_refused_finalizer(fixture: &Fixture, object: &str) {
    let reported = fixture
        .until_condition(object, "Stalled", "True", "RequestRefused")
        .await;
    let message = condition(&reported, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    let cause = format!(
        "because admission policy {} refuses what dbplane asks of the API server: the finalizer: ",
        fixture.namespace()
    );
    assert!(
        message.contains(&cause) && message.contains("finalizers are not admitted"),
        "{message}"
    );
    assert_eq!(
        reported["status"]["observedGeneration"],
        reported["metadata"]["generation"]
    );
    assert_eq!(fixture.event(object, "RequestRefused").await, message);
}

/// An object that cannot get its finalizer creates nothing, and its condition says which policy
/// rejects what.
#[tokio::test]
async fn a_refused_finalizer_is_reported_by_the_resource_itself() {
    for (namespace, resources, refused) in [
        (
            "refused-finalizer",
            "[computes, projectkeys]",
            &["compute/held", "projectkey/ci"][..],
        ),
        ("refused-account", "[accounts]", &["account/prod"][..]),
    ] {
        let fixture = Fixture::new(namespace).await;
        fixture.until_ready("account/prod").await;
        refuse_finalizers(&fixture, resources).await;
        fixture.apply(&reader("held", "")).await;
        fixture.apply(&key("ci", "")).await;
        for object in refused {
            the_object_reports_the_refused_finalizer(&fixture, object).await;
        }
        assert_eq!(fixture.count("POST"), 0, "{:?}", fixture.requests());
        let binding = format!("validatingadmissionpolicybinding/{namespace}");
        fixture.kubectl(&["delete", &binding]).await;
        for object in ["account/prod", "compute/held", "projectkey/ci"] {
            let is_ready = |seen: &Value| {
                condition(seen, "Ready").is_some_and(|it| it["status"] == "True")
                    && condition(seen, "Stalled").is_none()
            };
            fixture
                .until(object, "ready once the policy is gone", is_ready)
                .await;
        }
    }
}

/// All annotations together are limited to 256 KiB.
#[tokio::test]
async fn a_resource_without_space_for_the_copy_of_its_record_reports_that_and_works() {
    let fixture = Fixture::new("refused-copy").await;
    let computes = objects(fixture.client(), fixture.namespace(), "compute");
    let annotate = async |note: &str| {
        let manifest = json!({
            "apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute",
            "metadata": {"name": "full", "annotations": {"example.com/note": note}},
            "spec": {
                "accountRef": {"name": "prod"}, "projectID": fixture.project, "branchID": "br-main-42", "type": "ReadOnly",
            },
        });
        // Without kubectl, which would add a copy of all annotations.
        computes
            .patch(
                "full",
                &PatchParams::apply("people"),
                &Patch::Apply(&manifest),
            )
            .await
            .unwrap();
    };
    annotate(&"x".repeat((256 << 10) - 200)).await;
    let told = fixture
        .until_condition("compute/full", "RequestRefused", "True", "RequestRefused")
        .await;
    let message = condition(&told, "RequestRefused").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(
        message.contains("the annotation dbplane.dev/record") && message.contains("262144"),
        "{message}"
    );
    assert_eq!(
        fixture.event("compute/full", "RequestRefused").await,
        message
    );
    let ready = fixture
        .until_condition("compute/full", "Ready", "True", "Available")
        .await;
    assert!(
        condition(&ready, "RequestRefused").is_some() && condition(&ready, "Stalled").is_none(),
        "{ready}"
    );
    annotate("x").await;
    fixture.until_ready("compute/full").await;
    fixture
        .until("compute/full", "without the notice", |seen| {
            condition(seen, "RequestRefused").is_none()
        })
        .await;
}

/// The result of a create must be recorded even if the rest of the status is rejected.
#[tokio::test]
async fn a_create_is_recorded_although_its_status_is_refused() {
    let fixture = Fixture::new("refused-create").await;
    let paused = "metadata: {name: probe, annotations: {dbplane.dev/paused: 'true'}}";
    fixture
        .apply(&reader("probe", "").replace("metadata: {name: probe}", paused))
        .await;
    fixture
        .until_condition("compute/probe", "Paused", "True", "Paused")
        .await;
    refuse(&fixture, "probe", "host", ".*").await;
    fixture.apply(&reader("made", "")).await;
    let told = fixture
        .until_condition("compute/made", "Stalled", "True", "StatusRefused")
        .await;
    assert!(
        told["status"]["record"]
            .as_str()
            .is_some_and(|record| record.contains("binding")),
        "{told}"
    );
    assert_eq!(fixture.count("POST"), 1);
    fixture.delete("compute/made").await;
    fixture.until_gone("compute/made").await;
    assert_eq!(fixture.count("DELETE"), 1);
}

#[tokio::test]
async fn a_refused_status_is_followed_by_one_that_reports_the_refusal() {
    let fixture = Fixture::new("refused-status").await;
    fixture.apply(&reader("reported", "")).await;
    let before = fixture.until_ready("compute/reported").await;
    refuse(&fixture, "reported", "lastHandledReconcileAt", UNWANTED).await;

    request(&fixture, UNWANTED).await;
    let told = fixture
        .until_condition("compute/reported", "Stalled", "True", "StatusRefused")
        .await;
    let message = condition(&told, "Stalled").unwrap()["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("this text is not admitted"), "{message}");
    assert_eq!(
        fixture.event("compute/reported", "StatusRefused").await,
        message
    );
    assert_eq!(
        condition(&told, "Ready").unwrap()["status"],
        "True",
        "the compute can be used all the same"
    );
    assert!(told["status"]["record"].is_string());
    for field in ["record", "computeID", "host"] {
        assert_eq!(told["status"][field], before["status"][field], "{field}");
    }

    request(&fixture, "admitted").await;
    let handled = |seen: &Value| seen["status"]["lastHandledReconcileAt"] == "admitted";
    let over = |seen: &Value| handled(seen) && condition(seen, "Stalled").is_none();
    fixture
        .until("compute/reported", "its status is admitted again", over)
        .await;
}
