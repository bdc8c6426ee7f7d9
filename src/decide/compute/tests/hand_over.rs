//! Hand-over: what each side does.

use super::*;
use crate::decide::hand_over::{Heir, LOOK_AGAIN, Source, Standing, Successor};
use crate::decide::identity::BeforeRestart;

pub fn place(name: &str) -> Place {
    Place { cluster: None, namespace: "shop".into(), name: name.into() }
}

pub fn elsewhere(name: &str) -> Place {
    Place { cluster: Some("0ther0".into()), ..place(name) }
}

pub fn released(to: &Place, uid: Option<&str>) -> Released {
    Released { to: to.clone(), uid: uid.map(str::to_owned), at: NOW, taken: false }
}

pub fn heir(standing: Standing) -> Successor {
    Successor::There(heir_of(standing))
}

fn heir_of(standing: Standing) -> Heir {
    Heir { place: place("new"), uid: "new".into(), standing, awaits_secret: false }
}

/// A resource that is bound and names the other one.
fn giver(successor: Successor) -> Given {
    let given = Given::bound().declaring(json!({"handOverTo": {"name": "new"}}));
    given.observing(|observed| {
        observed.hand_over.successor = successor;
        observed.memory.note_hand_over(true, false, observed.limits.settle, NOW);
    })
}

pub fn given_to(successor: Successor, to: &Place, uid: Option<&str>) -> Given {
    giver(successor).identity(|identity| identity.hand_over.released = Some(released(to, uid)))
}

fn deleting(given: Given) -> Given {
    given.observing(|observed| observed.meta.deleting = true)
}

/// What it has recorded once it has seen that the other one has taken over.
fn taken(given: Given) -> Given {
    given.identity(|identity| identity.hand_over.released.as_mut().unwrap().taken = true)
}

#[test]
fn a_resource_is_managed_as_any_until_the_other_one_asks() {
    for successor in [Successor::Absent(place("new")), heir(Standing::Does("is being deleted"))] {
        let given = giver(successor);
        given.rest().in_sync();
        assert!(matches!(given.declaring(json!({"size": {"fixed": 2}})).step(), ComputeStep::Change { .. }));
    }
    assert_eq!(
        giver(heir(Standing::Asks)).step(),
        ComputeStep::Release { released: released(&place("new"), Some("new")) }
    );
    let unbound = Given::new().declaring(json!({"handOverTo": {"name": "new"}}));
    let unbound = unbound.observing(|observed| observed.hand_over.successor = heir(Standing::Asks));
    assert!(matches!(unbound.step(), ComputeStep::Create { .. }), "there is nothing to hand over yet");
}

/// Who is bound later than another one has taken over has found the compute free.
#[test]
fn a_release_is_later_than_the_binding_whatever_the_clocks_say() {
    for (bound, at) in
        [(at(-1), NOW), (NOW, later(NOW, Duration::from_nanos(1))), (at(5), later(at(5), Duration::from_nanos(1)))]
    {
        let given = giver(heir(Standing::Asks)).identity(|identity| identity.binding.as_mut().unwrap().at = bound);
        assert_eq!(
            given.step(),
            ComputeStep::Release { released: Released { at, ..released(&place("new"), Some("new")) } }
        );
    }
}

#[test]
fn the_deletion_of_a_resource_that_hands_over_waits_for_the_other_one() {
    for orphan in [false, true] {
        let more = if orphan { json!({"deletion": "Orphan"}) } else { json!({"deletionProtection": true}) };
        for (successor, words) in [
            (Successor::Absent(place("new")), "Compute shop/new, which does not exist"),
            (heir(Standing::Does("does not name this one")), "which does not name this one"),
        ] {
            let given = deleting(giver(successor).declaring(more.clone()));
            let command = "kubectl -n shop patch compute orders --type merge -p '{\"spec\":{\"handOverTo\":null}}'";
            let ask = "spec.takeOverFrom: {namespace: shop, name: orders}";
            given.rest().stalled(Reason::HandingOver, &["Compute ep-1", words, command, ask, "delete it with"]);
        }
        assert!(matches!(deleting(giver(heir(Standing::Asks)).declaring(more)).step(), ComputeStep::Release { .. }));
    }
}

