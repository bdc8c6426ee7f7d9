//! Tests of lost keys that dbplane cannot revoke: the evidence in the list of keys.

use super::*;

const SINCE: i64 = 0;
const SETTLE: i64 = 60;

/// Key 1 in use, key 8 lost. The platform lists keys, and offers no call to revoke them.
fn left() -> GivenKey {
    let lost = vec![LostKey {
        id: Some(KeyId(8)),
        because: LostBecause::Retired,
        ..lost(&key(8).name)
    }];
    GivenKey::in_use().records(KeyRecords { lost, ..records(1) })
}

fn seeing(given: GivenKey, listing: KeyListing) -> GivenKey {
    given.listing(KeyListing::NotOffered).but(|_, seen| {
        (seen.listed, seen.not_offered_until) = (listing, Some(at(100_000)));
    })
}

fn with_current(more: &[(i64, &str)], second: i64) -> KeyListing {
    let name = key(1).name;
    listed(second, &[&[(1, name.as_str())], more].concat())
}

/// The record after this list, if the list changes it.
fn after(given: &GivenKey, second: i64) -> Option<(KeyRecords, Option<String>)> {
    match given.decide(second).step {
        Some(KeyStep::Record { records, event }) => Some((records, event)),
        _ => None,
    }
}

#[test]
fn two_lists_that_lack_a_key_the_settle_time_apart_are_enough() {
    let (first, event) = after(&seeing(left(), with_current(&[], SETTLE)), SETTLE).unwrap();
    assert_eq!(
        (first.lost[0].unlisted, first.lost.len(), event),
        (Some(at(SETTLE)), 1, None),
        "one list is not enough"
    );
    let then = |listing, second| after(&seeing(left().records(first.clone()), listing), second);
    assert_eq!(
        then(with_current(&[], SETTLE), SETTLE + 1),
        None,
        "it is the same list"
    );
    assert_eq!(
        then(with_current(&[], 2 * SETTLE - 1), 2 * SETTLE),
        None,
        "it is too soon"
    );
    assert_eq!(then(KeyListing::NotRead, 2 * SETTLE), None);
    let (last, event) = then(with_current(&[], 2 * SETTLE), 2 * SETTLE).unwrap();
    assert!(last.lost.is_empty() && event.is_some_and(|event| event.contains(&key(8).name)));
    // A list that shows the key again.
    let (again, _) = then(with_current(&[(8, &key(8).name)], 2 * SETTLE), 2 * SETTLE).unwrap();
    assert_eq!(again.lost[0].unlisted, None);
}

#[test]
fn a_list_that_does_not_show_it_for_another_reason_shows_nothing() {
    let is_noted = |given: GivenKey, listing: KeyListing| {
        let after = after(&seeing(given, listing), 1000);
        after.is_some_and(|(records, _)| records.lost[0].unlisted.is_some())
    };
    assert!(is_noted(left(), with_current(&[], 900)));
    assert!(
        !is_noted(left(), with_current(&[(8, &key(8).name)], 900)),
        "it is there"
    );
    assert!(
        !is_noted(left(), with_current(&[(8, "renamed")], 900)),
        "its number is there"
    );
    assert!(
        !is_noted(left(), with_current(&[(9, &key(8).name)], 900)),
        "its name is there"
    );
    assert!(
        !is_noted(left(), listed(900, &[])),
        "the key in use is not there either"
    );
    assert!(
        !is_noted(left(), with_current(&[], SINCE + SETTLE - 1)),
        "it may be younger than the list"
    );
    assert!(!is_noted(left(), KeyListing::NotOffered) && !is_noted(left(), KeyListing::NotRead));
    assert!(
        !is_noted(left().intent(intent(NAME, 850)), with_current(&[], 900)),
        "a creation is open"
    );
    let elsewhere =
        left().but(|_, seen| seen.platform = Some("https://other.example/v2".to_owned()));
    assert!(
        !is_noted(elsewhere, with_current(&[], 900)),
        "another platform lists other keys"
    );
}

#[test]
fn it_is_so_for_every_reason_to_be_lost_and_for_a_deletion() {
    for because in [
        LostBecause::Unanswered,
        LostBecause::Retired,
        LostBecause::OtherKey,
        LostBecause::Refused,
    ] {
        for id in [None, Some(KeyId(8))] {
            for name in [
                key(8).name.as_str(),
                "ci-0ther0-vpzc5qrz22arf-00000008",
                "laptop",
            ] {
                let unlisted = Some(at(100));
                let lost = vec![LostKey {
                    id,
                    because,
                    unlisted,
                    ..lost(name)
                }];
                let given = GivenKey::in_use().records(KeyRecords {
                    lost: lost.clone(),
                    ..records(1)
                });
                let (records, _) = after(&seeing(given, with_current(&[], 900)), 900).unwrap();
                assert!(records.lost.is_empty(), "{because:?} {id:?} {name}");
                // Users also revoke the key in use.
                let given = GivenKey::deleting().records(KeyRecords {
                    lost,
                    ..ours(records.clone())
                });
                let (records, _) = after(&seeing(given, listed(900, &[])), 900).unwrap();
                assert!(
                    records.lost.is_empty() && records.current.is_some(),
                    "{because:?} {id:?} {name}"
                );
            }
        }
    }
}

#[test]
fn where_the_platform_refuses_to_revoke_the_list_is_enough_too() {
    let forbidden = Fault::Forbidden {
        status: 403,
        message: "administrators only".to_owned(),
    };
    let given = |listing: KeyListing| {
        left()
            .listing(listing)
            .failed(Action::Revoke, forbidden.clone(), 890)
    };
    let (records, _) = after(&given(with_current(&[], 900)), 900).unwrap();
    assert_eq!(records.lost[0].unlisted, Some(at(900)));
    // If the platform does not refuse the revocation, its answer is the proof.
    let step = left().listing(with_current(&[], 900)).step(900);
    assert!(revokes_key(&step, 8), "{step:?}");
}
