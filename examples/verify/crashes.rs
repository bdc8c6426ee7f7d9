//! Runs the crash points of `make verify`: scenarios in which one request fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use tokio::task::JoinSet;

use super::harness::{Extent, Lab, Scenario, Tally, enumerate, single};
use super::support::{Error, Result};
use super::table::Table;

/// Tries all points of these scenarios.
pub async fn of(scenarios: Vec<Scenario>, extent: Extent, table: &mut Table) -> Result<usize> {
    let begun = Instant::now();
    let lab = Arc::new(Lab::open(program()?).await?);
    let mut running = JoinSet::new();
    for (place, scenario) in scenarios.into_iter().enumerate() {
        let lab = lab.clone();
        running.spawn(async move { (place, enumerate(lab, scenario, extent).await) });
    }
    let mut tallies = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (place, tally) = ended.map_err(Error::while_doing("running a scenario"))?;
        eprintln!(
            "{}: {} points tried, {} violations",
            tally.scenario,
            tally.tried,
            tally.violations.len()
        );
        tallies.push((place, tally));
    }
    // The table lists scenarios in the order in which they are declared.
    tallies.sort_by_key(|(place, _)| *place);
    let tallies: Vec<Tally> = tallies.into_iter().map(|(_, tally)| tally).collect();
    let missed = tallies.iter().filter(|tally| !tally.reached_most());
    let missed = missed
        .inspect(|tally| eprintln!("{}: too few of its points were reached", tally.scenario))
        .count();
    Ok(rows(&tallies, begun, table) + missed)
}

/// Tries single points, given by their names.
pub async fn at(points: &str, table: &mut Table) -> Result<usize> {
    let begun = Instant::now();
    let lab = Arc::new(Lab::open(program()?).await?);
    let tallies = join_all(points.split(',').map(|point| single(lab.clone(), point))).await;
    let tallies = tallies.into_iter().collect::<Result<Vec<Tally>>>()?;
    tallies
        .iter()
        .for_each(|tally| eprintln!("{}\n", tally.transcript));
    Ok(rows(&tallies, begun, table))
}

fn rows(tallies: &[Tally], begun: Instant, table: &mut Table) -> usize {
    table.part([
        "scenario",
        "requests",
        "points tried",
        "violations",
        "not reached",
    ]);
    let row = |name: &str, counts: [usize; 4]| {
        [
            vec![name.to_owned()],
            counts.map(|it| it.to_string()).to_vec(),
        ]
        .concat()
    };
    for tally in tallies {
        table.row(row(
            &tally.scenario,
            [
                tally.requests,
                tally.tried,
                tally.violations.len(),
                tally.not_reached,
            ],
        ));
    }
    let sum = |count: fn(&Tally) -> usize| tallies.iter().map(count).sum::<usize>();
    let violations = sum(|tally| tally.violations.len());
    let all = [
        sum(|tally| tally.requests),
        sum(|tally| tally.tried),
        violations,
        sum(|tally| tally.not_reached),
    ];
    table.row(row(
        &format!("all, in {} s", begun.elapsed().as_secs()),
        all,
    ));
    violations
}

/// The `dbplane` binary of the same build.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let program = here
        .parent()
        .and_then(Path::parent)
        .map(|folder| folder.join("dbplane"));
    program
        .filter(|program| program.is_file())
        .ok_or_else(|| Error::new("there is no dbplane beside the examples: run `make verify`"))
}
