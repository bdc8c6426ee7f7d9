//! Connection Secrets: parsed by several clients, and used by one of them.

use serde_json::{Value, json};

use crate::clients::{self, Question, Read};
use crate::fixture::{Fixture, compute};
use crate::postgres::Postgres;

/// Users, passwords and databases. Database names have no control characters, because the API
/// server rejects them.
const TEXTS: [&str; 10] = [
    "app",
    "ä ö/ü",
    "a:b@c/d?e#f[g]",
    "100%",
    "%41+ %",
    "'\"\\`$&=;,!*()",
    "日本 \u{1f40d}",
    " ",
    "{{ uri }}",
    "a~b-c._d",
];

const DECLARED: &str =
    "  connection: {secretName: orders-db, database: app, credentialsFrom: {name: orders-role}}\n";

/// A Compute with a connection Secret, and its host on the platform.
async fn connected(name: &str) -> (Fixture, String) {
    let fixture = Fixture::new(name).await;
    fixture
        .apply(&compute("orders", "br-main-42", DECLARED))
        .await;
    let ready = fixture.until_ready("compute/orders").await;
    let host = ready["status"]["host"].as_str().unwrap().to_owned();
    (fixture, host)
}

async fn entry(fixture: &Fixture, name: &str) -> String {
    fixture.entry("orders-db", name).await.unwrap_or_default()
}

/// Declares these values, waits for them in the connection Secret, and returns its URIs.
async fn uris(fixture: &Fixture, user: &str, password: &str, database: &str) -> Question {
    let data = json!({"username": user, "password": password});
    let role = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orders-role"}, "stringData": data});
    fixture.apply(&role.to_string()).await;
    fixture
        .patch(
            "compute/orders",
            json!({"connection": {"database": database}}),
        )
        .await;
    let wanted = [("user", user), ("password", password), ("dbname", database)];
    let written = async || {
        let mut same = true;
        for (name, text) in wanted {
            same &= entry(fixture, name).await == text;
        }
        same
    };
    fixture
        .wait_until("the connection Secret to be written", written)
        .await;
    Question {
        uri: entry(fixture, "uri").await,
        jdbc_uri: entry(fixture, "jdbc-uri").await,
    }
}

#[tokio::test]
async fn every_client_reads_the_declared_connection() {
    let (fixture, host) = connected("clients").await;
    let (mut questions, mut declared) = (Vec::new(), Vec::new());
    for (number, user) in TEXTS.iter().enumerate() {
        let (password, database) = (
            TEXTS[(number + 1) % TEXTS.len()],
            TEXTS[(number + 2) % TEXTS.len()],
        );
        questions.push(uris(&fixture, user, password, database).await);
        let [user, password, database] = [user, password, database].map(str::to_owned);
        declared.push(Read {
            user,
            password,
            database,
            host: host.clone(),
            port: 5432,
        });
    }
    assert_eq!(clients::libpq(&questions), declared, "libpq");
    assert_eq!(clients::pgx(&questions), declared, "pgx");
    assert_eq!(clients::jdbc(&questions), declared, "JDBC");
    // The one exception, documented in docs/guide/connection.md.
    let as_node_does = |read: Read| Read {
        database: undecoded(&read.database),
        ..read
    };
    let by_node: Vec<Read> = declared.into_iter().map(as_node_does).collect();
    assert_eq!(clients::node(&questions), by_node, "pg of node");
}

/// A set of two read replicas.
const SET: &str = "apiVersion: dbplane.dev/v1alpha1
kind: ReadReplicaSet
metadata: {name: reads}
spec:
  replicas: 2
  selector: {matchLabels: {app: reads}}
  template:
    metadata: {labels: {app: reads}}
    spec: {accountRef: {name: prod}, projectID: aged-wind-123456, branchID: br-main-42}
  connection: {secretName: reads-db, database: shop, credentialsFrom: {name: reads-role}}
";

/// Each client uses the entry that docs/guide/replicas.md recommends.
#[tokio::test]
async fn clients_read_the_hosts_of_all_replicas() {
    let fixture = Fixture::new("replicas").await;
    let [user, password] = ["ä ö/ü", "a:b@c/d?e#f[g]"];
    let data = json!({"username": user, "password": password});
    let role = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "reads-role"}, "stringData": data});
    fixture.apply(&role.to_string()).await;
    fixture.apply(SET).await;
    fixture.until_ready("readreplicaset/reads").await;
    let entry = async |name: &str| fixture.entry("reads-db", name).await.unwrap_or_default();
    let both = async || entry("uri").await.matches(":5432").count() == 2;
    fixture
        .wait_until("both replicas to be in the Secret", both)
        .await;
    let host = entry("host").await;
    let [user, password, database] = [user, password, "shop"].map(str::to_owned);
    let declared = vec![Read {
        user,
        password,
        database,
        host,
        port: 5432,
    }];
    let question = async |uri: &str| {
        vec![Question {
            uri: entry(uri).await,
            jdbc_uri: entry("jdbc-uri").await,
        }]
    };
    assert_eq!(clients::libpq(&question("uri").await), declared, "libpq");
    assert_eq!(
        clients::libpq(&question("plain-uri").await),
        declared,
        "libpq"
    );
    assert_eq!(clients::pgx(&question("plain-uri").await), declared, "pgx");
    assert_eq!(clients::jdbc(&question("uri").await), declared, "JDBC");
    // These failures are the reason for two URIs, and for single-host entries.
    assert!(!clients::pgx_understands(&question("uri").await), "pgx");
    assert!(
        !clients::node_understands(&question("plain-uri").await),
        "pg of node"
    );
}

/// The database name as node's pg parses it: these characters stay encoded.
fn undecoded(name: &str) -> String {
    let reserved = |c: char| ";/?:@&=+$,#".contains(c);
    name.chars()
        .map(|c| {
            if reserved(c) {
                format!("%{:02X}", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

const WHO: &str = "SELECT json_build_array(current_user, current_database(), ssl) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

#[tokio::test]
async fn a_client_connects_by_the_uri_and_after_the_password_was_changed() {
    let (fixture, host) = connected("postgres").await;
    let postgres = Postgres::start(&host).await;
    let [user, password, database] = ["orders app/ä", "s3:c@r/e?t#%41", "orders & co/日本"];
    postgres.create(user, password, database);
    let who = |uri: &str| {
        postgres
            .query(uri, WHO)
            .map(|text| serde_json::from_str::<Value>(&text).unwrap())
    };
    let expected = json!([user, database, true]);

    let before = uris(&fixture, user, password, database).await.uri;
    assert_eq!(who(&before).unwrap(), expected);
    // The server name is verified, and the server rejects unencrypted connections.
    assert_eq!(
        who(&before.replace("sslmode=require", "sslmode=verify-full")).unwrap(),
        expected
    );
    let another = before
        .replace("sslmode=require", "sslmode=verify-full")
        .replace(&host, "another.example");
    assert!(
        who(&another)
            .unwrap_err()
            .contains("does not match host name"),
        "the name is checked"
    );
    assert!(
        who(&before.replace("sslmode=require", "sslmode=disable"))
            .unwrap_err()
            .contains("no encryption")
    );

    postgres.change_password(user, "next/one");
    assert!(
        who(&before)
            .unwrap_err()
            .contains("password authentication failed")
    );
    let after = uris(&fixture, user, "next/one", database).await.uri;
    assert_eq!(who(&after).unwrap(), expected);
}
