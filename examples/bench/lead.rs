//! Time without an acting leader: the leader is killed or gets SIGTERM while another process waits.

use std::time::Duration;

use kube::api::PostParams;
use nix::sys::signal::Signal;

use super::bed::{Bed, PATIENCE};
use super::support::Result;
use super::{fleet, moments};

/// Time from the leader's end to the successor's POST for a Compute that was created at that
/// moment.
pub async fn handed_over(bed: &mut Bed, signal: Signal, number: usize) -> Result<Duration> {
    let successor = bed.another(&format!("successor-{number}")).await?;
    let last = bed.platform.requests(0).last().map_or(0, |entry| entry.n);
    let ended = bed.platform.now();
    bed.operator.signal(signal)?;
    bed.computes()
        .create(&PostParams::default(), &fleet::single(number))
        .await?;
    let arrived = moments::posted(bed, last).await?;
    bed.operator.wait(PATIENCE).await?;
    bed.operator = successor;
    Ok(Duration::try_from(arrived.duration_since(ended)).unwrap_or_default())
}
