//! Mass creation on a platform that limits requests.

use std::path::Path;
use std::time::Duration;

use dbplane_simulator::world::Profile;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bed::{Bed, Setting};
use super::fleet::LIMIT;
use super::spent::Requests;
use super::stages;
use super::support::{Error, Result};

/// The results. Times are in seconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Limited {
    pub size: usize,
    /// True if the platform keeps names, so that a mark identifies the create of each compute.
    pub marks: bool,
    /// Time until all Computes were ready.
    pub created_after: f64,
    /// Time from the first create's arrival to the last one's.
    pub posted_within: f64,
    /// The minimum for the creates at the allowed rate.
    pub creates_floor: f64,
    /// The minimum for the creates and the lists that were read in the meantime.
    pub requests_floor: f64,
    pub requests: Requests,
}

pub async fn run(operator: &Path, size: usize, marks: bool) -> Result<Limited> {
    let profile = if marks {
        Profile::Default
    } else {
        Profile::Minimal
    };
    let mut bed = Bed::new(
        operator,
        Setting {
            limited: true,
            profile,
            ..Setting::unlimited(size)
        },
    )
    .await?;
    // Wait until the requests of the start no longer count against the minute's limit.
    tokio::time::sleep(Duration::from_secs(61)).await;
    let before = bed.counter.count(&bed.platform)?;
    let created_after = stages::create(&mut bed, size).await?;
    let requests = bed.counter.count(&bed.platform)? - before;
    let entries = bed.platform.requests(0);
    let posts = entries
        .iter()
        .filter(|entry| entry.method == "POST")
        .map(|entry| entry.at.parse::<Timestamp>());
    let posts: Vec<_> = posts
        .collect::<Result<_, _>>()
        .map_err(Error::while_doing("reading the log's times"))?;
    let posted_within = posts
        .iter()
        .max()
        .zip(posts.iter().min())
        .map(|(last, first)| last.duration_since(*first));
    let floor = |count: u64| count as f64 * 60.0 / f64::from(LIMIT);
    Ok(Limited {
        size,
        marks,
        created_after: created_after.as_secs_f64(),
        posted_within: posted_within.unwrap_or_default().as_secs_f64(),
        creates_floor: floor(size as u64),
        requests_floor: floor(requests.platform_changes + requests.platform_lists),
        requests,
    })
}

pub fn print(run: &Limited) {
    let Limited {
        size,
        marks,
        created_after,
        posted_within,
        creates_floor,
        requests_floor,
        requests,
    } = run;
    let platform = if *marks { "shows" } else { "does not show" };
    println!(
        "\n{size} Computes under {LIMIT} requests a minute; the platform {platform} whose create a compute is from"
    );
    println!("  posted within {posted_within:.1} s, ready after {created_after:.1} s");
    println!(
        "  at that rate all creates take {creates_floor:.1} s, all requests {requests_floor:.1} s"
    );
    println!(
        "  {} changes, {} reads, {} refused",
        requests.platform_changes, requests.platform_lists, requests.platform_refused
    );
}
