//! The dbplane binary: parses the command line and runs the verb.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dbplane::cli;

#[derive(Debug, Parser)]
#[command(version, about)]
struct Dbplane {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Simulate(cli::simulate::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    match Dbplane::parse().verb {
        Verb::Simulate(args) => cli::simulate::run(args).await,
    }
}
