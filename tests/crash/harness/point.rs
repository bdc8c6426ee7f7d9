//! Runs one point: sets the scene, acts, lets one request fail, waits until everything is quiet,
//! and checks the promises.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::gate::{Counted, Met, Process};
use super::lab::Lab;
use super::modes::{Fault, Mode};
use super::objects::condition;
use super::promises::{unsettled, violations};
use super::scenarios::{Goal, Scenario};
use super::secrecy::leaks;
use super::site::Site;
use crate::support::{Error, Result};

const TICK: Duration = Duration::from_millis(250);
/// A point is quiet after this time without a write.
const QUIET: Duration = Duration::from_millis(1200);
/// Longer than any wait that one fault can cause on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Outcome {
    /// The requests that met a fault. Fewer than the faults if there were not enough requests.
    pub met: Vec<Met>,
    pub counted: Vec<Counted>,
    pub violations: Vec<String>,
    /// Requests and log, for debugging.
    pub transcript: String,
}

/// The name of a point, as accepted by `make verify point=`.
pub fn label(scenario: &Scenario, faults: &[Fault]) -> String {
    let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
    format!("{}:{}", scenario.name, faults.join("+"))
}

pub async fn run(lab: Arc<Lab>, scenario: &Scenario, faults: &[Fault]) -> Result<Outcome> {
    let namespace = label(scenario, faults).replace([':', '+'], "-");
    let mut site = Site::open(lab, scenario, &namespace).await?;
    let outcome = play(&mut site, scenario, faults).await;
    match outcome {
        Ok(outcome) => Ok(Outcome {
            transcript: transcript(&site),
            ..outcome
        }),
        Err(error) => Err(Error::new(format!("{error}\n{}", transcript(&site)))),
    }
}

async fn play(site: &mut Site, scenario: &Scenario, faults: &[Fault]) -> Result<Outcome> {
    prepare(site, scenario).await?;
    if faults.iter().any(|fault| fault.mode == Mode::Rolled) {
        site.start_relief().await?;
    }
    site.gate.arm(faults);
    for act in &scenario.act {
        site.perform(act).await?;
    }
    let mut found = Vec::new();
    if let Some(what) = run_until_stable(site, &scenario.goal).await? {
        found.push(format!(
            "not settled after {} s: {what}",
            patience(site).as_secs()
        ));
    }
    found.extend(violations(site, &scenario.goal).await?);
    found.extend(leaks(site).await?);
    Ok(Outcome {
        met: site.gate.met(),
        counted: site.gate.counted(),
        violations: found,
        transcript: String::new(),
    })
}

pub async fn prepare(site: &mut Site, scenario: &Scenario) -> Result<()> {
    let named = |kind: &str| {
        scenario
            .before
            .iter()
            .filter(|it| it["kind"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    let (computes, keys, sets) = (
        named("Compute"),
        named("ProjectKey"),
        named("ReadReplicaSet"),
    );
    let replicas: u64 = sets
        .iter()
        .filter_map(|set| set["spec"]["replicas"].as_u64())
        .sum();
    let counts = [
        (
            "Compute",
            computes.len() + usize::try_from(replicas).unwrap_or(usize::MAX),
        ),
        ("ProjectKey", keys.len()),
        ("ReadReplicaSet", sets.len()),
    ];
    for manifest in computes.iter().chain(&keys).chain(&sets) {
        site.declare(manifest).await?;
    }
    let begun = Instant::now();
    loop {
        site.restart_ended(false).await?;
        let quiet = site.all_ready().await && site.gate.quiet_for() >= QUIET / 2;
        if quiet && is_set(site, counts).await? {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::new("the scene could not be set in time"));
        }
        tokio::time::sleep(TICK).await;
    }
}

/// True if the account and all declared resources are Ready.
async fn is_set(site: &Site, counts: [(&str, usize); 3]) -> Result<bool> {
    for (kind, count) in counts {
        let found = site.objects.list(kind).await?;
        if found.iter().filter(|object| is_ready(object)).count() != count {
            return Ok(false);
        }
    }
    let account = match site.objects.get("Account", "prod").await? {
        None => {
            site.objects
                .get("ClusterAccount", &site.objects.namespace)
                .await?
        }
        some => some,
    };
    Ok(account.is_some_and(|account| is_ready(&account)))
}

fn is_ready(object: &serde_json::Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// `PATIENCE` for each fault, and once more for the lease to expire.
fn patience(site: &Site) -> Duration {
    let faults = u32::try_from(site.gate.met().len())
        .unwrap_or(u32::MAX)
        .max(1);
    PATIENCE * (faults + u32::from(site.elected))
}

/// State of a point's operators.
#[derive(Default)]
struct Course {
    restarts: usize,
    thawed: bool,
}

impl Course {
    /// Reacts to the faults that were met. Returns true if no further reaction is due.
    async fn restart_ended(&mut self, site: &mut Site, met: &[Met]) -> Result<bool> {
        let stopped = met.iter().any(|met| met.mode == Mode::Frozen);
        if stopped && !self.thawed && site.operators() == 1 {
            site.start_while_the_first_is_stopped().await?;
        }
        if met.iter().any(|met| met.mode == Mode::Rolled) {
            return site.is_relieved();
        }
        if self.thawed && site.elected && site.operators() > 1 {
            return site.former_leader_has_ended();
        }
        let ended: BTreeSet<Option<Process>> = met
            .iter()
            .filter(|met| met.mode.ends())
            .map(|met| met.victim)
            .collect();
        let ends = ended.len();
        if site.restart_ended(self.restarts < ends).await? {
            self.restarts += 1;
        }
        Ok(self.restarts == ends)
    }

    /// Resumes a stopped operator. Returns true if there was one.
    fn thaw(&mut self, site: &mut Site, met: &[Met]) -> Result<bool> {
        let stopped = !self.thawed && met.iter().any(|met| met.mode == Mode::Frozen);
        if stopped {
            self.thawed = true;
            site.thaw()?;
        }
        Ok(stopped)
    }
}

/// Waits until the goal is reached and nothing more is written. Returns what is missing if that
/// takes too long.
pub async fn run_until_stable(site: &mut Site, goal: &Goal) -> Result<Option<String>> {
    let begun = Instant::now();
    let mut course = Course::default();
    loop {
        let met = site.gate.met();
        let at_work =
            course.restart_ended(site, &met).await? && site.is_led() && site.all_ready().await;
        // Checking is more expensive than waiting, and shows nothing while writes continue.
        let late = begun.elapsed() > patience(site);
        let quiet = at_work && site.gate.quiet_for() >= QUIET && !site.gate.awaits_lease_request();
        let left = if quiet || late {
            unsettled(site, goal).await?
        } else {
            None
        };
        if quiet && left.is_none() && !course.thaw(site, &met)? && site.gate.disarm() == met.len() {
            return Ok(None);
        }
        if late {
            return Ok(Some(
                left.unwrap_or_else(|| "it does not become quiet".to_owned()),
            ));
        }
        tokio::time::sleep(TICK).await;
    }
}

/// The last requests and log lines.
fn transcript(site: &Site) -> String {
    let passed = site.gate.passages().lines();
    let shown = passed
        .iter()
        .filter(|line| !line.contains("watch=true"))
        .cloned()
        .collect::<Vec<_>>();
    let log = site.log();
    let text: Vec<&str> = log.lines().collect();
    format!(
        "requests:\n{}\nlog:\n{}",
        last(&shown, 60).join("\n"),
        last(&text, 40).join("\n")
    )
}

fn last<T>(lines: &[T], count: usize) -> &[T] {
    &lines[lines.len().saturating_sub(count)..]
}
