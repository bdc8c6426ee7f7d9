//! A resource and its Secret that come from a backup.

use super::*;
use crate::api::KeyDeletion;

const OTHER_UID: &str = "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9";

fn from_backup(key: KeyIdentity) -> KeySecretView {
    KeySecretView::Restored { key, version: "7".to_owned() }
}

fn taken_back(id: i64) -> KeyStep {
    KeyStep::AdoptSecret { key: key(id).name, version: "7".to_owned() }
}

/// Created anew at second 0, with the annotations of before.
fn anew() -> Given {
    Given::new().records(records(1)).but(|_, seen| seen.uid = OTHER_UID.to_owned())
}

#[test]
fn a_secret_with_a_key_that_the_annotations_know_is_taken_back() {
    let known = KeyRecords { previous: vec![retired(5, 9000)], ..records(1) };
    for id in [1, 5] {
        assert_eq!(anew().records(known.clone()).secret(from_backup(key(id))).step(1), taken_back(id));
    }
    // One that was begun, and written before it was recorded.
    let begun = Given::new().intent(intent(&key(4).name, 0)).secret(from_backup(key(4)));
    assert_eq!(begun.step(1), taken_back(4));
    // Whoever else wants the Secret: it holds this resource's key.
    let rival = anew().secret(from_backup(key(1))).but(|_, seen| seen.rival = Some("ProjectKey old".to_owned()));
    assert_eq!(rival.step(1), taken_back(1));
    // Then everything is as before: nothing is created, and nothing is revoked.
    assert!(matches!(anew().holds(1).says(1).0, Health::Ready(..)));
}

#[test]
fn a_secret_with_any_other_key_is_somebody_elses() {
    let renamed = KeyIdentity { name: key(2).name, ..key(1) };
    let renumbered = KeyIdentity { id: 2, ..key(1) };
    for other in [key(2), renamed, renumbered] {
        let given = anew().secret(from_backup(other));
        given.stalls(1, Reason::SecretNotOurs, &["Secret ci-key", "earlier resource", "does not change it"]);
    }
    let lost_only = KeyRecords { lost: vec![lost(&key(1).name)], ..KeyRecords::default() };
    Given::new().records(lost_only).secret(from_backup(key(1))).stalls(
        1,
        Reason::SecretNotOurs,
        &["does not change it"],
    );
    Given::new().secret(from_backup(key(1))).stalls(1, Reason::SecretNotOurs, &["does not change it"]);
}

#[test]
fn taking_back_waits_after_a_failure_and_while_paused() {
    let failing = anew().secret(from_backup(key(1))).secret_failed(10);
    failing.stalls(10, Reason::SecretNotWritten, &["ci-key"]);
    assert_eq!(failing.step(11), taken_back(1));
    let paused = anew().secret(from_backup(key(1))).but(|_, seen| seen.meta.paused = true);
    assert!(matches!(paused.says(1).0, Health::Unknown(Reason::Paused, _)));
    let unsaved = anew().secret(from_backup(key(1))).but(|_, seen| seen.unsaved = Some(key(2)));
    assert_eq!(unsaved.intent(intent(&key(2).name, 0)).step(1), taken_back(1));
}

#[test]
fn a_secret_that_a_backup_may_restore_after_its_resource_is_waited_for() {
    let (health, _, wake) = anew().says(1);
    assert!(matches!(health, Health::Progressing(Reason::Creating, text) if text.contains("backup")));
    assert_eq!(wake, Wake::At(at(60)));
    assert_eq!(anew().step(60), KeyStep::PrepareSecret);
    // One that is deleted of a resource that was not restored is replaced at once.
    assert_eq!(Given::new().records(records(1)).step(1), KeyStep::PrepareSecret);
}

#[test]
fn a_deletion_takes_the_secret_along() {
    let deleting = || Given::deleting().secret(from_backup(key(1)));
    assert_eq!(deleting().step(1), taken_back(1));
    let orphan = deleting().but(|spec, _| spec.deletion = KeyDeletion::Orphan);
    assert_eq!(orphan.step(1), taken_back(1));
    // Where it cannot, it does not keep the resource.
    assert_eq!(deleting().secret_failed(1).step(1), KeyStep::ListKeys);
    let foreign = Given::deleting().secret(from_backup(key(2)));
    assert_eq!(foreign.step(1), KeyStep::ListKeys);
}
