//! The cost of an hour for an organization with many keys.

use std::collections::BTreeMap;
use std::time::Duration;

use dbplane::decide::Limits;
use dbplane::decide::key::list_interval;
use dbplane::platform::{Keys, LatestKeys, Listing};
use dbplane_simulator::world::Profile;
use jiff::Timestamp;
use serde_json::json;

use super::history::History;
use super::in_memory::Resource;
use super::process::{End, Process};
use super::run::Run;
use super::simulation::PROJECT;
use super::watching::history;

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(500);

/// 10,000 keys in a release build with `PROPTEST_CASES`, otherwise 100.
fn count() -> u32 {
    let whole = std::env::var_os("PROPTEST_CASES").is_some() && !cfg!(debug_assertions);
    if whole { 10_000 } else { 100 }
}

/// The default budget of an account, in requests per minute.
const REQUESTS: u32 = 600;

/// Declares this many keys, with an account of this budget.
fn organization(run: &mut Run<'_>, keys: u32, requests_per_minute: u32) {
    let mut simulation = run.simulation.lock();
    let now = simulation.now;
    let account = run.history.account.resource();
    simulation.cluster.edit(
        &account,
        &json!({"spec": {"rateLimit": {"requestsPerMinute": requests_per_minute}}}),
    );
    for number in 0..keys {
        let name = format!("k{number}");
        let spec = json!({
            "accountRef": {"name": "prod", "kind": account.0},
            "projectID": PROJECT,
            "keyName": name,
            "secret": {"name": name, "key": "api-key"},
        });
        simulation
            .cluster
            .create(&("ProjectKey", name), &spec, &json!({}), now);
    }
}

/// Schedules passes like the operator: over resources that are due and resources that a list wakes.
struct Work<'a> {
    run: Run<'a>,
    process: Process,
    due: BTreeMap<Resource, Timestamp>,
    /// Time of the next list of the keys.
    list: Timestamp,
}

/// The cost of an hour.
#[derive(Debug)]
struct Cost {
    lists: usize,
    /// Requests with each key itself.
    asked: BTreeMap<Resource, usize>,
    /// Creates, changes and revocations on the platform.
    changes: usize,
    /// Resources that were already due when the hour began. A resource that becomes due in a round
    /// waits for the end of the round.
    late: usize,
    /// The actual length: the last round runs to its end, which takes minutes with many keys.
    time: Duration,
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
                .chain([self.list])
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
        self.list_keys();
        let now = self.run.now();
        let due = self.due.iter().filter(|(_, time)| **time <= now);
        for resource in due
            .map(|(resource, _)| resource.clone())
            .collect::<Vec<_>>()
        {
            self.list_keys();
            let version = self.version(&resource);
            let end = self.process.pass(&resource);
            let wrote = self.version(&resource) != version;
            let soon = self.run.now() + MOMENT;
            let next = match end {
                End::Rest(wake) if !wrote => wake,
                End::Again | End::Rest(_) => Some(soon),
                End::Died => panic!("nothing fails here"),
            };
            match next {
                Some(time) => self.due.insert(resource, time),
                None => self.due.remove(&resource),
            };
            self.due.extend(
                self.process
                    .woken()
                    .into_iter()
                    .map(|resource| (resource, soon)),
            );
        }
    }

    /// Lists keys at the observer's interval. The first list, and each change of the fault, wakes
    /// all resources.
    fn list_keys(&mut self) {
        if self.run.now() < self.list {
            return;
        }
        let before = self.process.listed_keys();
        self.process.poll_keys();
        let (after, now) = (self.process.listed_keys(), self.run.now());
        let keys = after.snapshot.as_ref().map_or(0, |list| list.items.len());
        let interval = list_interval(keys, REQUESTS, Limits::default().key_check);
        // A pass that finds the last answer expired would list keys itself.
        let not_offered = after
            .fault
            .as_ref()
            .and_then(Keys::not_offered)
            .map(|pause| pause - 2 * MOMENT);
        self.list = now + not_offered.unwrap_or(interval);
        let kind = |latest: &LatestKeys| latest.fault.as_ref().map(|fault| fault.kind());
        if before.attempted.is_none() || kind(&before) != kind(&after) {
            self.due.values_mut().for_each(|due| *due = now);
        }
    }

    fn version(&self, resource: &Resource) -> u64 {
        self.run.simulation.lock().cluster.objects[resource].version()
    }

    /// Measures an hour, after all keys were created and checked for the first time.
    fn an_hour(mut self) -> Cost {
        self.run_for(2 * HOUR);
        let began = self.run.now();
        let late = self.due.values().filter(|due| **due <= began).count();
        let books = || std::mem::take(&mut self.run.simulation.lock().ledger);
        let created = books().keys.len();
        self.run_for(HOUR);
        let ledger = std::mem::take(&mut self.run.simulation.lock().ledger);
        assert_eq!(created, self.resources(), "each has its key");
        let changes = ledger
            .calls
            .iter()
            .filter(|((method, _), _)| method != "Get");
        let changes = changes.map(|(_, count)| count).sum();
        let time = Duration::try_from(self.run.now().duration_since(began)).unwrap();
        Cost {
            lists: ledger.lists,
            asked: ledger.asked,
            changes,
            late,
            time,
        }
    }

    fn resources(&self) -> usize {
        self.run
            .simulation
            .lock()
            .cluster
            .resources()
            .iter()
            .filter(|(kind, _)| *kind == "ProjectKey")
            .count()
    }
}

fn cost(history: &History, keys: u32, requests_per_minute: u32) -> Cost {
    let mut run = Run::prepared(history);
    organization(&mut run, keys, requests_per_minute);
    let (process, now) = (Process::new(&run.simulation, 30), run.now());
    let due = run
        .simulation
        .lock()
        .cluster
        .resources()
        .into_iter()
        .map(|resource| (resource, now))
        .collect();
    Work {
        run,
        process,
        due,
        list: now,
    }
    .an_hour()
}

/// One list per minute serves all keys; a list of 10,000 keys is read eight times an hour.
#[test]
fn one_list_serves_all_keys() {
    for keys in [1, count()] {
        let cost = cost(&history(&[], false), keys, REQUESTS);
        let expected = if keys < 10_000 { 65..=68 } else { 7..=9 };
        assert!(
            expected.contains(&cost.lists),
            "{keys}: {} lists",
            cost.lists
        );
        assert_eq!(cost.changes, 0, "{keys}");
        assert!(
            cost.asked.is_empty(),
            "who is asked would seem to be in use: {:?}",
            cost.asked
        );
    }
}

/// The keys are checked in turn, within a quarter of the account's budget.
#[test]
fn where_keys_are_not_listed_they_take_turns_to_be_asked() {
    let history = History {
        profile: Profile::Minimal,
        ..history(&[], false)
    };
    let requests = count() * REQUESTS / 10_000;
    let (keys, cost) = (count() as usize, cost(&history, count(), requests));
    let seconds = usize::try_from(cost.time.as_secs()).unwrap();
    let every_two_minutes = seconds / 120;
    assert!(
        (every_two_minutes - 2..=every_two_minutes + 1).contains(&cost.lists),
        "{} tries to list keys",
        cost.lists
    );
    let asked: usize = cost.asked.values().sum();
    let most = keys * seconds * 25 / 100_000 + cost.late;
    assert!(
        (most * 9 / 10..=most).contains(&asked),
        "{asked} requests, at most {most} were expected: {} late",
        cost.late
    );
    assert!(
        cost.asked.values().all(|times| *times == 1),
        "none has two turns before the others have one"
    );
    assert_eq!(cost.changes, 0);
}