/// Another process, or a request without an answer, may be deleting what is taken over.
#[test]
fn what_was_deleted_before_its_hand_over_was_declared_is_released_once_no_delete_can_be_under_way() {
    let late = |braked: bool| {
        deleting(giver(heir(Standing::Asks))).observing(|seen| {
            seen.memory = Memory::default();
            seen.memory.note_hand_over(true, seen.meta.deleting, seen.limits.settle, NOW);
            if braked {
                seen.meta.brake = crate::decide::Brake::Paused("wait".into());
            }
        })
    };
    let waiting = late(false).rest();
    waiting.progressing(Reason::HandingOver);
    waiting.until(at(60));
    assert!(matches!(late(false).after(60).step(), ComputeStep::Release { .. }));
    let paused = late(true).rest();
    paused.stalled(Reason::DeletionPaused, &["wait"]);
    paused.until(at(60));
    assert!(matches!(late(true).after(60).step(), ComputeStep::Release { .. }));
    let unknown = late(false).observing(|seen| seen.memory = Memory::default());
    unknown.rest().progressing(Reason::HandingOver);
    // It is taken back and declared again: a delete may have been sent between.
    let again = late(false).after(60).observing(|seen| {
        seen.memory.note_hand_over(false, true, seen.limits.settle, at(30));
        seen.memory.note_hand_over(true, true, seen.limits.settle, at(31));
    });
    again.rest().until(at(91));
}

/// Otherwise that one might take back what this one has deleted.
#[test]
fn a_resource_that_has_taken_over_goes_after_the_other_one_has_recorded_it() {
    let unnoticed = |given: Given| given.observing(|seen| seen.hand_over.unnoticed_by = Some(place("old")));
    for given in [
        Given::bound(),
        Given::bound().declaring(json!({"deletion": "Orphan"})),
        taken(given_to(heir(Standing::HasTakenOver), &place("new"), Some("new"))),
    ] {
        assert!(deleting(given.clone()).decide().step.is_some());
        let waiting = deleting(unnoticed(given.clone()));
        waiting.rest().progressing(Reason::HandingOver);
        assert_eq!(waiting.decide().wake, Wake::At(later(NOW, LOOK_AGAIN)));
        assert_eq!(unnoticed(given.clone()).decide(), given.decide(), "it is the deletion that waits");
    }
}

#[test]
fn a_record_that_the_other_one_waits_for_is_restored_while_its_resource_is_deleted() {
    let lost = |given: Given| {
        deleting(given).observing(|seen| {
            seen.meta.record_lost = true;
            seen.meta.record = Some("record".into());
        })
    };
    let released = || given_to(heir(Standing::Asks), &place("new"), Some("new"));
    let step = ComputeStep::Restore { record: Some("record".into()), finalizer: true };
    assert_eq!(lost(released()).step(), step);
    let taker = Given::bound().identity(|identity| {
        identity.hand_over.predecessor = Some(Predecessor { place: place("old"), uid: "old".into(), released: NOW });
    });
    assert_eq!(lost(taker.observing(|seen| seen.hand_over.unnoticed_by = Some(place("old")))).step(), step);
    let braked = lost(released()).observing(|seen| seen.meta.brake = crate::decide::Brake::Paused("wait".into()));
    assert_eq!(braked.step(), step);
    assert!(matches!(lost(Given::bound()).step(), ComputeStep::Delete { .. }), "nobody waits for it");
}

