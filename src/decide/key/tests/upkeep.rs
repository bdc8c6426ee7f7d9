//! Tests of a key in use: checks, rotation, and revocation of earlier keys, none of which delays
//! another.

use super::*;
use crate::api::ProjectKeyStatus;

fn is_ready(reported: &(Health, Sync, Wake)) -> bool {
    matches!(reported.0, Health::Ready(Reason::Available, _))
}

#[test]
fn a_key_in_use_is_checked_from_time_to_time() {
    let reported = GivenKey::in_use().reported(1);
    assert!(is_ready(&reported));
    assert_eq!(
        (&reported.1, reported.2),
        (&Sync::InSync, Wake::At(at(600)))
    );
    assert_eq!(GivenKey::in_use().step(600), KeyStep::ListKeys);
    let without_list = || GivenKey::in_use().listing(KeyListing::NotOffered);
    assert_eq!(without_list().step(600), KeyStep::Probe);
    for probe in [Probe::Accepted(at(600)), Probe::NotAsked(Some(at(600)))] {
        let given = GivenKey::in_use().probe(probe);
        assert_eq!(given.reported(601).2, Wake::At(at(1200)));
        assert_eq!(given.step(1200), KeyStep::ListKeys);
        assert_eq!(without_list().probe(probe).step(1200), KeyStep::Probe);
    }
}

#[test]
fn a_key_is_asked_itself_only_where_the_list_lacks_it_or_none_is_offered() {
    let due = |listing| GivenKey::in_use().probe(Probe::WANTED).listing(listing);
    let renamed = listed(600, &[(1, "laptop")]);
    for (listing, step) in [
        (KeyListing::NotRead, KeyStep::ListKeys),
        (listed(590, &[(1, &key(1).name)]), KeyStep::ListKeys),
        (listed(600, &[(2, &key(2).name)]), KeyStep::Probe),
        (renamed, KeyStep::Probe),
        (KeyListing::NotOffered, KeyStep::Probe),
    ] {
        assert_eq!(due(listing.clone()).step(600), step, "{listing:?}");
    }
    // A failing list is no reason to try the key.
    let failing = due(KeyListing::NotRead)
        .failed(Action::ListKeys, unanswered(), 600)
        .reported(600);
    assert!(is_ready(&failing));
    assert_eq!((&failing.1, failing.2), (&Sync::InSync, Wake::At(at(601))));
}

#[test]
fn a_list_confirms_a_key_or_is_a_reason_to_ask_it() {
    let refused = Probe::Refused {
        at: at(5),
        since: at(5),
        was_accepted: true,
    };
    for (known, listed_at, has_it, then) in [
        (Probe::NotAsked(None), 10, true, Probe::Accepted(at(10))),
        (Probe::WANTED, 10, true, Probe::Accepted(at(10))),
        (Probe::Accepted(at(5)), 10, true, Probe::Accepted(at(10))),
        (Probe::Accepted(at(5)), 10, false, Probe::WANTED),
        (Probe::NotAsked(None), 10, false, Probe::WANTED),
        // The key was tried since.
        (Probe::Accepted(at(20)), 10, false, Probe::Accepted(at(20))),
        (
            Probe::NotAsked(Some(at(20))),
            10,
            false,
            Probe::NotAsked(Some(at(20))),
        ),
        // A refused key is tried again, whatever a list says.
        (refused, 10, true, refused),
        (refused, 10, false, refused),
    ] {
        assert_eq!(
            known.listed(at(listed_at), has_it),
            then,
            "{known:?} {has_it}"
        );
    }
}

#[test]
fn a_key_is_checked_when_people_ask_for_it() {
    let given = GivenKey::in_use().but(|_, seen| seen.meta.reconcile = Some("two".to_owned()));
    let handled = |given: &GivenKey| {
        let old = ProjectKeyStatus {
            last_handled_reconcile_at: Some("one".to_owned()),
            ..ProjectKeyStatus::default()
        };
        status(
            &Report::ready("fine"),
            &given.observed,
            &old,
            &given.spec,
            at(1),
        )
        .last_handled_reconcile_at
        .unwrap()
    };
    let wanted = given.clone().probe(Probe::WANTED);
    assert_eq!(
        (wanted.step(1), handled(&wanted).as_str()),
        (KeyStep::ListKeys, "one")
    );
    assert_eq!(handled(&given.probe(Probe::Accepted(at(1)))), "two");
}

