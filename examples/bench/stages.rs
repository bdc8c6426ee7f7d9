//! The stages of a run: single creates, mass creation, settling, a quiet period, single creates
//! again, changes outside of the operator, state changes, restart, change of leader.

use std::path::Path;
use std::time::{Duration, Instant};

use dbplane::api::Compute;
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::bed::{Bed, PATIENCE, Setting};
use super::floor::Bytes;
use super::moments::{SINGLES, Waits};
use super::spent::{Requests, processor_time};
use super::support::{Error, Result};
use super::tenant::{self, Tenant};
use super::{fleet, floor, lead, moments};

/// The results of one run. Times are in seconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub size: usize,
    pub creating: Creating,
    /// Computes created alone: without any others, and beside the whole fleet.
    pub singles_alone: Waits,
    pub singles_behind: Waits,
    /// The requests of the latter.
    pub singles: Requests,
    pub bytes: Bytes,
    pub resident_start_kib: u64,
    pub resident_kib: u64,
    pub quiet: Quiet,
    /// Processor time per scrape of the metrics.
    #[serde(default)]
    pub scrape: f64,
    pub drift: f64,
    /// Processor time per compute that changes its state.
    pub state_change: f64,
    pub restart: Restart,
    /// Time from the leader's end to its successor's first call, after SIGTERM and after SIGKILL.
    pub stopped_leader: f64,
    pub killed_leader: f64,
    pub confined: Confined,
    #[serde(default)]
    pub tenant: Tenant,
}

/// Mass creation.
#[derive(Debug, Serialize, Deserialize)]
pub struct Creating {
    pub after: f64,
    /// Time of a bare client for the same number of objects and writes.
    pub floor: f64,
    pub processor: f64,
    pub passes: u64,
    pub requests: Requests,
}

/// An operator that watches only an empty namespace.
#[derive(Debug, Serialize, Deserialize)]
pub struct Confined {
    pub processor: f64,
    pub resident_kib: u64,
}

/// A period without changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Quiet {
    pub seconds: u64,
    pub processor: f64,
    pub requests: Requests,
}

/// A restart with nothing to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Restart {
    pub processor: f64,
    /// A bare client that lists and decodes all objects.
    pub floor: f64,
    pub passes: u64,
    pub requests: Requests,
    pub resident_kib: u64,
}

pub async fn run(operator: &Path, size: usize, hostile: usize, quiet_seconds: u64) -> Result<Run> {
    let mut bed = Bed::new(operator, Setting::unlimited(size)).await?;
    let floor = floor::writes(&bed.computes(), size).await?;
    settled(&mut bed).await?;
    let singles_alone = moments::singles(&bed, 0..SINGLES).await?;
    settled(&mut bed).await?;
    let resident_start_kib = bed.operator.resident_kib()?;
    let creating = creating(&mut bed, size, floor).await?;
    let quiet = quiet(&mut bed, quiet_seconds).await?;
    let resident_kib = bed.operator.resident_kib()?;
    let scrape = scrape(&bed).await?.as_secs_f64();

    let before_singles = counted(&mut bed)?;
    let singles_behind = moments::singles(&bed, SINGLES..2 * SINGLES).await?;
    settled(&mut bed).await?;
    let singles = counted(&mut bed)? - before_singles;
    let drift = moments::drift(&bed).await?.as_secs_f64();
    settled(&mut bed).await?;
    let state_change =
        moments::state_change(&bed, size, quiet.processor / quiet.seconds as f64).await?;
    settled(&mut bed).await?;

    let (restart, bytes) = restarting(&mut bed).await?;
    let tenant =
        tenant::measured(&mut bed, hostile, 2 * SINGLES + 2..2 * SINGLES + 2 + BESIDE).await?;
    let stopped_leader = lead::handed_over(&mut bed, Signal::SIGTERM, 2 * SINGLES)
        .await?
        .as_secs_f64();
    settled(&mut bed).await?;
    let killed_leader = lead::handed_over(&mut bed, Signal::SIGKILL, 2 * SINGLES + 1)
        .await?
        .as_secs_f64();
    settled(&mut bed).await?;
    bed.restart(&["--watch-namespaces=default"]).await?;
    settled(&mut bed).await?;
    let processor = processor_time(bed.operator.id())?.as_secs_f64();
    let confined = Confined {
        processor,
        resident_kib: bed.operator.resident_kib()?,
    };
    Ok(Run {
        size,
        creating,
        singles_alone,
        singles_behind,
        singles,
        bytes,
        resident_start_kib,
        resident_kib,
        quiet,
        scrape,
        drift,
        state_change,
        restart,
        stopped_leader,
        killed_leader,
        confined,
        tenant,
    })
}

