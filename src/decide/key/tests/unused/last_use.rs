//! The last use of a previous key, as recorded.

use super::*;

/// The recorded last use, and whether the key is known to work.
fn noted(given: &GivenKey, second: i64) -> (Option<(Option<i64>, i64)>, bool) {
    let (after, event) = record(given.step(second));
    assert_eq!((event, after.current), (None, Some(key(1))));
    let RetiredKey {
        last_use, worked, ..
    } = &after.previous[0];
    let of = |seen: &LastUse| (seen.at.map(Timestamp::as_second), seen.since.as_second());
    (last_use.as_ref().map(of), *worked)
}

#[test]
fn the_first_list_is_recorded() {
    let day = 24 * HOUR;
    let first = |last_used| noted(&given().listing(used(1, last_used)), 1);
    assert_eq!(first(Some(-day)), (Some((Some(-day), 1)), true));
    assert_eq!(first(None), (Some((None, 1)), false), "never used");
}

#[test]
fn each_other_last_use_starts_the_time_again() {
    let day = 24 * HOUR;
    for (what, before, now) in [
        ("used", Some(0), Some(9)),
        ("used by a clock behind ours", Some(-day), Some(9 - day)),
        ("used by a clock ahead of ours", Some(day), Some(9 + day)),
        ("an earlier use", Some(9), Some(3)),
        ("used for the first time", None, Some(9)),
        ("never, and it was used before", Some(0), None),
    ] {
        let given = watched(1, before).listing(used(HOUR, now));
        assert_eq!(noted(&given, HOUR), (Some((now, HOUR)), true), "{what}");
    }
    let put_back = watched(day, Some(0)).listing(used(HOUR, Some(0)));
    assert_eq!(
        noted(&put_back, HOUR),
        (Some((Some(0), HOUR)), true),
        "our clock was put back"
    );
}

#[test]
fn without_a_last_use_in_the_list_none_is_recorded() {
    let (one, five) = (key(1).name, key(5).name);
    let both = [(1, one.as_str()), (5, five.as_str())];
    let not_listed = watched(1, Some(0)).listing(listed(HOUR, &both[..1]));
    assert_eq!(noted(&not_listed, HOUR), (None, true));
    let not_shown = watched(1, Some(0)).listing(listed(HOUR, &both));
    assert_eq!(noted(&not_shown, HOUR), (None, true));
    let not_offered = watched(1, None).listing(KeyListing::NotOffered);
    assert_eq!(noted(&not_offered, HOUR), (None, false));
}

/// A list of a key in constant use shows another last use each time.
#[test]
fn it_is_recorded_no_more_often_than_that_is_needed() {
    let since = HOUR;
    let another = |second: i64| watched(since, Some(0)).listing(used(second, Some(9)));
    let early = checked(another(since + PAUSE - 1), 24 * HOUR);
    assert_eq!(
        early.reported(since + PAUSE - 1).2,
        Wake::At(at(since + PAUSE))
    );
    assert_eq!(
        noted(&another(since + PAUSE), since + PAUSE).0,
        Some((Some(9), since + PAUSE))
    );
    // An earlier list says nothing about later uses.
    assert_eq!(
        known(given(), used(1, None)).step(1),
        without_platform(record_of(1, None))
    );
    let older = known(watched(since, Some(0)), used(since + PAUSE - 1, Some(9)));
    assert_eq!(older.step(since + PAUSE), KeyStep::ListKeys);
}

fn record_of(since: i64, last_used: Option<i64>) -> KeyStep {
    KeyStep::Record {
        records: watched(since, last_used)
            .observed
            .facts
            .identity
            .unwrap()
            .records,
        event: None,
    }
}