#[test]
fn a_create_is_resolved_before_it_is_known_whether_there_is_something_to_hand_over() {
    let orphan = || Given::intended().declaring(json!({"handOverTo": {"name": "new"}, "deletion": "Orphan"}));
    let with = |successor: Successor| deleting(orphan()).observing(|seen| seen.hand_over.successor = successor);
    assert_eq!(with(Successor::Unnamed).step(), ComputeStep::RemoveFinalizer);
    for successor in [heir(Standing::Asks), Successor::Absent(place("new"))] {
        let step = with(successor.clone()).seeing([compute("ep-1")]).step();
        assert!(matches!(step, ComputeStep::Bind { .. }), "{step:?}");
        let protected = with(successor.clone()).declaring(json!({"deletion": "Delete", "deletionProtection": true}));
        assert_eq!(protected.seeing([compute("ep-1")]).step(), step);
        let down =
            with(successor).observing(|seen| seen.account = AccountView::Missing { name: "Account shop/prod".into() });
        assert!(format!("{:?}", down.rest()).contains("remove spec.handOverTo"), "{:?}", down.rest());
    }
}

#[test]
fn what_this_process_does_not_see_is_not_taken_for_gone() {
    let hidden = || Successor::Hidden(place("new"), "cannot be read; its status says why");
    giver(hidden()).rest().in_sync();
    let words = ["which cannot be read"];
    deleting(giver(hidden())).rest().stalled(Reason::HandingOver, &words);
    let released = given_to(hidden(), &place("new"), Some("new")).declaring(json!({"handOverTo": null}));
    released.rest().stalled(Reason::HandingOver, &words);
}

/// Nobody can create a resource in a namespace that is being deleted.
#[test]
fn a_namespace_that_is_deleted_with_both_does_not_wait_for_a_hand_over() {
    let never = || Successor::Never(place("new"));
    assert_eq!(deleting(giver(never())).step(), ComputeStep::Delete { id: "ep-1".into() });
    let released = deleting(given_to(never(), &place("new"), Some("new")));
    assert_eq!(released.step(), ComputeStep::TakeBack { place: place("new") });
}

#[test]
fn a_deletion_that_is_paused_can_be_turned_into_a_hand_over() {
    let paused =
        |given: Given| deleting(given).observing(|seen| seen.meta.brake = crate::decide::Brake::Paused("wait".into()));
    paused(Given::bound()).rest().stalled(Reason::DeletionPaused, &["wait"]);
    assert!(matches!(paused(giver(heir(Standing::Asks))).step(), ComputeStep::Release { .. }));
    paused(giver(Successor::Never(place("new")))).rest().stalled(Reason::DeletionPaused, &["wait"]);
    let by_a_person = paused(giver(heir(Standing::Asks))).observing(|seen| seen.meta.paused = true);
    by_a_person.rest().stalled(Reason::DeletionPaused, &["wait"]);
}

#[test]
fn what_is_released_is_neither_changed_nor_restarted_nor_deleted() {
    for (successor, to, uid) in [
        (heir(Standing::Asks), place("new"), Some("new")),
        (Successor::Absent(place("new")), place("new"), Some("new")),
        (Successor::Elsewhere(elsewhere("new")), elsewhere("new"), None),
    ] {
        let more = json!({"size": {"fixed": 4}, "restartToken": "now", "connection": {"secretName": "to-orders"}});
        let given = given_to(successor, &to, uid).declaring(more).observing(|seen| seen.secret = SecretView::Absent);
        for given in
            [given.clone(), given.clone().seeing([]), given.observing(|seen| seen.account = AccountView::Pending)]
        {
            assert_eq!(given.decide().step, None);
            let step = deleting(given).decide().step;
            assert!(matches!(step, None | Some(ComputeStep::RemoveFinalizer)), "{step:?}");
        }
    }
}

