//! Tests of the Secret of all replicas.

use std::str::FromStr;

use secrecy::ExposeSecret;
use tokio_postgres::config::{Config, Host, LoadBalanceHosts, TargetSessionAttrs};

use super::*;
use crate::decide::Sync;
use crate::decide::connection::ConnectionSecret;

/// A set with such a Secret, which does not exist yet.
fn given(connection: &Value, computes: Vec<Arc<Known<Compute>>>) -> GivenSet {
    let count = u32::try_from(computes.len()).unwrap();
    let mut connection = connection.clone();
    connection["secretName"] = json!("reads-db");
    GivenSet::new(
        spec(count, &json!({"connection": connection}), &json!({})),
        computes,
    )
    .observing(|seen| {
        seen.secret = SecretView::Absent;
        seen.credentials = CredentialsView::Found {
            user: "app".into(),
            password: "s3:c/t".into(),
        };
    })
}

fn whole() -> Value {
    json!({"database": "shop", "credentialsFrom": {"name": "role"}})
}

fn written(given: &GivenSet) -> ConnectionSecret {
    match given.decide().step {
        Some(SetStep::WriteConnection { secret, .. }) => *secret,
        other => panic!("{other:?}"),
    }
}

fn entry(secret: &ConnectionSecret, name: &str) -> Option<String> {
    secret
        .data
        .get(name)
        .map(|text| text.as_secret().expose_secret().to_owned())
}

#[test]
fn one_secret_leads_to_all_replicas() {
    let secret = written(&given(&whole(), ready(2)));
    let expect =
        |name: &str, text: &str| assert_eq!(entry(&secret, name).as_deref(), Some(text), "{name}");
    expect("host", "ep-0.example,ep-1.example");
    expect("port", "5432");
    expect("computeID", "ep-0,ep-1");
    expect(
        "uri",
        "postgresql://app:s3%3Ac%2Ft@ep-0.example:5432,ep-1.example:5432/shop?sslmode=require&target_session_attrs=any&load_balance_hosts=random",
    );
    expect(
        "plain-uri",
        "postgresql://app:s3%3Ac%2Ft@ep-0.example:5432,ep-1.example:5432/shop?sslmode=require&target_session_attrs=any",
    );
    expect(
        "jdbc-uri",
        "jdbc:postgresql://ep-0.example:5432,ep-1.example:5432/shop?user=app&password=s3%3Ac%2Ft&sslmode=require&targetServerType=any&loadBalanceHosts=true",
    );
}

#[test]
fn a_client_reads_the_uri() {
    let config =
        Config::from_str(&entry(&written(&given(&whole(), ready(3))), "uri").unwrap()).unwrap();
    let hosts: Vec<_> = ["ep-0.example", "ep-1.example", "ep-2.example"]
        .map(|name| Host::Tcp(name.to_owned()))
        .into();
    assert_eq!(config.get_hosts(), hosts);
    assert_eq!(config.get_ports(), [5432, 5432, 5432]);
    assert_eq!(config.get_load_balance_hosts(), LoadBalanceHosts::Random);
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::Any);
    assert_eq!(config.get_password(), Some("s3:c/t".as_bytes()));
}

#[test]
fn poolers_are_used_where_they_are_shown() {
    let pooled = |number: u32| {
        replica(
            number,
            &json!({"status": {"pooledHost": format!("pool-{number}.example")}}),
        )
    };
    let both = given(&json!({"pooled": true}), vec![pooled(0), pooled(1)]);
    let secret = written(&both);
    assert_eq!(
        entry(&secret, "host").as_deref(),
        Some("pool-0.example,pool-1.example")
    );
    assert_eq!(
        entry(&secret, "direct-host").as_deref(),
        Some("ep-0.example,ep-1.example")
    );
    assert_eq!(
        entry(&secret, "pooled-host").as_deref(),
        Some("pool-0.example,pool-1.example")
    );
    let one = given(
        &json!({"pooled": true}),
        vec![pooled(0), replica(1, &json!({}))],
    );
    let secret = written(&one);
    assert_eq!(
        entry(&secret, "host").as_deref(),
        Some("pool-0.example,ep-1.example")
    );
    assert_eq!(entry(&secret, "pooled-host"), None);
    let settled = one.observing(|seen| seen.secret = SecretView::Ours(secret));
    let Sync::OutOfSync(reason, message) = settled.decide().report.unwrap().sync else {
        panic!("in sync")
    };
    assert_eq!(reason, Reason::ConnectionIncomplete);
    assert!(
        message.contains("no pooled host of compute ep-1,"),
        "{message}"
    );
}

#[test]
fn the_secret_follows_the_replicas() {
    let two = given(&whole(), ready(2));
    let stands = written(&two);
    let then = |computes: Vec<Arc<Known<Compute>>>| {
        let stands = stands.clone();
        given(&whole(), computes).observing(|seen| seen.secret = SecretView::Ours(stands))
    };
    assert_eq!(then(ready(2)).does(), "rests");
    assert_eq!(
        entry(&written(&then(ready(1))), "host").as_deref(),
        Some("ep-0.example")
    );
    let mut leaving = ready(2);
    leaving[1] = replica(
        1,
        &json!({"metadata": {"deletionTimestamp": "2026-11-20T10:00:00Z"}}),
    );
    let mut leaving = then(leaving);
    leaving.spec.replicas = 1;
    assert_eq!(
        entry(&written(&leaving), "host").as_deref(),
        Some("ep-0.example"),
        "nobody is led to what goes"
    );
    let Some(SetStep::WriteConnection { secret, without }) = then(Vec::new()).decide().step else {
        panic!("rests")
    };
    assert!(
        entry(&secret, "uri").is_none() && without.contains("uri") && without.contains("host"),
        "{without:?}"
    );
}

#[test]
fn there_is_no_secret_before_there_is_a_host() {
    let hostless = vec![replica(0, &json!({"status": {"host": null}}))];
    assert_eq!(given(&whole(), hostless).does(), "rests");
}

#[test]
fn what_is_not_ours_is_not_written() {
    let foreign = given(&whole(), ready(1))
        .observing(|seen| seen.secret = SecretView::Foreign("not dbplane's".into()));
    let choice = foreign.decide();
    assert_eq!(
        (choice.step, choice.report.unwrap().headline().0),
        (None, Reason::SecretNotOurs)
    );
}

#[test]
fn missing_credentials_are_told() {
    let given =
        given(&whole(), ready(1)).observing(|seen| seen.credentials = CredentialsView::NoSecret);
    let secret = written(&given);
    let told = given
        .observing(|seen| seen.secret = SecretView::Ours(secret))
        .decide()
        .report
        .unwrap();
    assert!(
        matches!(told.sync, Sync::OutOfSync(Reason::ConnectionIncomplete, _)),
        "{told:?}"
    );
}