/// Returns when the key is revoked. Consumers use it every ten minutes until that time, and a list
/// is read every quarter of an hour.
fn revoked_at(skew: i64, used_until: i64) -> i64 {
    let mut given = given();
    for second in (0..24 * HOUR).step_by(900) {
        let last_used = second.min(used_until) / 600 * 600;
        given = given.listing(used(second, Some(last_used + skew)));
        while let Some(KeyStep::Record { records, .. }) = given.decide(second).step {
            given = given.records(records);
        }
        if let KeyStep::Revoke {
            id: KeyId(5),
            in_use,
            ..
        } = checked(given.clone(), 48 * HOUR)
            .decide(second)
            .step
            .unwrap_or(KeyStep::Probe)
        {
            assert_eq!(in_use, None);
            return second;
        }
    }
    24 * HOUR
}

#[test]
fn the_clock_of_the_platform_may_be_days_apart() {
    let day = 24 * HOUR;
    for (used_until, revoked) in [
        (0, 2 * HOUR + PAUSE),
        (5 * HOUR, 7 * HOUR + 2 * PAUSE),
        (day, day),
    ] {
        for skew in [0, -day, day, -2 * HOUR, 2 * HOUR] {
            let at = revoked_at(skew, used_until);
            assert!(
                at >= (used_until + 2 * HOUR).min(day) && at <= revoked,
                "{skew} {used_until}: {at}"
            );
        }
    }
}

#[test]
fn never_used_is_not_known_of_a_key_that_was_seen_to_work() {
    let day = 24 * HOUR;
    let worked =
        given().but(|_, seen| seen.identity.as_mut().unwrap().records.previous[0].worked = true);
    let waiting = checked(worked.clone().listing(used(HOUR, None)), 2 * day).reported(HOUR);
    assert_eq!(waiting.2, Wake::At(at(day)));
    let Health::Ready(_, text) = waiting.0 else {
        panic!()
    };
    assert!(
        text.contains("does not show when it was last used"),
        "{text}"
    );
    let why = revocation(&worked.listing(used(day, None)), day).unwrap();
    assert!(why.contains("does not show"), "{why}");
}

/// A list with key 1 alone, and its last use.
fn only_current(last_used: Option<i64>) -> KeyListing {
    let KeyListing::Read { at: begun, keys } = listed(HOUR, &[(1, &key(1).name)]) else {
        panic!()
    };
    let mut keys = keys.into_parts().0;
    keys[0].last_used_at = last_used.map(at);
    KeyListing::Read {
        at: begun,
        keys: keys.into(),
    }
}

/// The records after a rotation from key 1 to key 2.
fn rotated(given: &GivenKey) -> KeyRecords {
    let due = given
        .clone()
        .but(|spec, _| spec.rotation = Some(rotation("1h", "1m")));
    let KeyStep::CreateKey { intent, .. } = due.step(2 * HOUR) else {
        panic!()
    };
    let identity = given.observed.identity.clone().unwrap();
    identity.records.succeeded_by(key(2), &intent)
}

#[test]
fn which_keys_were_seen_to_work() {
    let account = KeyAccount {
        label: "Account prod".into(),
        users: Vec::new(),
        follows: true,
    };
    let tried = |id: i64| KeyRecords {
        tried: Some(KeyId(id)),
        ..records(1)
    };
    for (what, given, expected) in [
        ("nothing is known", GivenKey::in_use(), false),
        (
            "it is listed",
            GivenKey::in_use().listing(only_current(None)),
            false,
        ),
        (
            "its use is listed",
            GivenKey::in_use().listing(only_current(Some(1))),
            true,
        ),
        (
            "an account works with it",
            GivenKey::in_use().but(|_, seen| seen.accounts = vec![account.clone()]),
            true,
        ),
        ("it was tried", GivenKey::in_use().records(tried(1)), true),
        (
            "another one was",
            GivenKey::in_use().records(tried(7)),
            false,
        ),
    ] {
        let after = rotated(&given);
        assert_eq!(after.previous[0].worked, expected, "{what}");
        assert_eq!(after.tried, Some(KeyId(2)), "{what}");
    }
}
