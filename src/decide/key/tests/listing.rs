//! What a list of the organization's keys counts for, and what it shows of a key.

use super::*;
use crate::api::ProjectKeyStatus;

/// The same, with a list that does not count any more for what it lacks.
fn old(given: Given) -> Given {
    given.but(|_, seen| seen.listing_is_recent = false)
}

#[test]
fn only_a_recent_list_counts_for_what_it_lacks() {
    let refused = Probe::Refused { at: at(20), since: at(0) };
    let due = || Given::in_use().records(KeyRecords { previous: vec![retired(5, 10)], ..records(1) });
    for (what, given) in [
        ("whether a key was revoked", Given::in_use().probe(refused).listing(listed(1, &[]))),
        ("which key to revoke", Given::deleting().listing(listed(1, &[]))),
        ("which replaced key to revoke", due().listing(listed(1, &[(5, &key(5).name)]))),
    ] {
        assert_eq!(old(given.clone()).step(30), KeyStep::ListKeys, "{what}");
        assert_ne!(given.decide(30).step, Some(KeyStep::ListKeys), "{what}");
    }
}

#[test]
fn any_list_shows_what_it_has() {
    let begun = || old(Given::new().intent(intent(NAME, 0)).secret(KeySecretView::Ours(SecretContents::Nothing)));
    let found = begun().listing(listed(1, &[(4, NAME)]));
    let (records, _) = record(found.step(30));
    assert_eq!(records.lost[0].id, Some(4));
    // What began before the settle time was over proves nothing, however old it is.
    assert_eq!(begun().listing(listed(59, &[])).step(600), KeyStep::ListKeys);
    assert_eq!(begun().listing(listed(1, &[])).reported(30).2, Wake::At(at(60)));
    assert!(record(begun().listing(listed(60, &[])).step(600)).0.unanswered.is_some());
}

#[test]
fn no_list_is_read_for_keys_of_another_cluster_alone() {
    let foreign = LostKey { id: Some(7), ..lost("ci-0ther0-0a1b2c3d-00000007") };
    let given = Given::in_use().records(KeyRecords { lost: vec![foreign], ..records(1) }).listing(listed(1, &[]));
    assert_eq!(old(given.clone()).decide(30).step, None);
    assert_eq!(record(given.step(30)).0.lost, []);
}

#[test]
fn a_last_use_is_shown_once_an_hour() {
    let hour = |number: i64, second: i64| Some(at(number * 3600 + second));
    let shown = |known: Option<Timestamp>, listing: KeyListing| {
        let given = Given::in_use().listing(listing);
        let old = ProjectKeyStatus {
            key_id: Some(1),
            last_used_at: known,
            last_used_from: known.map(|_| "192.0.2.1".to_owned()),
            ..ProjectKeyStatus::default()
        };
        let status = status(&Report::ready("fine"), &given.observed, &old, &given.spec, at(9 * 3600));
        (status.last_used_at, status.last_used_from)
    };
    let used = |time: Option<Timestamp>| {
        let from = Some("192.0.2.2".to_owned());
        let mine = KeyEntry { last_used_at: time, last_used_from: from, ..entry(1, &key(1).name) };
        let another = KeyEntry { last_used_at: hour(8, 0), ..entry(2, "theirs") };
        KeyListing::Read { at: at(0), keys: vec![another, mine] }
    };
    let (before, now) = (Some("192.0.2.1".to_owned()), Some("192.0.2.2".to_owned()));
    for (known, listing, expected) in [
        (None, used(None), (None, None)),
        (None, used(hour(5, 9)), (hour(5, 9), now.clone())),
        (hour(5, 9), used(hour(5, 3599)), (hour(5, 9), before.clone())),
        (hour(5, 9), used(hour(6, 0)), (hour(6, 0), now)),
        (hour(5, 9), used(hour(4, 0)), (hour(5, 9), before.clone())),
        (hour(5, 9), used(None), (hour(5, 9), before.clone())),
        (hour(5, 9), listed(1, &[]), (hour(5, 9), before.clone())),
        (hour(5, 9), KeyListing::NotRead, (hour(5, 9), before.clone())),
        (hour(5, 9), KeyListing::NotOffered, (hour(5, 9), before)),
    ] {
        assert_eq!(shown(known, listing), expected);
    }
}

#[test]
fn of_another_key_nothing_is_known_yet() {
    let old = ProjectKeyStatus { key_id: Some(9), last_used_at: Some(at(1)), ..ProjectKeyStatus::default() };
    let of = |given: Given| status(&Report::ready("fine"), &given.observed, &old, &given.spec, at(1)).last_used_at;
    assert_eq!((of(Given::in_use()), of(Given::new())), (None, None));
}
