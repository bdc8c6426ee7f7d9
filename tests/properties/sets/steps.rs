//! Faults and foreign changes at single steps of a set, and its events.

use dbplane::api::{Compute, Known};
use dbplane::controller::object::Managed;
use kube::ResourceExt;
use serde_json::json;

use super::{Declared, SetEvent, SetRun, set};
use crate::faults::Fault;
use crate::injector::{Injected, Times};
use crate::reports::{assert_named, logged};
use crate::simulation::{PROJECT, Simulation};
use crate::watching::history;

/// Names of the replicas after a set grew from two to three, with this snag at a request.
fn grows_with(at: &'static str, snag: Injected) -> Vec<String> {
    let history = history(&[], false);
    let mut set_run = SetRun::begin(&history, 2);
    set_run.run.run_for(300).unwrap();
    set_run.run.inject(at, Times::Once, snag);
    set_run.declare(Declared {
        replicas: 3,
        ..set_run.declared
    });
    set_run.run.run_for(300).unwrap();
    set_run.kept().unwrap();
    set_run
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
fn a_name_taken_by_others_is_skipped() {
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
fn a_set_that_is_being_deleted_adopts_nothing() {
    let history = history(&[], false);
    let mut set_run = SetRun::begin(&history, 1);
    set_run.run.run_for(300).unwrap();
    let deleted = |simulation: &mut Simulation| {
        let held = json!({"metadata": {"finalizers": ["orphan"]}});
        simulation.cluster.edit(&set(), &held);
        let now = simulation.now;
        simulation.cluster.delete(&set(), now);
    };
    set_run.run.inject(
        "read of ReadReplicaSet reads",
        Times::Once,
        Injected::Meanwhile(deleted),
    );
    set_run.edit(0, json!({"ownerReferences": null}));
    set_run.run.run_for(300).unwrap();
    let replica = set_run
        .run
        .simulation
        .lock()
        .cluster
        .get::<Known<Compute>>("reads-0")
        .unwrap();
    assert_eq!(replica.owner_references(), [], "it is nobody's");
    assert!(replica.meta_observed().ready);
}

/// Each change of the set with the events that it leads to.
const EVENTS: [(SetEvent, &[&str]); 5] = [
    (
        SetEvent::Scale(2),
        &["reads ReplicaCreated: Created Compute reads-1"],
    ),
    (
        SetEvent::Resize(1),
        &[
            "reads ReplicaChanged: Changed Compute reads-0 as the template says",
            "reads ReplicaChanged: Changed Compute reads-1 as the template says",
        ],
    ),
    (
        SetEvent::ReplicaOrphaned(1),
        &["reads ReplicaAdopted: Compute reads-1 belongs to this set now"],
    ),
    (
        SetEvent::ReplicaReleased(1),
        &[
            "reads ReplicaReleased: Compute reads-1 does not belong to this set any more",
            "reads ReplicaCreated: Created Compute reads-2",
        ],
    ),
    (
        SetEvent::Scale(1),
        &["reads ReplicaDeleted: Deleted Compute reads-0"],
    ),
];

#[test]
fn changes_of_replicas_are_reported_and_logged() {
    let history = history(&[], false);
    let mut set_run = SetRun::begin(&history, 1);
    let log = logged(|| {
        set_run.run.events_after(300, |_| ());
        for (event, expected) in EVENTS {
            set_run.happen(event);
            let reported = set_run.run.events_after(300, |_| ());
            let reported: Vec<_> = reported
                .iter()
                .filter(|text| text.starts_with("reads "))
                .collect();
            assert_eq!(reported, expected, "{event:?}");
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
