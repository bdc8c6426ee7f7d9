//! Edits of a set while the platform is unavailable.

use kube::core::object::HasStatus;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use dbplane::api::{Compute, ReadReplicaSet};

use super::{Course, Deed};
use crate::config;
use crate::faults::Fault;
use crate::history::History;
use crate::in_memory::Resource;
use crate::injector::{Injected, Times};
use crate::watching::history;

fn change() -> impl Strategy<Value = Deed> {
    prop_oneof![
        1 => (1..5_u32).prop_map(Deed::Scale),
        2 => (0..2_u8).prop_map(Deed::Branch),
        2 => (0..3_u8).prop_map(Deed::Resize),
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

impl Course<'_> {
    /// Specs of the named replicas that exist and are not being deleted.
    fn specs(&self, names: &[Resource]) -> Vec<Value> {
        let simulation = self.run.simulation.lock();
        let there = names
            .iter()
            .filter_map(|name| simulation.cluster.get::<Compute>(&name.1));
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
            .get::<ReadReplicaSet>("reads")
            .unwrap();
        set.status().unwrap().ready_replicas
    }
}

/// Without observations, no replica changes, and only surplus replicas are deleted.
fn unseen(outage: &Fault, deeds: &[(Deed, u16)]) -> Result<(), String> {
    let history = History {
        deletes_per_minute: 1000,
        ..history(&[], false)
    };
    let mut course = Course::begin(&history, 3);
    course.run.go_on(300)?;
    let replicas = course.replicas();
    let before = course.specs(&replicas);
    let mut fewest = 3;
    for at in ["Get *", "Post *", "Patch *", "Delete *"] {
        course
            .run
            .inject(at, Times::Always, Injected::Fault(outage.clone()));
    }
    course.run.go_on(300)?;
    if (course.ready(), before.len()) != (0, 3) {
        return Err(format!("{} of {} are ready", course.ready(), before.len()));
    }
    for (deed, seconds) in deeds {
        course.happen(*deed);
        fewest = fewest.min(course.declared.replicas);
        course.run.go_on(*seconds)?;
        let left = course.specs(&replicas);
        if left.len() < fewest as usize || left.iter().any(|spec| *spec != before[0]) {
            return Err(format!("{fewest} of them are declared at least: {left:#?}"));
        }
    }
    course.run.without_injected_faults();
    course.run.settle()?;
    course.kept()
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn a_set_that_cannot_be_seen_loses_nothing(outage in prop::sample::select(&OUTAGES[..]), deeds in prop::collection::vec((change(), 30..200_u16), 1..5)) {
        unseen(&outage, &deeds).map_err(TestCaseError::fail)?;
    }
}
