//! Hand-over: what each side sees of the other, and does.

use std::sync::Arc;

use super::*;
use crate::api::{self, ComputeStatus};
use crate::decide::hand_over::{HandsOver, Heir, Source, Standing, Successor, release, view};
use crate::decide::identity::{BeforeRestart, HandOverRecord, of_compute};

const HERE: &str = "c1u57e";

fn place(name: &str) -> Place {
    Place { cluster: None, namespace: "shop".into(), name: name.into() }
}

fn elsewhere(name: &str) -> Place {
    Place { cluster: Some("0ther0".into()), ..place(name) }
}

fn released(to: &Place, uid: Option<&str>) -> Released {
    Released { to: to.clone(), uid: uid.map(str::to_owned), at: NOW, taken: false }
}

fn heir(standing: Standing) -> Successor {
    Successor::There(heir_of(standing))
}

fn heir_of(standing: Standing) -> Heir {
    Heir { place: place("new"), uid: "new".into(), standing, awaits_secret: false }
}

/// A resource that is bound and names the other one.
fn giver(successor: Successor) -> Given {
    let given = Given::bound().declaring(json!({"handOverTo": {"name": "new"}}));
    given.observing(|observed| observed.hand_over.successor = successor)
}

fn given_to(successor: Successor, to: &Place, uid: Option<&str>) -> Given {
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

fn object(name: &str, spec: &Value) -> api::Compute {
    let metadata = json!({"namespace": "shop", "name": name, "uid": name, "resourceVersion": "1"});
    let mut object = json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": metadata, "spec": {
        "accountRef": {"name": "prod"}, "projectID": "p-1", "branchID": BRANCH, "type": "ReadWrite",
    }});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn recording(mut object: api::Compute, in_both: bool, edit: impl FnOnce(&mut ComputeIdentity)) -> api::Compute {
    let record = of_compute(&object).unwrap();
    let mut identity = record.identity.clone();
    edit(&mut identity);
    let text = record.next(&identity, &object.metadata);
    object.metadata.annotations.get_or_insert_default().insert(names::RECORD.into(), text.clone());
    if in_both {
        object.status.get_or_insert_default().record = Some(text);
    }
    object
}

fn bind(identity: &mut ComputeIdentity) {
    identity.binding = Given::bound().observed.identity.unwrap().binding;
}

fn seen(object: &api::Compute, other: Option<&api::Compute>) -> (Successor, Source<ComputeIdentity>) {
    let find = |place: &Place| {
        other.filter(|other| place.name == other.metadata.name.as_deref().unwrap()).map(|other| Arc::new(other.clone()))
    };
    let view = view(object, &HERE.parse().unwrap(), find, (|_: &_| true, true));
    (view.successor, view.source)
}

