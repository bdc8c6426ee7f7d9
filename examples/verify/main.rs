//! `make verify`: every order of events within the bounds of the model, and everything that can go wrong with one request, for
//! every request of every scenario; one table at the end.
//!
//! `--model` explores the model alone, `--point scenario:mode:number` repeats one point.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to the person who runs it")]

#[path = "../../tests/crash/harness/mod.rs"]
mod harness;
#[path = "../../tests/model/mod.rs"]
mod model;
mod orders;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use harness::{Extent, Lab, Scenario, Tally, enumerate, scenarios, single};
use orders::Orders;
use support::{Error, Result};
use table::Table;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> ExitCode {
    match verify().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every promise held.
async fn verify() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let begun = Instant::now();
    let mut orders = None;
    let tallies = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            orders = Some(Orders::explore());
            crashes(scenarios()).await?
        }
        ["--model"] => {
            orders = Some(Orders::explore());
            Vec::new()
        }
        ["--scenario", names] => {
            let wanted: Vec<&str> = names.split(',').collect();
            crashes(scenarios().into_iter().filter(|it| wanted.contains(&it.name)).collect()).await?
        }
        ["--point", point] => vec![single(Arc::new(Lab::open(program()?).await?), point).await?],
        _ => return Err(Error::new("usage: verify [--model | --scenario NAME,... | --point SCENARIO:MODE:NUMBER]")),
    };
    let mut table = Table::new(["scenario", "requests", "points tried", "violations", "seconds"]);
    for tally in &tallies {
        let seconds = tally.took.as_secs().to_string();
        let counts = [tally.requests, tally.tried, tally.violations.len()].map(|count| count.to_string());
        table.row([vec![tally.scenario.clone()], counts.to_vec(), vec![seconds]].concat());
    }
    let sum = |count: fn(&Tally) -> usize| tallies.iter().map(count).sum::<usize>();
    let violations = sum(|tally| tally.violations.len());
    table.row(vec![
        "all".to_owned(),
        sum(|tally| tally.requests).to_string(),
        sum(|tally| tally.tried).to_string(),
        violations.to_string(),
        begun.elapsed().as_secs().to_string(),
    ]);
    orders.iter().for_each(|orders| orders.rows(&mut table));
    print!("{table}");
    println!("{} numbers had no request that time.", sum(|tally| tally.not_reached));
    Ok(violations == 0 && orders.is_none_or(|orders| orders.hold()))
}

/// All points of these scenarios; they are told of as they end, and returned in their order.
async fn crashes(scenarios: Vec<Scenario>) -> Result<Vec<Tally>> {
    let lab = Arc::new(Lab::open(program()?).await?);
    let mut running = JoinSet::new();
    for (place, scenario) in scenarios.into_iter().enumerate() {
        let lab = lab.clone();
        running.spawn(async move { (place, enumerate(lab, scenario, Extent::Whole).await) });
    }
    let mut tallies = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (place, tally) = ended.map_err(Error::while_doing("running a scenario"))?;
        eprintln!("{}: {} points tried, {} violations", tally.scenario, tally.tried, tally.violations.len());
        tallies.push((place, tally));
    }
    tallies.sort_by_key(|(place, _)| *place);
    Ok(tallies.into_iter().map(|(_, tally)| tally).collect())
}

/// The program that was built with this one.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let program = here.parent().and_then(std::path::Path::parent).map(|folder| folder.join("dbplane"));
    program
        .filter(|program| program.is_file())
        .ok_or_else(|| Error::new("there is no dbplane beside the examples: run `make verify`"))
}
