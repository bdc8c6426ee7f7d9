//! Argo CD's comparison, and its changes and replacements of resources.

use serde_json::{Value, json};

use super::{Application, annotated, everything_to_deploy, result};
use crate::fixture::{Fixture, compute, key};
use crate::gitops::{at_rest, changes, everything, writes};

#[tokio::test]
async fn comparisons_by_argo_cd_at_rest_change_nothing() {
    let fixture = Fixture::bare("argo-rest").await;
    let policy = json!({"syncPolicy": {"automated": {"prune": true, "selfHeal": true}}});
    let argo = Application::new(&fixture, &policy).await;
    let files = everything_to_deploy(&fixture);
    let revision = argo.commit(&files);
    let before = argo.until_is(&revision, "Synced", "Healthy").await;
    fixture
        .until("secret/orders-db", "written", |seen| {
            seen["data"]["uri"].is_string()
        })
        .await;
    let (objects, written, changed) = at_rest(&fixture).await;

    // Compares with the last applied manifest, and by a dry run on the API server.
    for compared in ["ServerSideDiff=false", "ServerSideDiff=true"] {
        argo.patch(
            &json!({"metadata": {"annotations": {"argocd.argoproj.io/compare-options": compared}}}),
        )
        .await;
        for how in ["normal", "hard", "hard"] {
            let seen = argo.refresh(how).await;
            assert_eq!(
                seen["status"]["sync"]["status"], "Synced",
                "{compared}, {how}: {seen}"
            );
            assert_eq!(
                seen["status"]["health"]["status"], "Healthy",
                "{compared}, {how}: {seen}"
            );
        }
    }
    // The same content under another revision must not change anything either.
    let next = argo.commit(&files);
    let after = argo.until_is(&next, "Synced", "Healthy").await;
    let synced = |seen: &Value| seen["status"]["history"].as_array().unwrap().len();
    assert_eq!((synced(&before), synced(&after)), (1, 1), "{after}");

    // This includes resourceVersion and generation.
    for (name, object) in everything(&fixture).await {
        assert_eq!(object, objects[&name], "{name}");
    }
    assert_eq!(writes(&fixture), written);
    assert_eq!(changes(&fixture), changed);
}

/// Tests every way to apply, with its own comparison.
#[tokio::test]
async fn with_every_way_to_apply_nothing_is_out_of_sync_or_created_twice() {
    let fixture = Fixture::new("argo-ways").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let sizes = ["0.5", "1", "2", "1"];
    let declared = |size: &str| {
        let more = format!("  size: {{fixed: {size}}}\n  connection: {{secretName: orders-db}}\n");
        [
            compute("orders", "br-main-42", &more),
            key("ci", "  rotation: {every: 720h, overlap: 24h}\n"),
        ]
    };
    let ways = [
        (json!([]), "false"),
        (json!(["Replace=true"]), "false"),
        (json!(["ServerSideApply=true"]), "true"),
        (json!(["Replace=true"]), "true"),
    ];
    let mut first = None;
    for (size, (options, server_side)) in sizes.into_iter().zip(ways) {
        let compared = format!("ServerSideDiff={server_side}");
        argo.patch(
            &json!({"metadata": {"annotations": {"argocd.argoproj.io/compare-options": compared}}}),
        )
        .await;
        let [orders, ci] = declared(size);
        let revision = argo.commit_one(&[&orders, &ci]);
        // The second sync finds no difference.
        for _ in 0..2 {
            argo.sync_until(&json!({"syncOptions": options}), "Succeeded")
                .await;
            argo.until_is(&revision, "Synced", "Healthy").await;
        }
        let compute = fixture.get("compute/orders").await.unwrap();
        assert_eq!(compute["status"]["size"], size, "{options}");
        let now = (
            compute["status"]["computeID"].clone(),
            fixture.live_keys().await[0]["id"].clone(),
        );
        assert_eq!(*first.get_or_insert(now.clone()), now, "{options}");
    }
    assert_eq!(
        fixture.count("POST"),
        2,
        "a compute and a key: {:?}",
        changes(&fixture)
    );
}

#[tokio::test]
async fn changes_by_others_are_reverted_and_additions_by_dbplane_stay() {
    let fixture = Fixture::new("argo-drift").await;
    let policy = json!({"syncPolicy": {"automated": {"selfHeal": true}}});
    let argo = Application::new(&fixture, &policy).await;
    let revision = argo.commit_one(&[&compute("orders", "br-main-42", "  size: {fixed: 1}\n")]);
    argo.until_is(&revision, "Synced", "Healthy").await;
    let before = fixture.get("compute/orders").await.unwrap();

    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    let back = |seen: &Value| seen["spec"] == before["spec"] && seen["metadata"]["generation"] == 3;
    fixture.until("compute/orders", "put back", back).await;
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["observedGeneration"] == 3
        })
        .await;
    fixture.until_ready("compute/orders").await;
    argo.until_is(&revision, "Synced", "Healthy").await;
    let after = fixture.get("compute/orders").await.unwrap();
    assert_eq!(
        after["metadata"]["finalizers"],
        json!(["dbplane.dev/finalizer"])
    );
    assert!(
        after["metadata"]["annotations"]["dbplane.dev/record"].is_string(),
        "{after}"
    );
    assert_eq!(after["status"]["computeID"], before["status"]["computeID"]);

    // Argo CD does not revert fields that are not in Git.
    fixture
        .annotate("compute/orders", "dbplane.dev/paused=true")
        .await;
    argo.until_is(&revision, "Synced", "Suspended").await;
    argo.refresh("hard").await;
    let paused = fixture.get("compute/orders").await.unwrap();
    assert_eq!(
        paused["metadata"]["annotations"]["dbplane.dev/paused"],
        "true"
    );
    assert_eq!(fixture.count("POST"), 1, "{:?}", changes(&fixture));
}