#[test]
fn both_have_to_name_each_other_and_to_fit() {
    let old = recording(object("old", &json!({"handOverTo": {"name": "new"}})), true, bind);
    let new = |spec: &Value| object("new", spec);
    let asking = json!({"takeOverFrom": {"name": "old"}});
    let with = |more: Value| {
        let mut spec = asking.clone();
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new(&spec)
    };
    let standing = |other: &api::Compute| match seen(&old, Some(other)).0 {
        Successor::There(heir) => heir.standing,
        other => panic!("{other:?}"),
    };
    assert_eq!(standing(&new(&asking)), Standing::Asks);
    let mut going = new(&asking);
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
    for (other, words) in [
        (new(&json!({})), "does not name this one"),
        (new(&json!({"takeOverFrom": {"name": "old", "namespace": "other"}})), "does not name this one"),
        (new(&json!({"takeOverFrom": {"name": "old", "release": "{}"}})), "does not name this one"),
        (with(json!({"projectID": "p-2"})), "another project"),
        (with(json!({"type": "ReadOnly"})), "another type"),
        (with(json!({"management": "Observe"})), "only observes"),
        (with(json!({"handOverTo": {"name": "old"}})), "hands over to this one"),
        (recording(new(&asking), true, bind), "has one of its own"),
        (going, "is being deleted"),
    ] {
        let Standing::Does(text) = standing(&other) else { panic!("{words}") };
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
    assert_eq!(seen(&old, None).0, Successor::Absent(place("new")));
    let away = recording(object("old", &json!({"handOverTo": {"name": "new", "cluster": "0ther0"}})), true, bind);
    assert_eq!(seen(&away, Some(&new(&asking))).0, Successor::Elsewhere(elsewhere("new")));
    let here = recording(object("old", &json!({"handOverTo": {"name": "new", "cluster": HERE}})), true, bind);
    assert!(matches!(seen(&here, Some(&new(&asking))).0, Successor::There(_)), "this cluster may be named too");
}

#[test]
fn a_release_counts_once_it_is_in_both_places_and_for_the_object_that_it_names() {
    let old = |spec: &Value, uid: Option<&str>, in_both: bool| {
        recording(object("old", spec), in_both, |identity| {
            bind(identity);
            identity.hand_over.released = uid.map(|uid| released(&place("new"), Some(uid)));
        })
    };
    let to_new = json!({"handOverTo": {"name": "new"}});
    let new = object("new", &json!({"takeOverFrom": {"name": "old"}}));
    let pending = |other: Option<&api::Compute>, words: &str| match seen(&new, other).1 {
        Source::Pending(text) => assert!(text.contains(words), "{words:?} is not in {text:?}"),
        other => panic!("{words}: {other:?}"),
    };
    assert!(matches!(
        seen(&new, Some(&old(&to_new, Some("new"), true))).1,
        Source::Released { shares_secret: true, .. }
    ));
    pending(Some(&old(&to_new, Some("new"), false)), "is handing over");
    pending(Some(&old(&to_new, Some("before"), true)), "is about to hand over");
    pending(Some(&old(&to_new, None, true)), "is about to hand over");
    pending(Some(&old(&json!({}), None, true)), "Set its spec.handOverTo to {namespace: shop, name: new}");
    pending(Some(&old(&json!({"handOverTo": {"name": "new"}, "projectID": "p-2"}), None, true)), "another project");
    pending(None, "{cluster: c1u57e, namespace: shop, name: new}");
}

#[test]
fn a_release_is_used_once() {
    let from = |name: &str, at| Some(Predecessor { place: place(name), uid: name.into(), released: at });
    let with = |object: api::Compute, predecessor: Option<Predecessor>, to: Option<&str>| {
        recording(object, true, |identity| {
            bind(identity);
            identity.hand_over.predecessor = predecessor;
            identity.hand_over.released = to.map(|to| released(&place(to), Some(to)));
        })
    };
    let old = with(object("old", &json!({"handOverTo": {"name": "new"}})), None, Some("new"));
    let new = || object("new", &json!({"takeOverFrom": {"name": "old"}, "handOverTo": {"name": "third"}}));
    // It has handed over to a third one since.
    let passed_on = with(new(), from("old", NOW), Some("third"));
    assert_eq!(seen(&passed_on, Some(&old)).1, Source::Unnamed);
    let standing = |object: &api::Compute, other: &api::Compute| match seen(object, Some(other)).0 {
        Successor::There(heir) => heir.standing,
        other => panic!("{other:?}"),
    };
    assert_eq!(standing(&old, &passed_on), Standing::HasTakenOver);
    let mut in_one_place = passed_on.clone();
    in_one_place.status = None;
    assert_eq!(standing(&old, &in_one_place), Standing::IsTakingOver);
    // There and back, and there again.
    let before = with(new(), from("old", at(-60)), Some("old"));
    assert!(matches!(seen(&before, Some(&old)).1, Source::Released { .. }));
    let again = with(object("old", &json!({"handOverTo": {"name": "new"}})), None, None);
    let back = with(object("new", &json!({"takeOverFrom": {"name": "old"}})), from("old", at(-60)), Some("old"));
    assert_eq!(standing(&again, &back), Standing::Asks);
    // A cluster that is rebuilt gives all of them other UIDs.
    let rebuilt = with(object("new", &json!({"takeOverFrom": {"name": "old"}})), from("old", NOW), None);
    let mut other_uid = old.clone();
    other_uid.metadata.uid = Some("another".into());
    assert_eq!(standing(&other_uid, &rebuilt), Standing::HasTakenOver);
    let mut unreleased = again.clone();
    unreleased.metadata.uid = Some("another".into());
    assert_eq!(standing(&unreleased, &rebuilt), Standing::HasTakenOver, "an older backup of the same");
    let other = recording(unreleased, true, |identity| identity.binding.as_mut().unwrap().id = "ep-9".into());
    assert!(matches!(standing(&other, &rebuilt), Standing::Does("has one of its own")), "one that was made anew");
}

#[test]
fn a_release_for_another_cluster_counts_there_and_for_that_name() {
    let given = given_to(Successor::Elsewhere(elsewhere("new")), &elsewhere("new"), None);
    let status = status(&given.decide().report.unwrap(), &given.spec, &given.observed, &ComputeStatus::default(), NOW);
    let text = status.release.unwrap();
    let read = |name: &str, from: &Value, cluster: &str| {
        let object = object(name, &json!({"takeOverFrom": from}));
        let find = |_: &Place| -> Option<Arc<api::Compute>> { None };
        view(&object, &cluster.parse().unwrap(), find, (|_: &_| false, false)).source
    };
    let from = json!({"name": "orders", "release": text});
    let Source::Released { identity, predecessor, .. } = read("new", &from, "0ther0") else { panic!() };
    assert_eq!(identity.binding.unwrap().id, "ep-1");
    assert_eq!(identity.hand_over, HandOverRecord::default());
    assert_eq!(predecessor.place, Place { cluster: Some(HERE.into()), ..place("orders") });
    let invalid = |source, words: &str| match source {
        Source::Invalid(text) => assert!(text.contains(words), "{words:?} is not in {text:?}"),
        other => panic!("{words}: {other:?}"),
    };
    invalid(read("new", &from, HERE), "is for cluster 0ther0, and this one is c1u57e");
    invalid(read("third", &from, "0ther0"), "is for shop/new");
    invalid(read("new", &json!({"name": "other", "release": text}), "0ther0"), "of shop/orders of cluster c1u57e");
    let edited = text.replace("ep-1", "ep-2");
    invalid(read("new", &json!({"name": "orders", "release": edited}), "0ther0"), "is not what dbplane has written");
    let none = release(None, &given.observed.meta, "uid", &HERE.parse().unwrap(), ComputeIdentity::default());
    assert_eq!(none, None);
}

#[test]
fn partners_are_those_of_this_cluster() {
    let both = json!({"handOverTo": {"name": "a"}, "takeOverFrom": {"name": "b", "namespace": "other"}});
    assert_eq!(object("x", &both).partners(), [place("a"), Place { namespace: "other".into(), ..place("b") }]);
    assert_eq!(object("x", &json!({"handOverTo": {"name": "a", "cluster": "0ther0"}})).partners(), []);
}
