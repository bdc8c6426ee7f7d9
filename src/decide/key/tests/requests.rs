//! Tests of a user's request for another key.

use super::*;
use crate::api::{OnRevoked, ProjectKeyStatus};

fn asked(given: GivenKey, value: &str) -> GivenKey {
    given.but(|_, seen| seen.rotate = Some(value.to_owned()))
}

fn served(value: &str) -> KeyRecords {
    KeyRecords {
        rotated_for: Some(value.to_owned()),
        ..records(1)
    }
}

fn is_kept(given: &GivenKey) -> bool {
    !matches!(given.decide(1).step, Some(KeyStep::CreateKey { .. }))
}

#[test]
fn each_new_value_replaces_the_key_once() {
    let KeyStep::CreateKey {
        intent,
        because: None,
        try_first: true,
    } = asked(GivenKey::in_use(), " one ").step(1)
    else {
        panic!()
    };
    assert_eq!(
        (intent.requested.as_deref(), intent.rotates),
        (Some("one"), true)
    );
    // Without a declared overlap, clients of the key have an hour.
    assert_eq!(intent.retire_previous_at, Some(at(3601)));
    let successor = records(1).succeeded_by(key(2), &intent);
    assert_eq!(
        successor.previous,
        [RetiredKey {
            since: at(1),
            rotated: true,
            ..retired(1, 3601)
        }]
    );
    assert_eq!(successor.rotated_for.as_deref(), Some("one"));
    let done = asked(GivenKey::in_use().records(served("one")), "one");
    assert!(is_kept(&done));
    created(asked(done.clone(), "two").step(1));
    for nothing in [None, Some(""), Some("  ")] {
        assert!(
            is_kept(
                &done
                    .clone()
                    .but(|_, seen| seen.rotate = nothing.map(str::to_owned))
            ),
            "{nothing:?}"
        );
    }
    let said = status(
        &Report::ready("a"),
        &done.observed,
        &ProjectKeyStatus::default(),
        &done.spec,
        at(1),
    );
    assert_eq!(said.last_handled_rotate.as_deref(), Some("one"));
}

#[test]
fn a_request_has_the_declared_overlap_and_a_regular_rotation_serves_it() {
    let declared =
        asked(GivenKey::in_use(), "one").but(|spec, _| spec.rotation = Some(rotation("2h", "10m")));
    let (intent, _) = created(declared.step(1));
    assert_eq!(intent.retire_previous_at, Some(at(601)));
    let (regular, _) = created(declared.step(7200));
    assert_eq!(
        (regular.retire_previous_at, regular.requested.as_deref()),
        (Some(at(7800)), Some("one"))
    );
    let done = declared.records(served("one"));
    assert_eq!(done.reported(1).2, Wake::At(at(600)), "the next check");
}

#[test]
fn whatever_key_is_created_next_serves_the_request() {
    let empty = || KeySecretView::Ours(SecretContents::Nothing);
    let (first, _) = created(asked(GivenKey::new().secret(empty()), "one").step(1));
    assert_eq!(
        (first.requested.as_deref(), first.rotates),
        (Some("one"), false)
    );
    let (replaced, because) = created(asked(GivenKey::in_use().secret(empty()), "one").step(1));
    assert_eq!(
        (replaced.requested.as_deref(), replaced.rotates),
        (Some("one"), false)
    );
    assert!(because.is_some());
    // Without a record, nothing shows that the request is new.
    let (restored, _) =
        record(asked(GivenKey::in_use().records(KeyRecords::default()), "one").step(1));
    assert_eq!(restored, from_secret(served("one")));
    // A creation that was not carried out serves no request.
    let open = asked(
        GivenKey::in_use().intent(KeyIntent {
            requested: Some("one".into()),
            ..intent(NAME, 0)
        }),
        "one",
    );
    let (unserved, _) = record(open.failed(Action::CreateKey, refused(), 1).step(1));
    assert_eq!(unserved.rotated_for, None);
}

#[test]
fn a_long_request_is_recorded_by_its_digest() {
    let (intent, _) = created(asked(GivenKey::in_use(), &"x".repeat(100)).step(1));
    let recorded = intent.requested.unwrap();
    assert!(recorded.len() < 64, "{recorded}");
    assert!(is_kept(&asked(
        GivenKey::in_use().records(served(&recorded)),
        &"x".repeat(100)
    )));
    created(
        asked(
            GivenKey::in_use().records(served(&recorded)),
            &"y".repeat(100),
        )
        .step(1),
    );
}

#[test]
fn who_asks_need_not_declare_that_a_revoked_key_is_replaced() {
    let revoked = GivenKey::in_use()
        .probe(Probe::Refused {
            at: at(20),
            since: at(0),
            was_accepted: true,
        })
        .listing(listed(20, &[]));
    let reported = revoked.but(|spec, _| spec.on_revoked = OnRevoked::Report);
    reported.stalls(20, Reason::KeyRevoked, &[]);
    let (intent, because) = created(asked(reported, "one").step(20));
    assert!(intent.previous_revoked && !intent.rotates);
    assert!(because.unwrap().contains("as requested"));
}

#[test]
fn keys_do_not_pile_up_however_often_people_ask() {
    let given = |valid: i64| {
        let previous = (5..5 + valid)
            .map(|id| RetiredKey {
                rotated: true,
                ..retired(id, 3600)
            })
            .collect();
        asked(
            GivenKey::in_use().records(KeyRecords {
                previous,
                ..records(1)
            }),
            "one",
        )
    };
    created(given(2).step(1));
    let (health, sync, wake) = given(3).reported(1);
    assert!(matches!(health, Health::Ready(..)));
    assert!(
        matches!(sync, Sync::OutOfSync(Reason::RotationWaiting, text) if text.contains("status.previousKeys"))
    );
    assert_eq!(wake, Wake::At(at(600)));
    // If a user has to revoke them.
    let given = |left: i64| {
        let because = LostBecause::Retired;
        // A key of another cluster does not count.
        let foreign = LostKey {
            id: Some(KeyId(99)),
            because,
            ..lost("ci-0ther0-vpzc5qrz22arf-00000063")
        };
        let own = (5..5 + left).map(|id| LostKey {
            id: Some(KeyId(id)),
            because,
            ..lost(&key(id).name)
        });
        let given = GivenKey::in_use().records(KeyRecords {
            lost: own.chain([foreign]).collect(),
            ..records(1)
        });
        asked(given.listing(KeyListing::NotOffered), "one")
    };
    created(given(9).step(1));
    let (_, sync, _) = given(10).reported(1);
    let Sync::OutOfSync(Reason::RevocationUnsupported, text) = sync else {
        panic!("{sync:?}")
    };
    assert!(
        text.contains("10 replaced keys") && text.contains("annotate projectkey ci"),
        "{text}"
    );
}

#[test]
fn nothing_is_replaced_while_paused_or_being_deleted() {
    assert!(is_kept(
        &asked(GivenKey::in_use(), "one").but(|_, seen| seen.meta.paused = true)
    ));
    assert!(is_kept(&asked(GivenKey::deleting(), "one")));
}
