//! Tests: a replaced key is revoked when it is no longer used.

mod last_use;

use super::*;
use crate::api::ProjectKeyStatus;
use crate::decide::identity::LastUse;

const HOUR: i64 = 3600;
/// The time between two recorded changes of the last use.
const PAUSE: i64 = HOUR / 4;

fn when_unused() -> Rotation {
    Rotation {
        revoke_previous: RevokePrevious::WhenUnused,
        unused_for: Some(Length("2h".to_owned())),
        deadline: Some(Length("24h".to_owned())),
        ..rotation("720h", "1h")
    }
}

/// Key 5 was replaced by key 1 at second 0, with an overlap of an hour.
fn given() -> GivenKey {
    let previous = vec![RetiredKey {
        rotated: true,
        ..retired(5, HOUR)
    }];
    let given = GivenKey::in_use().records(KeyRecords {
        previous,
        ..records(1)
    });
    given.but(|spec, _| spec.rotation = Some(when_unused()))
}

/// The same, and the lists have shown this last use since then.
fn watched(since: i64, last_used: Option<i64>) -> GivenKey {
    let last_use = Some(LastUse {
        at: last_used.map(at),
        since: at(since),
    });
    given().but(|_, seen| seen.identity.as_mut().unwrap().records.previous[0].last_use = last_use)
}

/// The platform lists keys, and shows when key 5 was last used.
fn used(second: i64, last_used: Option<i64>) -> KeyListing {
    let KeyListing::Read { at: begun, keys } =
        listed(second, &[(1, &key(1).name), (5, &key(5).name)])
    else {
        panic!()
    };
    let mut keys = keys.into_parts().0;
    keys[0].last_used_at = Some(at(second));
    keys[1].last_used_at = last_used.map(at);
    keys[1].last_used_from = last_used.map(|_| "192.0.2.7".to_owned());
    KeyListing::Read {
        at: begun,
        keys: keys.into(),
    }
}

/// The list was read at that time, and there is no newer one.
fn known(given: GivenKey, listing: KeyListing) -> GivenKey {
    given.but(|_, seen| seen.known = listing)
}

/// Suppresses the check of the key in use.
fn checked(given: GivenKey, second: i64) -> GivenKey {
    given.probe(Probe::Accepted(at(second)))
}

fn revocation(given: &GivenKey, second: i64) -> Option<String> {
    let KeyStep::Revoke {
        id: KeyId(5),
        records: after,
        in_use,
        ..
    } = given.step(second)
    else {
        panic!("{:?}", given.step(second))
    };
    assert_eq!(after, records(1));
    in_use
}

#[test]
fn a_key_is_looked_at_when_it_can_first_be_unused() {
    assert_eq!(
        given().step(1),
        KeyStep::ListKeys,
        "whether the platform shows its use is told at once"
    );
    let over = 2 * HOUR + PAUSE;
    for (since, last_used, again) in [
        // At any offset of the platform's clock.
        (1, Some(-8 * HOUR), over + 1),
        (1, Some(0), over + 1),
        (HOUR, Some(30 * HOUR), over + HOUR),
        // It was never used.
        (1, None, over + 1),
        (23 * HOUR, Some(23 * HOUR), 24 * HOUR),
    ] {
        let listing = used(since + 1, last_used);
        let waiting = checked(
            watched(since, last_used).listing(listing.clone()),
            24 * HOUR,
        )
        .reported(since + 1);
        assert_eq!(waiting.2, Wake::At(at(again)), "{listing:?}");
        assert_eq!(waiting.1, Sync::InSync);
        let older = known(checked(watched(since, last_used), 24 * HOUR), listing);
        assert_eq!(older.reported(since + 1).2, Wake::At(at(again)));
    }
    // Not before the overlap is over.
    let long = Rotation {
        overlap: Length("20h".to_owned()),
        ..when_unused()
    };
    let previous = vec![RetiredKey {
        rotated: true,
        last_use: Some(LastUse {
            at: Some(at(0)),
            since: at(1),
        }),
        ..retired(5, 20 * HOUR)
    }];
    let long = given()
        .records(KeyRecords {
            previous,
            ..records(1)
        })
        .but(|spec, _| spec.rotation = Some(long));
    let waiting = checked(long.listing(used(4 * HOUR, Some(0))), 24 * HOUR).reported(4 * HOUR);
    assert_eq!(waiting.2, Wake::At(at(20 * HOUR)));
}

#[test]
fn a_list_that_shows_it_unused_has_it_revoked_and_an_old_one_does_not() {
    let over = 3 * HOUR + PAUSE;
    let given = || watched(HOUR, Some(0));
    let unused = |second: i64| used(second, Some(0));
    assert_eq!(revocation(&given().listing(unused(over)), over), None);
    // The key may have been used since the list.
    assert_eq!(known(given(), unused(HOUR)).step(over), KeyStep::ListKeys);
    assert_eq!(
        known(given(), unused(over)).step(over + 20),
        KeyStep::ListKeys
    );
    assert_eq!(
        given().listing(unused(over)).step(over + 31),
        KeyStep::ListKeys
    );
    let KeyStep::ListKeys = given().listing(unused(over - 1)).step(over) else {
        panic!()
    };
    // The revocation waits for a failing list, and the key stays.
    let failing = checked(known(given(), unused(over)), over).failed(
        Action::ListKeys,
        unanswered(),
        over + HOUR,
    );
    let (health, sync, wake) = failing.reported(over + HOUR);
    assert!(matches!(health, Health::Ready(..)));
    assert!(matches!(
        sync,
        Sync::OutOfSync(Reason::PlatformUnreachable, _)
    ));
    assert_eq!(wake, Wake::At(at(over + HOUR + 1)));
}

