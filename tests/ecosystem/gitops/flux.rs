//! Flux: the real kustomize-controller deploys from a source to a real control plane with the
//! operator.

use serde_json::{Value, json};

use super::kustomization::Flux;
use super::{at_rest, changes, everything, examples, writes};
use crate::fixture::{Fixture, compute, condition, key};

const FINALIZER: &str = "dbplane.dev/finalizer";

/// The manager name of Flux in managedFields.
const MANAGER: &str = "kustomize-controller";

/// Longer than the status poll of Flux (5 s) plus the operator's first reaction.
const SLOW_START: u32 = 15_000;

fn message(object: &Value, kind: &str) -> String {
    condition(object, kind).unwrap()["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}

#[tokio::test]
async fn a_kustomization_that_waits_is_ready_once_all_resources_can_be_used() {
    let fixture = Fixture::on("flux-waits", |platform| {
        platform.world.settings.start_ms = SLOW_START
    })
    .await;
    let flux = Flux::new(&fixture).await;
    let revision = flux.commit(&examples(&fixture)).await;
    flux.declare(&json!({"wait": true})).await;
    let names = [
        "account/prod",
        "compute/orders",
        "compute/orders-replica",
        "projectkey/ci",
    ];

    let waits = flux.until("waiting", |seen| {
        condition(seen, "Healthy").is_some_and(|it| it["status"] == "Unknown")
    });
    assert!(message(&waits.await, "Healthy").starts_with("Running health checks"));
    let orders = fixture
        .until("compute/orders", "starting", |seen| {
            condition(seen, "Reconciling").is_some()
        })
        .await;
    assert!(
        !is_ready(&orders) && !is_ready(&flux.get().await),
        "{orders}"
    );

    let ready = flux.until_ready(&revision).await;
    let since = condition(&ready, "Ready").unwrap()["lastTransitionTime"]
        .as_str()
        .unwrap();
    for name in names {
        let object = fixture.get(name).await.unwrap();
        assert!(
            is_ready(&object),
            "{name} when the Kustomization was ready: {object}"
        );
        let own = condition(&object, "Ready").unwrap()["lastTransitionTime"]
            .as_str()
            .unwrap();
        assert!(own <= since, "{name}: {own}, the Kustomization: {since}");
    }
    assert_eq!(
        fixture.count("POST"),
        3,
        "two computes and a key: {:?}",
        changes(&fixture)
    );
}

#[tokio::test]
async fn reconciliations_by_flux_at_rest_change_nothing() {
    let fixture = Fixture::bare("flux-rest").await;
    let flux = Flux::new(&fixture).await;
    let revision = flux.commit(&examples(&fixture)).await;
    flux.declare(&json!({"wait": true})).await;
    flux.until_ready(&revision).await;
    fixture
        .until("secret/orders-db", "written", |seen| {
            seen["data"]["uri"].is_string()
        })
        .await;
    let (objects, written, changed) = at_rest(&fixture).await;
    assert!(
        objects.contains_key("Secret/orders-db") && objects.contains_key("Secret/ci-platform-key")
    );

    for _ in 0..5 {
        flux.reconcile().await;
    }
    // The same content under another revision must not change anything either.
    let next = flux.commit(&examples(&fixture)).await;
    flux.until_ready(&next).await;

    // This includes resourceVersion and generation.
    for (name, object) in everything(&fixture).await {
        assert_eq!(object, objects[&name], "{name}");
    }
    assert_eq!(writes(&fixture), written);
    assert_eq!(changes(&fixture), changed);
    for (name, object) in &objects {
        field_managers_are_disjoint(name, object);
    }
}

/// Checks that the field managers are disjoint: Flux owns the fields in the repository, dbplane
/// those that it adds.
fn field_managers_are_disjoint(name: &str, object: &Value) {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let of = |manager: &str| {
        let fields = entries.iter().filter(|entry| entry["manager"] == manager);
        let mut paths: Vec<String> = fields
            .flat_map(|entry| leaves(&entry["fieldsV1"], ""))
            .collect();
        paths.sort();
        paths
    };
    let (flux, dbplane) = (of(MANAGER), of("dbplane"));
    let own = ["f:status", "f:finalizers", "f:dbplane.dev/"];
    let strays: Vec<_> = flux
        .iter()
        .filter(|path| own.iter().any(|part| path.contains(part)))
        .collect();
    assert_eq!(
        strays,
        Vec::<&String>::new(),
        "{name}: of Flux, {entries:?}"
    );
    let both: Vec<_> = dbplane.iter().filter(|path| flux.contains(path)).collect();
    assert_eq!(both, Vec::<&String>::new(), "{name}: {entries:?}");
    if object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"].is_string() {
        assert!(!flux.is_empty(), "{name}: {entries:?}");
    }
}

/// The paths of all leaf fields.
fn leaves(fields: &Value, path: &str) -> Vec<String> {
    let inner = fields
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != ".");
    let below: Vec<String> = inner
        .flat_map(|(name, more)| leaves(more, &format!("{path}/{name}")))
        .collect();
    if below.is_empty() {
        vec![path.to_owned()]
    } else {
        below
    }
}

