//! Accounts end to end: credentials, allowed users, and deletion.

mod cluster_accounts;

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use crate::fixture::{
    ADMIN, Fixture, ORGANIZATION_KEY, PROJECT, SEVERAL_POLLS, compute, condition, key,
};

const PERSONAL_KEYS: &str = "/users/user-ada/api_keys";

fn message<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind).unwrap()["message"]
        .as_str()
        .unwrap()
}

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

impl Fixture {
    /// Creates an API key in the console, and returns its token and id.
    async fn console_key(&self, path: &str, form: Value) -> (String, Value) {
        let made = self.console(reqwest::Method::POST, path, form).await;
        (made["key"].as_str().unwrap().to_owned(), made["id"].clone())
    }

    /// Asserts that the platform gets at most `allowed` requests during several polls.
    async fn stays_silent(&self, allowed: usize) {
        let before = self.requests().len();
        tokio::time::sleep(SEVERAL_POLLS).await;
        let new = self.requests().split_off(before);
        assert!(new.len() <= allowed, "{new:?}");
    }
}

#[tokio::test]
async fn an_account_reports_what_its_credentials_see() {
    let fixture = Fixture::new("account").await;
    let ready = fixture.until_ready("account/prod").await;
    assert!(
        ready["status"]["projectCount"].as_u64().unwrap() >= 1,
        "{ready}"
    );
    assert_eq!(ready["status"]["projects"][0], fixture.project);
    assert_eq!(ready["status"]["capabilities"]["keyListing"], true);
    // The checks only read.
    assert_eq!(fixture.count("GET"), fixture.requests().len());
    let minimal = Fixture::minimal("account-minimal").await;
    let ready = minimal.until_ready("account/prod").await;
    assert_eq!(ready["status"]["capabilities"]["keyListing"], false);
    assert_eq!(minimal.count("GET"), minimal.requests().len());
}

