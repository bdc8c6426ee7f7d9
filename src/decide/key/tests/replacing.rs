//! Tests of keys that are lost, altered or revoked.

use super::*;
use crate::api::OnRevoked;

#[test]
fn a_key_whose_secret_is_gone_is_replaced_and_then_revoked() {
    let deleted = GivenKey::new().records(records(1));
    assert_eq!(deleted.step(5), KeyStep::PrepareSecret);
    let (intent, because) = created(
        deleted
            .secret(KeySecretView::Ours(SecretContents::Nothing))
            .step(5),
    );
    assert_eq!(intent.retire_previous_at, Some(at(5)));
    let because = because.unwrap();
    assert!(
        because.contains("Secret ci-key") && because.contains(&key(1).name),
        "{because}"
    );
    let successor = records(1).succeeded_by(key(2), &intent);
    let revoke = GivenKey::new()
        .records(successor)
        .with_key(2)
        .listing(listed(5, &[(1, &key(1).name), (2, &key(2).name)]));
    assert_eq!(
        revoke.step(6),
        KeyStep::Revoke {
            id: KeyId(1),
            name: key(1).name,
            records: ours(KeyRecords {
                rotated_at: Some(at(5)),
                ..records(2)
            }),
            in_use: None
        }
    );
}

#[test]
fn a_resource_without_its_key_is_not_ready_before_anything_is_done_about_it() {
    let altered = KeySecretView::Ours(SecretContents::Altered);
    let revoked = GivenKey::in_use().probe(Probe::Refused {
        at: at(20),
        since: at(0),
        was_accepted: true,
    });
    for given in [
        GivenKey::new().records(records(1)),
        GivenKey::new().records(records(1)).secret(altered),
        revoked.listing(KeyListing::NotOffered),
    ] {
        let says_ready = given.clone().but(|_, seen| seen.meta.ready = true);
        let Decision {
            step: None,
            report: Some(report),
            wake,
        } = says_ready.decide(20)
        else {
            panic!()
        };
        assert!(
            matches!(report.health, Health::Progressing(Reason::Creating, _)),
            "{report:?}"
        );
        assert_eq!(
            wake,
            Wake::OnChange,
            "the status that is written is a change"
        );
        assert!(given.decide(20).step.is_some());
    }
    let due = GivenKey::in_use().but(|spec, seen| {
        spec.rotation = Some(rotation("1h", "0s"));
        seen.meta.ready = true;
    });
    assert!(
        matches!(due.step(4000), KeyStep::CreateKey { .. }),
        "a key that is rotated can be used"
    );
}

#[test]
fn an_altered_secret_means_a_new_key() {
    for contents in [
        SecretContents::Altered,
        SecretContents::Nothing,
        SecretContents::Key {
            key: key(9),
            as_declared: true,
        },
    ] {
        let (intent, because) = created(
            GivenKey::new()
                .records(records(1))
                .secret(KeySecretView::Ours(contents))
                .step(5),
        );
        assert_eq!(intent.retire_previous_at, Some(at(5)));
        assert!(because.is_some());
    }
}

#[test]
fn what_alters_the_secret_again_and_again_does_not_cost_one_key_each_time() {
    let replaced = KeyRecords {
        rotated_at: Some(at(0)),
        ..records(1)
    };
    let again = GivenKey::new()
        .records(replaced)
        .secret(KeySecretView::Ours(SecretContents::Altered));
    again.stalls(
        5,
        Reason::SecretNotWritten,
        &["ci-key", "Find what changes it"],
    );
    assert_eq!(again.reported(5).2, Wake::At(at(300)));
    created(again.step(300));
}

#[test]
fn a_replacement_waits_for_a_secret_that_can_be_written() {
    let given = GivenKey::new()
        .records(records(1))
        .secret(KeySecretView::Ours(SecretContents::Altered))
        .secret_failed(10);
    assert!(matches!(
        given.reported(10).0,
        Health::Stalled(Reason::SecretNotWritten, _)
    ));
}

fn revoked() -> GivenKey {
    GivenKey::in_use().probe(Probe::Refused {
        at: at(10),
        since: at(-5),
        was_accepted: true,
    })
}

#[test]
fn one_refusal_of_a_key_is_no_revocation() {
    for listing in [KeyListing::NotRead, KeyListing::NotOffered, listed(10, &[])] {
        let once = GivenKey::in_use()
            .probe(Probe::NotAsked(None).refused(at(10)))
            .listing(listing.clone());
        let (health, _, wake) = once.reported(10);
        assert!(matches!(health, Health::Unknown(Reason::KeyRevoked, _)));
        assert_eq!(wake, Wake::At(at(15)));
        assert_eq!(once.step(15), KeyStep::Probe);
        let accepted = Probe::Accepted(at(20)).refused(at(25));
        assert_eq!(
            accepted,
            Probe::Refused {
                at: at(25),
                since: at(25),
                was_accepted: true
            },
            "it was a mistake of a moment"
        );
    }
    assert_eq!(
        Probe::NotAsked(None).refused(at(-5)).refused(at(10)),
        Probe::Refused {
            at: at(10),
            since: at(-5),
            was_accepted: false
        }
    );
}

#[test]
fn a_refused_key_is_looked_up_before_it_counts_as_revoked() {
    assert_eq!(revoked().step(10), KeyStep::ListKeys);
    let (intent, because) = created(revoked().listing(listed(10, &[])).step(10));
    assert!(intent.previous_revoked && intent.retire_previous_at.is_none());
    assert!(because.unwrap().contains("was revoked"));
    // A key that is already revoked is neither revoked again nor reported.
    let successor = records(1).succeeded_by(key(2), &intent);
    assert_eq!(
        successor,
        ours(KeyRecords {
            rotated_at: Some(at(10)),
            ..records(2)
        })
    );
    // If keys cannot be listed, the check of the key itself decides.
    created(revoked().listing(KeyListing::NotOffered).step(10));
}

#[test]
fn a_key_that_is_refused_and_listed_is_asked_again_and_not_replaced() {
    let invalid = revoked().listing(listed(10, &[(1, &key(1).name)]));
    let (health, _, wake) = invalid.reported(10);
    assert!(matches!(health, Health::Unknown(Reason::KeyRevoked, _)));
    assert_eq!(wake, Wake::At(at(25)));
    assert_eq!(invalid.step(25), KeyStep::Probe);
}

#[test]
fn report_names_the_next_action() {
    let report = revoked()
        .listing(listed(10, &[]))
        .but(|spec, _| spec.on_revoked = OnRevoked::Report);
    report.stalls(
        10,
        Reason::KeyRevoked,
        &[&key(1).name, "spec.onRevoked", "Recreate"],
    );
    assert_eq!(report.reported(10).2, Wake::OnChange);
}
