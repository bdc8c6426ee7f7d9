//! Accounts, end to end: credentials, who may use them, and how they go.

use dbplane_simulator::world::Profile;
use serde_json::{Value, json};

use crate::keys::key;
use crate::stage::{ADMIN, ORGANIZATION_KEY, PROJECT, SEVERAL_POLLS, Stage, compute, condition};

const PERSONAL_KEYS: &str = "/users/user-ada/api_keys";

fn message<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind).unwrap()["message"].as_str().unwrap()
}

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

impl Stage {
    /// A new API key from the console, with its identifier.
    async fn console_key(&self, path: &str, form: Value) -> (String, Value) {
        let made = self.console(reqwest::Method::POST, path, form).await;
        (made["key"].as_str().unwrap().to_owned(), made["id"].clone())
    }

    /// Asserts that the platform is asked nothing for several polls.
    async fn stays_silent(&self, allowed: usize) {
        let before = self.requests().len();
        tokio::time::sleep(SEVERAL_POLLS).await;
        let new = self.requests().split_off(before);
        assert!(new.len() <= allowed, "{new:?}");
    }
}

#[tokio::test]
async fn an_account_reports_what_its_credentials_see() {
    let stage = Stage::new("account").await;
    let ready = stage.until_ready("account/prod").await;
    assert!(ready["status"]["projectCount"].as_u64().unwrap() >= 1, "{ready}");
    assert_eq!(ready["status"]["projects"][0], PROJECT);
    assert_eq!(ready["status"]["capabilities"]["keyListing"], true);
    // By reading alone.
    assert_eq!(stage.count("GET"), stage.requests().len());
    let minimal = Stage::minimal("account-minimal").await;
    let ready = minimal.until_ready("account/prod").await;
    assert_eq!(ready["status"]["capabilities"]["keyListing"], false);
    assert_eq!(minimal.count("GET"), minimal.requests().len());
}

#[tokio::test]
async fn a_project_scoped_key_is_enough_for_computes() {
    let scoped = async |stage: &Stage| {
        let form = json!({"key_name": "scoped", "project_id": PROJECT});
        let (token, _) = stage.console_key("/organizations/org-cool-darkness-1/api_keys", form).await;
        stage.account_with(&token).await;
        stage.until_ready("account/prod").await
    };
    let ready = scoped(&Stage::bare("scoped-default").await).await;
    assert_eq!(ready["status"]["projects"], json!([PROJECT]));
    // The public API refuses the list to such a key.
    let stage = Stage::on("scoped", |options| options.profile = Profile::Public).await;
    let ready = scoped(&stage).await;
    assert_eq!(ready["status"]["projectCount"], Value::Null);
    assert!(message(&ready, "Ready").contains("may not list projects"));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_ready("compute/orders").await;
    // A resource that names a project out of reach takes nothing from the others.
    stage.apply(&compute("astray", "br-main-1", "").replace(PROJECT, "aaaa-other-000000")).await;
    stage.until("compute/astray", "told", |seen| condition(seen, "Ready").is_some()).await;
    stage.until_ready("account/prod").await;
    stage.until_ready("compute/orders").await;
}

#[tokio::test]
async fn an_organization_key_is_enough_for_computes() {
    let stage = Stage::bare("organization").await;
    stage.account_with(ORGANIZATION_KEY).await;
    let ready = stage.until_ready("account/prod").await;
    assert_eq!(ready["status"]["projects"], json!([PROJECT]));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_ready("compute/orders").await;
}

#[tokio::test]
async fn a_refused_key_stops_all_calls_until_its_secret_changes() {
    let stage = Stage::bare("account-refused").await;
    let (token, id) = stage.console_key(PERSONAL_KEYS, json!({"key_name": "first"})).await;
    stage.account_with(&token).await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.apply(&key("ci", "")).await;
    stage.until_ready("compute/orders").await;
    stage.until_ready("projectkey/ci").await;
    stage.revoke(&id).await;
    let refused = stage.until_condition("account/prod", "Stalled", "True", "Unauthorized").await;
    assert!(message(&refused, "Stalled").contains("Put a valid API key into the Secret"));
    for dependent in ["compute/orders", "projectkey/ci"] {
        let told = stage.until_condition(dependent, "Ready", "Unknown", "AccountNotReady").await;
        assert!(message(&told, "Ready").contains("401"), "{told}");
    }
    // Nothing but the one slow question, should it fall due.
    stage.stays_silent(1).await;
    let creations = stage.count("POST");
    let (token, _) = stage.console_key(PERSONAL_KEYS, json!({"key_name": "second"})).await;
    stage.secret("platform-api-key", &token).await;
    for object in ["account/prod", "compute/orders", "projectkey/ci"] {
        stage.until_ready(object).await;
    }
    assert_eq!(stage.count("POST"), creations);
}