/// Number of Computes that are created one by one beside the hostile tenant.
const BESIDE: usize = 20;
const SCRAPES: u32 = 10;

async fn scrape(bed: &Bed) -> Result<Duration> {
    let before = processor_time(bed.operator.id())?;
    for _ in 0..SCRAPES {
        bed.passes().await?;
    }
    Ok((processor_time(bed.operator.id())? - before) / SCRAPES)
}

async fn creating(bed: &mut Bed, size: usize, floor: Duration) -> Result<Creating> {
    let (before, processor) = (counted(bed)?, processor_time(bed.operator.id())?);
    let passes = bed.passes().await?;
    let after = create(bed, size).await?;
    settled(bed).await?;
    Ok(Creating {
        after: after.as_secs_f64(),
        floor: floor.as_secs_f64(),
        processor: (processor_time(bed.operator.id())? - processor).as_secs_f64(),
        passes: bed.passes().await? - passes,
        requests: counted(bed)? - before,
    })
}

async fn quiet(bed: &mut Bed, seconds: u64) -> Result<Quiet> {
    let (before, processor) = (counted(bed)?, processor_time(bed.operator.id())?);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let processor = (processor_time(bed.operator.id())? - processor).as_secs_f64();
    Ok(Quiet {
        seconds,
        processor,
        requests: counted(bed)? - before,
    })
}

async fn restarting(bed: &mut Bed) -> Result<(Restart, Bytes)> {
    let before = counted(bed)?;
    bed.restart(&[]).await?;
    settled(bed).await?;
    let processor = processor_time(bed.operator.id())?.as_secs_f64();
    let (passes, requests) = (bed.passes().await?, counted(bed)? - before);
    let resident_kib = bed.operator.resident_kib()?;
    let (floor, bytes) = floor::list(&bed.computes()).await?;
    Ok((
        Restart {
            processor,
            floor: floor.as_secs_f64(),
            passes,
            requests,
            resident_kib,
        },
        bytes,
    ))
}

fn counted(bed: &mut Bed) -> Result<Requests> {
    bed.counter.count(&bed.platform)
}

/// Creates all as fast as the API server accepts them, and waits until all are ready.
pub async fn create(bed: &mut Bed, size: usize) -> Result<Duration> {
    let (computes, setting, begun) = (bed.computes(), bed.setting, Instant::now());
    let all_ready = tokio::spawn(all_ready(computes.clone(), size));
    let declare = async |number| -> Result<()> {
        computes
            .create(&PostParams::default(), &fleet::compute(number, setting))
            .await?;
        Ok(())
    };
    let all = stream::iter(0..size)
        .map(Ok)
        .try_for_each_concurrent(floor::AT_ONCE, declare);
    all.await?;
    loop {
        // Count in every round, because the platform's log keeps only the latest requests.
        counted(bed)?;
        if all_ready.is_finished() {
            break;
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::new(format!(
                "not all of {size} Computes are ready after {} s",
                PATIENCE.as_secs()
            )));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    all_ready
        .await
        .map_err(Error::while_doing("watching the Computes"))??;
    Ok(begun.elapsed())
}

/// Returns when this many Computes of the fleet are ready.
async fn all_ready(computes: kube::Api<Compute>, size: usize) -> Result<()> {
    let mut ready = std::collections::HashSet::new();
    let changes = watcher(computes, watcher::Config::default())
        .default_backoff()
        .applied_objects();
    let mut changes = std::pin::pin!(changes);
    while ready.len() < size {
        let compute = changes
            .try_next()
            .await
            .map_err(Error::while_doing("watching the Computes"))?;
        let compute = compute.ok_or_else(|| Error::new("the watch has ended".to_owned()))?;
        let conditions = compute.status.iter().flat_map(|status| &status.conditions);
        let is_ready = conditions
            .clone()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        if is_ready && compute.name_any().starts_with("compute-") {
            ready.insert(compute.metadata.name);
        }
    }
    Ok(())
}

/// Waits until the operator has written nothing for five seconds.
pub async fn settled(bed: &mut Bed) -> Result<()> {
    let begun = Instant::now();
    let (mut last, mut since) = (counted(bed)?.writes(), Instant::now());
    while since.elapsed() < Duration::from_secs(5) {
        if begun.elapsed() > PATIENCE {
            return Err(Error::new(
                "the operator does not cease to write".to_owned(),
            ));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = counted(bed)?.writes();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(())
}
