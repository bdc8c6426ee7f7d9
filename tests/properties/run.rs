//! A history is run: people act, the operator works, faults happen; then they stop, and everything has to come to rest.

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
    /// Records as they were exported, by the UID of the resource.
    pub exported: BTreeMap<String, Value>,
    /// Whether people have copied a resource with its annotations.
    pub copied: bool,
    /// The name and the text of the platform's key that the account has.
    pub credential: (String, String),
    /// On which branches others have created primaries, or replicas.
    pub foreign: BTreeSet<(u8, bool)>,
}

/// How long a successor takes to begin.
const SUCCESSION: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_secs(30);
/// Longer than any pause between two tries: who writes nothing for so long is at rest.
const REST: Duration = Duration::from_secs(2 * 3600);
/// Who is asked so often and writes nothing is at rest too, once accounts were checked again.
const IDLE_ROUNDS: usize = 60;
/// Accounts are checked so often: the next check may find what nobody has written down since the last.
const CHECK: Duration = Duration::from_secs(3600);
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
const MOST_ROUNDS: usize = 600;

/// How many passes over one resource at most follow each other in a round.
pub const AT_ONCE: usize = 3;

/// What a round over all resources came to.
struct Round {
    acted: bool,
    wake: Option<Timestamp>,
}

/// Runs a history to its end.
pub fn check(history: &History) -> Result<(), String> {
    let mut run = Run::begin(history)?;
    for chapter in &history.chapters {
        run.happen(&chapter.event);
        run.go_on(chapter.seconds)?;
    }
    run.settle()
}

impl<'a> Run<'a> {
    /// Everything is created that the history declares, and the operator has worked for a moment.
    pub fn begin(history: &'a History) -> Result<Self, String> {
        let mut run = Self::prepared(history);
        run.declare();
        run.go_on(5)?;
        Ok(run)
    }

    /// There is an account, and nobody has begun to work.
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

    /// Creates what the history declares.
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
        // The brake counts in each process.
        simulation.ledger.deletions.clear();
        simulation.advance(SUCCESSION);
    }

    /// The operator works for so long.
    pub fn go_on(&mut self, seconds: u16) -> Result<(), String> {
        self.go_on_until(self.now() + Duration::from_secs(seconds.into()), POLL)
    }

    /// The same until then, with so much time between two polls.
    pub fn go_on_until(&mut self, until: Timestamp, poll: Duration) -> Result<(), String> {
        while self.now() < until {
            let round = self.round()?;
            let next = self.next(&round, poll).min(until);
            self.wait_until(next);
        }
        Ok(())
    }

    /// Without faults, until nothing is waited for; then nothing may be written any more.
    pub fn settle(&mut self) -> Result<(), String> {
        self.simulation.lock().calm();
        self.repair();
        // Whatever is still on the way arrives.
        self.go_on(1000)?;
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
        Err(format!("it does not come to rest: {:#?}", promises::conditions_of_all(self)))
    }

    fn rest(&mut self) -> Result<(), String> {
        promises::kept(self)?;
        let before = self.simulation.lock().ledger.writes.len();
        self.go_on(600)?;
        let after = self.simulation.lock().ledger.writes[before..].to_vec();
        match after.is_empty() {
            true => Ok(()),
            false => Err(format!("it is at rest and writes: {after:#?}")),
        }
    }

    fn next(&self, round: &Round, longest: Duration) -> Timestamp {
        let now = self.now();
        match round.acted {
            true => now + MOMENT,
            false => round.wake.unwrap_or(now + longest).clamp(now + MOMENT, now + longest),
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
        let mut round = Round { acted: false, wake: None };
        let simulation = self.simulation.clone();
        let limit = self.history.deletes_per_minute;
        let process = self.process.get_or_insert_with(|| Process::new(&simulation, limit));
        process.hear();
        if !process.read() {
            self.kill();
            return Ok(Round { acted: true, wake: None });
        }
        let resources = self.simulation.lock().cluster.resources();
        for resource in resources {
            let Some(process) = &self.process else { break };
            let mut end = process.pass(&resource);
            // Who has done something goes on at once, with what was read before.
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
