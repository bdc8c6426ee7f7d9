//! Tests of the record, the status and the template.

use std::collections::BTreeMap;

use super::*;
use crate::api::{KeyRecord, ProjectKeyStatus};

#[test]
fn a_finalizer_that_was_lost_is_written_again_before_anything_else() {
    let text = || Some("the record".to_owned());
    let losing = |given: GivenKey| {
        given.but(|_, seen| {
            seen.meta.record = text();
            seen.meta.record_lost = true;
            seen.meta.has_finalizer = false;
            seen.account = AccountView::Pending;
        })
    };
    for given in [GivenKey::in_use(), GivenKey::new().intent(intent(NAME, 5))] {
        assert_eq!(
            losing(given.clone()).step(5),
            KeyStep::Restore { record: text() }
        );
        let finalizer = losing(given.clone()).but(|_, seen| seen.meta.record_lost = false);
        assert_eq!(
            finalizer.step(5),
            KeyStep::Restore { record: None },
            "the finalizer alone"
        );
        let copy = losing(given).but(|_, seen| seen.meta.has_finalizer = true);
        assert_eq!(
            copy.decide(5),
            Decision::silent(),
            "the copy of the record alone can wait"
        );
    }
}

#[test]
fn nothing_is_done_with_an_invalid_record() {
    let forget = "kubectl -n shop annotate projectkey ci dbplane.dev/record-";
    for (invalid, words) in [
        (
            InvalidAnnotation::Unreadable("expected value".to_owned()),
            ["cannot be read", forget],
        ),
        (
            InvalidAnnotation::Edited,
            ["not as dbplane wrote it", forget],
        ),
        (
            InvalidAnnotation::Newer,
            [
                "a newer version of dbplane",
                "until that version runs again",
            ],
        ),
        (
            InvalidAnnotation::HandOver,
            ["does not offer that any more", "Create another ProjectKey"],
        ),
        (
            InvalidAnnotation::CopiedFrom("shop/other".to_owned()),
            ["copied from shop/other", forget],
        ),
    ] {
        let given = |given: GivenKey| given.but(|_, seen| seen.identity = Err(invalid.clone()));
        given(GivenKey::in_use()).stalls(1, Reason::BindingConflict, &words);
        let deleting = given(GivenKey::deleting());
        if invalid.is_copy() {
            assert_eq!(deleting.step(1), KeyStep::RemoveFinalizer);
        } else {
            deleting.stalls(1, Reason::BindingConflict, &words);
        }
    }
}

#[test]
fn a_successor_retires_its_predecessor_and_nothing_else() {
    let intent = KeyIntent {
        retire_previous_at: Some(at(50)),
        ..intent(NAME, 5)
    };
    let first = KeyRecords::default().succeeded_by(key(1), &intent);
    assert_eq!(first, records(1));
    // The same key again, from a repeated pass, changes nothing.
    assert_eq!(first.succeeded_by(key(1), &intent), first);
    let second = first.succeeded_by(key(2), &intent);
    let before = RetiredKey {
        since: at(5),
        ..retired(1, 50)
    };
    assert_eq!(
        second,
        KeyRecords {
            rotated_at: Some(at(5)),
            previous: vec![before.clone()],
            ..records(2)
        }
    );
    let third = second.succeeded_by(key(3), &super::intent(NAME, 60));
    assert_eq!(
        third.previous,
        [
            before,
            RetiredKey {
                since: at(60),
                ..retired(2, 60)
            }
        ]
    );
}

#[test]
fn the_status_shows_every_key() {
    let records = KeyRecords {
        previous: vec![retired(5, 100)],
        lost: vec![lost("gone")],
        ..records(1)
    };
    let given = GivenKey::in_use().records(records);
    let status = status(
        &Report::ready("a"),
        &given.observed,
        &ProjectKeyStatus::default(),
        &given.spec,
        at(1),
    );
    assert_eq!(
        (status.key_id, status.secret_name.as_deref()),
        (Some(KeyId(1)), Some("ci-key"))
    );
    assert_eq!(
        status.previous_keys,
        [KeyRecord {
            id: Some(KeyId(5)),
            name: key(5).name,
            since: at(0),
            revoke_at: Some(at(100))
        }]
    );
    assert_eq!(
        status.lost_keys,
        [KeyRecord {
            id: None,
            name: "gone".to_owned(),
            since: at(0),
            revoke_at: None
        }]
    );
    assert_eq!(status.observed_generation, Some(1));
}

#[test]
fn the_status_keeps_what_was_known_where_the_record_is_invalid() {
    let old = ProjectKeyStatus {
        key_id: Some(KeyId(1)),
        record: Some("the record".to_owned()),
        last_handled_rotate: Some("one".to_owned()),
        ..ProjectKeyStatus::default()
    };
    let given = GivenKey::in_use().but(|_, seen| seen.identity = Err(InvalidAnnotation::HandOver));
    let report = Report::stalled(Reason::BindingConflict, "a");
    let status = status(&report, &given.observed, &old, &given.spec, at(1));
    let (conditions, observed_generation) = (status.conditions.clone(), status.observed_generation);
    assert_eq!(conditions[0].reason, "BindingConflict");
    assert_eq!(
        status,
        ProjectKeyStatus {
            conditions,
            observed_generation,
            ..old
        }
    );
}

#[test]
fn a_template_is_filled_once() {
    let cases = [
        ("{{ key }}", "s3cret"),
        ("{{key}}:{{   keyID }}", "s3cret:1"),
        (
            "{{ keyName }}@{{ projectID }}{{ baseURL }}",
            "ci {{ key }}@aged-wind-123456https://p/api/v2",
        ),
        (
            "{\"a\": {\"b\": \"{{ key }}\"}}",
            "{\"a\": {\"b\": \"s3cret\"}}",
        ),
        ("{{ other }} {{ key", "{{ other }} {{ key"),
        ("{{{ key }}", "{{{ key }}"),
        ("", ""),
    ];
    for (text, filled) in cases {
        let given = GivenKey::new().but(|spec, _| {
            spec.secret.template = BTreeMap::from([("entry".to_owned(), text.to_owned())])
        });
        let key = KeyIdentity {
            name: "ci {{ key }}".to_owned(),
            ..key(1)
        };
        let entries = template(&given.spec, &key, "s3cret", "https://p/api/v2");
        assert_eq!(entries["entry"], filled);
    }
}

#[test]
fn keys_stay_with_their_organization() {
    let theirs = KeyRecords {
        organization: Some("org-2".into()),
        ..records(1)
    };
    GivenKey::in_use().records(theirs.clone()).stalls(
        1,
        Reason::BindingConflict,
        &["org-2", "org-1", "spec.accountRef"],
    );
    // The list of another organization lacks the key, which does not show that it is revoked.
    let deleting = GivenKey::deleting().records(theirs).listing(listed(1, &[]));
    deleting.stalls(1, Reason::BindingConflict, &["org-2", "Orphan"]);
    let intended = KeyIntent {
        organization: Some("org-2".into()),
        ..intent(NAME, 0)
    };
    GivenKey::new()
        .intent(intended.clone())
        .stalls(1, Reason::BindingConflict, &["org-2"]);
    assert_eq!(
        KeyRecords::default()
            .succeeded_by(key(1), &intended)
            .organization
            .as_deref(),
        Some("org-2")
    );
    // Without a recorded key, the organization may change.
    let empty = KeyRecords {
        organization: Some("org-2".into()),
        ..KeyRecords::default()
    };
    assert_eq!(
        GivenKey::new().records(empty).step(1),
        KeyStep::PrepareSecret
    );
}
