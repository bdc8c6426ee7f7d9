//! The stages of one run: create all, wait until nothing happens, watch the quiet, come one by one, change behind the operator's
//! back, restart.

use std::path::Path;
use std::time::{Duration, Instant};

use dbplane::api::Compute;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use serde::Serialize;
use serde_json::{Value, json};

use super::bed::{Bed, PATIENCE};
use super::spent::{Requests, processor_time};
use super::support::{Error, Result, wait_for};
use super::{fleet, floor};

/// How many come one by one.
pub const SINGLES: usize = 20;

/// What one run has shown. Times are in seconds.
#[derive(Debug, Serialize)]
pub struct Run {
    pub size: usize,
    pub created_after: f64,
    /// The same number of objects with the same number of writes by a bare client.
    pub created_floor: f64,
    pub creating_processor: f64,
    pub creating: Requests,
    /// From the API server's answer to the arrival of the POST at the platform: median and worst.
    pub single_median: f64,
    pub single_worst: f64,
    /// What they cost together.
    pub singles: Requests,
    pub resident_kib: u64,
    pub resident_after_restart_kib: u64,
    pub quiet_seconds: u64,
    pub quiet: Requests,
    pub quiet_processor: f64,
    pub drift: f64,
    pub restart_processor: f64,
    pub restart_floor: f64,
    pub restart: Requests,
}

pub async fn run(operator: &Path, size: usize, quiet_seconds: u64) -> Result<Run> {
    let mut bed = Bed::new(operator, size).await?;
    let created_floor = floor::writes(&bed.computes(), size).await?;
    settled(&mut bed).await?;
    let (before, processor) = (counted(&mut bed)?, processor_time(bed.operator.id())?);
    let created_after = create(&mut bed, size).await?;
    settled(&mut bed).await?;
    let (created, created_processor) = (counted(&mut bed)?, processor_time(bed.operator.id())?);

    tokio::time::sleep(Duration::from_secs(quiet_seconds)).await;
    let (quiet, quiet_processor) = (counted(&mut bed)?, processor_time(bed.operator.id())?);
    let resident_kib = bed.operator.resident_kib()?;

    let before_singles = counted(&mut bed)?;
    let waits = singles(&bed).await?;
    settled(&mut bed).await?;
    let singles = counted(&mut bed)? - before_singles;
    let drift = drift(&bed).await?;
    settled(&mut bed).await?;

    let before_restart = counted(&mut bed)?;
    bed.restart().await?;
    settled(&mut bed).await?;
    Ok(Run {
        size,
        created_after: created_after.as_secs_f64(),
        created_floor: created_floor.as_secs_f64(),
        creating_processor: (created_processor - processor).as_secs_f64(),
        creating: created.clone() - before,
        single_median: waits[SINGLES / 2],
        single_worst: waits[SINGLES - 1],
        singles,
        resident_kib,
        resident_after_restart_kib: bed.operator.resident_kib()?,
        quiet_seconds,
        quiet: quiet - created,
        quiet_processor: (quiet_processor - created_processor).as_secs_f64(),
        drift,
        restart_processor: processor_time(bed.operator.id())?.as_secs_f64(),
        restart_floor: floor::list(&bed.computes()).await?.as_secs_f64(),
        restart: counted(&mut bed)? - before_restart,
    })
}

fn counted(bed: &mut Bed) -> Result<Requests> {
    bed.counter.count(&bed.platform)
}

/// Creates all as fast as the API server takes them, and waits until all are ready.
async fn create(bed: &mut Bed, size: usize) -> Result<Duration> {
    let (computes, begun) = (bed.computes(), Instant::now());
    let all_ready = tokio::spawn(all_ready(computes.clone(), size));
    let declare = async |number| -> Result<()> {
        computes.create(&PostParams::default(), &fleet::compute(number)).await?;
        Ok(())
    };
    let all = stream::iter(0..size).map(Ok).try_for_each_concurrent(floor::AT_ONCE, declare);
    all.await?;
    loop {
        // The platform's log holds the latest requests alone.
        counted(bed)?;
        if all_ready.is_finished() {
            break;
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::new(format!("not all of {size} Computes are ready after {} s", PATIENCE.as_secs())));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    all_ready.await.map_err(Error::while_doing("watching the Computes"))??;
    Ok(begun.elapsed())
}

/// Ends when so many Computes are ready.
async fn all_ready(computes: kube::Api<Compute>, size: usize) -> Result<()> {
    let mut ready = std::collections::HashSet::new();
    let changes = watcher(computes, watcher::Config::default()).default_backoff().applied_objects();
    let mut changes = std::pin::pin!(changes);
    while ready.len() < size {
        let compute = changes.try_next().await.map_err(Error::while_doing("watching the Computes"))?;
        let compute = compute.ok_or_else(|| Error::new("the watch has ended".to_owned()))?;
        let conditions = compute.status.iter().flat_map(|status| &status.conditions);
        if conditions.clone().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
            ready.insert(compute.metadata.name);
        }
    }
    Ok(())
}

/// Waits until the operator has written nothing for five seconds.
async fn settled(bed: &mut Bed) -> Result<()> {
    let begun = Instant::now();
    let (mut last, mut since) = (counted(bed)?.writes(), Instant::now());
    while since.elapsed() < Duration::from_secs(5) {
        if begun.elapsed() > PATIENCE {
            return Err(Error::new("the operator does not cease to write".to_owned()));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = counted(bed)?.writes();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(())
}

/// How long each Compute that comes alone waits for its POST, in order.
async fn singles(bed: &Bed) -> Result<Vec<f64>> {
    let mut waits = Vec::new();
    for number in 0..SINGLES {
        let last = bed.platform.requests(0).last().map_or(0, |entry| entry.n);
        bed.computes().create(&PostParams::default(), &fleet::single(number)).await?;
        let declared = bed.platform.now();
        let posted = async || {
            let entries = bed.platform.requests(last);
            entries.into_iter().find(|entry| entry.method == "POST" && entry.path.contains(fleet::APART))
        };
        let entry = wait_for("the POST", PATIENCE, posted).await?;
        let arrived: Timestamp = entry.at.parse().map_err(Error::while_doing("reading a time of the log"))?;
        waits.push(arrived.duration_since(declared).as_secs_f64().max(0.0));
    }
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// How long it takes until a change that somebody else made is undone.
async fn drift(bed: &Bed) -> Result<f64> {
    let compute = bed.computes().get("compute-0").await?;
    let id = compute.status.and_then(|status| status.compute_id).unwrap_or_default();
    let url = format!(
        "{}/projects/{}/endpoints/{id}?org_id=org-cool-darkness-1",
        bed.platform.base_url(),
        compute.spec.project_id
    );
    let change = json!({"endpoint": {"autoscaling_limit_max_cu": 1}});
    let client = reqwest::Client::new();
    let answer = client.patch(&url).bearer_auth(fleet::KEY).json(&change).send().await;
    let answer = answer.map_err(Error::while_doing("changing a compute"))?;
    if !answer.status().is_success() {
        return Err(Error::new(format!("the platform refused the change: {}", answer.status())));
    }
    let begun = Instant::now();
    let undone = async || {
        let answer = client.get(&url).bearer_auth(fleet::KEY).send().await.ok()?;
        let compute: Value = answer.json().await.ok()?;
        (compute["endpoint"]["autoscaling_limit_max_cu"].as_f64()? > 1.5).then_some(())
    };
    wait_for("the change to be undone", PATIENCE, undone).await?;
    Ok(begun.elapsed().as_secs_f64())
}
