//! What each side of a hand-over sees of the other.

use std::sync::Arc;

use super::hand_over::{elsewhere, given_to, place, released};
use super::*;
use crate::api::{self, ComputeStatus};
use crate::decide::hand_over::{HandOverView, HandsOver, Source, Standing, Successor, release, view};
use crate::decide::identity::{HandOverRecord, of_compute};

const HERE: &str = "c1u57e";

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
    let view = looked(object, other);
    (view.successor, view.source)
}

fn looked(object: &api::Compute, other: Option<&api::Compute>) -> HandOverView<ComputeIdentity> {
    let find = |place: &Place| {
        other.filter(|other| place.name == other.metadata.name.as_deref().unwrap()).map(|other| Arc::new(other.clone()))
    };
    view(object, &HERE.parse().unwrap(), find, (|_: &_| true, true))
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
    let to = |name: &str, taken| {
        recording(old(&to_new, None, true), true, |identity| {
            identity.hand_over.released = Some(Released { taken, ..released(&place(name), Some("before")) });
        })
    };
    pending(Some(&to("third", false)), "has handed over to Compute shop/third");
    pending(Some(&to("new", true)), "has handed over to an earlier resource");
    pending(Some(&object("old", &to_new)), "has nothing to hand over yet");
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
    // Both at once: the first is paused, and has not recorded yet that the second had taken over.
    let at_once = with(object("new", &json!({"takeOverFrom": {"name": "old"}})), from("old", NOW), Some("old"));
    assert_eq!(standing(&old, &at_once), Standing::HasTakenOver);
    // Applied again, what was taken is there no more.
    let taken = recording(old.clone(), true, |identity| identity.hand_over.released.as_mut().unwrap().taken = true);
    assert_eq!(seen(&at_once, Some(&taken)).1, Source::Unnamed, "it has used it");
    let Source::Pending(text) = seen(&with(new(), from("third", NOW), Some("third")), Some(&taken)).1 else { panic!() };
    assert!(text.contains("has nothing any more"), "{text}");
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
    let here = HERE.parse().unwrap();
    assert_eq!(object("x", &both).partners(&here), [place("a"), Place { namespace: "other".into(), ..place("b") }]);
    let to = |cluster: &str| object("x", &json!({"handOverTo": {"name": "a", "cluster": cluster}}));
    assert_eq!(to("0ther0").partners(&here), []);
    assert_eq!(to(HERE).partners(&here), [place("a")]);
    // Whatever is declared since.
    let recorded = recording(object("x", &json!({})), true, |identity| {
        identity.hand_over.released = Some(released(&place("a"), Some("a")));
        identity.hand_over.predecessor = Some(Predecessor { place: elsewhere("b"), uid: "b".into(), released: NOW });
    });
    assert_eq!(recorded.partners(&here), [place("a")]);
}

#[test]
fn whoever_has_taken_over_waits_until_that_is_recorded_by_the_other_one() {
    let from = |name: &str, at| Predecessor { place: place(name), uid: name.into(), released: at };
    let new = |predecessor| {
        recording(object("new", &json!({"takeOverFrom": {"name": "old"}})), true, |identity| {
            bind(identity);
            identity.hand_over.predecessor = Some(predecessor);
        })
    };
    let old = |to: &str, taken| {
        recording(object("old", &json!({})), true, |identity| {
            identity.hand_over.released = Some(Released { taken, ..released(&place(to), Some(to)) });
        })
    };
    let unnoticed = |object: &api::Compute, other: Option<&api::Compute>| looked(object, other).unnoticed_by;
    assert_eq!(unnoticed(&new(from("old", NOW)), Some(&old("new", false))), Some(place("old")));
    assert_eq!(unnoticed(&new(from("old", NOW)), Some(&old("new", true))), None);
    assert_eq!(unnoticed(&new(from("old", NOW)), Some(&old("third", false))), None);
    assert_eq!(unnoticed(&new(from("old", at(-60))), Some(&old("new", false))), None, "an earlier one");
    assert_eq!(unnoticed(&new(from("old", NOW)), None), None, "it is gone");
    let in_another_cluster = Predecessor { place: elsewhere("old"), ..from("old", NOW) };
    assert_eq!(unnoticed(&new(in_another_cluster), Some(&old("new", false))), None, "one of the same name");
    // What it has taken over is forgotten with the next one.
    let mut third = recording(object("third", &json!({"handOverTo": {"name": "new"}})), true, |identity| {
        bind(identity);
        identity.hand_over.released = Some(released(&place("new"), Some("new")));
    });
    let mut taker = new(from("old", NOW));
    taker.spec.take_over_from = Some(api::TakeOverFrom { name: "third".into(), ..Default::default() }.into());
    let find = |others: [api::Compute; 2]| {
        move |place: &Place| {
            let of_name = |other: &&api::Compute| other.metadata.name.as_ref() == Some(&place.name);
            others.iter().find(of_name).cloned().map(Arc::new)
        }
    };
    let source = |others| view(&taker, &HERE.parse().unwrap(), find(others), (|_: &_| false, false)).source;
    let Source::Pending(text) = source([old("new", false), third.clone()]) else { panic!() };
    assert!(text.contains("Compute shop/old has not recorded yet"), "{text}");
    assert!(matches!(source([old("new", true), third.clone()]), Source::Released { .. }));
    third.status = None;
    assert!(matches!(source([old("new", true), third]), Source::Pending(_)));
}
