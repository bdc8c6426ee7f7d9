//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser;
use dbplane::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().execute().await {
        Ok(code) => code,
        Err(error) => {
            // The one place that speaks to people directly: logging may not have started.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("dbplane: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
