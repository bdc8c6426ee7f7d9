//! Runs a history: events, passes and faults. Then the faults stop, and everything has to come to
//! rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::history::History;
use super::in_memory::Resource;
use super::process::{End, Process};
use super::promises;
use super::simulation::{Shared, TOKEN, TOKEN_NAME};

pub struct Run<'a> {
    pub history: &'a History,
    pub simulation: Shared,
    pub process: Option<Process>,
    pub backups: BTreeMap<Resource, Value>,
    /// Exported records by the UID of the resource.
    pub exported: BTreeMap<String, Value>,
    /// True if a resource was copied with its annotations.
    pub copied: bool,
    /// Name and token of the account's key on the platform.
    pub credential: (String, String),
    /// Branches on which others have created a primary (`true`) or a replica (`false`).
    pub foreign: BTreeSet<(u8, bool)>,
}

/// Time until the next process starts.
const SUCCESSION: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_secs(30);
/// Longer than any pause between two tries: nothing written for this long means that the run is at
/// rest.
const REST: Duration = Duration::from_secs(2 * 3600);
/// The run is also at rest after this many rounds without a write, once accounts were checked
/// again.
const IDLE_ROUNDS: usize = 60;
/// Interval of account checks. Such a check may find a change that caused no write before.
const CHECK: Duration = Duration::from_secs(3600);
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
const MOST_ROUNDS: usize = 600;

/// The most consecutive passes over one resource in a round.
pub const AT_ONCE: usize = 3;

/// The outcome of one round over all resources.
struct Round {
    acted: bool,
    wake: Option<Timestamp>,
}

/// Runs a history to its end and checks the promises.
pub fn check(history: &History) -> Result<(), String> {
    let mut run = Run::begin(history)?;
    for chapter in &history.chapters {
        run.happen(&chapter.event);
        run.run_for(chapter.seconds)?;
    }
    run.settle()
}

impl<'a> Run<'a> {
    /// Creates all resources of the history and runs the operator for five seconds.
    pub fn begin(history: &'a History) -> Result<Self, String> {
        let mut run = Self::prepared(history);
        run.declare();
        run.run_for(5)?;
        Ok(run)
    }

    /// Creates the account. Neither the resources nor a process exist yet.
    pub fn prepared(history: &'a History) -> Self {
        let simulation = Shared::new(history);
        let mut run = Self {
            history,
            process: None,
            simulation,
            credential: (TOKEN_NAME.to_owned(), TOKEN.to_owned()),
            backups: BTreeMap::new(),
            exported: BTreeMap::new(),
            copied: false,
            foreign: BTreeSet::new(),
        };
        run.set_up_account();
        run
    }

    /// Creates the resources of the history.
    pub fn declare(&mut self) {
        let mut simulation = self.simulation.lock();
        let now = simulation.now;
        for resource in self.history.resources() {
            let spec = self.history.spec(&resource).unwrap();
            simulation.cluster.create(&resource, &spec, &json!({}), now);
        }
    }
}

impl Run<'_> {
    pub fn kill(&mut self) {
        self.process = None;
        let mut simulation = self.simulation.lock();
        simulation.dead = false;
        // Each process counts deletions separately.
        simulation.ledger.deletions.clear();
        simulation.advance(SUCCESSION);
    }

    /// Runs the operator for this long.
    pub fn run_for(&mut self, seconds: u16) -> Result<(), String> {
        self.run_until(self.now() + Duration::from_secs(seconds.into()), POLL)
    }

    /// Runs the operator until then, with this interval between polls.
    pub fn run_until(&mut self, until: Timestamp, poll: Duration) -> Result<(), String> {
        while self.now() < until {
            let round = self.round()?;
            let next = self.next(&round, poll).min(until);
            self.wait_until(next);
        }
        Ok(())
    }

    /// Runs without faults until nothing is pending. After that, nothing may be written any more.
    pub fn settle(&mut self) -> Result<(), String> {
        self.simulation.lock().stop_faults();
        self.repair();
        // Late requests arrive within this time.
        self.run_for(1000)?;
        let (mut written, mut since, mut idle, mut checked) = (0, self.now(), 0, false);
        for _ in 0..MOST_ROUNDS {
            self.repair();
            let round = self.round()?;
            let writes = self.simulation.lock().ledger.writes.len();
            idle += 1;
            if writes > written {
                (written, since, idle) = (writes, self.now(), 0);
            }
            if self.now() > since + REST || checked && idle > IDLE_ROUNDS {
                return self.rest();
            }
            let next = if idle > IDLE_ROUNDS {
                (checked, idle) = (true, 0);
                self.now() + CHECK
            } else {
                self.next(&round, LONGEST_WAIT)
            };
            self.wait_until(next);
        }
        Err(format!(
            "it does not come to rest: {:#?}",
            promises::conditions_of_all(self)
        ))
    }

    fn rest(&mut self) -> Result<(), String> {
        promises::kept(self)?;
        let before = self.simulation.lock().ledger.writes.len();
        self.run_for(600)?;
        let after = self.simulation.lock().ledger.writes[before..].to_vec();
        if after.is_empty() {
            Ok(())
        } else {
            Err(format!("it is at rest and writes: {after:#?}"))
        }
    }

    fn next(&self, round: &Round, longest: Duration) -> Timestamp {
        let now = self.now();
        if round.acted {
            now + MOMENT
        } else {
            round
                .wake
                .unwrap_or(now + longest)
                .clamp(now + MOMENT, now + longest)
        }
    }

    pub fn wait_until(&mut self, time: Timestamp) {
        let mut simulation = self.simulation.lock();
        let by = Duration::try_from(time.duration_since(simulation.now)).unwrap_or_default();
        simulation.advance(by);
    }

    pub fn now(&self) -> Timestamp {
        self.simulation.lock().now
    }

    fn round(&mut self) -> Result<Round, String> {
        let mut round = Round {
            acted: false,
            wake: None,
        };
        let simulation = self.simulation.clone();
        let limit = self.history.deletes_per_minute;
        let process = self
            .process
            .get_or_insert_with(|| Process::new(&simulation, limit));
        process.handle_deletions();
        if !process.read() {
            self.kill();
            return Ok(Round {
                acted: true,
                wake: None,
            });
        }
        let resources = self.simulation.lock().cluster.resources();
        for resource in resources {
            let Some(process) = &self.process else { break };
            let mut end = process.pass(&resource);
            // A resource whose pass did something gets another pass at once, with the same
            // observations.
            for _ in 1..AT_ONCE {
                if matches!(end, End::Again) {
                    round.acted = true;
                    end = process.pass(&resource);
                }
            }
            match end {
                End::Again => round.acted = true,
                End::Rest(wake) => round.wake = round.wake.into_iter().chain(wake).min(),
                End::Died => {
                    round.acted = true;
                    self.kill();
                }
            }
            promises::unbroken(self)?;
        }
        Ok(round)
    }
}
