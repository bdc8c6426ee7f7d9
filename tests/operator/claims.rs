//! Ownership of branches and computes: the operator's records decide, not the order of
//! declarations.

use serde_json::{Value, json};

use crate::computes::message;
use crate::creates::id;
use crate::fixture::{ADMIN, Fixture, PROJECT, account, compute, world};

async fn other_namespace(name: &str) -> Fixture {
    Fixture::bare(&format!("{name}-evil")).await
}

/// A primary on a branch in another fixture's project.
fn primary(name: &str, of: &Fixture, more: &str) -> String {
    compute(name, "br-main-42", more).replace(PROJECT, &of.project)
}

async fn claimed(fixture: &Fixture, object: &str) -> String {
    let seen = fixture
        .until_condition(object, "Stalled", "True", "ClaimedByAnother")
        .await;
    message(&seen, "Stalled")
}

#[tokio::test]
async fn a_resource_without_a_usable_account_claims_no_branch() {
    let mine = Fixture::new("claims-no-account").await;
    let evil = other_namespace("claims-no-account").await;
    evil.apply(&primary("noacct", &mine, "")).await;
    evil.until_condition("compute/noacct", "Stalled", "True", "AccountNotFound")
        .await;
    // An account whose key is refused gives no claim either.
    evil.secret("platform-api-key", "not-a-key").await;
    evil.apply(&account("refused", &mine.platform.base_url(), ""))
        .await;
    evil.apply(&primary("refused", &mine, "").replace("name: prod", "name: refused"))
        .await;
    evil.until_condition("compute/refused", "Ready", "Unknown", "AccountNotReady")
        .await;
    mine.apply(&compute("orders", "br-main-42", "")).await;
    mine.until_ready("compute/orders").await;
    assert_eq!(mine.computes().await.len(), 1);
}

/// Both namespaces may use the project. The first recorded one gets the branch; the other one has
/// to wait.
#[tokio::test]
async fn of_two_namespaces_the_first_recorded_one_owns_the_branch() {
    let late = Fixture::bare("claims-late").await;
    let first = Fixture::bare("claims-first").await;
    late.apply(&compute("orders", "br-main-42", "")).await;
    late.until_condition("compute/orders", "Stalled", "True", "AccountNotFound")
        .await;
    first.secret("platform-api-key", ADMIN).await;
    first
        .apply(&account("prod", &late.platform.base_url(), ""))
        .await;
    first.apply(&primary("taken", &late, "")).await;
    let bound = id(&first.until_ready("compute/taken").await);
    late.account().await;
    let message = claimed(&late, "compute/orders").await;
    assert!(
        message
            .contains("A resource of another namespace already has the primary compute of branch"),
        "{message}"
    );
    assert!(
        !message.contains(&first.namespace) && !message.contains("taken"),
        "{message}"
    );
    assert!(
        late.shared
            .operator
            .log()
            .contains("holder=\"Compute claims-first/taken\""),
        "the log names it"
    );
    first.until_ready("compute/taken").await;
    first.delete("compute/taken").await;
    first.until_gone("compute/taken").await;
    assert_ne!(id(&late.until_ready("compute/orders").await), bound);
    assert_eq!((late.count("POST"), late.count("DELETE")), (2, 1));
}

/// A user's own server can return anything, including ids of computes on another platform.
#[tokio::test]
async fn a_binding_on_another_platform_claims_nothing_here() {
    // Ids derive from the seed, so both platforms have the same ones.
    let mine = Fixture::on("claims-platforms", |options| options.seed = 7).await;
    let evil = Fixture::on("claims-platforms-evil", |options| {
        (options.seed, options.world) = (7, world(&mine.project));
    });
    let evil = evil.await;
    evil.account().await;
    evil.apply(&primary("orders", &mine, "")).await;
    let taken = id(&evil.until_ready("compute/orders").await);
    mine.account().await;
    mine.apply(&compute("orders", "br-main-42", "")).await;
    let bound = id(&mine.until_ready("compute/orders").await);
    assert_eq!(bound, taken, "the same id on both");
    mine.patch("compute/orders", json!({"deletion": "Orphan"}))
        .await;
    mine.delete("compute/orders").await;
    mine.until_gone("compute/orders").await;
    mine.apply(&compute(
        "again",
        "br-main-42",
        &format!("  computeID: {bound}\n"),
    ))
    .await;
    assert_eq!(id(&mine.until_ready("compute/again").await), bound);
    evil.until_ready("compute/orders").await;
    assert_eq!((mine.count("POST"), evil.count("POST")), (1, 1));
}

/// A foreign finalizer keeps the object after its compute is deleted, but the branch must be free.
#[tokio::test]
async fn a_resource_that_only_another_finalizer_keeps_claims_nothing() {
    let fixture = Fixture::new("claims-released").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let first = id(&fixture.until_ready("compute/orders").await);
    fixture.apply(&compute("waiting", "br-main-42", "")).await;
    claimed(&fixture, "compute/waiting").await;
    let theirs = r#"[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/theirs"}]"#;
    fixture
        .kubectl(&["patch", "compute", "orders", "--type", "json", "-p", theirs])
        .await;
    fixture.delete("compute/orders").await;
    let only_theirs =
        |seen: &Value| seen["metadata"]["finalizers"] == json!(["example.com/theirs"]);
    fixture
        .until("compute/orders", "released", only_theirs)
        .await;
    let second = id(&fixture.until_ready("compute/waiting").await);
    assert_ne!(first, second);
    assert!(
        fixture
            .get("compute/orders")
            .await
            .is_some_and(|seen| only_theirs(&seen)),
        "it is still there"
    );
    assert_eq!(
        (
            fixture.count("POST"),
            fixture.count("DELETE"),
            fixture.computes().await.len()
        ),
        (2, 1, 1)
    );
    let none = r#"{"metadata":{"finalizers":null}}"#;
    fixture
        .kubectl(&["patch", "compute", "orders", "--type", "merge", "-p", none])
        .await;
    fixture.until_gone("compute/orders").await;
}
