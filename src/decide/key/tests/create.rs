//! Tests of the creation of a key and its Secret, with every interruption.

mod unrecorded;

use super::*;

#[test]
fn finalizer_then_secret_then_key() {
    let given = GivenKey::new().but(|_, seen| seen.meta.has_finalizer = false);
    assert_eq!(given.step(0), KeyStep::Restore { record: None });
    assert_eq!(GivenKey::new().step(0), KeyStep::PrepareSecret);
    let unusable = given.but(|_, seen| seen.account = AccountView::Pending);
    assert_eq!(
        unusable.decide(0).step,
        None,
        "there is no key that it would have to stay for"
    );
    let (intent, because) = created(
        GivenKey::new()
            .secret(KeySecretView::Ours(SecretContents::Nothing))
            .step(5),
    );
    assert_eq!(
        intent,
        KeyIntent {
            organization: Some("org-1".into()),
            ..super::intent(NAME, 5)
        }
    );
    assert_eq!(because, None);
}

#[test]
fn a_foreign_secret_is_not_written_and_is_named() {
    let foreign = || KeySecretView::Foreign("Deployment shop's".to_owned());
    let words = ["Secret ci-key", "Deployment shop's", "Delete it"];
    GivenKey::new()
        .secret(foreign())
        .stalls(0, Reason::SecretNotOurs, &words);
    let unsaved = GivenKey::new()
        .secret(foreign())
        .but(|_, seen| seen.unsaved = Some(key(1)));
    unsaved.stalls(0, Reason::SecretNotOurs, &words);
}

#[test]
fn the_older_resource_creates_the_secret_and_the_owner_keeps_it() {
    let rival =
        |given: GivenKey| given.but(|_, seen| seen.rival = Some("ProjectKey old".to_owned()));
    rival(GivenKey::new()).stalls(
        0,
        Reason::ClaimedByAnother,
        &["ProjectKey old wants Secret ci-key", "Delete one"],
    );
    let foreign = KeySecretView::Foreign("ProjectKey old's".to_owned());
    rival(GivenKey::new().secret(foreign)).stalls(
        0,
        Reason::ClaimedByAnother,
        &["Secret ci-key is ProjectKey old's"],
    );
    let (health, _, _) = rival(GivenKey::in_use()).reported(1);
    assert!(matches!(health, Health::Ready(..)), "{health:?}");
}

#[test]
fn the_accounts_problem_is_reported() {
    let with = |account: AccountView| GivenKey::new().but(|_, seen| seen.account = account);
    let none = AccountView::Usable { organization: None };
    with(none).stalls(0, Reason::OrganizationMissing, &["prod", "organizationID"]);
    let missing = AccountView::Missing {
        name: "Account prod".to_owned(),
    };
    with(missing).stalls(0, Reason::AccountNotFound, &["Account prod"]);
    let denied = AccountView::NamespaceNotAllowed {
        name: "ClusterAccount prod".to_owned(),
    };
    with(denied).stalls(0, Reason::NamespaceNotAllowed, &["ClusterAccount prod"]);
    let unready = AccountView::NotReady {
        name: "Account prod".to_owned(),
        message: "a 401".to_owned(),
    };
    assert!(
        matches!(with(unready).reported(0).0, Health::Unknown(Reason::AccountNotReady, text) if text.contains("a 401"))
    );
    assert_eq!(with(AccountView::Pending).decide(0), Decision::silent());
}

#[test]
fn paused_means_no_step_but_a_secret_in_memory_is_saved() {
    let paused = GivenKey::new().but(|_, seen| seen.meta.paused = true);
    assert!(matches!(paused.reported(0).0, Health::Paused(_)));
    let unsaved = paused.but(|_, seen| seen.unsaved = Some(key(1)));
    assert_eq!(unsaved.step(0), KeyStep::SaveSecret);
}

#[test]
fn a_secret_in_memory_comes_first_and_is_tried_again_with_pauses() {
    let given = || {
        GivenKey::new().intent(intent(NAME, 0)).but(|_, seen| {
            seen.unsaved = Some(KeyIdentity {
                name: NAME.to_owned(),
                ..key(1)
            });
            seen.account = AccountView::Missing {
                name: "Account prod".to_owned(),
            };
        })
    };
    assert_eq!(given().step(0), KeyStep::SaveSecret);
    let (health, _, wake) = given().secret_failed(10).reported(10);
    assert!(matches!(
        health,
        Health::Stalled(Reason::SecretNotWritten, _)
    ));
    assert_eq!(wake, Wake::At(at(11)));
    assert_eq!(given().secret_failed(10).step(11), KeyStep::SaveSecret);
}

#[test]
fn failures_before_the_call_delay_it() {
    let ready = || GivenKey::new().secret(KeySecretView::Ours(SecretContents::Nothing));
    assert!(matches!(
        GivenKey::new().secret_failed(10).reported(10).0,
        Health::Stalled(Reason::SecretNotWritten, _)
    ));
    assert!(matches!(
        ready().secret_failed(10).reported(10).0,
        Health::Stalled(Reason::SecretNotWritten, _)
    ));
    let refused = ready().failed(Action::CreateKey, refused(), 10);
    refused.stalls(10, Reason::Forbidden, &["administrators only"]);
    assert_eq!(refused.reported(10).2, Wake::At(at(40)));
    created(refused.step(40));
    // A new spec is tried at once.
    created(refused.but(|_, seen| seen.meta.generation = 2).step(11));
    let throttled = Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(17)),
    };
    let throttled = ready().failed(Action::CreateKey, throttled, 10);
    assert!(matches!(
        throttled.reported(10).0,
        Health::Progressing(Reason::PlatformBusy, _)
    ));
    assert_eq!(throttled.reported(10).2, Wake::At(at(27)));
}