#[test]
fn at_the_deadline_it_is_revoked_and_that_is_told() {
    let day = 24 * HOUR;
    let in_use = watched(day - 60, Some(day - 60)).listing(used(day - 1, Some(day - 60)));
    assert_eq!(
        checked(in_use.clone(), day).reported(day - 1).2,
        Wake::At(at(day))
    );
    let why = revocation(&in_use, day).unwrap();
    assert!(
        why.contains("deadline")
            && why.contains("192.0.2.7")
            && why.contains("1970-01-01T23:59:00Z"),
        "{why}"
    );
    assert_eq!(
        known(given(), used(1, Some(0))).step(day),
        KeyStep::ListKeys,
        "what is told is from now"
    );
    let never = checked(watched(1, None).listing(used(day, None)), day);
    assert_eq!(
        revocation(&never, day),
        None,
        "it was not used since it was replaced"
    );
    // A use that is no longer recorded is still reported.
    let used_again =
        revocation(&watched(1, Some(0)).listing(used(day, Some(day - 60))), day).unwrap();
    assert!(used_again.contains("1970-01-01T23:59:00Z"), "{used_again}");
}

#[test]
fn where_the_platform_shows_no_use_the_deadline_counts_and_that_is_said() {
    let day = 24 * HOUR;
    let both = [(1, key(1).name), (5, key(5).name)];
    let both: Vec<(i64, &str)> = both.iter().map(|(id, name)| (*id, name.as_str())).collect();
    let says = |given: &GivenKey, words: &str| {
        let (health, _, wake) = checked(given.clone(), day).reported(3 * HOUR);
        let Health::Ready(_, text) = health else {
            panic!("{health:?}")
        };
        assert!(
            text.contains(words) && text.contains("1970-01-02T00:00:00Z"),
            "{text}"
        );
        wake
    };
    for listing in [
        listed(3 * HOUR, &both),
        listed(3 * HOUR, &both[..1]),
        KeyListing::NotOffered,
    ] {
        let wake = says(
            &given().listing(listing.clone()),
            "the platform does not show when it was last used",
        );
        assert_eq!(wake, Wake::At(at(day)), "{listing:?}");
    }
    says(
        &watched(3 * HOUR, Some(1)).listing(used(3 * HOUR, Some(1))),
        "until it was not used for 2h",
    );
    let why = revocation(&given().listing(listed(day, &both)), day).unwrap();
    assert!(why.contains("does not show"), "{why}");
    // A list without the key may be incomplete.
    assert!(revocation(&given().listing(listed(day, &both[..1])), day).is_some());
    let (left, event) = record(given().listing(KeyListing::NotOffered).step(day));
    assert!(event.unwrap().contains("Revoke it in the console"));
    assert_eq!(
        (left.previous.len(), left.lost[0].because),
        (0, LostBecause::Retired)
    );
}

#[test]
fn what_the_spec_says_now_counts() {
    let listing = || used(HOUR, Some(HOUR));
    let after_overlap = given()
        .listing(listing())
        .but(|spec, _| spec.rotation = Some(rotation("720h", "1h")));
    assert_eq!(revocation(&after_overlap, HOUR), None);
    let not_declared = given()
        .listing(listing())
        .but(|spec, _| spec.rotation = None);
    assert_eq!(revocation(&not_declared, HOUR), None);
    let longer = Rotation {
        deadline: Some(Length("48h".to_owned())),
        ..when_unused()
    };
    let longer = checked(
        watched(24 * HOUR, Some(0)).listing(used(24 * HOUR, Some(0))),
        30 * HOUR,
    )
    .but(|spec, _| spec.rotation = Some(longer));
    assert_eq!(
        longer.reported(24 * HOUR).2,
        Wake::At(at(26 * HOUR + PAUSE))
    );
    let revoke_at = |given: &GivenKey| {
        let said = status(
            &Report::ready("a"),
            &given.observed,
            &ProjectKeyStatus::default(),
            &given.spec,
            at(1),
        );
        said.previous_keys[0].revoke_at
    };
    assert_eq!(revoke_at(&given()), Some(at(24 * HOUR)));
    assert_eq!(revoke_at(&longer), Some(at(48 * HOUR)));
    assert_eq!(revoke_at(&not_declared), Some(at(HOUR)));
}

#[test]
fn a_key_that_was_of_no_use_any_more_is_not_waited_for() {
    // Its Secret was altered, so no client has it.
    let replaced = KeyRecords {
        previous: vec![retired(5, 1)],
        ..records(1)
    };
    assert_eq!(given().records(replaced).step(1), KeyStep::ListKeys);
    let previous = vec![
        RetiredKey {
            rotated: true,
            ..retired(6, HOUR)
        },
        retired(5, 1),
    ];
    let both = given().records(KeyRecords {
        previous,
        ..records(1)
    });
    let listing = used(2, Some(1));
    assert!(
        revokes_key(&both.listing(listing).step(2), 5),
        "neither delays the other"
    );
}
