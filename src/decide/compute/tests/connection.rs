//! The connection Secret.

mod obstacles;

use std::str::FromStr;

use secrecy::ExposeSecret;
use tokio_postgres::config::{Config, Host, SslMode};

use super::*;
use crate::decide::Action;

const ALONE: &[(&str, &str)] = &[
    ("computeID", "ep-1"),
    ("host", "ep-1.postgres.example"),
    ("port", "5432"),
    ("provider", "dbplane"),
    ("sslmode", "require"),
    ("type", "postgresql"),
];
const DATABASE: &[(&str, &str)] = &[("database", "shop"), ("dbname", "shop")];
const LOGIN: &[(&str, &str)] = &[("password", "s3:c/t"), ("user", "app"), ("username", "app")];
const URIS: &[(&str, &str)] = &[
    (
        "jdbc-uri",
        "jdbc:postgresql://ep-1.postgres.example:5432/shop?user=app&password=s3%3Ac%2Ft&sslmode=require",
    ),
    (
        "uri",
        "postgresql://app:s3%3Ac%2Ft@ep-1.postgres.example:5432/shop?sslmode=require",
    ),
];

fn found() -> CredentialsView {
    CredentialsView::Found {
        user: "app".into(),
        password: "s3:c/t".into(),
    }
}

/// A Compute whose connection Secret does not exist yet.
fn given(more: Value, credentials: CredentialsView) -> GivenCompute {
    let mut connection = json!({"secretName": "orders-db"});
    connection
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    GivenCompute::bound()
        .declaring(json!({"connection": connection}))
        .observing(|observed| {
            observed.secret = SecretView::Absent;
            observed.credentials = credentials;
        })
}

fn alone() -> GivenCompute {
    given(json!({}), CredentialsView::NotWanted)
}

/// All fields that can be declared without a pooler.
fn whole(credentials: CredentialsView) -> GivenCompute {
    given(
        json!({"database": "shop", "credentialsFrom": {"name": "role"}}),
        credentials,
    )
}

fn written(given: &GivenCompute) -> (ConnectionSecret, BTreeSet<String>) {
    match given.step() {
        ComputeStep::WriteConnection { secret, without } => (*secret, without),
        other => panic!("nothing is written: {other:?}"),
    }
}

fn stands(given: GivenCompute, secret: ConnectionSecret) -> GivenCompute {
    given.observing(|observed| observed.secret = SecretView::Ours(secret))
}

fn data(secret: &ConnectionSecret) -> BTreeMap<&str, &str> {
    secret
        .data
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_secret().expose_secret()))
        .collect()
}

fn entries<'a>(parts: &[&'a [(&'a str, &'a str)]]) -> BTreeMap<&'a str, &'a str> {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}

fn pooled(compute: Compute) -> Compute {
    with(compute, |compute| {
        compute.pooled_host = Some("ep-1-pooler.postgres.example".into())
    })
}

#[test]
fn it_has_what_is_declared() {
    let name = || json!({"name": "role"});
    for (more, credentials, expected) in [
        (json!({}), CredentialsView::NotWanted, entries(&[ALONE])),
        (
            json!({"database": "shop"}),
            CredentialsView::NotWanted,
            entries(&[ALONE, DATABASE]),
        ),
        (
            json!({"credentialsFrom": name()}),
            found(),
            entries(&[ALONE, LOGIN]),
        ),
        (
            json!({"credentialsFrom": name(), "database": "shop"}),
            found(),
            entries(&[ALONE, DATABASE, LOGIN, URIS]),
        ),
    ] {
        let given = given(more.clone(), credentials);
        let (secret, without) = written(&given);
        assert_eq!(
            (data(&secret), without),
            (expected, BTreeSet::new()),
            "{more}"
        );
        stands(given, secret).rest().in_sync();
    }
}

#[test]
fn it_is_written_where_it_differs() {
    let (right, _) = written(&whole(found()));
    let edits: [fn(&mut ConnectionSecret); 6] = [
        |secret| drop(secret.data.insert("host".into(), "old".into())),
        |secret| drop(secret.data.insert("password".into(), "former".into())),
        |secret| drop(secret.data.remove("port")),
        |secret| drop(secret.labels.remove(names::MANAGED_BY.0)),
        // Written by an earlier version of dbplane, or with an entry that is no longer declared.
        |secret| drop(secret.annotations.remove(names::SECRET_SHAPE)),
        |secret| {
            drop(
                secret
                    .annotations
                    .insert(names::SECRET_SHAPE.into(), "another".into()),
            )
        },
    ];
    for edit in edits {
        let mut altered = right.clone();
        edit(&mut altered);
        assert_eq!(written(&stands(whole(found()), altered)).0, right);
    }
}

