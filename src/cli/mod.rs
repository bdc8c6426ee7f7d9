//! The command line: one verb a file.

mod run;

use clap::{Parser, Subcommand};

/// Keeps the computes and API keys of a hosted Postgres platform as Kubernetes resources declare them.
#[derive(Debug, Parser)]
#[command(name = "dbplane", version, about)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the operator.
    Run(run::Run),
}

impl Cli {
    /// Does what the verb says; the text of an error is for people.
    pub async fn execute(self) -> Result<(), String> {
        match self.verb {
            Verb::Run(run) => run.execute().await,
        }
    }
}
