//! How long nobody acts when the leader goes: it is killed, or told to stop, while another process stands by.

use std::time::Duration;

use kube::api::PostParams;
use nix::sys::signal::Signal;

use super::bed::{Bed, PATIENCE};
use super::support::Result;
use super::{fleet, moments};

/// From the leader's end to the POST of its successor for a Compute that came at that moment.
pub async fn handed_over(bed: &mut Bed, signal: Signal, number: usize) -> Result<Duration> {
    let successor = bed.another(&format!("successor-{number}")).await?;
    let last = bed.platform.requests(0).last().map_or(0, |entry| entry.n);
    let ended = bed.platform.now();
    bed.operator.signal(signal)?;
    bed.computes().create(&PostParams::default(), &fleet::single(number)).await?;
    let arrived = moments::posted(bed, last).await?;
    bed.operator.wait(PATIENCE).await?;
    bed.operator = successor;
    Ok(Duration::try_from(arrived.duration_since(ended)).unwrap_or_default())
}
