//! Tests of deletion: with a call to revoke keys, without it, and without the key.

use super::*;
use crate::api::KeyDeletion;
use crate::decide::Brake;

#[test]
fn every_key_is_revoked_before_the_finalizer_is_removed() {
    let [five, one, eight] = [5, 1, 8].map(|id| key(id).name);
    let keys = [
        (5, five.as_str()),
        (1, one.as_str()),
        (8, &eight),
        (9, "laptop"),
    ];
    let all = KeyRecords {
        previous: vec![retired(5, 9000)],
        lost: vec![lost(&eight)],
        ..records(1)
    };
    let without_five = KeyRecords {
        previous: vec![],
        ..all.clone()
    };
    let without_one = KeyRecords {
        current: None,
        ..without_five.clone()
    };
    let nothing = KeyRecords::default();
    assert_eq!(
        GivenKey::deleting().records(all.clone()).step(10),
        KeyStep::ListKeys
    );
    for (index, before, after) in [
        (0, &all, &without_five),
        (1, &without_five, &without_one),
        (2, &without_one, &nothing),
    ] {
        let (id, name) = keys[index];
        let given = GivenKey::deleting()
            .records(before.clone())
            .listing(listed(10, &keys[index..]));
        let revoke = KeyStep::Revoke {
            id: KeyId(id),
            name: name.to_owned(),
            records: after.clone(),
            in_use: None,
        };
        assert_eq!(given.step(10), revoke);
    }
    assert_eq!(
        GivenKey::deleting().records(nothing).step(10),
        KeyStep::RemoveFinalizer
    );
}

#[test]
fn a_key_of_an_attempt_that_was_given_up_is_revoked_too() {
    let late = "ci-c1u57e-vpzc5qrz22arf-00001a7e";
    let keys = [(1, &*key(1).name), (7, late)];
    let revoke = KeyStep::Revoke {
        id: KeyId(7),
        name: late.to_owned(),
        records: records(1),
        in_use: None,
    };
    assert_eq!(
        GivenKey::deleting().listing(listed(10, &keys)).step(10),
        revoke
    );
    // Keys of other resources and other clusters are not revoked.
    for other in [
        "ci-c1u57e-ffffffff-00001a7e",
        "ci-0ther0-vpzc5qrz22arf-00001a7e",
        "cd-c1u57e-vpzc5qrz22arf-00001a7e",
        "laptop",
    ] {
        let own = KeyStep::Revoke {
            id: KeyId(1),
            name: key(1).name,
            records: KeyRecords::default(),
            in_use: None,
        };
        assert_eq!(
            GivenKey::deleting()
                .listing(listed(10, &[(7, other), (1, &key(1).name)]))
                .step(10),
            own
        );
    }
}

#[test]
fn orphan_leaves_them() {
    let orphan = |given: GivenKey| given.but(|spec, _| spec.deletion = KeyDeletion::Orphan);
    assert_eq!(
        orphan(GivenKey::deleting()).step(1),
        KeyStep::RemoveFinalizer
    );
    assert_eq!(
        orphan(GivenKey::deleting().intent(intent(NAME, 0))).step(1),
        KeyStep::RemoveFinalizer
    );
    let gone = AccountView::Missing {
        name: "Account prod".to_owned(),
    };
    assert_eq!(
        orphan(GivenKey::deleting().but(|_, seen| seen.account = gone)).step(1),
        KeyStep::RemoveFinalizer
    );
}

#[test]
fn an_obstacle_is_reported_with_the_advice_to_orphan() {
    let with = |account: AccountView| GivenKey::deleting().but(|_, seen| seen.account = account);
    let gone = AccountView::Missing {
        name: "Account prod".to_owned(),
    };
    with(gone).stalls(1, Reason::AccountNotFound, &["Account prod", "Orphan"]);
    with(AccountView::Usable { organization: None }).stalls(
        1,
        Reason::OrganizationMissing,
        &["Orphan"],
    );
    assert_eq!(with(AccountView::Pending).decide(1), Decision::silent());
    let renamed = GivenKey::deleting().listing(listed(1, &[(1, "laptop")]));
    renamed.stalls(1, Reason::BindingConflict, &[&key(1).name, "Orphan"]);
    let paused = GivenKey::deleting().but(|_, seen| seen.meta.paused = true);
    assert!(matches!(paused.reported(1).0, Health::Paused(_)));
    let unprotected = GivenKey::deleting().but(|_, seen| seen.meta.has_finalizer = false);
    assert!(matches!(
        unprotected.reported(1).0,
        Health::Progressing(Reason::Deleting, _)
    ));
}

