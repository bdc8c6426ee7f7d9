//! The verbs of the command line, one a file.

pub mod crds;

use clap::{Parser, Subcommand};

/// A Kubernetes operator for the computes and API keys of a hosted Postgres platform.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Crds(crds::Args),
}

impl Cli {
    /// Does what the command line asks for.
    pub fn run(self) -> Result<(), String> {
        match self.verb {
            Verb::Crds(args) => crds::run(&args, &mut std::io::stdout()).map_err(|error| error.to_string()),
        }
    }
}
