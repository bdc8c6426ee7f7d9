//! Measures the released program on the real control plane and the simulator, at several sizes: what it spends, how long it
//! takes, and beside each figure what the same would cost at least, measured in the same run.
//!
//! `make bench` runs it at 100 and 1,000 Computes; `make bench sizes=100,1000,10000` at others. `make bench-quick` looks at counts
//! alone, which are the same on every machine.

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

/// What is measured.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many Computes, one run for each
    #[arg(long, value_delimiter = ',', default_value = "100,1000")]
    sizes: Vec<usize>,
    /// How many Computes are created under the platform's limit, with and without marks; 0: none
    #[arg(long, default_value_t = 1000)]
    limited: usize,
    /// How many Computes a tenant has who costs as much as it can
    #[arg(long, default_value_t = 1000)]
    hostile: usize,
    /// How many of the worst objects of all kinds a tenant has; 0: none
    #[arg(long, default_value_t = 10_000)]
    worst: usize,
    /// How many seconds the quiet is watched
    #[arg(long, default_value_t = 60)]
    quiet_seconds: u64,
    /// Where to write the figures as JSON
    #[arg(long, default_value = "target/bench.json")]
    json: std::path::PathBuf,
    /// Measure nothing: draw what is in the JSON file into this folder
    #[arg(long)]
    plot: Option<std::path::PathBuf>,
    /// The program that is measured
    #[arg(long, default_value = "target/release/dbplane")]
    operator: std::path::PathBuf,
    /// Fail when requests or writes are not as many as they should be
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
        let run = stages::run(&arguments.operator, (size, arguments.hostile), arguments.quiet_seconds).await?;
        table::print(&run);
        runs.push(run);
    }
    table::exponents(&runs);
    let mut limited = Vec::new();
    for marks in [true, false].into_iter().filter(|_| arguments.limited > 0) {
        let run = limited::run(&arguments.operator, arguments.limited, marks).await?;
        limited::print(&run);
        limited.push(run);
    }
    let worst = match arguments.worst {
        0 => Vec::new(),
        objects => worst::run(&arguments.operator, objects).await?,
    };
    if arguments.worst > 0 {
        worst::print(&worst);
    }
    table::write(&arguments.json, &runs, &limited, &worst)?;
    if arguments.check { runs.iter().try_for_each(counts::check) } else { Ok(()) }
}
