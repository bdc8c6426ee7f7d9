//! Hand-over of a key: when it may be released, and how it is taken over.

use super::*;
use crate::api::{KeyDeletion, ProjectKey};
use crate::decide::WATCHED;
use crate::decide::hand_over::{Heir, Source, Standing, Successor};
use crate::decide::identity::of_key;

fn place(name: &str) -> Place {
    Place { cluster: None, namespace: "shop".to_owned(), name: name.to_owned() }
}

fn asked(given: Given) -> Given {
    given.but(|spec, seen| {
        spec.hand_over_to = Some(crate::api::HandOverTo { name: "new".to_owned(), ..Default::default() });
        let (uid, standing) = ("new".to_owned(), Standing::Asks);
        seen.hand_over.successor = Successor::There(Heir { place: place("new"), uid, standing, awaits_secret: false });
        seen.memory.note_hand_over(true, false, seen.limits.settle, at(0));
    })
}

fn released() -> Given {
    asked(Given::in_use()).but(|_, seen| {
        let released = Released { to: place("new"), uid: Some("new".to_owned()), at: at(0), taken: false };
        seen.identity.as_mut().unwrap().hand_over.released = Some(released);
    })
}

#[test]
fn a_key_is_released_once_nothing_is_open() {
    for given in [Given::in_use(), Given::deleting()] {
        assert!(
            matches!(asked(given).step(1), KeyStep::Release { released } if released.uid.as_deref() == Some("new"))
        );
    }
    let late = asked(Given::deleting()).but(|_, seen| {
        seen.memory = Memory::default();
        seen.memory.note_hand_over(true, true, seen.limits.settle, at(0));
    });
    assert_eq!(late.decide(1).wake, Wake::At(at(60)), "a revocation may be under way");
    assert!(matches!(late.step(60), KeyStep::Release { .. }));
    let rotated = asked(Given::in_use()).intent(intent(NAME, 0));
    assert!(!matches!(rotated.step(1), KeyStep::Release { .. }), "a creation is resolved first");
    let altered = |given: Given| asked(given).secret(KeySecretView::Ours(SecretContents::Altered));
    assert!(matches!(altered(Given::in_use()).step(1), KeyStep::CreateKey { .. }), "it is replaced first");
    let step = altered(Given::deleting()).step(1);
    assert!(matches!(step, KeyStep::Release { .. }), "the other one replaces it: {step:?}");
    let unanswered = asked(Given::deleting().records(KeyRecords { unanswered: Some(at(0)), ..records(1) }));
    unanswered.stalls(1, Reason::HandingOver, &["not answered", "is handed over at 1970-01-02", "handOverTo"]);
    assert_eq!(unanswered.decide(1).wake, Wake::At(later(at(0), WATCHED)));
    let day = i64::try_from(WATCHED.as_secs()).unwrap();
    assert_eq!(unanswered.step(day), KeyStep::ListKeys, "it is looked for a last time");
    let late = unanswered.clone().listing(listed(day, &[(1, &key(1).name), (7, NAME)]));
    assert!(matches!(late.step(day), KeyStep::Revoke { id: 7, .. }));
    let none = unanswered.clone().listing(listed(day, &[(1, &key(1).name)]));
    assert_eq!(record(none.step(day)).0.unanswered, None);
    let braked = |given: Given| given.but(|_, seen| seen.meta.brake = crate::decide::Brake::Paused("wait".to_owned()));
    let late = braked(unanswered.clone().listing(listed(day, &[(1, &key(1).name), (7, NAME)])));
    late.stalls(day, Reason::DeletionPaused, &["wait"]);
    let never = unanswered.but(|_, seen| seen.hand_over.successor = Successor::Never(place("new")));
    assert!(matches!(never.step(1), KeyStep::ListKeys | KeyStep::Revoke { .. }));
}

#[test]
fn what_is_released_is_neither_replaced_nor_revoked() {
    let due = released().but(|spec, _| spec.rotation = Some(rotation("1h", "0s")));
    let refused = Probe::Refused { at: at(20), since: at(0) };
    for given in [
        due,
        released().secret(KeySecretView::Absent),
        released().probe(refused).listing(KeyListing::Read { at: at(0), keys: Vec::new() }),
        released().but(|_, seen| seen.meta.deleting = true),
    ] {
        let (health, ..) = given.reported(9_000_000);
        assert!(matches!(health, Health::Progressing(Reason::HandingOver, _)), "{health:?}");
    }
    let over = released().but(|_, seen| {
        seen.meta.deleting = true;
        let Successor::There(heir) = &mut seen.hand_over.successor else { unreachable!() };
        heir.standing = Standing::HasTakenOver;
        seen.identity.as_mut().unwrap().hand_over.released.as_mut().unwrap().taken = true;
    });
    assert_eq!(over.step(1), KeyStep::RemoveFinalizer);
    let braked = |given: Given| given.but(|_, seen| seen.meta.brake = crate::decide::Brake::Paused("wait".to_owned()));
    assert_eq!(braked(over).step(1), KeyStep::RemoveFinalizer);
    braked(Given::deleting()).stalls(1, Reason::DeletionPaused, &["wait"]);
    let never = asked(Given::deleting()).but(|_, seen| seen.hand_over.successor = Successor::Never(place("new")));
    braked(never).stalls(1, Reason::DeletionPaused, &["wait"]);
}

