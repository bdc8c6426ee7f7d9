//! Tests of keys from another cluster: a clone of a cluster never revokes the keys of the original.

use super::*;

const FOREIGN: &str = "ci-0ther0-vpzc5qrz22arf-00000001";

fn foreign() -> KeyIdentity {
    KeyIdentity {
        name: FOREIGN.to_owned(),
        ..key(1)
    }
}

fn theirs() -> KeyRecords {
    KeyRecords {
        current: Some(foreign()),
        ..KeyRecords::default()
    }
}

fn in_use() -> GivenKey {
    let secret = KeySecretView::Ours(SecretContents::Key {
        key: foreign(),
        as_declared: true,
    });
    GivenKey::new()
        .records(theirs())
        .secret(secret)
        .listing(listed(1, &[(1, FOREIGN)]))
}

fn deleting(records: KeyRecords) -> GivenKey {
    in_use()
        .records(records)
        .but(|_, seen| seen.meta.deleting = true)
}

#[test]
fn a_key_of_another_cluster_is_used_and_not_revoked() {
    assert!(matches!(in_use().reported(1).0, Health::Ready(..)));
    let words = [
        FOREIGN,
        "--cluster-id 0ther0",
        "--overwrite 'dbplane.dev/revoked-keys=ci-0ther0-vpzc5qrz22arf-00000001'",
        "Orphan",
    ];
    deleting(theirs()).stalls(1, Reason::KeyOfAnotherCluster, &words);
    let Health::Stalled(_, text) = deleting(theirs()).reported(1).0 else {
        panic!("not stalled")
    };
    assert!(!text.contains("dbplane cannot revoke"), "{text}");
    // An operator with that cluster's identity revokes it.
    let same = deleting(theirs()).but(|_, seen| seen.cluster = "0ther0".parse().unwrap());
    let revoke = KeyStep::Revoke {
        id: KeyId(1),
        name: FOREIGN.to_owned(),
        records: KeyRecords::default(),
        in_use: None,
    };
    assert_eq!(same.step(1), revoke);
}

#[test]
fn a_key_of_another_resource_is_not_called_one_of_another_cluster() {
    let name = "ci-c1u57e-0000000000000-00000001";
    let records = KeyRecords {
        lost: vec![lost(name)],
        ..KeyRecords::default()
    };
    let given = deleting(records).listing(listed(1, &[(9, name)]));
    given.stalls(
        1,
        Reason::KeyOfAnotherCluster,
        &[name, "Not named for this resource"],
    );
    let Health::Stalled(_, text) = given.reported(1).0 else {
        panic!("not stalled")
    };
    assert!(!text.contains("--cluster-id"), "{text}");
}

/// Users paste the command.
#[test]
fn a_forged_name_adds_nothing_to_the_command() {
    let forged = "x'; touch /tmp/y; '";
    let records = KeyRecords {
        lost: vec![lost(forged)],
        ..KeyRecords::default()
    };
    let quoted = r"--overwrite 'dbplane.dev/revoked-keys=x'\''; touch /tmp/y; '\'''.";
    deleting(records).listing(listed(1, &[(9, forged)])).stalls(
        1,
        Reason::KeyOfAnotherCluster,
        &[quoted],
    );
}

#[test]
fn a_key_that_the_list_lacks_is_revoked_whoever_created_it() {
    let (records, _) = record(deleting(theirs()).listing(listed(1, &[])).step(1));
    assert_eq!(records, KeyRecords::default());
}

#[test]
fn own_keys_are_revoked_although_others_are_not() {
    let own = key(2);
    let mixed = KeyRecords {
        current: Some(own.clone()),
        ..KeyRecords::default()
    };
    let lost_there = KeyRecords {
        lost: vec![lost(FOREIGN)],
        ..KeyRecords::default()
    };
    let mixed = KeyRecords {
        lost: lost_there.lost.clone(),
        ..mixed
    };
    let listing = listed(1, &[(1, FOREIGN), (2, &own.name)]);
    let revoke = KeyStep::Revoke {
        id: KeyId(2),
        name: own.name.clone(),
        records: lost_there.clone(),
        in_use: None,
    };
    assert_eq!(deleting(mixed).listing(listing).step(1), revoke);
    deleting(lost_there).stalls(1, Reason::KeyOfAnotherCluster, &[FOREIGN]);
}

#[test]
fn a_replaced_key_of_another_cluster_is_listed_and_reported_once() {
    let replaced = RetiredKey {
        name: FOREIGN.to_owned(),
        ..retired(1, 1)
    };
    let due = GivenKey::in_use()
        .records(KeyRecords {
            previous: vec![replaced],
            ..records(2)
        })
        .with_key(2);
    let (after, event) = record(due.listing(listed(1, &[(1, FOREIGN)])).step(1));
    assert_eq!(
        after,
        KeyRecords {
            lost: vec![LostKey {
                id: Some(KeyId(1)),
                because: LostBecause::Retired,
                ..lost(FOREIGN)
            }],
            ..records(2)
        }
    );
    assert!(event.unwrap().contains("Another cluster"));
    for listing in [
        KeyListing::NotRead,
        KeyListing::NotOffered,
        listed(1, &[(1, FOREIGN)]),
    ] {
        let (health, sync, _) = GivenKey::in_use()
            .records(after.clone())
            .with_key(2)
            .listing(listing)
            .reported(1);
        assert!(matches!(health, Health::Ready(..)));
        let Sync::OutOfSync(Reason::KeyOfAnotherCluster, text) = sync else {
            panic!("{sync:?}")
        };
        assert!(
            text.contains("--cluster-id 0ther0") && text.contains(FOREIGN),
            "{text}"
        );
    }
    // Once the key is revoked, its record is dropped.
    let gone = GivenKey::in_use()
        .records(after)
        .with_key(2)
        .listing(listed(1, &[]));
    assert_eq!(record(gone.step(1)).0, records(2));
}

#[test]
fn a_creation_that_another_cluster_began_is_reported_and_not_revoked() {
    let begun = || {
        GivenKey::new()
            .secret(KeySecretView::Ours(SecretContents::Nothing))
            .intent(intent(FOREIGN, 0))
    };
    for given in [begun(), begun().but(|_, seen| seen.meta.deleting = true)] {
        let (after, event) = record(given.listing(listed(1, &[(4, FOREIGN)])).step(1));
        assert_eq!(
            after,
            KeyRecords {
                lost: vec![LostKey {
                    id: Some(KeyId(4)),
                    ..lost(FOREIGN)
                }],
                ..KeyRecords::default()
            }
        );
        assert!(event.unwrap().contains("another cluster"));
    }
    // The creation made no key.
    assert_eq!(
        record(begun().listing(listed(60, &[])).step(60)).0,
        KeyRecords::default()
    );
}

#[test]
fn a_key_without_a_unique_name_is_not_revoked() {
    let renamed = KeyRecords {
        lost: vec![lost("laptop")],
        ..KeyRecords::default()
    };
    let given = deleting(renamed).listing(listed(1, &[(9, "laptop")]));
    given.stalls(1, Reason::KeyOfAnotherCluster, &["laptop", "not revoked"]);
}
