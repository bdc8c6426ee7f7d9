//! Edits of a set while the platform is unavailable.

use kube::core::object::HasStatus;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use dbplane::api::{Compute, Known, ReadReplicaSet};

use super::{SetEvent, SetRun};
use crate::config;
use crate::faults::Fault;
use crate::history::History;
use crate::in_memory::Resource;
use crate::injector::{Injected, Times};
use crate::watching::history;

fn change() -> impl Strategy<Value = SetEvent> {
    prop_oneof![
        1 => (1..5_u32).prop_map(SetEvent::Scale),
        2 => (0..2_u8).prop_map(SetEvent::Branch),
        2 => (0..3_u8).prop_map(SetEvent::Resize),
    ]
}

/// The platform answers every request with this fault.
const OUTAGES: [Fault; 5] = [
    Fault::Refused(401),
    Fault::Refused(429),
    Fault::Refused(503),
    Fault::Unreachable,
    Fault::Huge,
];

impl SetRun<'_> {
    /// Specs of the named replicas that exist and are not being deleted.
    fn specs(&self, names: &[Resource]) -> Vec<Value> {
        let simulation = self.run.simulation.lock();
        let there = names
            .iter()
            .filter_map(|name| simulation.cluster.get::<Known<Compute>>(&name.1));
        there
            .filter(|it| it.metadata.deletion_timestamp.is_none())
            .map(|it| json!(it.spec))
            .collect()
    }

    fn ready(&self) -> u32 {
        let set = self
            .run
            .simulation
            .lock()
            .cluster
            .get::<Known<ReadReplicaSet>>("reads")
            .unwrap();
        set.status().unwrap().ready_replicas
    }
}

/// Without observations, no replica changes, and only surplus replicas are deleted.
fn check_outage(outage: &Fault, events: &[(SetEvent, u16)]) -> Result<(), String> {
    let history = History {
        deletes_per_minute: 1000,
        ..history(&[], false)
    };
    let mut set_run = SetRun::begin(&history, 3);
    set_run.run.run_for(300)?;
    let replicas = set_run.replicas();
    let before = set_run.specs(&replicas);
    let mut fewest = 3;
    for at in ["Get *", "Post *", "Patch *", "Delete *"] {
        set_run
            .run
            .inject(at, Times::Always, Injected::Fault(outage.clone()));
    }
    set_run.run.run_for(300)?;
    if (set_run.ready(), before.len()) != (0, 3) {
        return Err(format!("{} of {} are ready", set_run.ready(), before.len()));
    }
    for (event, seconds) in events {
        set_run.happen(*event);
        fewest = fewest.min(set_run.declared.replicas);
        set_run.run.run_for(*seconds)?;
        let left = set_run.specs(&replicas);
        if left.len() < fewest as usize || left.iter().any(|spec| *spec != before[0]) {
            return Err(format!("{fewest} of them are declared at least: {left:#?}"));
        }
    }
    set_run.run.without_injected_faults();
    set_run.run.settle()?;
    set_run.kept()
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn a_set_loses_nothing_during_an_outage(outage in prop::sample::select(&OUTAGES[..]), events in prop::collection::vec((change(), 30..200_u16), 1..5)) {
        check_outage(&outage, &events).map_err(TestCaseError::fail)?;
    }
}
