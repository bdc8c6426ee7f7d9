//! Measures single events beside the whole fleet: a Compute that is created alone, a change made
//! outside of the operator, and a change of state.

use std::ops::Range;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::api::PostParams;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bed::{Bed, PATIENCE};
use super::fleet;
use super::spent::processor_time;
use super::support::{Error, Result, wait_for};

/// Number of Computes that are created one by one.
pub const SINGLES: usize = 50;
/// Number of computes that change their state at once.
const CHANGES: usize = 100;

/// From the API server's answer to the arrival of the POST at the platform, in seconds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Waits {
    pub median: f64,
    pub worst: f64,
}

/// Creates the Computes with these numbers one by one, and measures the time until their POSTs.
pub async fn singles(bed: &Bed, numbers: Range<usize>) -> Result<Waits> {
    let mut waits = Vec::new();
    for number in numbers {
        waits.push(single(bed, number).await?.as_secs_f64());
    }
    waits.sort_by(f64::total_cmp);
    let at = |index: usize| waits.get(index).copied().unwrap_or_default();
    Ok(Waits {
        median: at(waits.len() / 2),
        worst: at(waits.len().saturating_sub(1)),
    })
}

async fn single(bed: &Bed, number: usize) -> Result<Duration> {
    let last = bed.platform.requests(0).last().map_or(0, |entry| entry.n);
    bed.computes()
        .create(&PostParams::default(), &fleet::single(number))
        .await?;
    let declared = bed.platform.now();
    let arrived = posted(bed, last).await?;
    Ok(Duration::try_from(arrived.duration_since(declared)).unwrap_or_default())
}

/// The arrival time of the first POST in the project `apart` after request `last`.
pub async fn posted(bed: &Bed, last: u64) -> Result<Timestamp> {
    let posted = async || {
        let entries = bed.platform.requests(last);
        entries
            .into_iter()
            .find(|entry| entry.method == "POST" && entry.path.contains(fleet::APART))
    };
    let entry = wait_for("the POST", PATIENCE, posted).await?;
    entry
        .at
        .parse()
        .map_err(Error::while_doing("reading a time of the log"))
}

/// The URL of a call on a compute of the fleet.
async fn url(bed: &Bed, number: usize, call: &str) -> Result<String> {
    let compute = bed.computes().get(&format!("compute-{number}")).await?;
    let id = compute
        .status
        .and_then(|status| status.compute_id)
        .unwrap_or_default();
    let project = format!(
        "{}/projects/{}",
        bed.platform.base_url(),
        compute.spec.project_id
    );
    Ok(format!(
        "{project}/endpoints/{id}{call}?org_id={}",
        fleet::ORGANIZATION
    ))
}

async fn answered(request: reqwest::RequestBuilder) -> Result<Value> {
    let answer = request
        .bearer_auth(fleet::KEY)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status);
    let answer = answer.map_err(Error::while_doing("asking the platform"))?;
    answer
        .json()
        .await
        .map_err(Error::while_doing("reading what the platform answered"))
}

/// Time until a change made outside of the operator is reverted.
pub async fn drift(bed: &Bed) -> Result<Duration> {
    let (client, url) = (reqwest::Client::new(), url(bed, 0, "").await?);
    answered(
        client
            .patch(&url)
            .json(&json!({"endpoint": {"autoscaling_limit_max_cu": 1}})),
    )
    .await?;
    let begun = Instant::now();
    let undone = async || {
        let compute = answered(client.get(&url)).await.ok()?;
        (compute["endpoint"]["autoscaling_limit_max_cu"].as_f64()? > 1.5).then_some(())
    };
    wait_for("the change to be undone", PATIENCE, undone).await?;
    Ok(begun.elapsed())
}

/// Suspends computes of the fleet and waits until the status shows it. Returns the operator's
/// processor time per compute, without the time for polls (`quiet` seconds per second).
pub async fn state_change(bed: &Bed, size: usize, quiet: f64) -> Result<f64> {
    let (client, changes) = (reqwest::Client::new(), CHANGES.min(size));
    let (begun, before) = (Instant::now(), processor_time(bed.operator.id())?);
    let numbers = stream::iter(0..changes).map(Ok);
    let suspend = async |number| {
        answered(client.post(url(bed, number, "/suspend").await?))
            .await
            .map(drop)
    };
    numbers.try_for_each_concurrent(8, suspend).await?;
    let said = async || {
        let computes = bed.computes().list(&Default::default()).await.ok()?.items;
        let suspended = computes.iter().filter(|compute| {
            let state = compute
                .status
                .as_ref()
                .and_then(|status| status.state.as_deref());
            state.is_some_and(|state| state.eq_ignore_ascii_case("idle"))
        });
        (suspended.count() >= changes).then_some(())
    };
    wait_for(
        "the Computes to say that they are suspended",
        PATIENCE,
        said,
    )
    .await?;
    let spent = (processor_time(bed.operator.id())? - before).as_secs_f64();
    Ok((spent - quiet * begun.elapsed().as_secs_f64()).max(0.0) / changes as f64)
}
