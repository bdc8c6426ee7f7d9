//! Creations that a process began and did not record as done.

use super::*;

/// An intent that a process left behind. It began at second 0; the settle time is a minute.
fn begun() -> GivenKey {
    GivenKey::new()
        .secret(KeySecretView::Ours(SecretContents::Nothing))
        .intent(intent(NAME, 0))
}

#[test]
fn an_intent_whose_key_reached_the_secret_is_recorded() {
    let arrived = KeyIdentity {
        name: NAME.to_owned(),
        ..key(4)
    };
    let view = KeySecretView::Ours(SecretContents::Key {
        key: arrived.clone(),
        as_declared: true,
    });
    let (records, _) = record(begun().secret(view).step(1));
    let restored = [NAME.to_owned()].into();
    assert_eq!(
        records,
        KeyRecords {
            current: Some(arrived),
            restored,
            ..KeyRecords::default()
        }
    );
}

#[test]
fn an_intent_is_looked_up_by_its_unique_name() {
    assert_eq!(begun().step(1), KeyStep::ListKeys);
    // Not listed yet: the call may still be in progress.
    let early = begun().listing(listed(1, &[(3, "ci")]));
    let (health, _, wake) = early.reported(2);
    assert!(matches!(
        health,
        Health::Progressing(Reason::ConfirmingCreate, _)
    ));
    assert_eq!(wake, Wake::At(at(60)));
    // A list from before the end of the settle time proves nothing; a new one is needed.
    assert_eq!(early.step(60), KeyStep::ListKeys);
    let found = record(begun().listing(listed(60, &[(3, "ci")])).step(60));
    let unanswered = KeyRecords {
        unanswered: Some(at(0)),
        ..KeyRecords::default()
    };
    assert_eq!(found, (unanswered, None));
}

/// It is recorded as lost, which ends the intent, then revoked and replaced.
#[test]
fn a_key_that_is_found_by_its_name_is_given_up() {
    let exists = listed(1, &[(3, "ci"), (4, NAME)]);
    let lost = vec![LostKey {
        id: Some(KeyId(4)),
        ..lost(NAME)
    }];
    let given_up = KeyRecords {
        lost: lost.clone(),
        ..KeyRecords::default()
    };
    let found = record(begun().listing(exists.clone()).step(2));
    assert_eq!(found, (given_up.clone(), None));
    let revoke = |records| KeyStep::Revoke {
        id: KeyId(4),
        name: NAME.to_owned(),
        records,
        in_use: None,
    };
    let empty = GivenKey::new().secret(KeySecretView::Ours(SecretContents::Nothing));
    let revoked = KeyRecords::default();
    assert_eq!(
        empty
            .clone()
            .records(given_up)
            .listing(exists.clone())
            .step(2),
        revoke(revoked.clone())
    );
    created(empty.records(revoked).step(2));
    let replaced = GivenKey::in_use()
        .records(KeyRecords { lost, ..records(1) })
        .listing(exists);
    assert_eq!(replaced.step(2), revoke(records(1)));
}

#[test]
fn the_settle_time_counts_from_when_this_process_saw_the_intent() {
    // The clock of the recording process was behind: by that clock the settle time ended long ago.
    let seen = begun()
        .listing(listed(5000, &[]))
        .but(|_, seen| seen.memory.note_unresolved(Some(at(0)), at(4990)));
    assert_eq!(seen.reported(5000).2, Wake::At(at(5050)));
}

#[test]
fn keys_are_not_listed_again_and_again_while_that_fails() {
    let failing = begun().failed(Action::ListKeys, unanswered(), 10);
    let (health, _, wake) = failing.reported(10);
    assert!(matches!(
        health,
        Health::Unknown(Reason::PlatformUnreachable, _)
    ));
    assert_eq!(wake, Wake::At(at(11)));
    assert_eq!(failing.step(11), KeyStep::ListKeys);
}

#[test]
fn where_nothing_can_be_listed_the_key_is_reported_and_replaced() {
    // The other process that recorded it may be about to create the key and to save it.
    let begun = || begun().listing(KeyListing::NotOffered);
    let (health, _, wake) = begun().reported(59);
    assert!(matches!(
        health,
        Health::Progressing(Reason::ConfirmingCreate, _)
    ));
    assert_eq!(wake, Wake::At(at(60)));
    let own = begun().failed(Action::CreateKey, unanswered(), 1);
    assert_eq!(
        record(own.step(1)),
        record(begun().step(60)),
        "its own secret is lost for certain"
    );
    let (records, event) = record(begun().step(60));
    assert_eq!(
        records
            .lost
            .iter()
            .map(|key| key.name.as_str())
            .collect::<Vec<_>>(),
        [NAME]
    );
    assert!(event.unwrap().contains(NAME));
    let next = GivenKey::new()
        .records(records)
        .secret(KeySecretView::Ours(SecretContents::Nothing));
    created(next.listing(KeyListing::NotOffered).step(1));
}

