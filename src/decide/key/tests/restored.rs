//! Tests of a resource and its Secret from a backup.

use super::*;
use crate::api::KeyDeletion;

const OTHER_UID: &str = "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9";

fn from_backup(key: KeyIdentity) -> KeySecretView {
    KeySecretView::Restored {
        key,
        version: "7".to_owned(),
    }
}

fn adopted(id: i64) -> KeyStep {
    KeyStep::AdoptSecret {
        key: Some(key(id).name),
        version: "7".to_owned(),
    }
}

/// A resource that was restored at second 0 with its annotations.
fn restored() -> GivenKey {
    GivenKey::new()
        .records(from_secret(records(1)))
        .but(|_, seen| seen.uid = OTHER_UID.into())
}

#[test]
fn a_secret_with_a_recorded_key_is_adopted() {
    let known = KeyRecords {
        previous: vec![retired(5, 9000)],
        ..records(1)
    };
    for id in [1, 5] {
        assert_eq!(
            restored()
                .records(known.clone())
                .secret(from_backup(key(id)))
                .step(1),
            adopted(id)
        );
    }
    // A key whose creation was in progress, written to its Secret before it was recorded.
    let begun = GivenKey::new()
        .intent(intent(&key(4).name, 0))
        .secret(from_backup(key(4)));
    assert_eq!(begun.step(1), adopted(4));
    // Another resource that names the Secret changes nothing: the Secret contains this resource's
    // key.
    let rival = restored()
        .secret(from_backup(key(1)))
        .but(|_, seen| seen.rival = Some("ProjectKey old".to_owned()));
    assert_eq!(rival.step(1), adopted(1));
    // Then everything is as before: nothing is created, and nothing is revoked.
    assert!(matches!(
        restored().with_key(1).reported(1).0,
        Health::Ready(..)
    ));
}

#[test]
fn an_empty_secret_that_was_made_for_the_resource_is_adopted() {
    let empty = || KeySecretView::Unowned {
        version: "7".to_owned(),
    };
    let step = KeyStep::AdoptSecret {
        key: None,
        version: "7".to_owned(),
    };
    // The Secret was made before the key: no key is recorded.
    for given in [
        GivenKey::new(),
        restored(),
        GivenKey::new().intent(intent(NAME, 0)),
    ] {
        assert_eq!(given.clone().secret(empty()).step(1), step);
        let deleting = given
            .secret(empty())
            .but(|_, seen| seen.meta.deleting = true);
        assert_eq!(
            deleting.step(1),
            step,
            "Kubernetes deletes it with its owner"
        );
    }
}

#[test]
fn a_secret_with_any_other_key_is_foreign() {
    let renamed = KeyIdentity {
        name: key(2).name,
        ..key(1)
    };
    let renumbered = KeyIdentity {
        id: KeyId(2),
        ..key(1)
    };
    for other in [key(2), renamed, renumbered] {
        let given = restored().secret(from_backup(other));
        given.stalls(
            1,
            Reason::SecretNotOurs,
            &["Secret ci-key", "earlier resource", "does not change it"],
        );
    }
    let lost_only = KeyRecords {
        lost: vec![lost(&key(1).name)],
        ..KeyRecords::default()
    };
    GivenKey::new()
        .records(lost_only)
        .secret(from_backup(key(1)))
        .stalls(1, Reason::SecretNotOurs, &["does not change it"]);
    GivenKey::new().secret(from_backup(key(1))).stalls(
        1,
        Reason::SecretNotOurs,
        &["does not change it"],
    );
}

#[test]
fn adopting_waits_after_a_failure_and_while_paused() {
    let failing = restored().secret(from_backup(key(1))).secret_failed(10);
    failing.stalls(10, Reason::SecretNotWritten, &["ci-key"]);
    assert_eq!(failing.step(11), adopted(1));
    let paused = restored()
        .secret(from_backup(key(1)))
        .but(|_, seen| seen.meta.paused = true);
    assert!(matches!(paused.reported(1).0, Health::Paused(_)));
    let unsaved = restored()
        .secret(from_backup(key(1)))
        .but(|_, seen| seen.unsaved = Some(key(2)));
    assert_eq!(unsaved.intent(intent(&key(2).name, 0)).step(1), adopted(1));
}

