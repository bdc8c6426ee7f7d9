//! The connection Secret.

mod pooled;

use serde_json::{Value, json};

use super::{create, created, message};
use crate::fixture::{Fixture, compute};
use crate::key_faults::altering;

const DECLARED: &str = "  connection: {secretName: orders-db}\n";

async fn entry(fixture: &Fixture, key: &str) -> String {
    fixture.entry("orders-db", key).await.unwrap_or_default()
}

#[tokio::test]
async fn it_has_all_connection_entries_and_is_deleted_with_its_owner() {
    let (fixture, id) = created("connection", DECLARED).await;
    let seen = fixture.get("compute/orders").await.unwrap();
    let secret = fixture
        .until("secret/orders-db", "written", |secret| !secret.is_null())
        .await;
    assert_eq!(
        secret["metadata"]["ownerReferences"][0]["uid"],
        seen["metadata"]["uid"]
    );
    assert_eq!(secret["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(
        entry(&fixture, "host").await,
        seen["status"]["host"].as_str().unwrap()
    );
    assert_eq!(
        (
            entry(&fixture, "port").await,
            entry(&fixture, "sslmode").await
        ),
        ("5432".into(), "require".into())
    );
    assert_eq!(entry(&fixture, "computeID").await, id);

    fixture.delete("secret/orders-db").await;
    let before = secret["metadata"]["uid"].clone();
    let again = |secret: &Value| !secret.is_null() && secret["metadata"]["uid"] != before;
    fixture
        .until("secret/orders-db", "written again", again)
        .await;
    fixture
        .kubectl(&[
            "patch",
            "secret",
            "orders-db",
            "-p",
            r#"{"stringData": {"host": "elsewhere", "mine": "kept"}}"#,
        ])
        .await;
    let host = seen["status"]["host"].as_str().unwrap();
    fixture
        .wait_until("the host to be restored", async || {
            entry(&fixture, "host").await == host
        })
        .await;
    assert_eq!(entry(&fixture, "mine").await, "kept");

    fixture.delete("compute/orders").await;
    fixture.until_gone("compute/orders").await;
    fixture.until_gone("secret/orders-db").await;
}

#[tokio::test]
async fn a_secret_that_is_no_longer_declared_is_reported_until_it_is_deleted() {
    let (fixture, _) = created("connection-renamed", DECLARED).await;
    let names = |seen: &Value| {
        let status = &seen["status"];
        (
            status["connectionSecret"].clone(),
            status["unusedSecrets"].clone(),
        )
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let first = (json("\"orders-db\""), Value::Null);
    fixture
        .until("compute/orders", "with its Secret", |seen| {
            names(seen) == first
        })
        .await;
    fixture
        .patch(
            "compute/orders",
            json!({"connection": {"secretName": "orders-conn"}}),
        )
        .await;
    let second = (json("\"orders-conn\""), json("[\"orders-db\"]"));
    fixture
        .until("compute/orders", "with another Secret", |seen| {
            names(seen) == second
        })
        .await;
    let text = fixture.event("compute/orders", "SecretUnused").await;
    assert!(
        text.ends_with("kubectl -n connection-renamed delete secret orders-db"),
        "{text}"
    );
    fixture.delete("secret/orders-db").await;
    let third = (json("\"orders-conn\""), Value::Null);
    fixture
        .until("compute/orders", "without the former one", |seen| {
            names(seen) == third
        })
        .await;
    assert!(fixture.get("secret/orders-db").await.is_none());
    // A missing connection has the same effect.
    fixture
        .patch("compute/orders", json!({"connection": null}))
        .await;
    let none = (Value::Null, json("[\"orders-conn\"]"));
    fixture
        .until("compute/orders", "without a connection Secret", |seen| {
            names(seen) == none
        })
        .await;
}

#[tokio::test]
async fn a_foreign_secret_is_never_overwritten() {
    let fixture = Fixture::new("foreign").await;
    fixture.secret("orders-db", "theirs").await;
    let before = fixture.get("secret/orders-db").await.unwrap();
    fixture
        .apply(&compute("orders", "br-main-42", DECLARED))
        .await;
    fixture
        .until_condition("compute/orders", "Stalled", "True", "SecretNotOurs")
        .await;
    // Its compute must still be reconciled.
    fixture
        .patch("compute/orders", json!({"size": {"fixed": 2}}))
        .await;
    fixture
        .until("compute/orders", "resized", |seen| {
            seen["status"]["size"] == "2"
        })
        .await;
    assert_eq!(fixture.get("secret/orders-db").await.unwrap(), before);
    fixture.delete("secret/orders-db").await;
    fixture.until_ready("compute/orders").await;
    fixture
        .until("secret/orders-db", "ours", |secret| {
            secret["metadata"]["ownerReferences"][0]["name"] == "orders"
        })
        .await;
}

/// Writes the Secret with the user and the password.
async fn role(fixture: &Fixture, user: &str, password: &str) {
    let data = json!({"username": user, "password": password});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-role"}, "stringData": data});
    fixture.apply(&secret.to_string()).await;
}

const WITH_ROLE: &str = "  connection: {secretName: orders-db, database: shop, credentialsFrom: {name: orders-role}, template: {URL: '{{ uri }}&a=b'}}\n";

/// The entries that depend on the user and the password.
const OF_ROLE: [&str; 6] = ["user", "username", "password", "uri", "jdbc-uri", "URL"];

async fn until_incomplete(fixture: &Fixture, words: &str) {
    let seen = fixture.until_condition("compute/orders", "Synced", "False", "ConnectionIncomplete");
    let seen = seen.await;
    assert!(message(&seen, "Synced").contains(words), "{seen}");
    let ready = seen["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|condition| condition["type"] == "Ready");
    assert_eq!(ready.unwrap()["status"], "True", "the compute serves");
    assert_eq!(seen["status"]["binding"]["name"], "orders-db");
    let secret = fixture.get("secret/orders-db").await.unwrap();
    let left = OF_ROLE.map(|name| &secret["data"][name]);
    assert_eq!(
        left,
        [&Value::Null; 6],
        "entries of credentials that are missing"
    );
    assert_eq!(
        entry(fixture, "host").await,
        seen["status"]["host"].as_str().unwrap()
    );
    assert_eq!(entry(fixture, "dbname").await, "shop");
}

#[tokio::test]
async fn it_follows_its_credentials_and_reports_missing_ones() {
    let (fixture, _) = created("credentials", WITH_ROLE).await;
    until_incomplete(&fixture, "Secret orders-role does not exist").await;

    role(&fixture, "shop app", "a/b:c@d?e#f%").await;
    let seen = fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    let host = seen["status"]["host"].as_str().unwrap();
    let uri = format!(
        "postgresql://shop%20app:a%2Fb%3Ac%40d%3Fe%23f%25@{host}:5432/shop?sslmode=require"
    );
    assert_eq!(
        (entry(&fixture, "uri").await, entry(&fixture, "URL").await),
        (uri.clone(), format!("{uri}&a=b"))
    );
    assert_eq!(entry(&fixture, "password").await, "a/b:c@d?e#f%");
    let jdbc = format!(
        "jdbc:postgresql://{host}:5432/shop?user=shop%20app&password=a%2Fb%3Ac%40d%3Fe%23f%25&sslmode=require"
    );
    assert_eq!(entry(&fixture, "jdbc-uri").await, jdbc);
    assert_eq!(
        (
            entry(&fixture, "type").await,
            entry(&fixture, "provider").await
        ),
        ("postgresql".into(), "dbplane".into())
    );
    let before = fixture.count("");

    // A new password requires no requests to the platform.
    role(&fixture, "shop app", "next").await;
    let changed = format!("postgresql://shop%20app:next@{host}:5432/shop?sslmode=require");
    fixture
        .wait_until("the URI to follow", async || {
            entry(&fixture, "uri").await == changed
        })
        .await;
    assert_eq!(
        (
            entry(&fixture, "password").await,
            entry(&fixture, "user").await
        ),
        ("next".into(), "shop app".into())
    );
    assert!(
        fixture.requests()[before..]
            .iter()
            .all(|request| request.starts_with("GET "))
    );

    the_uri_goes_with_the_password(&fixture, &changed).await;
    fixture.delete("secret/orders-role").await;
    until_incomplete(&fixture, "Secret orders-role does not exist").await;
}

/// A password that is removed and added again.
async fn the_uri_goes_with_the_password(fixture: &Fixture, uri: &str) {
    // A backup tool owns the same fields. Giving up dbplane's ownership alone would keep the entry.
    let data = json!({"password": "bmV4dA=="});
    let restored = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-db", "namespace": "credentials"}, "data": data});
    let apply = [
        "apply",
        "--server-side",
        "--field-manager=backup",
        "-f",
        "-",
    ];
    fixture
        .shared
        .cluster
        .kubectl_with_input(&apply, &restored.to_string())
        .await
        .unwrap();
    fixture
        .kubectl(&[
            "patch",
            "secret",
            "orders-role",
            "--type=json",
            "-p",
            r#"[{"op": "remove", "path": "/data/password"}]"#,
        ])
        .await;
    until_incomplete(fixture, "Secret orders-role has no text under password").await;
    role(fixture, "shop app", "next").await;
    fixture
        .wait_until("the URI to be there again", async || {
            entry(fixture, "uri").await == uri
        })
        .await;
}

#[tokio::test]
async fn it_follows_its_credentials_while_the_account_cannot_be_used() {
    let fixture = Fixture::new("connection-offline").await;
    role(&fixture, "app", "first").await;
    create(&fixture, WITH_ROLE).await;
    fixture
        .wait_until("the password to be there", async || {
            entry(&fixture, "password").await == "first"
        })
        .await;
    let host = fixture.get("compute/orders").await.unwrap()["status"]["host"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture
        .secret("platform-api-key", "refused-by-the-platform")
        .await;
    fixture
        .until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady")
        .await;
    role(&fixture, "app", "next").await;
    let uri = format!("postgresql://app:next@{host}:5432/shop?sslmode=require");
    fixture
        .wait_until("the URI to follow", async || {
            entry(&fixture, "uri").await == uri
        })
        .await;
    fixture
        .until_condition("compute/orders", "Ready", "Unknown", "AccountNotReady")
        .await;
}

#[tokio::test]
async fn it_copies_only_the_named_entries_and_nothing_from_its_own_secrets() {
    let fixture = Fixture::new("credential-keys").await;
    let data = json!({"login": "app", "PASS": "p", "username": "wrong", "password": "wrong", "other": "not to be copied"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-role"}, "stringData": data});
    fixture.apply(&secret.to_string()).await;
    let more = "  connection: {secretName: orders-db, credentialsFrom: {name: orders-role, usernameKey: login, passwordKey: PASS}}\n";
    create(&fixture, more).await;
    fixture
        .until_condition("compute/orders", "Synced", "True", "InSync")
        .await;
    let secret = fixture
        .until("secret/orders-db", "written", |secret| {
            secret["data"]["user"].is_string()
        })
        .await;
    let names: Vec<&String> = secret["data"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| *name != "pooled-host")
        .collect();
    assert_eq!(
        names,
        [
            "computeID",
            "host",
            "password",
            "port",
            "provider",
            "sslmode",
            "type",
            "user",
            "username"
        ]
    );
    assert_eq!(
        (
            entry(&fixture, "user").await,
            entry(&fixture, "password").await
        ),
        ("app".into(), "p".into())
    );

    // Two connection Secrets that copy from each other would change forever.
    let reader = compute("reader", "br-main-42", "").replace("ReadWrite", "ReadOnly");
    let from = "  connection: {secretName: reader-db, credentialsFrom: {name: orders-db, usernameKey: user}}\n";
    fixture.apply(&format!("{reader}{from}")).await;
    let seen = fixture
        .until_condition("compute/reader", "Synced", "False", "ConnectionIncomplete")
        .await;
    assert!(
        message(&seen, "Synced").contains("dbplane writes Secret orders-db itself"),
        "{seen}"
    );
}

#[tokio::test]
async fn its_labels_and_annotations_are_as_declared() {
    let more = "  connection: {secretName: orders-db, labels: {app: shop}, annotations: {example.com/note: '1'}, template: {HOST: '{{ host }}:{{ port }}'}}\n";
    let (fixture, _) = created("connection-labels", more).await;
    let has = |secret: &Value| {
        let metadata = &secret["metadata"];
        metadata["labels"]["app"] == "shop" && metadata["annotations"]["example.com/note"] == "1"
    };
    let secret = fixture.until("secret/orders-db", "labelled", has).await;
    assert_eq!(
        secret["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "dbplane"
    );
    let host = fixture.get("compute/orders").await.unwrap()["status"]["host"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(entry(&fixture, "HOST").await, format!("{host}:5432"));
    fixture
        .kubectl(&[
            "label",
            "--overwrite",
            "secret",
            "orders-db",
            "app=other",
            "theirs=1",
        ])
        .await;
    fixture
        .until("secret/orders-db", "as declared again", has)
        .await;

    fixture
        .patch(
            "compute/orders",
            json!({"connection": {"labels": null, "annotations": null, "template": null}}),
        )
        .await;
    let bare = |secret: &Value| {
        let metadata = &secret["metadata"];
        let others = metadata["annotations"]["example.com/note"].is_null()
            && secret["data"]["HOST"].is_null();
        metadata["labels"]["app"].is_null() && metadata["labels"]["theirs"] == "1" && others
    };
    fixture
        .until(
            "secret/orders-db",
            "without what is no longer declared",
            bare,
        )
        .await;
}

#[tokio::test]
async fn a_secret_altered_by_a_policy_is_reported_and_not_written_in_a_loop() {
    let fixture = Fixture::new("connection-altered").await;
    let policy = altering(&fixture, true).await;
    fixture
        .apply(&compute(
            "orders",
            "br-main-42",
            "  connection: {secretName: ci-db}\n",
        ))
        .await;
    let stalled = fixture
        .until_condition("compute/orders", "Stalled", "True", "SecretNotWritten")
        .await;
    let text = message(&stalled, "Stalled");
    assert!(
        text.contains("Secret ci-db is not stored as dbplane writes it")
            && text.contains("entry host"),
        "{text}"
    );
    fixture
        .kubectl(&[
            "delete",
            "mutatingadmissionpolicybinding,mutatingadmissionpolicy",
            &policy,
        ])
        .await;
    fixture.until_ready("compute/orders").await;
    assert_eq!(
        fixture.entry("ci-db", "port").await.as_deref(),
        Some("5432")
    );
}