#[tokio::test]
async fn what_is_missing_is_told_and_seen_at_once_when_it_comes() {
    let stage = Stage::new("missing").await;
    stage.until_ready("account/prod").await;
    stage.kubectl(&["delete", "secret", "platform-api-key"]).await;
    let missing = stage.until_condition("account/prod", "Stalled", "True", "CredentialsMissing").await;
    assert!(message(&missing, "Stalled").contains("Secret missing/platform-api-key does not exist"));
    stage.apply(&compute("orders", "br-main-42", "")).await;
    let told = stage.until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady").await;
    assert!(message(&told, "Ready").contains("platform-api-key"), "{told}");
    stage.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: platform-api-key}\nstringData: {other: x}\n").await;
    stage
        .until("account/prod", "told of the entry", |seen| {
            condition(seen, "Stalled")
                .is_some_and(|stalled| stalled["message"].as_str().unwrap().contains("has no entry api-key"))
        })
        .await;
    stage.secret("platform-api-key", ADMIN).await;
    stage.until_ready("account/prod").await;
    stage.until_ready("compute/orders").await;
    // A Secret that came after its account is held like any other.
    let secret = stage.get("secret/platform-api-key").await.unwrap();
    assert_eq!(finalizers(&secret), ["dbplane.dev/credentials-in-use"]);
}

#[tokio::test]
async fn credentials_that_people_delete_are_let_go() {
    let stage = Stage::new("credentials-deleted").await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage.until_ready("compute/orders").await;
    // kubectl waits for the Secret to be gone.
    stage.kubectl(&["delete", "secret", "platform-api-key", "--timeout=30s"]).await;
    stage.until_condition("account/prod", "Stalled", "True", "CredentialsMissing").await;
    stage.until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady").await;
    stage.account().await;
    stage.until_ready("compute/orders").await;
    // The same once another Secret is named.
    stage.secret("other", ADMIN).await;
    stage.patch("account/prod", json!({"apiKeySecretRef": {"name": "other", "key": "api-key"}})).await;
    stage.until("secret/other", "held", |seen| finalizers(seen) == ["dbplane.dev/credentials-in-use"]).await;
    stage.kubectl(&["delete", "secret", "platform-api-key", "--timeout=30s"]).await;
    stage.until_ready("compute/orders").await;
}

#[tokio::test]
async fn an_account_in_use_stays_and_names_its_users() {
    let stage = Stage::new("in-use").await;
    stage.apply(&key("ci", "")).await;
    stage.until_ready("projectkey/ci").await;
    stage.kubectl(&["delete", "account", "prod", "--wait=false"]).await;
    let waits = stage.until_condition("account/prod", "Ready", "False", "InUse").await;
    assert!(message(&waits, "Ready").contains("ProjectKey in-use/ci"));
    stage.kubectl(&["delete", "projectkey", "ci", "--wait=false"]).await;
    stage.until_gone("projectkey/ci").await;
    stage.until_gone("account/prod").await;
    assert!(stage.live_keys().await.is_empty());
    // The Secret is people's own; it stays and is free.
    stage.until("secret/platform-api-key", "free", |seen| finalizers(seen).is_empty()).await;
}

