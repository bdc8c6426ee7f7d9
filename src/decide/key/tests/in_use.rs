//! Tests of keys that accounts use as credentials.

use super::*;
use crate::api::{KeyDeletion, Rotation};

fn account(users: &[&str], follows: bool) -> KeyAccount {
    let users = users.iter().map(|user| (*user).to_owned()).collect();
    KeyAccount {
        label: "Account shop/team".to_owned(),
        users,
        follows,
    }
}

impl GivenKey {
    fn read_by(self, accounts: &[KeyAccount]) -> Self {
        self.but(|_, seen| seen.accounts = accounts.to_vec())
    }
}

fn is_waiting(given: &GivenKey) -> bool {
    let choice = given.decide(10);
    let reason = choice.report.map(|report| report.headline().0);
    (choice.step, reason, choice.wake) == (None, Some(Reason::InUse), Wake::At(at(40)))
}

const ORDERS: [&str; 1] = ["Compute shop/orders"];

#[test]
fn a_deletion_waits_for_what_works_with_the_key() {
    let used = [account(&[], true), account(&ORDERS, true)];
    let all = KeyRecords {
        previous: vec![retired(5, 0)],
        lost: vec![lost(&key(8).name)],
        ..records(1)
    };
    let keys = listed(10, &[(1, &key(1).name), (5, &key(5).name)]);
    let deleting = GivenKey::deleting().records(all).listing(keys);
    assert!(matches!(deleting.step(10), KeyStep::Revoke { .. }));
    assert!(is_waiting(&deleting.clone().read_by(&used)));
    let (Health::Progressing(_, message), _, _) = deleting.clone().read_by(&used).reported(10)
    else {
        panic!()
    };
    let expected = "The key in Secret ci-key is needed for: Account shop/team, which Compute shop/orders work through.";
    assert_eq!(message, expected);
    // Even if the keys are orphaned, because the Secret goes with the resource.
    let orphan = deleting
        .clone()
        .but(|spec, _| spec.deletion = KeyDeletion::Orphan);
    assert_eq!(orphan.step(10), KeyStep::RemoveFinalizer);
    assert!(is_waiting(&orphan.read_by(&used)));
    // Even if the resource's own account cannot be used.
    let missing = AccountView::Missing {
        name: "Account prod".to_owned(),
    };
    assert!(is_waiting(
        &deleting
            .clone()
            .read_by(&used)
            .but(|_, seen| seen.account = missing)
    ));
    let not_offered = deleting
        .clone()
        .read_by(&used)
        .listing(KeyListing::NotOffered);
    assert!(is_waiting(&not_offered));
    // Accounts without users do not hold the key, whatever key they use.
    assert!(matches!(
        deleting.read_by(&[account(&[], false)]).step(10),
        KeyStep::Revoke { .. }
    ));
}

#[test]
fn a_deletion_waits_for_nothing_without_keys_and_resolves_a_creation_first() {
    let used = [account(&ORDERS, true)];
    assert_eq!(
        GivenKey::deleting()
            .records(KeyRecords::default())
            .read_by(&used)
            .step(10),
        KeyStep::RemoveFinalizer
    );
    let open = GivenKey::deleting().intent(intent(NAME, 0)).read_by(&used);
    assert_eq!(open.step(10), KeyStep::ListKeys);
    assert!(is_waiting(
        &open.but(|spec, _| spec.deletion = KeyDeletion::Orphan)
    ));
}

#[test]
fn many_users_are_counted() {
    let many: Vec<String> = (1..=7)
        .map(|number| format!("Compute shop/c{number}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (health, _, _) = GivenKey::deleting()
        .read_by(&[account(&many, true)])
        .reported(10);
    let Health::Progressing(_, message) = health else {
        panic!("{health:?}")
    };
    assert!(
        message.contains("Compute shop/c5 and 2 more work through"),
        "{message}"
    );
    assert!(!message.contains("c6"), "{message}");
}

/// Key 1 has replaced key 5, whose overlap is over.
fn replaced() -> GivenKey {
    let records = KeyRecords {
        previous: vec![retired(5, 10)],
        ..records(1)
    };
    GivenKey::in_use()
        .records(records)
        .listing(listed(10, &[(1, &key(1).name), (5, &key(5).name)]))
}

#[test]
fn a_replaced_key_is_revoked_once_nothing_works_with_it() {
    let revokes = |given: GivenKey| revokes_key(&given.step(10), 5);
    assert!(
        revokes(replaced())
            && revokes(replaced().read_by(&[account(&ORDERS, true), account(&[], true)]))
    );
    for users in [&ORDERS[..], &[]] {
        let held = replaced().read_by(&[account(&[], true), account(users, false)]);
        let (health, sync, wake) = held.reported(10);
        let Health::Ready(Reason::Available, message) = health else {
            panic!("{health:?}")
        };
        let expected = format!(
            "Key {}, which it replaced, is revoked once the new one is in use by Account shop/team.",
            key(5).name
        );
        assert!(message.ends_with(&expected), "{message}");
        assert_eq!((sync, wake), (Sync::InSync, Wake::At(at(15))));
    }
    // Within the overlap, nothing is checked.
    let within = replaced().records(KeyRecords {
        previous: vec![retired(5, 100)],
        ..records(1)
    });
    assert_eq!(
        within.read_by(&[account(&ORDERS, false)]).reported(10).2,
        Wake::At(at(100))
    );
}

#[test]
fn no_third_key_is_created_while_a_replaced_one_is_kept() {
    let rotation: Rotation =
        serde_json::from_value(serde_json::json!({"every": "1h", "overlap": "10m"})).unwrap();
    let due = |retire_at| {
        let records = KeyRecords {
            previous: vec![retired(5, retire_at)],
            ..records(1)
        };
        let due = GivenKey::in_use()
            .probe(Probe::Accepted(at(3599)))
            .records(records);
        due.but(|spec, _| spec.rotation = Some(rotation.clone()))
    };
    let behind = [account(&ORDERS, false)];
    assert_eq!(
        due(10).read_by(&behind).reported(3600).2,
        Wake::At(at(3605))
    );
    assert!(matches!(
        due(9000).read_by(&behind).step(3600),
        KeyStep::CreateKey { .. }
    ));
    // The key itself is checked meanwhile.
    let step = due(10)
        .read_by(&behind)
        .probe(Probe::Accepted(at(0)))
        .step(3600);
    assert!(
        matches!(step, KeyStep::Probe | KeyStep::ListKeys),
        "{step:?}"
    );
}
