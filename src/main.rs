//! The binary: parses arguments, runs a command, and sets the exit code.

use std::process::ExitCode;

use dbplane::cli::Cli;

fn main() -> ExitCode {
    // Before other threads start: it changes the environment.
    let ended = match dbplane::cli::complete() {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => execute(),
        Err(error) => Err(error.to_string()),
    };
    ended.unwrap_or_else(|error| {
        // The only direct output to users, because logging may not have started.
        #[allow(clippy::print_stderr)]
        {
            eprintln!("dbplane: {error}");
        }
        ExitCode::FAILURE
    })
}

#[tokio::main]
async fn execute() -> Result<ExitCode, String> {
    Cli::of_process().execute().await
}