#[test]
fn a_secret_that_a_backup_may_restore_after_its_resource_is_waited_for() {
    let (health, _, wake) = restored().reported(1);
    assert!(
        matches!(health, Health::Progressing(Reason::Creating, text) if text.contains("backup"))
    );
    assert_eq!(wake, Wake::At(at(60)));
    assert_eq!(restored().step(60), KeyStep::PrepareSecret);
    // The deleted Secret of a resource that was not restored is replaced at once.
    assert_eq!(
        GivenKey::new().records(records(1)).step(1),
        KeyStep::PrepareSecret
    );
}

#[test]
fn a_deletion_adopts_the_secret_so_that_it_is_deleted_too() {
    let deleting = || GivenKey::deleting().secret(from_backup(key(1)));
    assert_eq!(deleting().step(1), adopted(1));
    let orphan = deleting().but(|spec, _| spec.deletion = KeyDeletion::Orphan);
    assert_eq!(orphan.step(1), adopted(1));
    // A Secret that cannot be adopted does not delay the deletion.
    assert_eq!(deleting().secret_failed(1).step(1), KeyStep::ListKeys);
    let foreign = GivenKey::deleting().secret(from_backup(key(2)));
    assert_eq!(foreign.step(1), KeyStep::ListKeys);
}

#[test]
fn a_key_that_is_listed_under_another_number_is_not_said_to_be_gone() {
    let name = key(1).name;
    let lost = KeyRecords {
        lost: vec![LostKey {
            id: Some(KeyId(9)),
            ..lost(&name)
        }],
        ..KeyRecords::default()
    };
    let given = GivenKey::deleting()
        .records(from_secret(lost))
        .listing(listed(1, &[(1, &name)]));
    given.stalls(
        1,
        Reason::BindingConflict,
        &[&name, "under another number", "in the platform's console"],
    );
}

#[test]
fn a_name_that_was_not_issued_here_is_reported_alike_whether_a_list_was_read() {
    const FOREIGN: &str = "ci-0ther0-vpzc5qrz22arf-00000001";
    for because in [LostBecause::Retired, LostBecause::OtherKey] {
        let lost = LostKey {
            id: Some(KeyId(9)),
            because,
            ..lost(FOREIGN)
        };
        let known = KeyRecords {
            lost: vec![lost],
            restored: [FOREIGN.to_owned()].into(),
            ..records(1)
        };
        let given = || GivenKey::in_use().records(known.clone());
        let unread = given().listing(KeyListing::NotRead).reported(1).1;
        assert!(
            matches!(unread, Sync::OutOfSync(Reason::KeyOfAnotherCluster, _)),
            "{unread:?}"
        );
        for keys in [
            [(1, key(1).name), (4, FOREIGN.to_owned())],
            [(1, key(1).name), (9, "laptop".to_owned())],
        ] {
            let keys: Vec<_> = keys.iter().map(|(id, name)| (*id, name.as_str())).collect();
            assert_eq!(given().listing(listed(1, &keys)).reported(1).1, unread);
        }
    }
}

#[test]
fn a_refused_key_that_is_listed_under_another_number_does_not_count_as_revoked() {
    let refused = Probe::Refused {
        at: at(20),
        since: at(0),
        was_accepted: true,
    };
    let given = GivenKey::in_use()
        .probe(refused)
        .listing(listed(20, &[(7, &key(1).name)]));
    let (health, _, wake) = given.reported(20);
    assert!(
        matches!(health, Health::Unknown(Reason::KeyRevoked, _)),
        "{health:?}"
    );
    assert_eq!(wake, Wake::At(at(35)));
}
