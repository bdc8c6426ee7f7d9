//! Runs all points of a scenario and counts the results.

use std::io::Write;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::lab::Lab;
use super::modes::{Extent, Fault, Mode, Place};
use super::point::{Outcome, label, run};
use super::scenarios::{Scenario, scenarios};
use crate::support::{Error, Result};

/// Points between two progress messages.
const STRIDE: usize = 100;

/// The results of a scenario's points.
#[derive(Debug, Default)]
pub struct Tally {
    pub scenario: String,
    /// Requests from the act to the end, in a run without faults.
    pub requests: usize,
    /// Points derived from these requests.
    pub points: usize,
    /// Points at which a request met its fault.
    pub tried: usize,
    /// Points whose request number was not reached in that run.
    pub not_reached: usize,
    /// Points that a typical run without faults reaches, and how many of them were not reached.
    expected: (usize, usize),
    pub violations: Vec<String>,
    /// The log of the run, for a single point.
    pub transcript: String,
}

/// Counts the scenario's requests in a run without faults, then tries each one in every suitable
/// mode. The number of requests varies, most of all while all scenarios start together. A point
/// that is not reached is another run without faults, and shows the typical number.
pub async fn enumerate(lab: Arc<Lab>, scenario: Scenario, extent: Extent) -> Tally {
    let mut tally = Tally {
        scenario: scenario.name.to_owned(),
        ..Tally::default()
    };
    let whole = [Fault {
        mode: Mode::Nothing,
        at: Place::Request(0),
    }];
    let outcome = point(lab.clone(), scenario.clone(), &whole).await;
    let counted = outcome
        .as_ref()
        .map(|outcome| outcome.counted.clone())
        .unwrap_or_default();
    tally.requests = counted.len();
    tally.note(&label(&scenario, &whole), outcome);
    let points = scenario.points(extent, &counted);
    tally.points = points.len();
    let mut running = JoinSet::new();
    for faults in points.iter().cloned() {
        let (lab, scenario) = (lab.clone(), scenario.clone());
        running.spawn(async move {
            let outcome = point(lab, scenario, &faults).await;
            (faults, outcome)
        });
    }
    let (mut done, mut missed, mut unhurt) = (0, Vec::new(), vec![tally.requests]);
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((faults, outcome)) => {
                if let Ok(Outcome { met, counted, .. }) = &outcome
                    && met.is_empty()
                {
                    unhurt.push(counted.len());
                    missed.push(faults.clone());
                }
                tally.note(&label(&scenario, &faults), outcome);
            }
            Err(error) => tally.violations.push(format!("a point broke off: {error}")),
        }
        done += 1;
        if done % STRIDE == 0 {
            let _ = writeln!(
                std::io::stderr(),
                "{}: {done} of {} points",
                scenario.name,
                tally.points
            );
        }
    }
    unhurt.sort_unstable();
    let typical = unhurt[unhurt.len() / 2];
    let typical = Place::Request(typical);
    // There are too few pairs to judge by them.
    let alone = |faults: &&Vec<Fault>| faults.len() == 1 && typical.is_due(faults[0].at);
    let expected = |points: &[Vec<Fault>]| points.iter().filter(alone).count();
    tally.expected = (expected(&points), expected(&missed));
    tally
}

/// Runs one point, given by its name.
pub async fn single(lab: Arc<Lab>, name: &str) -> Result<Tally> {
    let Some((scenario, faults)) = name.split_once(':') else {
        return Err(Error::new(format!(
            "{name:?} is not scenario:mode:number, for instance create-key:kill-after:7"
        )));
    };
    let known = scenarios();
    let Some(found) = known.iter().find(|known| known.name == scenario) else {
        let names: Vec<&str> = known.iter().map(|known| known.name).collect();
        return Err(Error::new(format!(
            "there is no scenario {scenario:?}; there are {}",
            names.join(", ")
        )));
    };
    let faults: Vec<Fault> = faults.split('+').map(str::parse).collect::<Result<_>>()?;
    let mut tally = Tally {
        scenario: name.to_owned(),
        ..Tally::default()
    };
    let outcome = point(lab, found.clone(), &faults).await;
    if let Ok(outcome) = &outcome {
        tally.requests = outcome.counted.len();
        tally.transcript.clone_from(&outcome.transcript);
    }
    tally.note(name, outcome);
    Ok(tally)
}

async fn point(lab: Arc<Lab>, scenario: Scenario, faults: &[Fault]) -> Result<Outcome> {
    let _place = lab.place(scenario.elected).await?;
    run(lab.clone(), &scenario, faults).await
}

impl Tally {
    /// True if enough points were reached for the result to count: fewer than 20 % were missed.
    pub fn reached_most(&self) -> bool {
        let (expected, missed) = self.expected;
        self.tried > 0 && (missed == 0 || missed * 10 < expected * 2)
    }

    fn note(&mut self, name: &str, outcome: Result<Outcome>) {
        let violations = match outcome {
            Ok(Outcome {
                met,
                mut violations,
                transcript,
                ..
            }) => {
                let has_faults = !name.contains(":none:");
                let all_met = name.split('+').count() == met.len();
                if has_faults && all_met {
                    self.tried += 1;
                } else if has_faults {
                    self.not_reached += 1;
                }
                if !violations.is_empty() && !transcript.is_empty() {
                    violations.push(transcript);
                }
                violations
            }
            Err(error) => vec![error.to_string()],
        };
        if !violations.is_empty() {
            let what = violations.join("\n  ");
            // Written to stderr at once, because the test harness keeps captured output until the
            // end.
            let _ = writeln!(
                std::io::stderr(),
                "VIOLATION {name}: {what}\nto repeat it: make verify point={name}\n"
            );
            self.violations.push(format!("{name}: {}", violations[0]));
        }
    }
}