fn taker(shares_secret: bool, cluster: Option<&str>) -> Given {
    Given::new().but(|_, seen| {
        let mut identity = Given::in_use().observed.identity.unwrap();
        identity.records.organization = Some("org-1".to_owned());
        let place = Place { cluster: cluster.map(str::to_owned), ..place("old") };
        let predecessor = Predecessor { place, uid: "1a2b3c4d-0000".to_owned(), released: at(0) };
        seen.hand_over.source = Source::Released { identity: Box::new(identity), predecessor, shares_secret };
    })
}

#[test]
fn a_key_is_taken_over_with_its_secret() {
    let copied = |given: Given| match given.step(1) {
        KeyStep::TakeOver { records, copy, .. } => {
            assert_eq!(records.current, Some(key(1)));
            copy
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(taker(false, None).step(1), KeyStep::PrepareSecret);
    assert!(copied(taker(false, None).secret(KeySecretView::Ours(SecretContents::Nothing))));
    assert!(!copied(taker(false, None).with_key(1)), "it was copied before a crash");
    let theirs = || KeySecretView::Foreign("ProjectKey old's".to_owned());
    assert!(!copied(taker(true, None).secret(theirs())), "it is adopted next");
    taker(false, None).secret(theirs()).stalls(1, Reason::SecretNotOurs, &["ProjectKey old's"]);
    taker(false, None).with_key(2).stalls(1, Reason::SecretNotOurs, &["something else"]);
    let rival = taker(false, None).but(|_, seen| seen.rival = Some("Compute db".to_owned()));
    rival.stalls(1, Reason::ClaimedByAnother, &["Compute db"]);
    // Brought from the other cluster.
    let (health, ..) = taker(false, Some("0ther0")).reported(1);
    assert!(
        matches!(health, Health::Progressing(Reason::HandingOver, text) if text.contains("without ownerReferences"))
    );
    let brought = KeySecretView::Restored { key: key(1), version: "7".to_owned(), inherited: false };
    assert!(!copied(taker(false, Some("0ther0")).secret(brought)));
}

#[test]
fn whoever_asks_creates_no_key_meanwhile() {
    let waiting = |source| Given::new().but(|_, seen| seen.hand_over.source = source);
    let (health, ..) = waiting(Source::Pending("not yet".to_owned())).reported(1);
    assert_eq!(health, Health::Progressing(Reason::HandingOver, "not yet".to_owned()));
    waiting(Source::Invalid("wrong".to_owned())).stalls(1, Reason::BindingConflict, &["wrong"]);
    let of_another = taker(false, None).but(|_, seen| {
        seen.account = AccountView::Usable { organization: Some("org-2".to_owned()) };
    });
    of_another.stalls(1, Reason::BindingConflict, &["organization org-1"]);
    let none = taker(false, None).but(|_, seen| {
        let Source::Released { identity, .. } = &mut seen.hand_over.source else { unreachable!() };
        identity.records.current = None;
    });
    none.stalls(1, Reason::BindingConflict, &["shop/old has no key"]);
    let has_one = Given::in_use().but(|_, seen| seen.hand_over.source = Source::Pending("not yet".to_owned()));
    assert_ne!(has_one.decide(1).report.unwrap().headline().0, Reason::HandingOver);
}

/// As an older backup brings it back.
#[test]
fn the_key_that_another_resource_has_taken_over_is_neither_used_nor_revoked() {
    let claim = |id: i64| (key(id).name, "ProjectKey shop/new".to_owned());
    let claimed = |given: Given| given.but(|_, seen| seen.claims = [claim(1)].into());
    for given in [Given::in_use(), Given::in_use().secret(KeySecretView::Absent)] {
        claimed(given).stalls(
            1,
            Reason::ClaimedByAnother,
            &["ProjectKey shop/new has taken over key ci-", "stays valid"],
        );
    }
    // Only that one: it goes without it, and revokes what is its own.
    let listing = || listed(0, &[(1, &key(1).name), (5, &key(5).name)]);
    let both = KeyRecords { previous: vec![retired(5, 0)], ..records(1) };
    let deleting = claimed(Given::deleting().records(both.clone()).listing(listing()));
    let (left, _) = record(deleting.step(1));
    assert!(matches!(deleting.records(left).step(1), KeyStep::Revoke { id: 5, .. }));
    let no_list = claimed(Given::deleting().listing(KeyListing::NotOffered));
    assert_eq!(record(no_list.step(1)).0.current, None, "nobody is asked to revoke it");
    let (left, event) = record(claimed(Given::deleting().listing(listed(0, &[(1, &key(1).name)]))).step(1));
    assert_eq!((left.current, event.unwrap().contains("stays valid")), (None, true));
    // One that it has replaced is no longer its own either.
    let replaced = Given::in_use().records(both).listing(listing()).but(|_, seen| seen.claims = [claim(5)].into());
    let (left, _) = record(replaced.step(1));
    assert!(left.previous.is_empty() && left.current.is_some());
    // A key with its mark that its older record does not have.
    let late = Given::deleting().records(KeyRecords::default()).intent(intent(NAME, 0));
    let late = late.but(|_, seen| seen.identity.as_mut().unwrap().records.lost.push(lost("x")));
    let shown = listed(0, &[(7, NAME)]);
    let late = late.but(|_, seen| seen.identity.as_mut().unwrap().intent = None).listing(shown);
    assert!(matches!(late.step(1), KeyStep::Revoke { id: 7, .. }));
    let theirs = late.but(|_, seen| seen.claims = [(NAME.to_owned(), "ProjectKey shop/new".to_owned())].into());
    assert!(!matches!(theirs.step(1), KeyStep::Revoke { id: 7, .. }));
}

fn object(name: &str, created: i64, identity: impl FnOnce(&mut ProjectKeyIdentity)) -> ProjectKey {
    let metadata = serde_json::json!({
        "namespace": "shop", "name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": at(created).to_string(),
    });
    let mut object: ProjectKey = serde_json::from_value(serde_json::json!({
        "apiVersion": "dbplane.dev/v1alpha1", "kind": "ProjectKey", "metadata": metadata,
        "spec": {"accountRef": {"name": "prod"}, "projectID": "p-1", "secret": {"name": "ci-key"}},
    }))
    .unwrap();
    let record = of_key(&object).unwrap();
    let mut known = ProjectKeyIdentity { records: records(1), ..ProjectKeyIdentity::default() };
    identity(&mut known);
    let text = record.next(&known, &object.metadata);
    object.metadata.annotations.get_or_insert_default().insert(crate::decide::names::RECORD.to_owned(), text);
    object
}

#[test]
fn a_key_belongs_to_whoever_has_taken_it_over_last() {
    let from =
        |name: &str, second| Some(Predecessor { place: place(name), uid: name.to_owned(), released: at(second) });
    let first = object("first", 0, |_| ());
    let second = object("second", 10, |known| known.hand_over.predecessor = from("first", 100));
    let third = object("third", 20, |known| known.hand_over.predecessor = from("second", 200));
    let all = [&first, &second, &third];
    let claims = |mine| {
        let others = all.into_iter().filter(|other| may_claim(other));
        claims(mine, others, []).into_values().collect::<Vec<_>>()
    };
    assert!(!may_claim(&first));
    assert_eq!(claims(&first), ["ProjectKey shop/third"]);
    assert_eq!(claims(&second), ["ProjectKey shop/third"]);
    assert!(claims(&third).is_empty());
    let unreadable = super::super::claims(&first, [], [&third.metadata]);
    assert_eq!(unreadable.into_keys().collect::<Vec<_>>(), [key(1).name]);
    // What it has handed on, it does not have.
    let handed_on = |taken| {
        object("second", 10, |known| {
            known.hand_over.predecessor = from("first", 100);
            let to = place("first");
            known.hand_over.released = Some(Released { to, uid: Some("first".to_owned()), at: at(150), taken });
        })
    };
    assert!(super::super::claims(&first, [&handed_on(false)], []).is_empty(), "it is this one's to take over");
    // The first takes over another key: its former one is the second's all the same.
    let busy = object("first", 0, |known| {
        known.records = records(9);
        known.hand_over.predecessor = from("other", 300);
    });
    assert_eq!(super::super::claims(&busy, [&second], []).into_keys().collect::<Vec<_>>(), [key(1).name]);
    let other = object("other", 0, |_| ());
    assert_eq!(super::super::claims(&other, [&handed_on(false)], []).len(), 1);
    assert!(super::super::claims(&other, [&handed_on(true)], []).is_empty());
}

#[test]
fn a_creation_is_resolved_before_it_is_known_whether_there_is_something_to_hand_over() {
    let orphan = |given: Given| given.but(|spec, _| spec.deletion = KeyDeletion::Orphan);
    let open = || orphan(Given::deleting().intent(intent(NAME, 0)));
    assert_eq!(open().step(1), KeyStep::RemoveFinalizer);
    assert_eq!(asked(open()).step(1), KeyStep::ListKeys);
    let down =
        asked(open()).but(|_, seen| seen.account = AccountView::Missing { name: "Account shop/prod".to_owned() });
    down.stalls(1, Reason::AccountNotFound, &["remove spec.handOverTo"]);
    assert!(matches!(asked(orphan(Given::deleting())).step(1), KeyStep::Release { .. }));
}

#[test]
fn a_key_that_was_taken_over_is_revoked_after_the_other_one_has_recorded_that() {
    let unnoticed = Given::deleting().but(|_, seen| seen.hand_over.unnoticed_by = Some(place("old")));
    let (health, ..) = unnoticed.reported(1);
    let words = "ProjectKey shop/old has not recorded yet";
    assert!(matches!(&health, Health::Progressing(Reason::HandingOver, text) if text.contains(words)), "{health:?}");
}

#[test]
fn a_record_that_the_other_one_waits_for_is_restored_while_its_resource_is_deleted() {
    let lost = released().but(|_, seen| {
        (seen.meta.deleting, seen.meta.record_lost) = (true, true);
        seen.meta.record = Some("record".to_owned());
    });
    assert_eq!(lost.step(1), KeyStep::Restore { record: Some("record".to_owned()) });
}

#[test]
fn a_key_in_memory_is_saved_before_it_is_handed_over() {
    let deleting = |given: Given| given.but(|_, seen| seen.meta.deleting = true);
    let created = deleting(Given::in_use().intent(intent(&key(2).name, 0)));
    let created = created.but(|_, seen| seen.unsaved = Some(key(2)));
    assert!(matches!(created.step(1), KeyStep::Record { .. }), "it is revoked with the resource");
    let asked = asked(created);
    assert_eq!(asked.step(1), KeyStep::TryUnsaved);
    assert_eq!(asked.but(|_, seen| seen.unsaved_probe = Probe::Accepted(at(1))).step(1), KeyStep::SaveSecret);
}

#[test]
fn a_secret_is_adopted_before_it_is_handed_on() {
    let view = || KeySecretView::Restored { key: key(1), version: "7".to_owned(), inherited: true };
    for given in [Given::in_use(), Given::deleting()] {
        let step = asked(given).secret(view()).step(1);
        assert_eq!(step, KeyStep::AdoptSecret { key: Some(key(1).name), version: "7".to_owned() });
    }
}

#[test]
fn a_key_that_comes_back_is_written_over_the_one_that_was_there_before() {
    let back = taker(false, None).records(records(3)).but(|_, seen| {
        let released = Released { to: place("old"), uid: Some("old".to_owned()), at: at(0), taken: true };
        seen.identity.as_mut().unwrap().hand_over.released = Some(released);
    });
    let step = back.with_key(3).step(1);
    assert!(matches!(step, KeyStep::TakeOver { copy: true, .. }), "{step:?}");
}

#[test]
fn a_key_that_a_third_one_has_by_now_is_not_taken_over() {
    let claimed =
        taker(false, None).but(|_, seen| seen.claims = [(key(1).name, "ProjectKey shop/third".to_owned())].into());
    claimed.stalls(1, Reason::ClaimedByAnother, &["ProjectKey shop/third has taken over key"]);
}

#[test]
fn whatever_the_other_one_has_left_in_the_secret_is_adopted() {
    let left = |inherited| {
        let view = KeySecretView::Restored { key: key(2), version: "7".to_owned(), inherited };
        Given::in_use().secret(view)
    };
    assert_eq!(left(true).step(1), KeyStep::AdoptSecret { key: None, version: "7".to_owned() });
    left(false).stalls(1, Reason::SecretNotOurs, &["earlier resource"]);
}

#[test]
fn a_key_of_another_cluster_is_revoked_by_whom_it_was_handed_over_to() {
    let foreign = |uid: &str| format!("ci-0ther0-{uid}-00000001");
    let revoked = |uid: &str, predecessor: Option<Predecessor>| {
        let name = foreign(uid);
        let current = KeyIdentity { name: name.clone(), ..key(1) };
        let given = Given::deleting().records(KeyRecords { current: Some(current), ..KeyRecords::default() });
        let entry = entry(1, &name);
        let given = given.listing(KeyListing::Read { at: at(0), keys: vec![entry] });
        let given = given.but(|_, seen| seen.identity.as_mut().unwrap().hand_over.predecessor = predecessor);
        matches!(given.decide(1).step, Some(KeyStep::Revoke { .. }))
    };
    let from = |uid: &str| {
        let place = Place { cluster: Some("0ther0".to_owned()), ..place("old") };
        Some(Predecessor { place, uid: uid.to_owned(), released: at(0) })
    };
    assert!(revoked("1a2b3c4d", from("1a2b3c4d-0000")));
    assert!(!revoked("1a2b3c4d", None) && !revoked("1a2b3c4d", from("99999999-0000")), "another resource's");
}
