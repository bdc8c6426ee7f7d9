//! The brake on mass deletion.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Alone, is_reported, message};
use crate::fixture::{ADMIN, Fixture, PROJECT, compute, key};
use crate::support::{PATIENCE, wait_for};

/// Waits until `count` of these objects need a confirmation, and returns them.
async fn waiting(fixture: &Fixture, objects: &[String], count: usize) -> Vec<String> {
    let mut left = Vec::new();
    let what = format!("{count} deletions to wait");
    let reported = wait_for(&what, PATIENCE, async || {
        left.clear();
        for object in objects {
            left.extend(fixture.get(object).await.map(|seen| (object.clone(), seen)));
        }
        let all = left
            .iter()
            .all(|(_, seen)| is_reported(seen, "DeletionPaused"));
        (all && left.len() == count)
            .then(|| left.iter().map(|(object, _)| object.clone()).collect())
    });
    reported
        .await
        .unwrap_or_else(|error| panic!("{error}: {left:#?}\n{:?}", fixture.requests()))
}

fn confirmation(until: Timestamp) -> String {
    format!("dbplane.dev/confirm-deletion={}", until.strftime("%FT%TZ"))
}

async fn confirm(fixture: &Fixture, object: &str) {
    fixture
        .annotate(object, &confirmation(Timestamp::now()))
        .await;
}

fn names_of(kind: &str, prefix: &str) -> Vec<String> {
    (1..=5)
        .map(|number| format!("{kind}/{prefix}-{number}"))
        .collect()
}

#[tokio::test]
async fn deletions_above_the_rate_wait_for_a_confirmation() {
    let mut alone = Alone::new(&["--log", "info,dbplane=debug", "--deletes-per-minute", "2"]).await;
    let (computes, keys) = tokio::join!(alone.fixture("braked"), alone.fixture("braked-keys"));
    tokio::join!(apply_computes(&computes), apply_keys(&keys));
    computes_wait(&mut alone, &computes).await;
    keys_wait(&alone, &keys).await;
}

async fn apply_computes(fixture: &Fixture) {
    for (number, branch) in (1..=5).zip([
        "br-main-42",
        "br-dev-7",
        "br-reporting-3",
        "br-main-42",
        "br-dev-7",
    ]) {
        let replica =
            compute(&format!("reader-{number}"), branch, "").replace("ReadWrite", "ReadOnly");
        fixture.apply(&replica).await;
    }
    for object in names_of("compute", "reader") {
        fixture.until_ready(&object).await;
    }
}

async fn apply_keys(fixture: &Fixture) {
    for number in 1..=5 {
        fixture.apply(&key(&format!("ci-{number}"), "")).await;
    }
    for object in names_of("projectkey", "ci") {
        fixture.until_ready(&object).await;
    }
}

/// The series of the resources whose deletion waits.
fn paused(fixture: &Fixture, kind: &str) -> String {
    let namespace = &fixture.namespace;
    format!(
        r#"dbplane_waiting_resources{{namespace="{namespace}",kind="{kind}",reason="DeletionPaused"}}"#
    )
}

async fn computes_wait(alone: &mut Alone, fixture: &Fixture) {
    annotate_with_invalid_confirmations(fixture).await;
    fixture.delete_all("computes").await;
    let reported = waiting(fixture, &names_of("compute", "reader"), 3).await;
    assert_eq!(fixture.count("DELETE"), 2);
    assert_eq!(alone.metric(&paused(fixture, "Compute")).await, Some(3));
    let deletes = format!(
        r#"dbplane_platform_deletes_total{{namespace="{}",kind="Compute"}}"#,
        fixture.namespace
    );
    assert_eq!(alone.metric(&deletes).await, Some(2));
    let before = fixture.get(&reported[0]).await.unwrap();
    let text = message(&before, "Stalled");
    assert!(
        text.contains("confirm-deletion=$(date -u +%FT%TZ)") && text.contains("Orphan"),
        "{text}"
    );
    assert_eq!(fixture.event(&reported[0], "DeletionPaused").await, text);

    computes_wait_after_a_restart(alone, fixture).await;
    assert_eq!(
        fixture.get(&reported[0]).await.unwrap(),
        before,
        "waiting writes nothing"
    );
    a_further_deletion_waits(fixture).await;
    confirmed_and_orphaned_computes_are_gone(alone, fixture, &reported).await;
}

/// A confirmation from an earlier deletion does not count, and neither does one far in the future.
async fn annotate_with_invalid_confirmations(fixture: &Fixture) {
    let hour = SignedDuration::from_hours(1);
    let year = SignedDuration::from_hours(24 * 365);
    fixture
        .kubectl(&[
            "annotate",
            "computes",
            "--all",
            &confirmation(Timestamp::now() - hour),
        ])
        .await;
    let ahead = confirmation(Timestamp::now() + year);
    fixture
        .kubectl(&[
            "annotate",
            "--overwrite",
            "computes/reader-1",
            "computes/reader-5",
            &ahead,
        ])
        .await;
}

/// A restart clears the count of recent deletions, but waiting objects must still wait.
async fn computes_wait_after_a_restart(alone: &mut Alone, fixture: &Fixture) {
    alone.kill();
    alone.start().await;
    fixture
        .wait_until("all objects to be reconciled again", async || {
            alone.metric(&paused(fixture, "Compute")).await == Some(3)
        })
        .await;
    assert_eq!(fixture.count("DELETE"), 2);
}