#[test]
fn a_key_that_is_created_late_is_found_with_a_list() {
    let late = "ci-c1u57e-vpzc5qrz22arf-000000ff";
    let given = GivenKey::in_use().records(KeyRecords {
        unanswered: Some(at(0)),
        ..records(1)
    });
    assert_eq!(
        given.reported(599).2,
        Wake::At(at(600)),
        "nothing is asked between checks"
    );
    assert_eq!(given.step(600), KeyStep::ListKeys);
    let listed = |keys: &[(i64, &str)]| {
        given
            .clone()
            .but(|_, seen| seen.listing = super::listed(600, keys))
    };
    assert_eq!(
        listed(&[(1, &key(1).name), (9, "somebody-elses")]).step(600),
        KeyStep::ListKeys
    );
    assert_eq!(listed(&[(9, "somebody-elses")]).step(600), KeyStep::Probe);
    let KeyStep::Revoke {
        id: KeyId(9), name, ..
    } = listed(&[(1, &key(1).name), (9, late)]).step(600)
    else {
        panic!()
    };
    assert_eq!(name, late);
    // The list with it also shows the key in use, whose next check is then far away.
    let checked = listed(&[(1, &key(1).name), (9, late)]).probe(Probe::Accepted(at(600)));
    assert!(revokes_key(&checked.step(601), 9));
    assert_eq!(
        given
            .clone()
            .but(|_, seen| seen.listing = KeyListing::NotOffered)
            .step(600),
        KeyStep::Probe
    );
    assert_eq!(
        given
            .clone()
            .failed(Action::ListKeys, unanswered(), 600)
            .reported(600)
            .2,
        Wake::At(at(601))
    );
    // After a day it is no longer expected.
    let KeyStep::Record {
        records,
        event: None,
    } = given.step(24 * 3600)
    else {
        panic!()
    };
    assert_eq!(
        (records.unanswered, records.current.map(|key| key.id)),
        (None, Some(KeyId(1)))
    );
}

#[test]
fn the_declared_parts_of_the_secret_are_restored() {
    let altered = || {
        GivenKey::in_use().secret(KeySecretView::Ours(SecretContents::Key {
            key: key(1),
            as_declared: false,
        }))
    };
    assert_eq!(altered().step(1), KeyStep::RewriteSecret);
    // The key is usable although the write is refused, and everything else continues.
    let reported = altered().secret_failed(1).reported(1);
    assert!(is_ready(&reported));
    assert!(matches!(
        reported.1,
        Sync::OutOfSync(Reason::SecretNotWritten, _)
    ));
    assert_eq!(reported.2, Wake::At(at(2)));
    assert_eq!(
        altered()
            .but(|_, seen| seen.memory.failed(
                Action::WriteSecret,
                ActionProblem::Secret("no".into()),
                1,
                at(600)
            ))
            .step(600),
        KeyStep::ListKeys
    );
}

fn rotated(every: &str, overlap: &str) -> GivenKey {
    GivenKey::in_use()
        .probe(Probe::Accepted(at(3599)))
        .but(|spec, _| spec.rotation = Some(rotation(every, overlap)))
}

#[test]
fn rotation_comes_when_it_is_due() {
    let given = rotated("1h", "10m");
    assert_eq!(given.reported(3599).2, Wake::At(at(3600)));
    let (intent, because) = created(given.step(3600));
    assert_eq!(intent.retire_previous_at, Some(at(4200)));
    assert_eq!(because, None);
}

#[test]
fn no_key_is_rotated_into_a_secret_that_goes_or_while_too_many_are_lost() {
    let given = || rotated("1h", "10m").listing(KeyListing::NotOffered);
    created(given().step(3600));
    let is_kept =
        |given: GivenKey| !matches!(given.decide(3600).step, Some(KeyStep::CreateKey { .. }));
    assert!(is_kept(given().but(|_, seen| seen.secret_deleting = true)));
    let lost = |count: i64| {
        (5..5 + count)
            .map(|number| lost(&key(number).name))
            .collect()
    };
    assert!(is_kept(given().records(KeyRecords {
        lost: lost(3),
        ..records(1)
    })));
    created(
        given()
            .records(KeyRecords {
                lost: lost(2),
                ..records(1)
            })
            .step(3600),
    );
}

#[test]
fn a_failed_rotation_keeps_the_key_ready_and_delays_nothing_else() {
    let failing = rotated("1h", "10m").failed(Action::CreateKey, refused(), 3600);
    let reported = failing.reported(3600);
    assert!(is_ready(&reported));
    assert!(matches!(reported.1, Sync::OutOfSync(Reason::Forbidden, _)));
    assert_eq!(reported.2, Wake::At(at(3630)));
    created(failing.step(3630));
    // A revocation that is due in the meantime is made.
    let due = failing.records(KeyRecords {
        previous: vec![retired(5, 3601)],
        ..records(1)
    });
    assert_eq!(due.step(3602), KeyStep::ListKeys);
}

fn overlapping() -> GivenKey {
    GivenKey::in_use().records(KeyRecords {
        previous: vec![retired(5, 100)],
        ..records(1)
    })
}