#[test]
fn a_key_that_another_leader_has_given_up_is_not_saved() {
    let mine = || KeyIdentity {
        name: NAME.to_owned(),
        ..key(4)
    };
    let lost = LostKey {
        id: Some(KeyId(4)),
        ..lost(NAME)
    };
    let given_up = KeyRecords {
        lost: vec![lost.clone()],
        ..KeyRecords::default()
    };
    let contents = |given: GivenKey| given.but(|_, seen| seen.unsaved = Some(mine()));
    let left = |records: &KeyRecords| KeyStep::GiveUpUnsaved {
        records: records.clone(),
    };
    assert_eq!(
        contents(GivenKey::new().records(given_up.clone())).step(1),
        left(&given_up)
    );
    // It is already revoked, and its successor is in use or begun: neither is changed.
    let replaced = KeyRecords {
        lost: vec![lost],
        ..records(5)
    };
    assert_eq!(
        contents(GivenKey::new().records(records(5)).with_key(5)).step(1),
        left(&replaced)
    );
    let successor = || intent("ci-c1u57e-vpzc5qrz22arf-00000008", 1);
    assert_eq!(
        contents(GivenKey::new().intent(successor())).step(1),
        left(&given_up)
    );
    assert_eq!(
        contents(
            GivenKey::deleting()
                .records(KeyRecords::default())
                .intent(successor())
        )
        .step(1),
        left(&given_up)
    );
    // A lost key that this leader wrote into the Secret meanwhile is not used.
    let written = KeySecretView::Ours(SecretContents::Key {
        key: mine(),
        as_declared: true,
    });
    let recorded = |given: GivenKey| given.but(|_, seen| seen.meta.record = Some("{}".to_owned()));
    let unused = recorded(GivenKey::new().records(given_up).secret(written));
    assert_eq!(unused.step(1), KeyStep::ListKeys);
    // Nor once it is revoked: a record without the key does not show that it was lost.
    created(unused.records(KeyRecords::default()).step(1));
    // If the annotations were removed altogether, nobody else has the secret.
    assert_eq!(contents(GivenKey::new()).step(1), KeyStep::SaveSecret);
}

#[test]
fn annotations_that_were_removed_are_restored_from_the_secret() {
    let (restored, event) = record(GivenKey::in_use().records(KeyRecords::default()).step(1));
    assert_eq!((restored, event), (from_secret(records(1)), None));
}

#[test]
fn no_key_is_created_into_a_secret_that_is_being_deleted() {
    let going = |given: GivenKey| given.but(|_, seen| seen.secret_deleting = true);
    for contents in [SecretContents::Nothing, SecretContents::Altered] {
        let (health, _, wake) =
            going(GivenKey::new().secret(KeySecretView::Ours(contents))).reported(1);
        assert!(
            matches!(health, Health::Progressing(Reason::Creating, text) if text.contains("being deleted"))
        );
        assert_eq!(wake, Wake::OnChange);
    }
    // The key in it is usable as long as it exists. A key in memory stays in memory.
    assert!(matches!(
        going(GivenKey::in_use()).reported(1).0,
        Health::Ready(..)
    ));
    let unsaved = GivenKey::new()
        .secret(KeySecretView::Ours(SecretContents::Nothing))
        .but(|_, seen| seen.unsaved = Some(key(1)));
    assert_eq!(going(unsaved).step(1), KeyStep::SaveSecret);
}

/// The records after this many given-up creations.
fn given_up(count: i64) -> KeyRecords {
    let lost = (1..=count).map(|number| lost(&key(number).name)).collect();
    KeyRecords {
        lost,
        ..KeyRecords::default()
    }
}

#[test]
fn what_was_lost_is_revoked_before_another_key_is_created() {
    let empty = || KeySecretView::Ours(SecretContents::Nothing);
    let given = GivenKey::new().records(given_up(2)).secret(empty());
    assert_eq!(given.step(1), KeyStep::ListKeys);
    let (first, second) = (key(1).name, key(2).name);
    let both = given
        .clone()
        .listing(listed(1, &[(4, &first), (5, &second)]));
    let records = KeyRecords {
        lost: vec![lost(&second)],
        ..KeyRecords::default()
    };
    assert_eq!(
        both.step(1),
        KeyStep::Revoke {
            id: KeyId(4),
            name: first,
            records,
            in_use: None
        }
    );
    let refused = both.failed(Action::Revoke, refused(), 1);
    refused.stalls(1, Reason::Forbidden, &["403"]);
    // The same if an altered, deleted or revoked key is to be replaced.
    let altered = GivenKey::in_use().secret(empty()).records(KeyRecords {
        lost: vec![lost(&second)],
        ..self::records(1)
    });
    assert_eq!(altered.step(1), KeyStep::ListKeys);
}

#[test]
fn where_nothing_can_be_revoked_three_keys_are_left_at_most() {
    let empty = || KeySecretView::Ours(SecretContents::Nothing);
    let given = |count| {
        GivenKey::new()
            .records(given_up(count))
            .secret(empty())
            .listing(KeyListing::NotOffered)
    };
    created(given(2).step(1));
    let names: Vec<String> = (1..=3).map(|number| key(number).name).collect();
    let words: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .chain(["3 creations", "annotate projectkey"])
        .collect();
    given(3).stalls(1, Reason::RevocationUnsupported, &words);
    // Keys that were in use are reported, and do not count as attempts.
    let retired = |key: LostKey| LostKey {
        because: LostBecause::Retired,
        ..key
    };
    let rotated = KeyRecords {
        lost: given_up(3).lost.into_iter().map(retired).collect(),
        ..KeyRecords::default()
    };
    created(given(0).records(rotated).step(1));
}