#[test]
fn a_resource_goes_once_the_other_one_has_taken_over() {
    let seen = given_to(heir(Standing::HasTakenOver), &place("new"), Some("new"));
    let record = Released { taken: true, ..released(&place("new"), Some("new")) };
    assert_eq!(deleting(seen.clone()).step(), ComputeStep::Release { released: record }, "that is recorded first");
    let done = taken(seen);
    let Health::Ready(Reason::HandedOver, text) = done.rest().health else { panic!("{:?}", done.rest()) };
    assert_eq!(text, "Compute ep-1 is managed by Compute shop/new. This resource changes nothing any more: delete it.");
    assert_eq!(deleting(done.clone()).step(), ComputeStep::RemoveFinalizer);
    let Successor::There(heir_without) = heir(Standing::HasTakenOver) else { unreachable!() };
    let awaiting = Successor::There(Heir { awaits_secret: true, ..heir_without });
    deleting(taken(given_to(awaiting, &place("new"), Some("new")))).rest().progressing(Reason::HandingOver);
    // Whatever becomes of the other one.
    for successor in [
        Successor::Absent(place("new")),
        Successor::Never(place("new")),
        Successor::There(Heir { uid: "another".into(), ..heir_of(Standing::Asks) }),
        heir(Standing::Does("is being deleted")),
    ] {
        let gone = taken(given_to(successor, &place("new"), Some("new")));
        for declared in [json!({}), json!({"handOverTo": null})] {
            let gone = gone.clone().declaring(declared);
            assert!(matches!(gone.rest().health, Health::Ready(Reason::HandedOver, _)), "{:?}", gone.rest());
            assert_eq!(deleting(gone).step(), ComputeStep::RemoveFinalizer);
        }
    }
    let refusing = given_to(heir(Standing::Does("is for another project")), &place("new"), Some("new"));
    refusing
        .rest()
        .stalled(Reason::HandingOver, &["which is for another project", "delete that one, and then: kubectl"]);
    given_to(heir(Standing::IsTakingOver), &place("new"), Some("new")).rest().progressing(Reason::HandingOver);
    let asking = given_to(heir(Standing::Asks), &place("new"), Some("new"));
    asking.rest().progressing(Reason::HandingOver);
    deleting(asking).rest().progressing(Reason::HandingOver);
    let other_cluster = given_to(Successor::Elsewhere(elsewhere("new")), &elsewhere("new"), None);
    let Health::Ready(Reason::HandedOver, text) = other_cluster.rest().health else { panic!() };
    assert!(text.contains("Compute shop/new of cluster 0ther0") && text.contains("copy status.release"), "{text}");
    assert_eq!(deleting(other_cluster).step(), ComputeStep::RemoveFinalizer);
}

#[test]
fn a_release_counts_for_one_object_alone() {
    let gone = given_to(Successor::Absent(place("new")), &place("new"), Some("new"));
    gone.rest().stalled(Reason::HandingOver, &["does not exist any more", "keep it here", "handOverTo"]);
    deleting(gone.clone()).rest().stalled(Reason::HandingOver, &["does not exist any more", "delete it with"]);
    for declared in [json!({"handOverTo": null}), json!({"handOverTo": {"name": "third"}})] {
        assert_eq!(gone.clone().declaring(declared).step(), ComputeStep::TakeBack { place: place("new") });
    }
    let before = given_to(heir(Standing::Asks), &place("new"), Some("before"));
    assert_eq!(before.step(), ComputeStep::Release { released: released(&place("new"), Some("new")) });
    let before = given_to(heir(Standing::Does("has one of its own")), &place("new"), Some("before"));
    before.rest().stalled(Reason::HandingOver, &["has one of its own"]);
    let there = given_to(heir(Standing::Asks), &place("new"), Some("new")).declaring(json!({"handOverTo": null}));
    there.rest().progressing(Reason::HandingOver);
}

/// A resource that asks for what another one has.
fn taker(edit: impl FnOnce(&mut ComputeIdentity)) -> Given {
    let mut theirs = Given::bound().observed.identity.unwrap();
    edit(&mut theirs);
    let predecessor = Predecessor { place: place("old"), uid: "old".into(), released: at(-1) };
    let source = Source::Released { identity: Box::new(theirs), predecessor, shares_secret: false };
    Given::new().seeing([compute("ep-1")]).observing(|observed| observed.hand_over.source = source)
}

