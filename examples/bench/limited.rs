//! Creating many at once on a platform that limits requests.

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

/// What came of it. Times are in seconds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Limited {
    pub size: usize,
    /// Whether the platform shows whose create each compute is from.
    pub marks: bool,
    /// Until all were ready.
    pub created_after: f64,
    /// From the first create's arrival to the last one's.
    pub posted_within: f64,
    /// What the creates take at the rate that is allowed.
    pub creates_floor: f64,
    /// What they and the lists take that were read meanwhile.
    pub requests_floor: f64,
    pub requests: Requests,
}

pub async fn run(operator: &Path, size: usize, marks: bool) -> Result<Limited> {
    let profile = if marks { Profile::Default } else { Profile::Minimal };
    let mut bed = Bed::new(operator, Setting { limited: true, profile, ..Setting::unlimited(size) }).await?;
    // What the start took of the minute's requests is forgotten.
    tokio::time::sleep(Duration::from_secs(61)).await;
    let before = bed.counter.count(&bed.platform)?;
    let created_after = stages::create(&mut bed, size).await?;
    let requests = bed.counter.count(&bed.platform)? - before;
    let entries = bed.platform.requests(0);
    let posts = entries.iter().filter(|entry| entry.method == "POST").map(|entry| entry.at.parse::<Timestamp>());
    let posts: Vec<_> = posts.collect::<Result<_, _>>().map_err(Error::while_doing("reading the log's times"))?;
    let posted_within = posts.iter().max().zip(posts.iter().min()).map(|(last, first)| last.duration_since(*first));
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

/// The figures of one run.
pub fn print(run: &Limited) {
    let Limited { size, marks, created_after, posted_within, creates_floor, requests_floor, requests } = run;
    let platform = if *marks { "shows" } else { "does not show" };
    println!(
        "\n{size} Computes under {LIMIT} requests a minute; the platform {platform} whose create a compute is from"
    );
    println!("  posted within {posted_within:.1} s, ready after {created_after:.1} s");
    println!("  at that rate all creates take {creates_floor:.1} s, all requests {requests_floor:.1} s");
    println!(
        "  {} changes, {} reads, {} refused",
        requests.platform_changes, requests.platform_lists, requests.platform_refused
    );
}
