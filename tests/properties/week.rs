//! A week of many computes with schedules and regular restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::history::{Declared, compute};
use super::in_memory::Resource;
use super::process::{End, Process};
use super::promises;
use super::run::Run;
use super::watching::{history, replica};

const POLL: Duration = Duration::from_secs(3600);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const MOMENT: Duration = Duration::from_millis(500);

/// Few, because computes of one branch are created one after the other.
const ON_A_BRANCH: usize = 4;

/// 1000 computes with `PROPTEST_CASES`, otherwise 16.
fn fleet() -> Vec<Declared> {
    let count = if std::env::var_os("PROPTEST_CASES").is_some() {
        1000
    } else {
        16
    };
    let on_branch = |number: usize| Declared {
        branch: u8::try_from(number / ON_A_BRANCH).unwrap(),
        ..replica()
    };
    (0..count).map(on_branch).collect()
}

/// Schedules passes like the operator: over resources that are due, and those whose compute changed
/// since the last poll.
struct Work<'a> {
    run: Run<'a>,
    process: Process,
    due: BTreeMap<Resource, Timestamp>,
    polled: Timestamp,
}

impl Work<'_> {
    fn run_for(&mut self, time: Duration) {
        let until = self.run.now() + time;
        loop {
            let now = self.run.now();
            let next = self
                .due
                .values()
                .copied()
                .chain([self.polled + POLL])
                .min()
                .unwrap_or(until);
            if next >= until {
                return self.run.wait_until(until);
            }
            if next > now {
                self.run.wait_until(next);
            }
            self.round();
        }
    }

    fn round(&mut self) {
        self.process.handle_deletions();
        let before = self.process.computes();
        assert!(self.process.read());
        self.polled = self.run.now();
        for changed in self
            .process
            .computes()
            .iter()
            .filter(|compute| !before.contains(compute))
        {
            let made_for = self
                .run
                .simulation
                .lock()
                .ledger
                .computes
                .get(changed.id.as_str())
                .cloned();
            self.due
                .extend(made_for.map(|resource| (resource, self.polled)));
        }
        let due = self.due.iter().filter(|(_, time)| **time <= self.polled);
        for resource in due
            .map(|(resource, _)| resource.clone())
            .collect::<Vec<_>>()
        {
            let version = self.version(&resource);
            let end = self.process.pass(&resource);
            let wrote = self.version(&resource) != version;
            let next = match end {
                End::Rest(wake) if !wrote => wake,
                // The watch delivers its own write as well.
                End::Again | End::Rest(_) => Some(self.run.now() + MOMENT),
                End::Died => panic!("nothing fails here"),
            };
            match next {
                Some(time) => self.due.insert(resource, time),
                None => self.due.remove(&resource),
            };
        }
        let soon = self.run.now() + MOMENT;
        for resource in self.process.woken() {
            let due = self.due.entry(resource).or_insert(soon);
            *due = soon.min(*due);
        }
    }

    fn version(&self, resource: &Resource) -> Value {
        self.run.simulation.lock().cluster.objects[resource].value["metadata"]["resourceVersion"]
            .clone()
    }
}

/// One half is larger during office hours. The other half never suspends and is restarted twice a
/// week.
#[test]
fn schedules_and_regular_restarts_cost_their_changes_and_nothing_else() {
    let fleet = fleet();
    let (count, history) = (fleet.len(), history(&fleet, false));
    let mut run = Run::prepared(&history);
    run.declare();
    for number in 0..count {
        let spec = match number % 2 {
            0 => json!({"schedules": [
                {"name": "office", "start": "0 9 * * MON-FRI", "end": "0 17 * * MON-FRI", "size": {"fixed": 2}},
            ]}),
            _ => json!({
                "scaleToZero": {"never": true},
                "maintenance": {"restart": {"schedule": "0 3 * * WED,SUN", "jitter": "1h"}},
            }),
        };
        run.simulation
            .lock()
            .cluster
            .edit(&compute(number), &json!({"spec": spec}));
    }
    let (process, polled) = (Process::new(&run.simulation, 30), run.now());
    let resources = run.simulation.lock().cluster.resources();
    let due = resources
        .into_iter()
        .map(|resource| (resource, polled))
        .collect();
    let mut work = Work {
        run,
        process,
        due,
        polled,
    };
    work.run_for(Duration::from_secs(1200));
    work.run.simulation.lock().ledger.calls.clear();
    work.run_for(WEEK);
    let of_computes = |method| work.run.calls(method, "Compute");
    let half = count / 2;
    // The week begins on a Monday morning: five days with two changes each.
    assert_eq!(of_computes("Patch"), 10 * half);
    // On Wednesday the computes have started since the previous Sunday, so no restart is due. On
    // Sunday one is.
    assert_eq!(of_computes("Post"), half);
    // Only polls read from the platform.
    assert_eq!(of_computes("Get"), 0);
    promises::kept(&work.run).unwrap();
}