#[test]
fn what_is_released_is_taken_over_with_its_history() {
    let (binding, restart) = match taker(|_| ()).step() {
        ComputeStep::TakeOver { binding, restart, unanswered, predecessor } => {
            assert_eq!((unanswered.len(), predecessor.place), (0, place("old")));
            (binding, restart)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!((binding.id.as_str(), binding.origin, binding.at), ("ep-1", Origin::Created, NOW));
    assert_eq!((restart.token.as_str(), restart.calling), ("", None));
    let token = |declared: Option<&str>, theirs: &str| {
        let given = taker(|identity| identity.restart.as_mut().unwrap().token = theirs.into());
        match given.declaring(json!({"restartToken": declared})).step() {
            ComputeStep::TakeOver { restart, .. } => restart.token,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(token(Some("b"), "a"), "b", "another token requests no restart");
    assert_eq!(token(None, "a"), "a");
    let calling = BeforeRestart { updated_at: Some(at(-9)), started_at: None };
    let open = taker(|identity| {
        let record = identity.restart.as_mut().unwrap();
        (record.at, record.calling) = (at(-9), Some(calling.clone()));
    });
    let ComputeStep::TakeOver { restart, .. } = open.step() else { panic!() };
    assert_eq!((restart.at, restart.calling), (at(-9), Some(calling)), "a restart that was begun is still completed");
}

#[test]
fn nothing_is_taken_over_that_does_not_fit() {
    let conflict = |given: Given, words: &[&str]| given.rest().stalled(Reason::BindingConflict, words);
    conflict(taker(|identity| identity.binding = None), &["Compute shop/old has no compute"]);
    conflict(taker(|identity| identity.binding.as_mut().unwrap().project = "p-2".into()), &["ep-1 of project p-2"]);
    conflict(taker(|_| ()).declaring(json!({"computeID": "ep-2"})), &["spec.computeID"]);
    conflict(taker(|_| ()).seeing([replica("ep-1")]), &["a read replica"]);
    let elsewhere = taker(|identity| identity.binding.as_mut().unwrap().platform = Some("https://one.example".into()));
    conflict(elsewhere.clone().seeing([]), &["https://one.example", "spec.accountRef"]);
    assert!(matches!(elsewhere.step(), ComputeStep::TakeOver { .. }), "another spelling of the same platform");
    assert!(matches!(taker(|_| ()).seeing([]).step(), ComputeStep::TakeOver { .. }), "whether it is gone is seen then");
    taker(|_| ()).claimed("ep-1", false).rest().stalled(Reason::ClaimedByAnother, &["Compute shop/other"]);
}

#[test]
fn whoever_asks_creates_nothing_meanwhile() {
    for type_ in ["ReadWrite", "ReadOnly"] {
        let waiting = |source| {
            let given = Given::new().declaring(json!({"type": type_, "existing": "Refuse"}));
            given.observing(|observed| observed.hand_over.source = source)
        };
        waiting(Source::Pending("not yet".into())).rest().progressing(Reason::HandingOver);
        waiting(Source::Invalid("wrong".into())).rest().stalled(Reason::BindingConflict, &["wrong"]);
        assert!(matches!(waiting(Source::Unnamed).step(), ComputeStep::Create { .. }));
    }
    let bound = Given::bound().observing(|observed| observed.hand_over.source = Source::Pending("not yet".into()));
    bound.rest().in_sync();
    // One that has handed over takes over again.
    let again = taker(|_| ()).observing(|seen| seen.meta.has_finalizer = true).identity(|identity| {
        *identity = Given::bound().observed.identity.unwrap();
        identity.hand_over.released = Some(released(&place("old"), Some("old")));
    });
    assert!(matches!(again.step(), ComputeStep::TakeOver { .. }));
}
