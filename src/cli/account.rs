//! `dbplane account`: commands for an account of the platform.

mod check;

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

/// Inspect an account of the platform
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Check(check::Args),
}

/// Runs the command.
///
/// # Errors
/// If the check itself failed.
pub async fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode, check::Error> {
    match &args.verb {
        Verb::Check(args) => check::run(args, out).await,
    }
}
