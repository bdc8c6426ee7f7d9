//! `make verify`: explores every order of events within the bounds of the model, and tries every
//! fault at every request of every scenario. Prints one table at the end.
//!
//! `--model` explores the model alone, `--model TEXT` only bounds whose names contain the text.
//! `--pairs seed` tries two faults at a time, `--point scenario:mode:number` repeats one point.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it speaks to the person who runs it"
)]
#![allow(
    clippy::duplicate_mod,
    reason = "the model and the crash points are programs of their own elsewhere, and share the promises"
)]

mod crashes;
#[path = "../../tests/crash/harness/mod.rs"]
mod harness;
#[path = "../../tests/model/mod.rs"]
mod model;
mod orders;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;

use std::process::ExitCode;
use std::time::Instant;

use harness::{Extent, Scenario, scenarios};
use orders::Orders;
use support::{Error, Result};
use table::Table;

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

/// All points, with a new sample of pairs on each run.
fn whole() -> Extent {
    let seed = rand::random();
    eprintln!("seed of the pairs: {seed}");
    Extent::Whole(seed)
}

/// The scenarios with these names, which commas separate.
fn named(names: &str) -> Result<Vec<Scenario>> {
    let mut all = scenarios();
    let mut wanted = Vec::new();
    for name in names.split(',') {
        let found = all.iter().position(|scenario| scenario.name == name);
        let found = found.ok_or_else(|| Error::new(format!("there is no scenario {name}")))?;
        wanted.push(all.remove(found));
    }
    Ok(wanted)
}

/// Returns true if every promise held.
async fn verify() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let begun = Instant::now();
    let mut table = Table::default();
    // Each part adds its rows and returns how many violations it found.
    let violations = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        // The crash points mostly wait, so the model runs on another thread meanwhile.
        [] => {
            let orders = std::thread::spawn(|| Orders::explore(""));
            let crashes = crashes::of(scenarios(), whole(), &mut table).await?;
            crashes
                + orders
                    .join()
                    .map_err(|_| Error::new("the model could not be explored"))?
                    .rows(&mut table)
        }
        ["--model"] => Orders::explore("").rows(&mut table),
        ["--model", named] => {
            let orders = Orders::explore(named);
            if orders.is_empty() {
                return Err(Error::new(format!(
                    "no bound of the model has {named:?} in its name"
                )));
            }
            orders.rows(&mut table)
        }
        ["--scenario", names] => crashes::of(named(names)?, whole(), &mut table).await?,
        ["--pairs", seed] => {
            let seed = seed
                .parse()
                .map_err(Error::while_doing(format!("reading the seed {seed:?}")))?;
            let paired = scenarios()
                .into_iter()
                .filter(|scenario| !scenario.repeats())
                .collect();
            crashes::of(paired, Extent::Pairs(seed), &mut table).await?
        }
        ["--point", point] => crashes::at(point, &mut table).await?,
        _ => {
            return Err(Error::new(
                "usage: verify [--model [TEXT] | --scenario NAME,... | --pairs SEED | --point SCENARIO:MODE:NUMBER[+MODE:NUMBER],...]",
            ));
        }
    };
    print!("{table}");
    println!("\n{violations} violations; {} s", begun.elapsed().as_secs());
    Ok(violations == 0)
}
