//! Faults and foreign changes at single steps of a set, and its events.

use dbplane::api::Compute;
use dbplane::controller::object::Managed;
use kube::ResourceExt;
use serde_json::json;

use super::{Course, Declared, Deed, set};
use crate::faults::Fault;
use crate::injector::{Injected, Times};
use crate::reports::{assert_named, logged};
use crate::simulation::{PROJECT, Simulation};
use crate::watching::history;

/// Names of the replicas after a set grew from two to three, with this snag at a request.
fn grows_with(at: &'static str, snag: Injected) -> Vec<String> {
    let history = history(&[], false);
    let mut course = Course::begin(&history, 2);
    course.run.go_on(300).unwrap();
    course.run.inject(at, Times::Once, snag);
    course.declare(Declared {
        replicas: 3,
        ..course.declared
    });
    course.run.go_on(300).unwrap();
    course.kept().unwrap();
    course
        .replicas()
        .into_iter()
        .map(|(_, name)| name)
        .collect()
}

#[test]
fn a_replica_whose_creation_is_not_answered_is_created_once() {
    for fault in [
        Fault::Cut,
        Fault::Refused(500),
        Fault::Refused(409),
        Fault::Denied,
        Fault::Unreachable,
    ] {
        let found = grows_with(
            "creation of Compute reads-2",
            Injected::Fault(fault.clone()),
        );
        assert_eq!(found, ["reads-0", "reads-1", "reads-2"], "{fault:?}");
    }
}

/// The name is taken just before the create, so the set uses the next one.
#[test]
fn a_name_that_somebody_has_taken_is_left_to_them() {
    let taken = |simulation: &mut Simulation| {
        let spec = json!({"accountRef": {"name": "prod"}, "projectID": PROJECT, "branchID": "b1", "type": "ReadOnly"});
        let now = simulation.now;
        simulation
            .cluster
            .create(&("Compute", "reads-2".to_owned()), &spec, &json!({}), now);
    };
    let found = grows_with("creation of Compute reads-2", Injected::Meanwhile(taken));
    assert_eq!(found, ["reads-0", "reads-1", "reads-3"]);
}

/// A set that is being deleted with `--cascade=orphan` must not adopt an orphaned replica again.
#[test]
fn a_set_that_goes_adopts_nothing() {
    let history = history(&[], false);
    let mut course = Course::begin(&history, 1);
    course.run.go_on(300).unwrap();
    let deleted = |simulation: &mut Simulation| {
        let held = json!({"metadata": {"finalizers": ["orphan"]}});
        simulation.cluster.edit(&set(), &held);
        let now = simulation.now;
        simulation.cluster.delete(&set(), now);
    };
    course.run.inject(
        "read of ReadReplicaSet reads",
        Times::Once,
        Injected::Meanwhile(deleted),
    );
    course.edit(0, json!({"ownerReferences": null}));
    course.run.go_on(300).unwrap();
    let replica = course
        .run
        .simulation
        .lock()
        .cluster
        .get::<Compute>("reads-0")
        .unwrap();
    assert_eq!(replica.owner_references(), [], "it is nobody's");
    assert!(replica.meta_observed().ready);
}

/// Each deed with the events that it leads to.
const EVENTS: [(Deed, &[&str]); 5] = [
    (
        Deed::Scale(2),
        &["reads ReplicaCreated: Created Compute reads-1"],
    ),
    (
        Deed::Resize(1),
        &[
            "reads ReplicaChanged: Changed Compute reads-0 as the template says",
            "reads ReplicaChanged: Changed Compute reads-1 as the template says",
        ],
    ),
    (
        Deed::ReplicaOrphaned(1),
        &["reads ReplicaAdopted: Compute reads-1 belongs to this set now"],
    ),
    (
        Deed::ReplicaReleased(1),
        &[
            "reads ReplicaReleased: Compute reads-1 does not belong to this set any more",
            "reads ReplicaCreated: Created Compute reads-2",
        ],
    ),
    (
        Deed::Scale(1),
        &["reads ReplicaDeleted: Deleted Compute reads-0"],
    ),
];

#[test]
fn what_is_done_with_a_replica_is_told_and_logged() {
    let history = history(&[], false);
    let mut course = Course::begin(&history, 1);
    let log = logged(|| {
        course.run.told_after(300, |_| ());
        for (deed, expected) in EVENTS {
            course.happen(deed);
            let told = course.run.told_after(300, |_| ());
            let told: Vec<_> = told
                .iter()
                .filter(|text| text.starts_with("reads "))
                .collect();
            assert_eq!(told, expected, "{deed:?}");
        }
    });
    for (event, action) in [
        ("Created", "create"),
        ("Changed", "change"),
        ("Adopted", "adopt"),
        ("Released", "release"),
        ("Deleted", "delete"),
    ] {
        assert_named(
            &log,
            &format!(" event=\"Replica{event}\""),
            action,
            &[" replica=\"reads-"],
        );
    }
}