/// A replacement temporarily removes the annotations and the finalizer.
#[tokio::test]
async fn a_replaced_resource_keeps_its_compute_and_its_key() {
    let fixture = Fixture::new("argo-replaced").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let replaced =
        |manifest: &str| annotated(manifest, "argocd.argoproj.io/sync-options", "Replace=true");
    let reader = compute("reader", "br-main-42", "  deletionProtection: true\n")
        .replace("ReadWrite", "ReadOnly");
    let (reader, ci) = (replaced(&reader), replaced(&key("ci", "")));
    let revision = argo.commit_one(&[&reader, &ci]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&revision, "Synced", "Healthy").await;
    let names = ["compute/reader", "projectkey/ci", "secret/ci-key"];
    let mut before = Vec::new();
    for name in names {
        before.push(fixture.get(name).await.unwrap());
    }

    for _ in 0..3 {
        let synced = argo.sync_until(&json!({}), "Succeeded").await;
        assert!(result(&synced, "reader").contains("replaced"), "{synced}");
        argo.until_is(&revision, "Synced", "Healthy").await;
        for (name, before) in names.iter().zip(&before) {
            let complete = |seen: &Value| {
                ["finalizers", "annotations"]
                    .iter()
                    .all(|part| seen["metadata"][part] == before["metadata"][part])
            };
            let after = fixture.until(name, "complete again", complete).await;
            for field in [
                "/metadata/uid",
                "/status/computeID",
                "/status/keyID",
                "/data",
            ] {
                assert_eq!(after.pointer(field), before.pointer(field), "{name}");
            }
        }
    }
    assert_eq!(
        fixture.count("POST"),
        2,
        "a compute and a key: {:?}",
        changes(&fixture)
    );

    fixture
        .annotate("compute/reader", "dbplane.dev/paused=true")
        .await;
    argo.until_is(&revision, "Synced", "Suspended").await;
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&revision, "Synced", "Healthy").await;
}

/// Git changes an immutable field.
#[tokio::test]
async fn changes_of_immutable_fields_are_refused_and_force_deletes_before_it_creates() {
    let fixture = Fixture::new("argo-forced").await;
    let argo = Application::new(&fixture, &json!({})).await;
    let (kept, ci) = (compute("kept", "br-main-42", ""), key("ci", ""));
    let reader = compute("orders", "br-main-42", "").replace("ReadWrite", "ReadOnly");
    let first = argo.commit_one(&[&kept, &reader, &ci]);
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&first, "Synced", "Healthy").await;
    let before = uids(&fixture).await;

    let second = argo.commit_one(&[&kept, &compute("orders", "br-dev-7", ""), &ci]);
    for options in [
        json!([]),
        json!(["Replace=true"]),
        json!(["ServerSideApply=true"]),
    ] {
        let refused = argo
            .sync_until(&json!({"syncOptions": options}), "Failed")
            .await;
        assert!(
            result(&refused, "orders").contains("cannot be changed any more: create another"),
            "{options}: {refused}"
        );
    }
    assert_eq!(uids(&fixture).await, before);

    // Argo CD does not wait for the end of the deletion.
    let force = json!({"apply": {"force": true}});
    let failed = argo
        .sync_until(&json!({"syncStrategy": force}), "Failed")
        .await;
    assert_eq!(result(&failed, "orders"), "context deadline exceeded");
    fixture.until_gone("compute/orders").await;
    assert_eq!(fixture.on_the_platform().await, (1, 1));
    argo.sync_until(&json!({}), "Succeeded").await;
    argo.until_is(&second, "Synced", "Healthy").await;
    let after = uids(&fixture).await;
    assert_eq!(same(&before, &after), [true, false, true]);
    assert_eq!(fixture.on_the_platform().await, (2, 1));

    // With force and Replace=true together, a sync recreates even unchanged resources.
    argo.sync_until(
        &json!({"syncStrategy": force, "syncOptions": ["Replace=true"]}),
        "Succeeded",
    )
    .await;
    argo.until_is(&second, "Synced", "Healthy").await;
    assert_eq!(same(&after, &uids(&fixture).await), [false; 3]);
    assert_eq!(fixture.on_the_platform().await, (2, 1));
    assert_eq!(
        fixture.count("POST"),
        7,
        "three, one again, all again: {:?}",
        changes(&fixture)
    );
}

async fn uids(fixture: &Fixture) -> [Value; 3] {
    let uid = async |name| fixture.get(name).await.unwrap()["metadata"]["uid"].clone();
    [
        uid("compute/kept").await,
        uid("compute/orders").await,
        uid("projectkey/ci").await,
    ]
}

fn same(before: &[Value; 3], after: &[Value; 3]) -> [bool; 3] {
    [0, 1, 2].map(|place| before[place] == after[place])
}
