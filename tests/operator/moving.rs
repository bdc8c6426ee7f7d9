//! Renames and moves: one resource is deleted with `deletion: Orphan`, and another one names its
//! compute. Keys are replaced by new ones.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::computes::writes;
use crate::creates::{id, reader};
use crate::fixture::{ADMIN, Fixture, PROJECT, account, compute, key};
use crate::support::Sandbox;

/// The new resource must get the compute this soon after the old one is gone.
const SOON: Duration = Duration::from_secs(10);
const CONNECTION: &str = "  connection: {secretName: orders-db}\n";

/// The account polls once an hour, so a fast reaction cannot come from a poll.
async fn fixture(name: &str) -> Fixture {
    let fixture = Fixture::bare(name).await;
    account_for(&fixture, &fixture).await;
    fixture
}

/// Another namespace with the same platform.
async fn in_another_namespace(first: &Fixture, name: &str) -> Fixture {
    let fixture = Fixture::bare(name).await;
    account_for(&fixture, first).await;
    fixture
}

async fn account_for(fixture: &Fixture, platform: &Fixture) {
    fixture.secret("platform-api-key", ADMIN).await;
    let polls_often = account("prod", &platform.platform.base_url(), "");
    fixture
        .apply(&polls_often.replace("pollInterval: 5s", "pollInterval: 1h"))
        .await;
}

async fn orphan(fixture: &Fixture, object: &str) {
    fixture.patch(object, json!({"deletion": "Orphan"})).await;
}

async fn waits(fixture: &Fixture, object: &str) -> Value {
    fixture
        .until_condition(object, "Stalled", "True", "ClaimedByAnother")
        .await
}

async fn until_soon_ready(fixture: &Fixture, object: &str) -> Value {
    match timeout(SOON, fixture.until_ready(object)).await {
        Ok(seen) => seen,
        Err(_) => panic!(
            "{object} is not ready in {SOON:?}: {:#}",
            fixture.get(object).await.unwrap_or_default()
        ),
    }
}

/// Checks that the platform got no changes after the creates.
async fn is_untouched(fixture: &Fixture, creates: usize) {
    let made = writes(fixture);
    assert!(
        made.len() == creates && made.iter().all(|request| request.starts_with("POST ")),
        "{made:?}"
    );
    assert_eq!(fixture.computes().await.len(), creates);
}

#[tokio::test]
async fn a_compute_is_renamed_in_either_order() {
    tokio::join!(
        renamed("renamed-new-first", true),
        renamed("renamed-old-first", false)
    );
}

async fn renamed(name: &str, new_first: bool) {
    let fixture = fixture(name).await;
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            &format!("  restartToken: one\n{CONNECTION}"),
        ))
        .await;
    let bound = id(&fixture.until_ready("compute/orders").await);
    let host = fixture.entry("orders-db", "host").await.unwrap();
    orphan(&fixture, "compute/orders").await;
    let more = format!("  computeID: {bound}\n  restartToken: two\n{CONNECTION}");
    let new = compute("orders-primary", "br-main-42", &more);
    if new_first {
        fixture.apply(&new).await;
        waits(&fixture, "compute/orders-primary").await;
        fixture.until_ready("compute/orders").await;
    }
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    if !new_first {
        fixture.apply(&new).await;
    }
    assert_eq!(
        id(&until_soon_ready(&fixture, "compute/orders-primary").await),
        bound
    );
    // Kubernetes deletes the Secret of the old resource, and dbplane writes that of the new one.
    let secret = fixture
        .until("secret/orders-db", "the new resource's", |seen| {
            seen["metadata"]["ownerReferences"][0]["name"] == "orders-primary"
                && seen["data"]["host"].is_string()
        })
        .await;
    assert_eq!(
        secret["metadata"]["ownerReferences"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(fixture.entry("orders-db", "host").await.unwrap(), host);
    is_untouched(&fixture, 1).await;
    fixture
        .patch("compute/orders-primary", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .until("compute/orders-primary", "of the declared size", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    assert_eq!(writes(&fixture).len(), 2, "{:?}", writes(&fixture));
}

#[tokio::test]
async fn the_connection_secret_of_the_old_resource_can_stay_until_nothing_uses_it() {
    let fixture = fixture("renamed-secret-kept").await;
    fixture
        .apply(&compute("orders", "br-main-42", CONNECTION))
        .await;
    let bound = id(&fixture.until_ready("compute/orders").await);
    orphan(&fixture, "compute/orders").await;
    fixture
        .wait_until("the Secret", async || {
            fixture.entry("orders-db", "host").await.is_some()
        })
        .await;
    garbage_collection_is_up_to_date(&fixture).await;
    fixture
        .kubectl(&["delete", "compute", "orders", "--cascade=orphan"])
        .await;
    let more = format!("  computeID: {bound}\n  connection: {{secretName: primary-db}}\n");
    fixture
        .apply(&compute("orders-primary", "br-main-42", &more))
        .await;
    assert_eq!(
        id(&until_soon_ready(&fixture, "compute/orders-primary").await),
        bound
    );
    fixture
        .wait_until("the new Secret", async || {
            fixture.entry("primary-db", "host").await.is_some()
        })
        .await;
    let old = fixture.get("secret/orders-db").await.unwrap();
    assert_eq!(
        old["metadata"]["ownerReferences"],
        Value::Null,
        "{}",
        old["metadata"]
    );
    assert_eq!(
        fixture.entry("orders-db", "host").await,
        fixture.entry("primary-db", "host").await
    );
    is_untouched(&fixture, 1).await;
}

/// The garbage collector keeps only dependents that it has observed. It observes objects of a kind
/// in order.
async fn garbage_collection_is_up_to_date(fixture: &Fixture) {
    let metadata = json!({"name": "heard"});
    fixture
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string())
        .await;
    let uid = fixture.get("configmap/heard").await.unwrap()["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "heard", "uid": uid});
    let metadata = json!({"name": "heard", "ownerReferences": [owner]});
    fixture
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}).to_string())
        .await;
    fixture.kubectl(&["delete", "configmap", "heard"]).await;
    fixture.until_gone("secret/heard").await;
}