#[test]
fn entries_labels_and_annotations_of_others_stay() {
    let (mut secret, _) = written(&alone());
    secret.data.insert("password".into(), "theirs".into());
    secret.labels.insert("theirs".into(), "1".into());
    secret.annotations.insert("theirs".into(), "1".into());
    stands(alone(), secret).rest().in_sync();
}

#[test]
fn what_is_declared_no_more_changes_its_shape() {
    let more = json!({"labels": {"app": "shop"}, "annotations": {"note": "1"}, "template": {"A": "b"}, "database": "shop"});
    let (before, _) = written(&given(more.clone(), CredentialsView::NotWanted));
    assert_eq!(
        (
            before.labels["app"].as_str(),
            before.annotations["note"].as_str()
        ),
        ("shop", "1")
    );
    for name in ["labels", "annotations", "template", "database"] {
        let mut less = more.clone();
        less.as_object_mut().unwrap().remove(name);
        let (after, _) = written(&stands(
            given(less, CredentialsView::NotWanted),
            before.clone(),
        ));
        assert_ne!(
            after.annotations[names::SECRET_SHAPE],
            before.annotations[names::SECRET_SHAPE],
            "{name}"
        );
    }
}

#[test]
fn dbplanes_own_label_is_not_to_be_declared_otherwise() {
    let declared = json!({"labels": {names::MANAGED_BY.0: "helm"}});
    let (secret, _) = written(&given(declared, CredentialsView::NotWanted));
    assert_eq!(secret.labels[names::MANAGED_BY.0], names::MANAGED_BY.1);
}

#[test]
fn without_credentials_no_former_ones_stay() {
    let (before, _) = written(&whole(found()));
    for (credentials, words) in [
        (
            CredentialsView::NoSecret,
            ["Secret role does not exist", "username", "password"],
        ),
        (
            CredentialsView::Managed,
            [
                "dbplane writes Secret role itself",
                "spec.connection.credentialsFrom",
                ".",
            ],
        ),
        (
            CredentialsView::NoText("username".into()),
            ["Secret role has no text under username", "user there", "."],
        ),
        (
            CredentialsView::NoText("password".into()),
            [
                "Secret role has no text under password",
                "password there",
                ".",
            ],
        ),
    ] {
        let given = whole(credentials);
        let (secret, without) = written(&stands(given.clone(), before.clone()));
        assert_eq!(data(&secret), entries(&[ALONE, DATABASE]));
        assert_eq!(
            without,
            ["jdbc-uri", "password", "uri", "user", "username"]
                .map(str::to_owned)
                .into()
        );
        // Another tool, such as a backup tool, may have written one of the entries too.
        let mut stayed = secret.clone();
        stayed.data.insert("password".into(), "former".into());
        assert_eq!(
            written(&stands(given.clone(), stayed)),
            (secret.clone(), without)
        );

        let reported = stands(given, secret).rest();
        reported.ready();
        reported.out_of_sync(
            Reason::ConnectionIncomplete,
            &["orders-db", "jdbc-uri, password, uri, user, username"],
        );
        reported.out_of_sync(Reason::ConnectionIncomplete, &words);
    }
}

#[test]
fn a_pooler_is_used_where_the_platform_shows_one() {
    let declared =
        || json!({"database": "shop", "credentialsFrom": {"name": "role"}, "pooled": true});
    let direct = "postgresql://app:s3%3Ac%2Ft@ep-1.postgres.example:5432/shop?sslmode=require";
    let given = || given(declared(), found());
    let shown = given().seeing([pooled(compute("ep-1"))]);
    let (secret, _) = written(&shown);
    let entries = data(&secret);
    assert_eq!(entries["host"], "ep-1-pooler.postgres.example");
    assert_eq!(entries["pooled-host"], "ep-1-pooler.postgres.example");
    assert_eq!(entries["direct-host"], "ep-1.postgres.example");
    assert_eq!(
        (entries["uri"], entries["direct-uri"]),
        (direct.replacen("ep-1", "ep-1-pooler", 1).as_str(), direct)
    );
    assert!(
        entries["jdbc-uri"]
            .starts_with("jdbc:postgresql://ep-1-pooler.postgres.example:5432/shop?")
    );
    stands(shown, secret).rest().in_sync();

    let (secret, _) = written(&given());
    let entries = data(&secret);
    assert_eq!(
        (entries["host"], entries["direct-host"]),
        ("ep-1.postgres.example", "ep-1.postgres.example")
    );
    assert_eq!((entries["uri"], entries.get("pooled-host")), (direct, None));
    let reported = stands(given(), secret).rest();
    reported.out_of_sync(
        Reason::ConnectionIncomplete,
        &[
            "no pooled host of compute ep-1",
            "orders-db",
            "pooled to false",
        ],
    );
}

