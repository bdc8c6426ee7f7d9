//! Tests: where a key may be sent, and which key may be revoked on which evidence.

use super::*;
use crate::decide::names::unique;
use crate::decide::seal::ObjectKey;

const ELSEWHERE: &str = "https://elsewhere.example/api/v2";

fn on(platform: &str, records: KeyRecords) -> KeyRecords {
    KeyRecords {
        platform: Some(platform.to_owned()),
        ..records
    }
}

/// Key 1 is in use, and its platform is not recorded.
fn homeless(given: GivenKey) -> GivenKey {
    given.but(|_, seen| {
        seen.identity = Ok(ProjectKeyIdentity {
            records: records(1),
            ..ProjectKeyIdentity::default()
        });
    })
}

#[test]
fn a_key_stays_with_its_platform_whatever_is_listed_elsewhere() {
    let listings = [
        KeyListing::NotRead,
        KeyListing::NotOffered,
        listed(1, &[]),
        listed(1, &[(1, &key(1).name)]),
    ];
    for listing in listings {
        for given in [GivenKey::in_use(), GivenKey::deleting()] {
            let away = given
                .records(on(ELSEWHERE, records(1)))
                .listing(listing.clone());
            away.stalls(
                1,
                Reason::BindingConflict,
                &[ELSEWHERE, HERE, "spec.accountRef"],
            );
            let refused = away.clone().probe(Probe::Refused {
                at: at(0),
                since: at(0),
                was_accepted: true,
            });
            refused.stalls(1, Reason::BindingConflict, &[ELSEWHERE]);
        }
    }
    let begun = KeyIntent {
        platform: Some(ELSEWHERE.to_owned()),
        ..intent(NAME, 0)
    };
    GivenKey::new()
        .intent(begun.clone())
        .stalls(1, Reason::BindingConflict, &[ELSEWHERE]);
    let recorded = KeyRecords::default().succeeded_by(key(1), &begun);
    assert_eq!(recorded.platform.as_deref(), Some(ELSEWHERE));
    // Without a key there is nothing to disclose.
    assert_eq!(
        GivenKey::new()
            .records(on(ELSEWHERE, KeyRecords::default()))
            .step(1),
        KeyStep::PrepareSecret
    );
    // The secret of a key that has just arrived is still kept.
    let arrived = GivenKey::new()
        .intent(begun)
        .secret(KeySecretView::Ours(SecretContents::Nothing));
    let arrived = arrived.but(|_, seen| {
        seen.unsaved = Some(KeyIdentity {
            name: NAME.to_owned(),
            ..key(1)
        })
    });
    assert_eq!(arrived.step(1), KeyStep::SaveSecret);
}

#[test]
fn a_key_in_use_stays_ready_when_its_account_is_of_another_platform() {
    let serving = GivenKey::in_use().records(on(ELSEWHERE, records(1)));
    let serving = serving.but(|_, seen| seen.meta.ready = true);
    let report = decide(&serving.spec, &serving.observed, at(1))
        .report
        .unwrap();
    let Sync::Refused(Reason::BindingConflict, message) = &report.sync else {
        panic!("{report:?}")
    };
    assert!(
        message.contains("kubectl -n") && message.contains("get accounts"),
        "{message}"
    );
    assert!(matches!(report.health, Health::Ready(..)), "{report:?}");
}

#[test]
fn a_new_key_is_recorded_with_its_platform() {
    let choice = {
        let given = GivenKey::new().secret(KeySecretView::Ours(SecretContents::Nothing));
        decide(&given.spec, &given.observed, at(1))
    };
    let Some(KeyStep::CreateKey { intent, .. }) = choice.step else {
        panic!("{choice:?}")
    };
    assert_eq!(intent.platform.as_deref(), Some(HERE));
}

#[test]
fn a_record_without_a_platform_gets_the_one_that_lists_its_key() {
    for given in [GivenKey::in_use(), GivenKey::deleting()] {
        assert_eq!(homeless(given.clone()).step(1), KeyStep::ListKeys);
        let found = homeless(given.clone()).listing(listed(1, &[(1, &key(1).name)]));
        let KeyStep::RecordIdentity { identity } = found.step(1) else {
            panic!("{:?}", found.step(1))
        };
        assert_eq!(
            (identity.records.clone(), identity.platform()),
            (on(HERE, records(1)), Some(HERE))
        );
        for unlike in [
            KeyListing::NotOffered,
            listed(1, &[]),
            listed(1, &[(1, "laptop")]),
            listed(1, &[(2, &key(1).name)]),
        ] {
            let unknown = homeless(given.clone()).listing(unlike);
            unknown.stalls(
                1,
                Reason::BindingConflict,
                &["without their platform", "spec.accountRef"],
            );
        }
    }
}

