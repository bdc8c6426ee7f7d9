//! Tests of the last use of a key in a list of the organization's keys.

use super::*;
use crate::api::ProjectKeyStatus;

#[test]
fn a_last_use_is_shown_once_an_hour() {
    let hour = |number: i64, second: i64| Some(at(number * 3600 + second));
    let shown = |known: Option<Timestamp>, listing: KeyListing| {
        // At any age of the list.
        let given = GivenKey::in_use().but(|_, seen| seen.known = listing);
        let old = ProjectKeyStatus {
            key_id: Some(KeyId(1)),
            last_used_at: known,
            last_used_from: known.map(|_| "192.0.2.1".to_owned()),
            ..ProjectKeyStatus::default()
        };
        let status = status(
            &Report::ready("fine"),
            &given.observed,
            &old,
            &given.spec,
            at(9 * 3600),
        );
        (status.last_used_at, status.last_used_from)
    };
    let used = |time: Option<Timestamp>| {
        let from = Some("192.0.2.2".to_owned());
        let mine = KeyEntry {
            last_used_at: time,
            last_used_from: from,
            ..entry(1, &key(1).name)
        };
        let another = KeyEntry {
            last_used_at: hour(8, 0),
            ..entry(2, "theirs")
        };
        KeyListing::Read {
            at: at(0),
            keys: vec![another, mine].into(),
        }
    };
    let (before, now) = (Some("192.0.2.1".to_owned()), Some("192.0.2.2".to_owned()));
    for (known, listing, expected) in [
        (None, used(None), (None, None)),
        (None, used(hour(5, 9)), (hour(5, 9), now.clone())),
        (
            hour(5, 9),
            used(hour(5, 3599)),
            (hour(5, 9), before.clone()),
        ),
        (hour(5, 9), used(hour(6, 0)), (hour(6, 0), now)),
        (hour(5, 9), used(hour(4, 0)), (hour(5, 9), before.clone())),
        (hour(5, 9), used(None), (hour(5, 9), before.clone())),
        (hour(5, 9), listed(1, &[]), (hour(5, 9), before.clone())),
        (
            hour(5, 9),
            KeyListing::NotRead,
            (hour(5, 9), before.clone()),
        ),
        (hour(5, 9), KeyListing::NotOffered, (hour(5, 9), before)),
    ] {
        assert_eq!(shown(known, listing), expected);
    }
}

#[test]
fn of_another_key_nothing_is_known_yet() {
    let old = ProjectKeyStatus {
        key_id: Some(KeyId(9)),
        last_used_at: Some(at(1)),
        ..ProjectKeyStatus::default()
    };
    let of = |given: GivenKey| {
        status(
            &Report::ready("fine"),
            &given.observed,
            &old,
            &given.spec,
            at(1),
        )
        .last_used_at
    };
    assert_eq!((of(GivenKey::in_use()), of(GivenKey::new())), (None, None));
}