#[test]
fn a_replaced_key_stays_for_the_overlap_and_is_revoked_after_it() {
    assert_eq!(overlapping().reported(99).2, Wake::At(at(100)));
    assert_eq!(overlapping().step(100), KeyStep::ListKeys);
    let listed_as =
        |name: &str| overlapping().listing(listed(100, &[(5, name), (1, &key(1).name)]));
    let revoke = KeyStep::Revoke {
        id: KeyId(5),
        name: key(5).name,
        records: records(1),
        in_use: None,
    };
    assert_eq!(listed_as(&key(5).name).step(100), revoke);
    // A list without the key proves nothing by itself.
    assert_eq!(
        overlapping()
            .listing(listed(100, &[(1, &key(1).name)]))
            .step(100),
        revoke
    );
    // The number belongs to another key, or the key was renamed: it is reported and not revoked.
    let reported = listed_as("laptop").reported(100);
    assert!(is_ready(&reported));
    assert!(
        matches!(reported.1, Sync::OutOfSync(Reason::BindingConflict, text) if text.contains(&key(5).name) && !text.contains("laptop"))
    );
}

#[test]
fn without_a_revoke_call_a_replaced_key_is_reported_once_and_listed() {
    let (after, event) = record(overlapping().listing(KeyListing::NotOffered).step(100));
    assert!(event.unwrap().contains("Revoke it in the console"));
    assert_eq!(
        after.lost,
        [LostKey {
            id: Some(KeyId(5)),
            because: LostBecause::Retired,
            ..lost(&key(5).name)
        }]
    );
    let reported = GivenKey::in_use()
        .records(after)
        .listing(KeyListing::NotOffered)
        .reported(100);
    assert!(is_ready(&reported));
    assert!(
        matches!(reported.1, Sync::OutOfSync(Reason::RevocationUnsupported, text) if text.contains(&key(5).name))
    );
}

#[test]
fn a_failed_revocation_is_reported_and_tried_again() {
    let failing = overlapping()
        .listing(listed(100, &[(5, &key(5).name)]))
        .failed(Action::Revoke, refused(), 100);
    let reported = failing.reported(100);
    assert!(is_ready(&reported));
    assert!(matches!(reported.1, Sync::OutOfSync(Reason::Forbidden, _)));
    assert_eq!(reported.2, Wake::At(at(130)));
}

#[test]
fn lost_keys_are_revoked_once_they_can_be_listed() {
    let name = &key(8).name;
    let given = |listing| {
        GivenKey::in_use()
            .records(KeyRecords {
                lost: vec![lost(name)],
                ..records(1)
            })
            .listing(listing)
    };
    assert_eq!(given(KeyListing::NotRead).step(1), KeyStep::ListKeys);
    let revoke = KeyStep::Revoke {
        id: KeyId(8),
        name: name.clone(),
        records: records(1),
        in_use: None,
    };
    assert_eq!(given(listed(1, &[(8, name)])).step(1), revoke);
    assert_eq!(record(given(listed(1, &[])).step(1)), (records(1), None));
    assert!(is_ready(&given(KeyListing::NotOffered).reported(1)));
}

#[test]
fn a_lost_key_that_dbplane_must_not_revoke_leaves_the_list_with_the_platforms() {
    let other = LostKey {
        id: Some(KeyId(9)),
        because: LostBecause::OtherKey,
        ..lost(NAME)
    };
    let given = GivenKey::in_use().records(KeyRecords {
        lost: vec![other],
        ..records(1)
    });
    let own = key(1).name;
    let keeps = |listing: KeyListing| {
        let (_, sync, _) = given
            .clone()
            .probe(Probe::Accepted(at(60)))
            .listing(listing)
            .reported(61);
        assert!(
            matches!(sync, Sync::OutOfSync(Reason::BindingConflict, _)),
            "{sync:?}"
        );
    };
    keeps(listed(60, &[(1, &own), (9, "theirs")]));
    // It may be listed later.
    keeps(listed(59, &[(1, &own)]));
    let (after, event) = record(given.clone().listing(listed(60, &[(1, &own)])).step(61));
    assert_eq!(after, records(1));
    assert!(event.unwrap().contains("not listed any more"));
    // The same for a key of another cluster. No list is read only for such a key.
    let theirs = LostKey {
        id: Some(KeyId(7)),
        because: LostBecause::Retired,
        ..lost("ci-0ther0-vpzc5qrz22arf-00000007")
    };
    let given = GivenKey::in_use().records(KeyRecords {
        lost: vec![theirs],
        ..records(1)
    });
    assert_eq!(
        given.step(600),
        KeyStep::ListKeys,
        "with the check of the key in use"
    );
    assert_eq!(
        record(given.listing(listed(600, &[(1, &own)])).step(600)).0,
        records(1)
    );
}