/// A key of another resource, in another namespace of the same cluster.
fn theirs() -> KeyIdentity {
    let victim = ObjectKey {
        namespace: "victim",
        name: "ci",
    };
    KeyIdentity {
        name: unique("ci", &"c1u57e".parse().unwrap(), victim, 9),
        ..key(9)
    }
}

/// The decision for a resource in deletion whose annotation names these keys.
fn deleted(records: KeyRecords, listing: KeyListing) -> KeyDecision {
    let given = GivenKey::deleting()
        .records(from_secret(records))
        .listing(listing);
    given.decide(1)
}

#[test]
fn no_annotation_has_a_key_of_another_resource_revoked() {
    let theirs = theirs();
    let lost = LostKey {
        id: Some(theirs.id),
        ..lost(&theirs.name)
    };
    let retired = RetiredKey {
        name: theirs.name.clone(),
        ..retired(theirs.id.0, 0)
    };
    let forged = [
        KeyRecords {
            current: Some(theirs.clone()),
            ..KeyRecords::default()
        },
        KeyRecords {
            previous: vec![retired],
            ..KeyRecords::default()
        },
        KeyRecords {
            lost: vec![lost],
            ..KeyRecords::default()
        },
        // Their number under our own name, and the opposite.
        KeyRecords {
            current: Some(KeyIdentity {
                name: key(1).name,
                ..theirs.clone()
            }),
            ..KeyRecords::default()
        },
        KeyRecords {
            current: Some(KeyIdentity {
                id: KeyId(1),
                ..theirs.clone()
            }),
            ..KeyRecords::default()
        },
    ];
    for records in forged {
        for listing in [
            listed(1, &[(9, &theirs.name)]),
            listed(1, &[]),
            KeyListing::NotOffered,
        ] {
            let step = deleted(records.clone(), listing).step;
            assert!(
                !matches!(step, Some(KeyStep::Revoke { .. })),
                "{records:?}: {step:?}"
            );
        }
    }
    let begun = GivenKey::deleting()
        .records(KeyRecords::default())
        .intent(intent(&theirs.name, 0));
    let (given_up, _) = record(begun.listing(listed(1, &[(9, &theirs.name)])).step(1));
    let step = deleted(given_up, listed(1, &[(9, &theirs.name)])).step;
    assert!(!matches!(step, Some(KeyStep::Revoke { .. })), "{step:?}");
}

#[test]
fn a_restored_key_of_its_own_is_revoked_where_the_platform_lists_it() {
    let revoke = KeyStep::Revoke {
        id: KeyId(1),
        name: key(1).name,
        records: from_secret(KeyRecords::default()),
        in_use: None,
    };
    let Some(KeyStep::Revoke { id, name, .. }) =
        deleted(records(1), listed(1, &[(1, &key(1).name)])).step
    else {
        panic!("not {revoke:?}")
    };
    assert_eq!((id, name), (KeyId(1), key(1).name));
    // A name of an earlier version does not show the namespace: only the operator's own record
    // counts.
    let before = KeyIdentity {
        name: "ci-c1u57e-0a1b2c3d-00000001".to_owned(),
        ..key(1)
    };
    let records = KeyRecords {
        current: Some(before.clone()),
        ..KeyRecords::default()
    };
    let listing = listed(1, &[(1, &before.name)]);
    assert_eq!(deleted(records.clone(), listing.clone()).step, None);
    let recorded = GivenKey::deleting().records(records).listing(listing);
    assert!(revokes_key(&recorded.step(1), 1));
}

#[test]
fn what_only_an_annotation_names_stays_marked_so() {
    let marked = from_secret(KeyRecords {
        previous: vec![retired(5, 0)],
        ..records(1)
    });
    let later = GivenKey::in_use()
        .records(marked)
        .listing(listed(100, &[(5, "ci-0ther0-vpzc5qrz22arf-00000005")]));
    let not_offered = later.clone().listing(KeyListing::NotOffered);
    let (left, _) = record(not_offered.step(100));
    assert_eq!(left.lost.len(), 1);
    assert!(left.restored.contains(&key(5).name), "{left:?}");
    assert!(!left.clone().tidied().restored.is_empty());
}

#[test]
fn an_annotation_is_recorded_in_the_status_before_anything_is_done() {
    let wish = GivenKey::in_use()
        .records(from_secret(records(1)))
        .but(|_, seen| seen.is_wish = true);
    let KeyStep::RecordIdentity { identity } = wish.step(1) else {
        panic!("{:?}", wish.step(1))
    };
    assert!(identity.records.restored.contains(&key(1).name));
}