#[tokio::test]
async fn changes_by_others_are_reverted_and_additions_by_dbplane_stay() {
    let fixture = Fixture::new("flux-drift").await;
    let flux = Flux::new(&fixture).await;
    let revision = flux
        .commit_one(&[&compute("orders", "br-main-42", "  size: {fixed: 1}\n")])
        .await;
    flux.declare(&json!({"wait": true, "targetNamespace": fixture.namespace()}))
        .await;
    flux.until_ready(&revision).await;
    let before = fixture.get("compute/orders").await.unwrap();

    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .until("compute/orders", "resized", |seen| {
            is_ready(seen) && seen["status"]["size"] != before["status"]["size"]
        })
        .await;
    flux.reconcile().await;
    let after = fixture.get("compute/orders").await.unwrap();
    assert_eq!(after["spec"], before["spec"]);
    for part in ["annotations", "finalizers"] {
        assert_eq!(after["metadata"][part], before["metadata"][part], "{part}");
    }
    assert_eq!(after["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(after["status"]["computeID"], before["status"]["computeID"]);
    assert_eq!(fixture.count("POST"), 1, "{:?}", changes(&fixture));
}

#[tokio::test]
async fn a_stalled_compute_fails_the_kustomization_at_once_until_git_is_mended() {
    let fixture = Fixture::new("flux-fails").await;
    let flux = Flux::new(&fixture).await;
    let ci = key("ci", "");
    let (wrong, right) = (
        compute("orders", "br-no-such-1", ""),
        compute("orders", "br-main-42", ""),
    );
    let revision = flux.commit_one(&[&wrong, &ci]).await;
    let check = |kind: &str, name: &str| json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": kind, "name": name, "namespace": fixture.namespace()});
    let checks = json!([check("Compute", "orders"), check("ProjectKey", "ci")]);
    // Much longer than the test: the check must fail because of the status, not of the timeout.
    let spec =
        json!({"healthChecks": checks, "timeout": "30m", "targetNamespace": fixture.namespace()});
    flux.declare(&spec).await;

    let failed = flux
        .until_reports(&revision, "False", "HealthCheckFailed")
        .await;
    let orders = fixture.get("compute/orders").await.unwrap();
    assert_eq!(
        condition(&orders, "Stalled").unwrap()["status"],
        "True",
        "{orders}"
    );
    let named = format!("Compute/{}/orders status: 'Failed'", fixture.namespace());
    assert!(message(&failed, "Ready").contains(&named), "{failed}");
    assert!(
        failed["status"]["lastAppliedRevision"].is_null(),
        "{failed}"
    );

    let mended = flux.commit_one(&[&right, &ci]).await;
    flux.until_ready(&mended).await;
    assert!(is_ready(&fixture.get("compute/orders").await.unwrap()));
    assert_eq!(
        fixture.on_the_platform().await,
        (1, 1),
        "{:?}",
        changes(&fixture)
    );
}

#[tokio::test]
async fn while_flux_is_suspended_dbplane_reconciles_and_a_paused_compute_fails_nothing() {
    let fixture = Fixture::new("flux-suspended").await;
    let flux = Flux::new(&fixture).await;
    let one = flux
        .commit_one(&[&compute("orders", "br-main-42", "  size: {fixed: 1}\n")])
        .await;
    flux.declare(&json!({"wait": true, "targetNamespace": fixture.namespace()}))
        .await;
    flux.until_ready(&one).await;
    let first = fixture.get("compute/orders").await.unwrap();

    flux.patch(&json!({"suspend": true})).await;
    flux.commit_one(&[&compute("orders", "br-main-42", "  size: {fixed: 2}\n")])
        .await;
    fixture
        .console(
            reqwest::Method::DELETE,
            &format!(
                "/computes/{}",
                first["status"]["computeID"].as_str().unwrap()
            ),
            json!({}),
        )
        .await;
    let another = |seen: &Value| {
        seen["status"]["computeID"] != first["status"]["computeID"] && is_ready(seen)
    };
    let second = fixture
        .until("compute/orders", "created again", another)
        .await;
    assert_eq!(
        second["spec"]["size"],
        json!({"fixed": 1}),
        "the revision waits"
    );

    flux.patch(&json!({"suspend": false})).await;
    let resized = |seen: &Value| seen["spec"]["size"] == json!({"fixed": 2}) && is_ready(seen);
    fixture
        .until("compute/orders", "as the revision says", resized)
        .await;
    flux.until("ready again", |seen| {
        is_ready(seen) && condition(seen, "Reconciling").is_none()
    })
    .await;

    flux_reverts_only_changes_by_kubectl(&fixture, &flux).await;
}

/// Changes by kubectl's default manager are reverted; changes by another manager stay.
async fn flux_reverts_only_changes_by_kubectl(fixture: &Fixture, flux: &Flux<'_>) {
    for (manager, stays) in [("kubectl-annotate", false), ("people", true)] {
        let manager = format!("--field-manager={manager}");
        fixture
            .kubectl(&[
                "annotate",
                "compute/orders",
                "dbplane.dev/paused=true",
                &manager,
            ])
            .await;
        fixture
            .until("compute/orders", "paused", |seen| {
                condition(seen, "Paused").is_some()
            })
            .await;
        let ready = flux.reconcile().await;
        assert!(is_ready(&ready), "{ready}");
        let compute = fixture.get("compute/orders").await.unwrap();
        assert_eq!(
            compute["metadata"]["annotations"]["dbplane.dev/paused"] == "true",
            stays,
            "{manager}: {compute}"
        );
    }
}

#[tokio::test]
async fn objects_removed_from_git_stay_until_the_platform_has_deleted_them() {
    let fixture = Fixture::new("flux-pruned").await;
    let flux = Flux::new(&fixture).await;
    let (kept, ci) = (compute("kept", "br-main-42", ""), key("ci", ""));
    let (gone, protected) = (
        compute("gone", "br-dev-7", ""),
        compute(
            "protected",
            "br-reporting-3",
            "  deletionProtection: true\n",
        ),
    );
    let all = flux.commit_one(&[&kept, &gone, &protected, &ci]).await;
    flux.declare(&json!({"wait": true, "targetNamespace": fixture.namespace()}))
        .await;
    flux.until_ready(&all).await;
    fixture.fault(json!({"method": "DELETE", "status": 503, "times": 1_000_000}));

    let fewer = flux.commit_one(&[&kept]).await;
    // Flux only waits for objects in Git.
    flux.until_ready(&fewer).await;
    for object in ["compute/gone", "projectkey/ci", "compute/protected"] {
        let seen = fixture.get(object).await.unwrap();
        assert!(seen["metadata"]["deletionTimestamp"].is_string(), "{seen}");
        assert_eq!(
            seen["metadata"]["finalizers"],
            json!([FINALIZER]),
            "{object}"
        );
    }
    assert_eq!(fixture.on_the_platform().await, (3, 1));

    fixture.platform.clear_faults();
    fixture.until_gone("compute/gone").await;
    fixture.until_gone("projectkey/ci").await;
    let waits = fixture
        .until_condition("compute/protected", "Stalled", "True", "DeletionProtected")
        .await;
    flux.reconcile().await;
    assert_eq!(fixture.on_the_platform().await, (2, 0));
    assert!(waits["status"]["computeID"].is_string());
    fixture
        .patch("compute/protected", json!({"deletionProtection": false}))
        .await;
    fixture.until_gone("compute/protected").await;
    assert!(is_ready(&fixture.get("compute/kept").await.unwrap()));
    assert_eq!(fixture.count("POST"), 4, "{:?}", changes(&fixture));
}

/// The objects in Git whose immutable fields change.
async fn forced_objects(fixture: &Fixture) -> Vec<Value> {
    let mut found = Vec::new();
    for name in ["compute/kept", "compute/orders", "projectkey/ci"] {
        found.push(fixture.get(name).await.unwrap());
    }
    found
}

/// True for each object that was not replaced.
fn same(before: &[Value], after: &[Value]) -> Vec<bool> {
    before
        .iter()
        .zip(after)
        .map(|(old, new)| old["metadata"]["uid"] == new["metadata"]["uid"])
        .collect()
}

/// Git changes an immutable field.
#[tokio::test]
async fn changes_of_immutable_fields_are_refused_and_with_force_replaced_once() {
    let fixture = Fixture::new("flux-forced").await;
    let flux = Flux::new(&fixture).await;
    let kept = compute("kept", "br-main-42", "");
    let reader = compute("orders", "br-main-42", "").replace("ReadWrite", "ReadOnly");
    let first = flux.commit_one(&[&kept, &reader, &key("ci", "")]).await;
    flux.declare(&json!({"wait": true, "targetNamespace": fixture.namespace()}))
        .await;
    flux.until_ready(&first).await;
    let before = forced_objects(&fixture).await;

    let renamed = key("ci", "").replace("keyName: ci", "keyName: deploy");
    let second = flux
        .commit_one(&[&kept, &compute("orders", "br-dev-7", ""), &renamed])
        .await;
    let refused = flux
        .until_reports(&second, "False", "ReconciliationFailed")
        .await;
    assert!(
        message(&refused, "Ready").contains("cannot be changed any more: create another"),
        "{refused}"
    );
    assert_eq!(same(&before, &forced_objects(&fixture).await), [true; 3]);

    flux.patch(&json!({"force": true})).await;
    flux.until_ready(&second).await;
    let after = forced_objects(&fixture).await;
    assert_eq!(same(&before, &after), [true, false, false]);
    let mut live: Vec<_> = fixture
        .computes()
        .await
        .iter()
        .map(|line| line["id"].clone())
        .collect();
    let mut bound = vec![
        after[0]["status"]["computeID"].clone(),
        after[1]["status"]["computeID"].clone(),
    ];
    live.sort_by_key(Value::to_string);
    bound.sort_by_key(Value::to_string);
    assert_eq!(live, bound);
    let keys = fixture.live_keys().await;
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["id"], after[2]["status"]["keyID"]);
    assert_eq!(
        fixture.count("POST"),
        5,
        "each of the two once more: {:?}",
        changes(&fixture)
    );
}

/// Flux treats every rejection by the API server as an immutable field.
#[tokio::test]
async fn force_deletes_for_an_invalid_manifest_too_unless_the_admission_policy_protects() {
    let fixture = Fixture::new("flux-mistaken").await;
    let file = crate::fixture::root().join("deploy/chart/deletion-protection.yaml");
    let policy = std::fs::read_to_string(file).unwrap();
    // Only the namespace of this test is protected.
    let here = format!(
        "matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {}}}}}}}",
        fixture.namespace()
    );
    let policy = format!("{policy}  {here}\n");
    fixture.shared.cluster.apply(&policy).await.unwrap();
    let flux = Flux::new(&fixture).await;
    let declared = |size: &str| {
        let (protected, plain) = (
            format!("  deletionProtection: true\n  size: {{fixed: {size}}}\n"),
            format!("  size: {{fixed: {size}}}\n"),
        );
        (
            compute("protected", "br-main-42", &protected),
            compute("plain", "br-dev-7", &plain),
        )
    };
    let (protected, plain) = declared("1");
    let first = flux.commit_one(&[&protected, &plain]).await;
    flux.declare(&json!({"wait": true, "force": true, "targetNamespace": fixture.namespace()}))
        .await;
    flux.until_ready(&first).await;
    let before = fixture.get("compute/protected").await.unwrap();

    let (protected_wrong, plain_wrong) = declared("17");
    let second = flux.commit_one(&[&protected_wrong, &plain]).await;
    let refused = flux
        .until_reports(&second, "False", "ReconciliationFailed")
        .await;
    assert!(
        message(&refused, "Ready")
            .contains("spec.deletionProtection keeps the compute of protected"),
        "{refused}"
    );
    let after = fixture.get("compute/protected").await.unwrap();
    assert!(
        after["metadata"]["deletionTimestamp"].is_null()
            && after["metadata"]["uid"] == before["metadata"]["uid"]
    );

    let third = flux.commit_one(&[&protected, &plain_wrong]).await;
    flux.until_reports(&third, "False", "ReconciliationFailed")
        .await;
    fixture.until_gone("compute/plain").await;
    fixture
        .wait_until("its compute to be deleted", async || {
            fixture.computes().await.len() == 1
        })
        .await;

    let mended = flux.commit_one(&[&protected, &plain]).await;
    flux.until_ready(&mended).await;
    assert_eq!(fixture.count("POST"), 3, "{:?}", changes(&fixture));
}