#[test]
fn a_refusal_needs_no_list() {
    for fault in [
        refused(),
        Fault::Throttled {
            status: 429,
            retry_after: None,
        },
        Fault::Transport {
            message: "refused".into(),
        },
    ] {
        let (records, event) = record(begun().failed(Action::CreateKey, fault, 1).step(1));
        assert_eq!((records, event), (KeyRecords::default(), None));
    }
    // These answers leave the outcome unknown. So does 409, because a proxy may have sent the
    // request twice.
    let conflict = || Fault::Conflict {
        message: "choose another unique name".to_owned(),
    };
    for fault in [
        unanswered(),
        Fault::Server {
            status: 503,
            message: "later".into(),
        },
        conflict(),
    ] {
        assert_eq!(
            begun().failed(Action::CreateKey, fault, 1).step(1),
            KeyStep::ListKeys
        );
    }
    let minimal = begun()
        .failed(Action::CreateKey, conflict(), 1)
        .listing(KeyListing::NotOffered);
    assert_eq!(record(minimal.step(1)).0, KeyRecords::default());
}

fn other_key() -> Fault {
    Fault::OtherKey {
        id: KeyId(9),
        message: "which is not called what was asked for".to_owned(),
    }
}

#[test]
fn an_answer_with_another_key_is_looked_up_by_the_name_that_was_asked_for() {
    let other = || begun().failed(Action::CreateKey, other_key(), 1);
    assert_eq!(other().step(1), KeyStep::ListKeys);
    // The answer was for another request: the key with the right name is given up, revoked and
    // replaced.
    let (records, event) = record(
        other()
            .listing(listed(1, &[(4, NAME), (9, "theirs")]))
            .step(1),
    );
    assert_eq!(
        (records.lost, event),
        (
            vec![LostKey {
                id: Some(KeyId(4)),
                ..lost(NAME)
            }],
            None
        )
    );
    // A key of another project has the name, and is revoked too.
    let (records, _) = record(other().listing(listed(1, &[(9, NAME)])).step(1));
    let lost_key = LostKey {
        id: Some(KeyId(9)),
        ..lost(NAME)
    };
    assert_eq!(records.lost, std::slice::from_ref(&lost_key));
    let waiting = KeyRecords {
        lost: vec![lost_key],
        ..self::records(1)
    };
    let revoked = GivenKey::in_use()
        .records(waiting)
        .listing(listed(1, &[(9, NAME)]));
    assert_eq!(
        revoked.step(2),
        KeyStep::Revoke {
            id: KeyId(9),
            name: NAME.to_owned(),
            records: self::records(1),
            in_use: None
        }
    );
}

#[test]
fn an_answer_with_another_key_is_reported_at_once_where_no_key_has_the_name() {
    let another = LostKey {
        id: Some(KeyId(9)),
        because: LostBecause::OtherKey,
        ..lost(NAME)
    };
    for listing in [
        listed(1, &[(9, "cut")]),
        listed(1, &[]),
        KeyListing::NotOffered,
    ] {
        let given = || {
            begun()
                .failed(Action::CreateKey, other_key(), 1)
                .listing(listing.clone())
        };
        let (records, event) = record(given().step(1));
        assert_eq!(records.lost, std::slice::from_ref(&another));
        assert!(event.unwrap().contains("with key 9"));
        // Each attempt may leave one more key, so attempts become rare.
        let next = given()
            .but(|_, seen| seen.identity = Ok(ProjectKeyIdentity::default()))
            .records(records);
        next.stalls(2, Reason::Refused, &["key 9"]);
        assert_eq!(next.reported(2).2, Wake::At(at(31)));
        created(next.step(31));
    }
    // The number alone is not enough to revoke it: the key may belong to somebody else.
    let records = KeyRecords {
        lost: vec![another],
        ..self::records(1)
    };
    let (_, sync, _) = GivenKey::in_use()
        .records(records.clone())
        .listing(listed(1, &[(9, "cut")]))
        .reported(2);
    assert!(
        matches!(sync, Sync::OutOfSync(Reason::BindingConflict, text) if text.contains("does not revoke it"))
    );
    let deleting = GivenKey::deleting()
        .records(KeyRecords {
            current: None,
            ..records
        })
        .listing(listed(1, &[(9, "cut")]));
    deleting.stalls(2, Reason::BindingConflict, &["Key 9", "does not revoke it"]);
}

#[test]
fn a_successor_looks_for_the_name_alone() {
    // Another process received the answer. That key is unknown here, and none got the name within
    // the settle time.
    let (records, _) = record(begun().listing(listed(60, &[(9, "cut")])).step(60));
    assert_eq!(
        records,
        KeyRecords {
            unanswered: Some(at(0)),
            ..KeyRecords::default()
        }
    );
}

#[test]
fn the_outcome_of_this_processs_attempt_is_not_that_of_anothers() {
    let later = KeyIntent {
        at: at(1),
        ..begun().observed.facts.identity.unwrap().intent.unwrap()
    };
    // This process failed to create a key, and another leader began to create this one.
    let others = begun()
        .failed(Action::CreateKey, refused(), 2)
        .intent(later);
    assert_eq!(others.step(2), KeyStep::ListKeys);
}
