//! Tests of lists of keys with unreadable entries: the conclusions that they do not allow.

use super::*;
use crate::domain::{Listed, UnreadableEntry};

/// The list has these keys, and one entry of which only this number is readable.
fn hiding(second: i64, keys: &[(i64, &str)], id: Option<i64>) -> KeyListing {
    let KeyListing::Read { at, keys } = listed(second, keys) else {
        unreachable!()
    };
    let entry = UnreadableEntry {
        id: id.map(|id| id.to_string()),
        field: "name".to_owned(),
    };
    KeyListing::Read {
        at,
        keys: Listed::new(keys.into_parts().0, vec![entry].into()),
    }
}

fn waits(given: &GivenKey, second: i64) {
    let (health, _, _) = given.reported(second);
    assert!(
        matches!(health, Health::Unknown(Reason::UnreadableEntries, _)),
        "{health:?}"
    );
}

/// A creation that began at second 0 and was never recorded.
fn begun() -> GivenKey {
    GivenKey::new()
        .secret(KeySecretView::Ours(SecretContents::Nothing))
        .intent(intent(&key(2).name, 0))
}

const AFTER: i64 = 100;

#[test]
fn a_key_that_was_never_recorded_is_not_known_to_be_absent() {
    for id in [Some(7), None] {
        waits(&begun().listing(hiding(AFTER, &[], id)), AFTER);
        let mut deleting = begun().listing(hiding(AFTER, &[], id));
        deleting.observed.meta.deleting = true;
        waits(&deleting, AFTER);
        // It is listed under its name.
        let (records, _) = record(
            begun()
                .listing(hiding(AFTER, &[(9, &key(2).name)], id))
                .step(AFTER),
        );
        assert_eq!(records.lost[0].id, Some(KeyId(9)));
    }
    record(begun().listing(listed(AFTER, &[])).step(AFTER));
}

#[test]
fn a_refused_key_that_may_be_the_entry_is_not_known_to_be_revoked() {
    let refused = Probe::Refused {
        at: at(10),
        since: at(-5),
        was_accepted: true,
    };
    let given = |listing| GivenKey::in_use().probe(refused).listing(listing);
    for id in [Some(1), None] {
        let (health, _, _) = given(hiding(10, &[], id)).reported(10);
        assert!(
            matches!(health, Health::Unknown(Reason::KeyRevoked, _)),
            "{health:?}"
        );
    }
    created(given(listed(10, &[])).step(10));
}

#[test]
fn the_key_itself_is_asked_where_the_list_does_not_show_it() {
    for id in [Some(1), None] {
        assert_eq!(hiding(AFTER, &[], id).has(&key(1)), None);
        assert_eq!(
            GivenKey::in_use().listing(hiding(4000, &[], id)).step(4000),
            KeyStep::Probe
        );
    }
    assert_eq!(hiding(AFTER, &[], Some(7)).has(&key(1)), Some(false));
    assert_eq!(
        hiding(AFTER, &[(1, &key(1).name)], None).has(&key(1)),
        Some(true)
    );
}

#[test]
fn a_lost_key_without_a_number_stays_recorded_and_no_other_is_created() {
    let given = |id, listing| {
        let left = LostKey {
            id,
            ..lost(&key(5).name)
        };
        let records = KeyRecords {
            lost: vec![left],
            ..KeyRecords::default()
        };
        GivenKey::new()
            .records(records)
            .secret(KeySecretView::Ours(SecretContents::Nothing))
            .listing(listing)
    };
    for id in [Some(7), None] {
        waits(&given(None, hiding(AFTER, &[], id)), AFTER);
    }
    // It can be revoked by its number, unless that is the number of a key with an unknown name.
    assert!(revokes_key(
        &given(Some(KeyId(5)), hiding(AFTER, &[], None)).step(AFTER),
        5
    ));
    assert!(revokes_key(
        &given(Some(KeyId(5)), hiding(AFTER, &[], Some(7))).step(AFTER),
        5
    ));
    waits(&given(Some(KeyId(5)), hiding(AFTER, &[], Some(5))), AFTER);
    assert!(
        record(given(None, listed(AFTER, &[])).step(AFTER))
            .0
            .lost
            .is_empty()
    );
}

#[test]
fn others_are_revoked_and_the_resource_waits_for_the_one_that_may_be_the_entry() {
    let hidden = lost(&key(5).name);
    let both = KeyRecords {
        lost: vec![hidden.clone()],
        ..records(1)
    };
    let listing = hiding(AFTER, &[(1, &key(1).name)], None);
    let given = GivenKey::deleting().records(both).listing(listing);
    assert!(revokes_key(&given.step(AFTER), 1));
    let rest = KeyRecords {
        lost: vec![hidden],
        ..KeyRecords::default()
    };
    waits(
        &GivenKey::deleting()
            .records(rest)
            .listing(hiding(AFTER, &[], None)),
        AFTER,
    );
}