#[test]
fn a_pooler_that_is_not_wanted_is_an_entry_alone() {
    let (secret, _) = written(&alone().seeing([pooled(compute("ep-1"))]));
    assert_eq!(
        data(&secret),
        entries(&[ALONE, &[("pooled-host", "ep-1-pooler.postgres.example")]])
    );
}

#[test]
fn a_template_has_the_entries_of_other_names() {
    let template = json!({
        "DATABASE_URL": "{{ uri }}&application_name=shop",
        "PGPASS": "{{host}}:{{ port }}:{{ dbname }}:{{ user }}:{{ password }}",
        "PLAIN": "{{ sslmode }} of {{ computeID }} {}",
    });
    let declared =
        || json!({"database": "shop", "credentialsFrom": {"name": "role"}, "template": template});
    let (secret, _) = written(&given(declared(), found()));
    let filled = data(&secret);
    assert_eq!(
        filled["DATABASE_URL"],
        format!("{}&application_name=shop", URIS[1].1)
    );
    assert_eq!(
        filled["PGPASS"],
        "ep-1.postgres.example:5432:shop:app:s3:c/t"
    );
    assert_eq!(filled["PLAIN"], "require of ep-1 {}");

    let (secret, without) = written(&given(declared(), CredentialsView::NoSecret));
    assert_eq!(
        data(&secret),
        entries(&[ALONE, DATABASE, &[("PLAIN", "require of ep-1 {}")]])
    );
    assert!(
        without.contains("DATABASE_URL") && without.contains("PGPASS"),
        "{without:?}"
    );
    // Placeholders inside a value are not replaced.
    let odd = CredentialsView::Found {
        user: "{{ password }}".into(),
        password: "{{ user }}".into(),
    };
    let template = json!({"A": "{{ user }} {{ password }}"});
    let (secret, _) = written(&given(
        json!({"credentialsFrom": {"name": "role"}, "template": template}),
        odd,
    ));
    assert_eq!(data(&secret)["A"], "{{ password }} {{ user }}");
}

#[test]
fn a_client_reads_from_the_uri_what_was_written() {
    let texts = [
        "app",
        "ä ö/ü",
        "a:b@c/d?e#f[g]",
        "100%",
        "%41+ %",
        "'\"\\`$&=;,!*()",
        "日本 \u{1f40d}",
        " ",
        "\n\t",
        "a~b-c._d",
    ];
    for text in texts {
        let declared = json!({"database": text, "credentialsFrom": {"name": "role"}});
        let (secret, _) = written(&given(
            declared,
            CredentialsView::Found {
                user: text.into(),
                password: text.into(),
            },
        ));
        let config = Config::from_str(data(&secret)["uri"]).unwrap();
        assert_eq!(config.get_user(), Some(text));
        assert_eq!(config.get_password(), Some(text.as_bytes()));
        assert_eq!(config.get_dbname(), Some(text));
        assert_eq!(
            config.get_hosts(),
            [Host::Tcp("ep-1.postgres.example".into())]
        );
        assert_eq!(
            (config.get_ports(), config.get_ssl_mode()),
            (&[5432][..], SslMode::Require)
        );
    }
}

#[test]
fn nothing_of_it_is_printed() {
    let credentials = CredentialsView::Found {
        user: "canary-user".into(),
        password: "canary-password".into(),
    };
    let given = given(
        json!({"database": "shop", "credentialsFrom": {"name": "role"}}),
        credentials,
    );
    let (mut secret, _) = written(&given);
    secret.annotations.insert(
        "kubectl.kubernetes.io/last-applied-configuration".into(),
        "canary-applied".into(),
    );
    let choice = given.decide();
    let observed = stands(given, secret).observed;
    let text = format!("{choice:?} {choice:#?} {observed:?} {observed:#?}");
    assert!(
        text.contains("jdbc-uri") && !text.contains("canary"),
        "{text}"
    );
}