/// Other deletions in the namespace must not bypass the brake either.
async fn a_further_deletion_waits(fixture: &Fixture) {
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    fixture.delete("compute/orders").await;
    let next = fixture
        .until_condition("compute/orders", "Stalled", "True", "DeletionPaused")
        .await;
    assert!(
        message(&next, "Stalled")
            .contains("other deletions in namespace braked through the same account wait"),
        "{next}"
    );
}

async fn confirmed_and_orphaned_computes_are_gone(
    alone: &Alone,
    fixture: &Fixture,
    reported: &[String],
) {
    confirm(fixture, &reported[0]).await;
    fixture.until_gone(&reported[0]).await;
    assert_eq!(fixture.count("DELETE"), 3);
    fixture
        .patch(&reported[1], json!({"deletion": "Orphan"}))
        .await;
    fixture.until_gone(&reported[1]).await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (3, 3)
    );
    fixture
        .wait_until("two to wait", async || {
            alone.metric(&paused(fixture, "Compute")).await == Some(2)
        })
        .await;
    fixture
        .kubectl(&[
            "annotate",
            "--overwrite",
            "computes",
            "--all",
            &confirmation(Timestamp::now()),
        ])
        .await;
    fixture.until_gone(&reported[2]).await;
    fixture.until_gone("compute/orders").await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.computes().await.len()),
        (5, 1),
        "one was left on purpose"
    );
    fixture
        .wait_until("no deletion to wait", async || {
            alone.metric(&paused(fixture, "Compute")).await.is_none()
        })
        .await;
}

async fn keys_wait(alone: &Alone, fixture: &Fixture) {
    // Confirmed and orphaned objects did not count, so the window is empty.
    let objects = names_of("projectkey", "ci");
    let deleted: Vec<&str> = objects[..4].iter().map(String::as_str).collect();
    fixture
        .kubectl(&[&["delete", "--wait=false"], deleted.as_slice()].concat())
        .await;
    let reported = waiting(fixture, &objects[..4], 2).await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.live_keys().await.len()),
        (2, 3)
    );
    assert_eq!(alone.metric(&paused(fixture, "ProjectKey")).await, Some(2));
    // The replacement of a key must not be affected.
    let old = fixture.get(&objects[4]).await.unwrap()["status"]["keyID"].clone();
    fixture.kubectl(&["delete", "secret", "ci-5-key"]).await;
    fixture.until_replaced(&objects[4], &old).await;
    fixture.until_revoked(&old).await;
    let unconfirmed = fixture.dbplane(&["confirm-deletion", &reported[0]]).await;
    assert_eq!((unconfirmed.code, unconfirmed.out.as_str()), (2, ""));
    assert!(
        unconfirmed.err.contains("add --yes") && fixture.get(&reported[0]).await.is_some(),
        "{unconfirmed:?}"
    );
    let confirmed = fixture
        .dbplane(&["confirm-deletion", "--yes", &reported[0]])
        .await;
    assert_eq!(
        (confirmed.code, confirmed.out),
        (0, format!("{} done: deleted\n", reported[0])),
        "{}",
        confirmed.err
    );
    assert_eq!(fixture.get(&reported[0]).await, None);
    fixture
        .patch(&reported[1], json!({"deletion": "Orphan"}))
        .await;
    fixture.until_gone(&reported[1]).await;
    assert_eq!(
        (fixture.count("DELETE"), fixture.live_keys().await.len()),
        (4, 2)
    );
}

/// The limit is two per namespace, and eight for the account.
#[tokio::test]
async fn deletions_of_one_namespace_through_a_shared_account_pause_no_other() {
    let alone = Alone::new(&["--log", "info,dbplane=debug", "--deletes-per-minute", "2"]).await;
    let mut fixtures = Vec::new();
    for name in ["braked-a", "braked-b", "braked-c", "braked-d", "braked-e"] {
        fixtures.push(alone.bare(name).await);
    }
    let names = fixtures
        .iter()
        .map(|fixture| fixture.namespace.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let first = &fixtures[0];
    first.secret("platform-api-key", ADMIN).await;
    first
        .cluster_account(
            "everywhere",
            "braked-a",
            &format!("  namespaces: {{names: [{names}]}}\n"),
        )
        .await;
    for (fixture, count) in fixtures.iter().zip([5, 2, 2, 2, 1]) {
        for number in 1..=count {
            let key = key(&format!("ci-{number}"), "")
                .replace("{name: prod}", "{name: everywhere, kind: ClusterAccount}");
            fixture.apply(&key.replace(PROJECT, &first.project)).await;
        }
    }
    for (fixture, count) in fixtures.iter().zip([5, 2, 2, 2, 1]) {
        for number in 1..=count {
            fixture
                .until_ready(&format!("projectkey/ci-{number}"))
                .await;
        }
    }
    let objects = names_of("projectkey", "ci");
    first.delete_all("projectkeys").await;
    waiting(first, &objects, 3).await;
    for fixture in &fixtures[1..4] {
        fixture.delete_all("projectkeys").await;
        for object in &objects[..2] {
            fixture.until_gone(object).await;
        }
    }
    let last = &fixtures[4];
    last.delete(&objects[0]).await;
    last.until_condition(&objects[0], "Reconciling", "True", "DeletionSlowed")
        .await;
    last.until_gone(&objects[0]).await;
    assert_eq!(first.count("DELETE"), 2 + 3 * 2 + 1);
    waiting(first, &objects, 3).await;
}