#[test]
fn without_a_revoke_call_the_key_is_checked_until_it_is_refused() {
    let given = |probe| {
        GivenKey::deleting()
            .listing(KeyListing::NotOffered)
            .probe(probe)
    };
    assert_eq!(given(Probe::NotAsked(None)).step(100), KeyStep::Probe);
    let refused_once = Probe::Refused {
        at: at(100),
        since: at(100),
        was_accepted: true,
    };
    for probe in [
        Probe::Accepted(at(100)),
        Probe::NotAsked(Some(at(100))),
        refused_once,
    ] {
        let waiting = given(probe);
        let words = [
            key(1).name,
            "The resource is deleted once".to_owned(),
            "Orphan".to_owned(),
        ];
        waiting.stalls(
            101,
            Reason::RevocationUnsupported,
            &words.each_ref().map(String::as_str),
        );
        assert_eq!(waiting.reported(101).2, Wake::At(at(115)));
        assert_eq!(waiting.step(115), KeyStep::Probe);
    }
    let (after, _) = record(given(refused_once.refused(at(115))).step(115));
    assert_eq!(after, KeyRecords::default());
}

#[test]
fn keys_that_cannot_be_checked_are_named() {
    let blind = |given: GivenKey| given.listing(KeyListing::NotOffered);
    let words = [
        key(1).name,
        "cannot check this".to_owned(),
        "Orphan".to_owned(),
    ];
    let words = words.each_ref().map(String::as_str);
    // The Secret was deleted or has another key by now, so a check would test that one.
    blind(GivenKey::deleting().secret(KeySecretView::Absent)).stalls(
        1,
        Reason::RevocationUnsupported,
        &words,
    );
    blind(GivenKey::deleting().with_key(9)).stalls(1, Reason::RevocationUnsupported, &words);
    let lost_too = KeyRecords {
        current: None,
        lost: vec![lost(&key(8).name)],
        ..KeyRecords::default()
    };
    let words = [
        key(8).name,
        format!("dbplane.dev/revoked-keys={}", key(8).name),
    ];
    let words = words.each_ref().map(String::as_str);
    blind(GivenKey::deleting().records(lost_too)).stalls(1, Reason::RevocationUnsupported, &words);
}

#[test]
fn a_list_that_is_not_offered_is_asked_for_again() {
    let mut given = GivenKey::deleting()
        .listing(KeyListing::NotOffered)
        .secret(KeySecretView::Absent);
    given.observed.not_offered_until = Some(at(120));
    assert_eq!(given.reported(1).2, Wake::At(at(120)));
    // The answer was temporary.
    assert_eq!(
        GivenKey::deleting().secret(KeySecretView::Absent).step(120),
        KeyStep::ListKeys
    );
}

#[test]
fn an_open_creation_is_resolved_first() {
    let begun = || {
        GivenKey::deleting()
            .records(KeyRecords::default())
            .secret(KeySecretView::Absent)
            .intent(intent(NAME, 0))
    };
    assert_eq!(begun().step(1), KeyStep::ListKeys);
    let exists = KeyRecords {
        lost: vec![LostKey {
            id: Some(KeyId(4)),
            ..lost(NAME)
        }],
        ..KeyRecords::default()
    };
    assert_eq!(
        begun().listing(listed(1, &[(4, NAME)])).step(1),
        KeyStep::Record {
            records: exists,
            event: None
        }
    );
    assert_eq!(
        begun().listing(listed(1, &[])).reported(1).2,
        Wake::At(at(60))
    );
    assert_eq!(
        record(begun().listing(listed(60, &[])).step(60)).0,
        KeyRecords::default()
    );
    assert_eq!(
        begun().listing(KeyListing::NotOffered).reported(59).2,
        Wake::At(at(60))
    );
    let (after, event) = record(begun().listing(KeyListing::NotOffered).step(60));
    assert_eq!(after.lost, [lost(NAME)]);
    assert!(event.unwrap().contains(NAME));
    // The key is in the Secret: it is recorded, then revoked like any other.
    let arrived = KeyIdentity {
        name: NAME.to_owned(),
        ..key(4)
    };
    let arrived_secret = KeySecretView::Ours(SecretContents::Key {
        key: arrived.clone(),
        as_declared: true,
    });
    assert_eq!(
        record(begun().secret(arrived_secret).step(1)).0.current,
        Some(arrived)
    );
}

#[test]
fn a_key_that_never_reached_its_secret_is_recorded_and_revoked() {
    // In a namespace that is being deleted, its Secret could no longer be written.
    let unsaved = KeyIdentity {
        name: NAME.to_owned(),
        ..key(4)
    };
    let given = |given: GivenKey| {
        given
            .secret(KeySecretView::Absent)
            .but(|_, seen| seen.unsaved = Some(unsaved.clone()))
    };
    for open in [
        given(
            GivenKey::deleting()
                .records(KeyRecords::default())
                .intent(intent(NAME, 0)),
        ),
        given(GivenKey::deleting().records(KeyRecords::default())),
    ] {
        assert_eq!(record(open.step(1)).0.current, Some(unsaved.clone()));
    }
    // It replaced another key, which is revoked as well.
    let replaced = KeyRecords {
        current: Some(key(3)),
        ..KeyRecords::default()
    };
    let records = record(given(GivenKey::deleting().records(replaced)).step(1)).0;
    let previous: Vec<_> = records
        .previous
        .iter()
        .map(|key| (key.id, key.since, key.retire_at))
        .collect();
    assert_eq!(
        (records.rotated_at, previous),
        (Some(unsaved.at), vec![(KeyId(3), unsaved.at, unsaved.at)])
    );
    assert_eq!(records.organization.as_deref(), Some("org-1"));
    let recorded = KeyRecords {
        current: Some(unsaved.clone()),
        ..KeyRecords::default()
    };
    let next = given(GivenKey::deleting().records(recorded.clone()));
    assert_eq!(next.step(1), KeyStep::ListKeys);
    // Without a call to revoke keys, the check uses the secret in memory.
    assert_eq!(
        given(GivenKey::deleting().records(recorded))
            .listing(KeyListing::NotOffered)
            .step(1),
        KeyStep::Probe
    );
}

