//! Bindings that are restored, edited, or claimed through another account.

use dbplane::decide::names;
use dbplane_simulator::{self as simulator, Options};
use serde_json::json;

use crate::computes::{by_hand, created, message, polls, writes};
use crate::creates::{BRANCH, id, reader};
use crate::fixture::{Fixture, compute, condition, listener, world};

#[tokio::test]
async fn a_namespace_that_is_restored_has_its_computes_again_and_creates_nothing() {
    let fixture = Fixture::new("restored").await;
    fixture.apply(&compute("orders", BRANCH, "")).await;
    fixture
        .apply(&format!(
            "{}---\n{}",
            reader("reader-1", ""),
            reader("reader-2", "")
        ))
        .await;
    let names = ["orders", "reader-1", "reader-2"];
    let mut before = Vec::new();
    for name in names {
        let seen = fixture.until_ready(&format!("compute/{name}")).await;
        before.push((id(&seen), seen));
    }
    for name in names {
        fixture
            .patch(&format!("compute/{name}"), json!({"deletion": "Orphan"}))
            .await;
    }
    fixture.delete("namespace/restored").await;
    fixture.until_gone("namespace/restored").await;
    fixture
        .shared
        .cluster
        .kubectl(&["create", "namespace", "restored"])
        .await
        .unwrap();
    for (_, backup) in &before {
        let metadata = &backup["metadata"];
        let metadata = json!({"name": metadata["name"], "annotations": metadata["annotations"], "finalizers": metadata["finalizers"]});
        let object = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": backup["spec"]});
        fixture.apply(&object.to_string()).await;
    }
    fixture.account().await;
    for ((bound, _), name) in before.iter().zip(names) {
        let seen = fixture.until_ready(&format!("compute/{name}")).await;
        assert_eq!(id(&seen), *bound, "{name}");
    }
    assert_eq!(
        (fixture.computes().await.len(), writes(&fixture).len()),
        (3, 3),
        "the three creates alone"
    );
}

#[tokio::test]
async fn an_edited_record_is_restored_and_ignored() {
    let (fixture, bound) = created("edited", "").await;
    let other = by_hand(&fixture, "br-dev-7", "read_write").await;
    let seen = fixture.get("compute/orders").await.unwrap();
    let record = seen["metadata"]["annotations"][names::RECORD]
        .as_str()
        .unwrap()
        .to_owned();
    for edited in [
        record.replace(&bound, &other),
        record.replace(&fixture.project, "quiet-sea-654321"),
    ] {
        assert_ne!(edited, record);
        let annotation = format!("{}={edited}", names::RECORD);
        fixture.annotate("compute/orders", &annotation).await;
        fixture
            .until("compute/orders", "restored", |seen| {
                seen["metadata"]["annotations"][names::RECORD] == record.as_str()
            })
            .await;
        assert_eq!(id(&fixture.until_ready("compute/orders").await), bound);
    }
    assert_eq!(writes(&fixture).len(), 1, "the create alone");
}

#[tokio::test]
async fn two_accounts_with_different_urls_of_one_platform_share_claims() {
    let fixture = Fixture::new("spelled").await;
    fixture.apply(&compute("first", BRANCH, "")).await;
    let first = id(&fixture.until_ready("compute/first").await);
    let other = format!(
        "{}/",
        fixture.platform.base_url().replace("127.0.0.1", "127.1")
    );
    fixture.account_named("other", &other).await;
    let through = |manifest: &str| manifest.replace("{name: prod}", "{name: other}");
    fixture
        .apply(&through(&compute("second", BRANCH, "  existing: Adopt\n")))
        .await;
    fixture
        .apply(&through(
            &reader("third", &format!("  computeID: {first}\n")).replace("ReadOnly", "ReadWrite"),
        ))
        .await;
    for name in ["second", "third"] {
        let object = format!("compute/{name}");
        let stalled = fixture
            .until_condition(&object, "Stalled", "True", "ClaimedByAnother")
            .await;
        assert!(
            message(&stalled, "Stalled").contains("spelled/first"),
            "{stalled}"
        );
    }
    // A Compute without its account keeps its binding.
    fixture
        .patch("compute/first", json!({"accountRef": {"name": "gone"}}))
        .await;
    fixture
        .until_condition("compute/first", "Stalled", "True", "AccountNotFound")
        .await;
    polls(&fixture, 2).await;
    for name in ["second", "third"] {
        fixture
            .until_condition(
                &format!("compute/{name}"),
                "Stalled",
                "True",
                "ClaimedByAnother",
            )
            .await;
    }
    assert_eq!(writes(&fixture).len(), 1, "the create alone");
}

#[tokio::test]
async fn an_account_of_another_platform_creates_nothing_again() {
    let (fixture, bound) = created("moved", "").await;
    let other = simulator::serve(listener(), Options::new(world(&fixture.project)))
        .await
        .unwrap();
    let requests = || {
        other
            .requests(0)
            .into_iter()
            .filter(|entry| entry.method != "GET")
            .count()
    };
    fixture.account_named("there", &other.base_url()).await;
    fixture.until_ready("account/there").await;
    fixture
        .patch("compute/orders", json!({"accountRef": {"name": "there"}}))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "BindingConflict")
        .await;
    let text = message(&stalled, "Stalled");
    assert!(
        text.contains(&bound)
            && text.contains(&fixture.platform.base_url())
            && text.contains(&other.base_url()),
        "{text}"
    );
    fixture.delete("compute/orders").await;
    fixture
        .until("compute/orders", "held", |seen| {
            seen["metadata"]["deletionTimestamp"].is_string()
                && condition(seen, "Stalled").is_some()
        })
        .await;
    assert_eq!((requests(), fixture.computes().await.len()), (0, 1));
    fixture
        .patch("compute/orders", json!({"accountRef": {"name": "prod"}}))
        .await;
    fixture.until_gone("compute/orders").await;
    assert_eq!((requests(), fixture.computes().await.len()), (0, 0));
    other.stop().await;
}