#[tokio::test]
async fn a_project_scoped_key_is_enough_for_computes() {
    let scoped = async |fixture: &Fixture| {
        let form = json!({"key_name": "scoped", "project_id": fixture.project});
        let (token, _) = fixture
            .console_key("/organizations/org-cool-darkness-1/api_keys", form)
            .await;
        fixture.account_with(&token).await;
        fixture.until_ready("account/prod").await
    };
    let fixture = Fixture::bare("scoped-default").await;
    assert_eq!(
        scoped(&fixture).await["status"]["projects"],
        json!([fixture.project])
    );
    // The public API refuses the list of projects to such a key.
    let fixture = Fixture::on("scoped", |options| options.profile = Profile::Public).await;
    let ready = scoped(&fixture).await;
    assert_eq!(ready["status"]["projectCount"], Value::Null);
    assert!(message(&ready, "Ready").contains("may not list projects"));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    // A resource with an inaccessible project must not affect the others.
    fixture
        .apply(&compute("astray", "br-main-1", "").replace(PROJECT, "aaaa-other-000000"))
        .await;
    fixture
        .until("compute/astray", "reported", |seen| {
            condition(seen, "Ready").is_some()
        })
        .await;
    fixture.until_ready("account/prod").await;
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn an_organization_key_is_enough_for_computes() {
    let fixture = Fixture::bare("organization").await;
    fixture.account_with(ORGANIZATION_KEY).await;
    let ready = fixture.until_ready("account/prod").await;
    assert_eq!(ready["status"]["projects"], json!([fixture.project]));
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn a_refused_key_stops_all_calls_until_its_secret_changes() {
    let fixture = Fixture::bare("account-refused").await;
    let (token, id) = fixture
        .console_key(PERSONAL_KEYS, json!({"key_name": "first"}))
        .await;
    fixture.account_with(&token).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("compute/orders").await;
    fixture.until_ready("projectkey/ci").await;
    fixture.revoke(&id).await;
    let refused = fixture
        .until_condition("account/prod", "Stalled", "True", "Unauthorized")
        .await;
    assert!(message(&refused, "Stalled").contains("Put a valid API key into entry "));
    for dependent in ["compute/orders", "projectkey/ci"] {
        let reported = fixture
            .until_condition(dependent, "Ready", "Unknown", "AccountNotReady")
            .await;
        assert!(message(&reported, "Ready").contains("401"), "{reported}");
    }
    // Only the one slow request may still be repeated.
    fixture.stays_silent(1).await;
    let creations = fixture.count("POST");
    let (token, _) = fixture
        .console_key(PERSONAL_KEYS, json!({"key_name": "second"}))
        .await;
    fixture.secret("platform-api-key", &token).await;
    for object in ["account/prod", "compute/orders", "projectkey/ci"] {
        fixture.until_ready(object).await;
    }
    assert_eq!(fixture.count("POST"), creations);
}

#[tokio::test]
async fn a_missing_secret_is_reported_and_used_as_soon_as_it_exists() {
    let fixture = Fixture::new("missing").await;
    fixture.until_ready("account/prod").await;
    fixture
        .kubectl(&["delete", "secret", "platform-api-key"])
        .await;
    let missing = fixture
        .until_condition("account/prod", "Stalled", "True", "CredentialsMissing")
        .await;
    assert!(
        message(&missing, "Stalled").contains("Secret missing/platform-api-key does not exist")
    );
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    let reported = fixture
        .until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady")
        .await;
    assert!(
        message(&reported, "Ready").contains("platform-api-key"),
        "{reported}"
    );
    fixture.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: platform-api-key}\nstringData: {other: x}\n").await;
    fixture
        .until("account/prod", "to name the entry", |seen| {
            condition(seen, "Stalled").is_some_and(|stalled| {
                stalled["message"]
                    .as_str()
                    .unwrap()
                    .contains("has no entry api-key")
            })
        })
        .await;
    fixture.secret("platform-api-key", ADMIN).await;
    fixture.until_ready("account/prod").await;
    fixture.until_ready("compute/orders").await;
    // A Secret that is newer than its account gets the finalizer as well.
    let secret = fixture.get("secret/platform-api-key").await.unwrap();
    assert_eq!(finalizers(&secret), ["dbplane.dev/credentials-in-use"]);
}

#[tokio::test]
async fn the_finalizer_of_deleted_credentials_is_removed() {
    let fixture = Fixture::new("credentials-deleted").await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture.until_ready("compute/orders").await;
    // kubectl waits until the Secret is deleted.
    fixture
        .kubectl(&["delete", "secret", "platform-api-key", "--timeout=30s"])
        .await;
    fixture
        .until_condition("account/prod", "Stalled", "True", "CredentialsMissing")
        .await;
    fixture
        .until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady")
        .await;
    fixture.account().await;
    fixture.until_ready("compute/orders").await;
    // The same applies if the account refers to another Secret.
    fixture.secret("other", ADMIN).await;
    fixture
        .patch(
            "account/prod",
            json!({"apiKeySecretRef": {"name": "other", "key": "api-key"}}),
        )
        .await;
    fixture
        .until("secret/other", "held", |seen| {
            finalizers(seen) == ["dbplane.dev/credentials-in-use"]
        })
        .await;
    fixture
        .kubectl(&["delete", "secret", "platform-api-key", "--timeout=30s"])
        .await;
    fixture.until_ready("compute/orders").await;
}

#[tokio::test]
async fn an_account_in_use_stays_and_names_its_users() {
    let fixture = Fixture::new("in-use").await;
    fixture.apply(&key("ci", "")).await;
    fixture.until_ready("projectkey/ci").await;
    fixture.delete("account/prod").await;
    let waits = fixture
        .until_condition("account/prod", "Ready", "False", "InUse")
        .await;
    assert!(message(&waits, "Ready").contains("ProjectKey in-use/ci"));
    fixture.delete("projectkey/ci").await;
    fixture.until_gone("projectkey/ci").await;
    fixture.until_gone("account/prod").await;
    assert!(fixture.live_keys().await.is_empty());
    // The Secret belongs to the user: it stays, and its finalizer is removed.
    fixture
        .until("secret/platform-api-key", "free", |seen| {
            finalizers(seen).is_empty()
        })
        .await;
}

#[tokio::test]
async fn an_account_in_deletion_waits_for_a_resource_that_has_just_started_to_use_it() {
    let fixture = Fixture::new("just-begun").await;
    fixture.until_ready("account/prod").await;
    // The create must wait for the account's budget before it is recorded.
    fixture
        .patch(
            "account/prod",
            json!({"rateLimit": {"requestsPerMinute": 12, "burst": 1}}),
        )
        .await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    fixture
        .wait_until("the create to begin", async || {
            let log = fixture.shared.operator.log();
            log.lines().any(|line| {
                line.contains("\"just-begun\"") && line.contains("performing step=Create")
            })
        })
        .await;
    assert_eq!(fixture.count("POST"), 0);
    fixture.delete("account/prod").await;
    let waits = fixture
        .until_condition("account/prod", "Ready", "False", "InUse")
        .await;
    assert!(
        message(&waits, "Ready").contains("Compute just-begun/orders"),
        "{waits}"
    );
    fixture
        .wait_until("the compute to be created", async || {
            fixture.computes().await.len() == 1
        })
        .await;
    fixture
        .patch(
            "account/prod",
            json!({"rateLimit": {"requestsPerMinute": 6000, "burst": 100}}),
        )
        .await;
    fixture.until_ready("compute/orders").await;
    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.until_gone("account/prod").await;
    assert!(fixture.computes().await.is_empty());
}

#[tokio::test]
async fn a_namespace_that_is_deleted_leaves_nothing_behind() {
    let fixture = Fixture::new("namespace").await;
    fixture.apply(&key("ci", "")).await;
    fixture.apply(&key("cd", "")).await;
    fixture.apply(&compute("orders", "br-main-42", "")).await;
    for object in ["projectkey/ci", "projectkey/cd", "compute/orders"] {
        fixture.until_ready(object).await;
    }
    fixture.delete("namespace/namespace").await;
    fixture.until_gone("namespace/namespace").await;
    assert!(fixture.live_keys().await.is_empty());
    assert!(fixture.computes().await.is_empty());
}