#[test]
fn failures_delay_the_deletion_without_a_loop() {
    let listing = GivenKey::deleting().failed(Action::ListKeys, unanswered(), 10);
    assert_eq!(listing.reported(10).2, Wake::At(at(11)));
    let revoking = GivenKey::deleting()
        .listing(listed(10, &[(1, &key(1).name)]))
        .failed(Action::Revoke, refused(), 10);
    revoking.stalls(10, Reason::Forbidden, &["administrators only"]);
}

#[test]
fn a_paused_deletion_stays_paused_whatever_is_observed() {
    let paused =
        || GivenKey::deleting().but(|_, seen| seen.meta.brake = Brake::Paused("wait".to_owned()));
    let gone = AccountView::Missing {
        name: "Account prod".to_owned(),
    };
    for given in [
        paused(),
        paused().listing(listed(1, &[(1, &key(1).name)])),
        paused().listing(KeyListing::NotOffered),
        paused().but(|_, seen| seen.account = gone),
        paused().but(|_, seen| seen.meta.paused = true),
    ] {
        given.stalls(1, Reason::DeletionPaused, &["wait"]);
        assert_eq!(given.reported(1).2, Wake::OnChange);
    }
    assert_eq!(
        paused()
            .but(|spec, _| spec.deletion = KeyDeletion::Orphan)
            .step(1),
        KeyStep::RemoveFinalizer
    );
    let live = || paused().listing(listed(1, &[(1, &key(1).name)]));
    let confirmed = live().but(|_, seen| seen.meta.brake = Brake::Confirmed);
    assert!(revokes_key(&confirmed.step(1), 1));
    assert!(matches!(
        live()
            .but(|_, seen| seen.limits.deletes_per_minute = 0)
            .step(1),
        KeyStep::Revoke { .. }
    ));
}

#[test]
fn rotation_is_not_paused() {
    let due = GivenKey::in_use().records(KeyRecords {
        previous: vec![retired(5, 0)],
        ..records(1)
    });
    let due = due.listing(listed(10, &[(5, &key(5).name), (1, &key(1).name)]));
    let due = due.but(|_, seen| seen.meta.brake = Brake::Paused("wait".to_owned()));
    assert!(revokes_key(&due.step(10), 5));
}

#[test]
fn keys_that_cannot_be_read_are_not_revoked() {
    for fault in [
        Fault::Unauthorized {
            message: "no".to_owned(),
        },
        Fault::Server {
            status: 500,
            message: "broken".to_owned(),
        },
        Fault::Transport {
            message: "no route".to_owned(),
        },
        unanswered(),
    ] {
        let unread = GivenKey::deleting().failed(Action::ListKeys, fault, 10);
        unread.reported(10);
        assert_eq!(unread.step(3700), KeyStep::ListKeys);
    }
}

#[test]
fn keys_that_cannot_be_revoked_are_released_with_their_project() {
    let given = || {
        GivenKey::deleting()
            .listing(KeyListing::NotOffered)
            .but(|_, seen| seen.project_gone = true)
    };
    let KeyStep::ReleaseWithProject { event } = given().step(1) else {
        panic!("another step")
    };
    assert!(
        ["aged-wind-123456", &key(1).name, "transferred"]
            .iter()
            .all(|word| event.contains(word)),
        "{event}"
    );
    let lost_too = KeyRecords {
        current: None,
        lost: vec![lost(&key(8).name)],
        ..KeyRecords::default()
    };
    assert!(matches!(
        given().records(lost_too).step(1),
        KeyStep::ReleaseWithProject { .. }
    ));
    // A key that can be revoked is revoked, with or without its project.
    let listed = given().listing(listed(10, &[(1, &key(1).name)]));
    assert!(revokes_key(&listed.step(10), 1));
    assert_eq!(
        given().listing(KeyListing::NotRead).step(1),
        KeyStep::ListKeys
    );
    for (what, given) in [
        (
            "the checks do not show it",
            given().but(|_, seen| seen.project_gone = false),
        ),
        (
            "another platform",
            given().but(|_, seen| seen.platform = Some("https://other.example/api/v2".to_owned())),
        ),
        ("paused", given().but(|_, seen| seen.meta.paused = true)),
        (
            "not being deleted",
            given().but(|_, seen| seen.meta.deleting = false),
        ),
    ] {
        let step = given.decide(1).step;
        assert!(
            !matches!(
                step,
                Some(KeyStep::ReleaseWithProject { .. } | KeyStep::RemoveFinalizer)
            ),
            "{what}: {step:?}"
        );
    }
}
