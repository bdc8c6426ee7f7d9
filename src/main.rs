//! Parses the command line, does what it asks for, and turns the outcome into an exit code.

use std::process::ExitCode;

use clap::Parser;
use dbplane::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Where a person looks when a command fails; the logs are for the running operator.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("dbplane: {message}");
            }
            ExitCode::FAILURE
        }
    }
}
