//! Measures the release build on the real control plane and the simulator, at several sizes. It
//! reports costs and times, each beside its lower bound from the same run.
//!
//! `make bench` runs 100 and 1,000 Computes; `make bench sizes=100,1000,10000` runs others. `make
//! bench-quick` only checks counts, which are the same on every machine.

#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

#[path = "../../tests/support/mod.rs"]
mod support;

mod bed;
mod counts;
mod fleet;
mod floor;
mod lead;
mod limited;
mod moments;
mod plot;
mod spent;
mod stages;
mod table;
mod tenant;
mod worst;

use clap::Parser;
use support::Result;

/// Measures the operator, and prints and writes the figures
#[derive(Debug, Parser)]
struct Arguments {
    /// Numbers of Computes, one run for each
    #[arg(long, value_delimiter = ',', default_value = "100,1000")]
    sizes: Vec<usize>,
    /// Number of Computes to create under the platform's limit, with and without marks; 0: none
    #[arg(long, default_value_t = 1000)]
    limited: usize,
    /// Number of Computes of a hostile tenant
    #[arg(long, default_value_t = 1000)]
    hostile: usize,
    /// Number of the worst objects of all kinds in a tenant; 0: none
    #[arg(long, default_value_t = 10_000)]
    worst: usize,
    /// Length of the quiet period in seconds
    #[arg(long, default_value_t = 60)]
    quiet_seconds: u64,
    /// File to write the figures to, as JSON
    #[arg(long, default_value = "target/bench.json")]
    json: std::path::PathBuf,
    /// Measure nothing, and draw the figures of the JSON file into this folder
    #[arg(long)]
    plot: Option<std::path::PathBuf>,
    /// The program to measure
    #[arg(long, default_value = "target/release/dbplane")]
    operator: std::path::PathBuf,
    /// Fail if requests or writes are outside of their bounds
    #[arg(long)]
    check: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(folder) = &arguments.plot {
        return plot::draw(&arguments.json, folder);
    }
    let mut runs = Vec::new();
    for &size in &arguments.sizes {
        println!("\n{size} Computes");
        let run = stages::run(
            &arguments.operator,
            size,
            arguments.hostile,
            arguments.quiet_seconds,
        )
        .await?;
        table::print(&run);
        runs.push(run);
    }
    table::exponents(&runs);
    let mut limited = Vec::new();
    if arguments.limited > 0 {
        for marks in [true, false] {
            let run = limited::run(&arguments.operator, arguments.limited, marks).await?;
            limited::print(&run);
            limited.push(run);
        }
    }
    let worst = match arguments.worst {
        0 => Vec::new(),
        objects => worst::run(&arguments.operator, objects).await?,
    };
    if arguments.worst > 0 {
        worst::print(&worst);
    }
    table::write(&arguments.json, &runs, &limited, &worst)?;
    if arguments.check {
        runs.iter().try_for_each(counts::check)
    } else {
        Ok(())
    }
}