#[tokio::test]
async fn an_account_waits_for_what_has_only_just_begun_to_need_it() {
    let stage = Stage::new("just-begun").await;
    stage.until_ready("account/prod").await;
    // The create waits for a place in the account's budget, before anything is recorded of it.
    stage.patch("account/prod", json!({"rateLimit": {"requestsPerMinute": 12, "burst": 1}})).await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    stage
        .wait_until("the create to begin", async || {
            let log = stage.shared.operator.log();
            log.lines().any(|line| line.contains("\"just-begun\"") && line.contains("performing step=Create"))
        })
        .await;
    assert_eq!(stage.count("POST"), 0);
    stage.kubectl(&["delete", "account", "prod", "--wait=false"]).await;
    let waits = stage.until_condition("account/prod", "Ready", "False", "InUse").await;
    assert!(message(&waits, "Ready").contains("Compute just-begun/orders"), "{waits}");
    stage.wait_until("the compute to be created", async || stage.computes().await.len() == 1).await;
    stage.patch("account/prod", json!({"rateLimit": {"requestsPerMinute": 6000, "burst": 100}})).await;
    stage.until_ready("compute/orders").await;
    stage.kubectl(&["delete", "compute", "orders", "--wait=false"]).await;
    stage.until_gone("compute/orders").await;
    stage.until_gone("account/prod").await;
    assert!(stage.computes().await.is_empty());
}

#[tokio::test]
async fn a_cluster_account_serves_whom_it_names() {
    let stage = Stage::bare("cluster-account").await;
    stage.secret("platform-api-key", ADMIN).await;
    let account = format!(
        "apiVersion: dbplane.dev/v1alpha1
kind: ClusterAccount
metadata: {{name: company}}
spec:
  baseURL: {}
  organizationID: org-cool-darkness-1
  apiKeySecretRef: {{namespace: cluster-account, name: platform-api-key}}
  pollInterval: 5s
",
        stage.platform.base_url()
    );
    stage.apply(&account).await;
    let ci = key("ci", "").replace("{name: prod}", "{name: company, kind: ClusterAccount}");
    let orders = compute("orders", "br-main-42", "").replace("{name: prod}", "{name: company, kind: ClusterAccount}");
    stage.apply(&ci).await;
    stage.apply(&orders).await;
    let both = ["projectkey/ci", "compute/orders"];
    for object in both {
        let denied = stage.until_condition(object, "Stalled", "True", "NamespaceNotAllowed").await;
        assert!(message(&denied, "Stalled").contains("ClusterAccount company"));
    }
    assert_eq!(stage.count("POST"), 0);
    let access = |access: Value| json!({"namespaces": access});
    stage.patch("clusteraccount/company", access(json!({"names": ["cluster-account"]}))).await;
    for object in both {
        stage.until_ready(object).await;
    }
    let selector = json!({"names": [], "selector": {"matchLabels": {"db": "yes"}}});
    stage.patch("clusteraccount/company", access(selector)).await;
    for object in both {
        stage.until_condition(object, "Stalled", "True", "NamespaceNotAllowed").await;
    }
    stage.kubectl(&["label", "namespace", "cluster-account", "db=yes"]).await;
    for object in both {
        stage.until_ready(object).await;
    }
    stage.kubectl(&["label", "namespace", "cluster-account", "db-"]).await;
    for object in both {
        stage.until_condition(object, "Stalled", "True", "NamespaceNotAllowed").await;
    }
    assert_eq!(stage.count("POST"), 2);
    // What is not served any more can still be let go.
    stage.patch("projectkey/ci", json!({"deletion": "Orphan"})).await;
    stage.kubectl(&["delete", "projectkey", "ci", "--wait=false"]).await;
    stage.until_gone("projectkey/ci").await;
    stage.kubectl(&["label", "namespace", "cluster-account", "db=yes"]).await;
    stage.kubectl(&["delete", "compute", "orders", "--wait=false"]).await;
    stage.until_gone("compute/orders").await;
    stage.kubectl(&["delete", "clusteraccount", "company", "--wait=false"]).await;
    stage.until_gone("clusteraccount/company").await;
}

#[tokio::test]
async fn a_namespace_that_is_deleted_leaves_nothing_behind() {
    let stage = Stage::new("namespace").await;
    stage.apply(&key("ci", "")).await;
    stage.apply(&key("cd", "")).await;
    stage.apply(&compute("orders", "br-main-42", "")).await;
    for object in ["projectkey/ci", "projectkey/cd", "compute/orders"] {
        stage.until_ready(object).await;
    }
    stage.kubectl(&["delete", "namespace", "namespace", "--wait=false"]).await;
    stage.until_gone("namespace/namespace").await;
    assert!(stage.live_keys().await.is_empty());
    assert!(stage.computes().await.is_empty());
}
