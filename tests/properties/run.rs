//! A story is told: people act, the operator works, faults happen; then they stop, and everything has to come to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::history::Story;
use super::pass::End;
use super::process::Process;
use super::promises;
use super::stage::{Resource, Shared};

pub struct Run<'a> {
    pub story: &'a Story,
    pub stage: Shared,
    pub process: Option<Process>,
    pub backups: BTreeMap<Resource, Value>,
    /// MetadataPatch that people edited or copied: nothing is to be done for these any more.
    pub tampered: BTreeSet<Resource>,
    /// On which branches others have created primaries, or replicas.
    pub foreign: BTreeSet<(u8, bool)>,
}

/// How long a successor takes to begin.
const SUCCESSION: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_secs(30);
/// Longer than any pause between two tries: who writes nothing for so long is at rest.
const REST: Duration = Duration::from_secs(2 * 3600);
/// Who is asked so often and writes nothing is at rest too.
const IDLE_ROUNDS: usize = 60;
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
const MOST_ROUNDS: usize = 600;

/// What a round over all resources came to.
struct Round {
    acted: bool,
    wake: Option<Timestamp>,
}

/// Tells a story to its end.
pub fn tell(story: &Story) -> Result<(), String> {
    let stage = Shared::new(story.profile, story.faults.clone());
    let mut run = Run {
        story,
        process: Some(Process::new(&stage)),
        stage,
        backups: BTreeMap::new(),
        tampered: BTreeSet::new(),
        foreign: BTreeSet::new(),
    };
    {
        let mut stage = run.stage.lock();
        let now = stage.now;
        for resource in story.resources() {
            let spec = story.spec(&resource).unwrap();
            stage.cluster.create(&resource, &spec, &json!({}), now);
        }
    }
    run.go_on(5)?;
    for chapter in &story.chapters {
        run.happen(&chapter.event);
        run.go_on(chapter.seconds)?;
    }
    run.settle()
}

impl Run<'_> {
    pub fn kill(&mut self) {
        self.process = None;
        self.stage.lock().dead = false;
        self.stage.lock().advance(SUCCESSION);
    }

    /// The operator works for so long.
    fn go_on(&mut self, seconds: u16) -> Result<(), String> {
        let until = self.now() + Duration::from_secs(seconds.into());
        while self.now() < until {
            let round = self.round()?;
            let next = self.next(&round, POLL).min(until);
            self.wait_until(next);
        }
        Ok(())
    }

    /// Without faults, until nothing is waited for; then nothing may be written any more.
    fn settle(&mut self) -> Result<(), String> {
        self.stage.lock().calm();
        // Whatever is still on the way arrives.
        self.go_on(1000)?;
        let (mut written, mut since, mut idle) = (0, self.now(), 0);
        for _ in 0..MOST_ROUNDS {
            let round = self.round()?;
            let writes = self.stage.lock().ledger.writes.len();
            idle += 1;
            if writes > written {
                (written, since, idle) = (writes, self.now(), 0);
            }
            if self.now() > since + REST || idle > IDLE_ROUNDS {
                return self.rest();
            }
            let next = self.next(&round, LONGEST_WAIT);
            self.wait_until(next);
        }
        Err(format!("it does not come to rest: {:#?}", promises::said(self)))
    }

    fn rest(&mut self) -> Result<(), String> {
        promises::kept(self)?;
        let before = self.stage.lock().ledger.writes.len();
        self.go_on(600)?;
        let after = self.stage.lock().ledger.writes[before..].to_vec();
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

    fn wait_until(&mut self, time: Timestamp) {
        let mut stage = self.stage.lock();
        let by = Duration::try_from(time.duration_since(stage.now)).unwrap_or_default();
        stage.advance(by);
    }

    pub fn now(&self) -> Timestamp {
        self.stage.lock().now
    }

    fn round(&mut self) -> Result<Round, String> {
        let mut round = Round { acted: false, wake: None };
        let stage = self.stage.clone();
        let process = self.process.get_or_insert_with(|| Process::new(&stage));
        process.hear();
        if !process.read() {
            self.kill();
            return Ok(Round { acted: true, wake: None });
        }
        let resources = self.stage.lock().cluster.resources();
        for resource in resources {
            let Some(process) = &self.process else { break };
            match process.pass(&resource) {
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
