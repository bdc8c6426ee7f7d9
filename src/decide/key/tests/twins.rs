//! Tests of creations that a proxy has repeated, on a platform that lists two keys with one name.

use super::*;

fn revoke(records: KeyRecords) -> KeyStep {
    KeyStep::Revoke {
        id: KeyId(7),
        name: key(1).name,
        records,
        in_use: None,
    }
}

#[test]
fn the_second_key_of_a_name_is_revoked_where_the_recorded_one_is_listed() {
    let name = key(1).name;
    let both = || listed(10, &[(1, &name), (7, &name)]);
    assert_eq!(
        GivenKey::in_use().listing(both()).step(10),
        revoke(records(1))
    );
    assert_eq!(
        GivenKey::deleting().listing(both()).step(10),
        revoke(records(1))
    );
    let failed = GivenKey::in_use()
        .listing(both())
        .failed(Action::Revoke, refused(), 10);
    let (_, sync, _) = failed.reported(10);
    assert!(
        matches!(sync, Sync::OutOfSync(Reason::Forbidden, _)),
        "{sync:?}"
    );
    let lost = KeyRecords {
        lost: vec![LostKey {
            id: Some(KeyId(1)),
            ..lost(&name)
        }],
        ..KeyRecords::default()
    };
    let replaced = GivenKey::new()
        .records(lost.clone())
        .secret(KeySecretView::Ours(SecretContents::Nothing));
    assert_eq!(replaced.listing(both()).step(10), revoke(lost));
}

/// The secret of neither key was stored.
#[test]
fn both_keys_of_a_creation_without_an_answer_are_revoked() {
    let name = key(1).name;
    let unknown = ours(KeyRecords {
        lost: vec![lost(&name)],
        ..KeyRecords::default()
    });
    let given = GivenKey::new()
        .records(unknown)
        .secret(KeySecretView::Ours(SecretContents::Nothing));
    let step = given
        .clone()
        .listing(listed(10, &[(1, &name), (7, &name)]))
        .step(10);
    assert!(revokes_key(&step, 7), "{step:?}");
    let step = given.listing(listed(20, &[(1, &name)])).step(20);
    assert!(revokes_key(&step, 1), "{step:?}");
}

#[test]
fn what_may_not_be_a_second_key_of_the_resource_is_left() {
    let name = key(1).name;
    let both = || listed(10, &[(1, &name), (7, &name)]);
    let rests = |given: GivenKey| assert_eq!(given.decide(10).step, None);
    rests(GivenKey::in_use().listing(listed(10, &[(1, &name), (7, "laptop")])));
    // The recorded number may be wrong, or the list may lack it.
    let alone = GivenKey::in_use()
        .listing(listed(10, &[(7, &name)]))
        .decide(10)
        .step;
    assert!(!matches!(alone, Some(KeyStep::Revoke { .. })), "{alone:?}");
    rests(
        GivenKey::in_use()
            .records(from_secret(records(1)))
            .listing(both()),
    );
    rests(
        GivenKey::in_use()
            .but(|_, seen| seen.cluster = "0ther0".parse().unwrap())
            .listing(both()),
    );
    rests(
        GivenKey::in_use()
            .but(|_, seen| seen.meta.name = "another".to_owned())
            .listing(both()),
    );
}
