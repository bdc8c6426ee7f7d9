//! `dbplane account`: commands for an account of the platform.

mod check;

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

/// Inspect an account of the platform
#[derive(Debug, clap::Args)]
pub struct AccountArgs {
    #[command(subcommand)]
    verb: AccountVerb,
}

#[derive(Debug, Subcommand)]
enum AccountVerb {
    Check(check::CheckArgs),
}

/// Runs the command.
///
/// # Errors
/// If the check itself failed.
pub async fn run(args: &AccountArgs, out: &mut impl Write) -> Result<ExitCode, check::Error> {
    match &args.verb {
        AccountVerb::Check(args) => check::run(args, out).await,
    }
}