/// The old binding takes precedence over the new resource's declared branch.
#[tokio::test]
async fn the_new_resource_keeps_the_compute_even_if_it_declares_another_branch() {
    let fixture = fixture("renamed-elsewhere").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let bound = id(&fixture.until_ready("compute/orders").await);
    orphan(&fixture, "compute/orders").await;
    let more = format!("  computeID: {bound}\n  management: Observe\n");
    fixture
        .apply(&compute("orders-primary", "br-dev-7", &more))
        .await;
    waits(&fixture, "compute/orders-primary").await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    assert_eq!(
        id(&until_soon_ready(&fixture, "compute/orders-primary").await),
        bound
    );
    is_untouched(&fixture, 1).await;
}

#[tokio::test]
async fn a_compute_moves_to_another_namespace_in_either_order() {
    tokio::join!(
        moved("moved-new-first", true),
        moved("moved-old-first", false)
    );
}

async fn moved(name: &str, new_first: bool) {
    let old = fixture(name).await;
    let new = in_another_namespace(&old, &format!("{name}-to")).await;
    old.apply(&reader("replica", "")).await;
    let bound = id(&old.until_ready("compute/replica").await);
    orphan(&old, "compute/replica").await;
    let manifest =
        reader("replica", &format!("  computeID: {bound}\n")).replace(PROJECT, &old.project);
    if new_first {
        new.apply(&manifest).await;
        waits(&new, "compute/replica").await;
    }
    old.delete("compute/replica").await;
    old.until_gone("compute/replica").await;
    if !new_first {
        new.apply(&manifest).await;
    }
    assert_eq!(id(&until_soon_ready(&new, "compute/replica").await), bound);
    is_untouched(&old, 1).await;
    new.delete("compute/replica").await;
    new.until_gone("compute/replica").await;
    assert_eq!(
        (old.count("DELETE"), old.computes().await.len()),
        (1, 0),
        "it is the new one's to delete"
    );
}

#[tokio::test]
async fn all_computes_move_to_another_namespace_by_an_import() {
    let old = fixture("moved-whole").await;
    let new = in_another_namespace(&old, "moved-whole-to").await;
    let names = ["orders", "reader-1", "reader-2"];
    let manifests = [
        compute(names[0], "br-main-42", ""),
        reader(names[1], ""),
        reader(names[2], ""),
    ];
    old.apply(&manifests.join("---\n")).await;
    let mut before = BTreeSet::new();
    for name in names {
        let object = format!("compute/{name}");
        before.insert(id(&old.until_ready(&object).await));
        orphan(&old, &object).await;
    }
    old.kubectl(&["delete", "computes", "--all"]).await;

    let sandbox = Sandbox::new("import").unwrap();
    let folder = sandbox.folder().join("computes");
    let folder = folder.to_str().unwrap();
    let flags =
        "import --account prod --allow-insecure-platform --management Full --deletion Delete --out";
    let import: Vec<&str> = flags.split_whitespace().chain([folder]).collect();
    new.dbplane(&import).await.expect(0, &["3 computes"]);
    new.kubectl(&["apply", "-k", folder]).await;
    // The import names resources after the platform's computes.
    let declared = new.kubectl(&["get", "computes", "-o", "name"]).await;
    let mut after = BTreeSet::new();
    for object in declared
        .lines()
        .map(|line| line.replace(".dbplane.dev", ""))
    {
        after.insert(id(&until_soon_ready(&new, &object).await));
    }
    assert_eq!(after, before);
    is_untouched(&old, names.len()).await;
}

#[tokio::test]
async fn a_key_moves_to_another_namespace_as_a_new_key() {
    let old = fixture("key-moved").await;
    let new = in_another_namespace(&old, "key-moved-to").await;
    old.apply(&key("ci", "")).await;
    old.until_ready("projectkey/ci").await;
    let before = old.entry("ci-key", "api-key").await.unwrap();
    new.apply(&key("ci", "").replace(PROJECT, &old.project))
        .await;
    new.until_ready("projectkey/ci").await;
    let after = new.entry("ci-key", "api-key").await.unwrap();
    // Both keys work, so clients can switch now.
    assert_eq!(
        (old.answer_to(&before).await, old.answer_to(&after).await),
        (200, 200)
    );
    old.delete("projectkey/ci").await;
    old.until_gone("projectkey/ci").await;
    assert_eq!(
        (old.answer_to(&before).await, old.answer_to(&after).await),
        (401, 200)
    );
    assert_eq!(
        (
            old.count("POST"),
            old.count("DELETE"),
            old.live_keys().await.len()
        ),
        (2, 1, 1)
    );
    new.until_ready("projectkey/ci").await;
}
