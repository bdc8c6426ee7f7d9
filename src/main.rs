//! The binary: parses arguments, runs a command, and sets the exit code.

use std::process::ExitCode;

use dbplane::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::of_process().execute().await {
        Ok(code) => code,
        Err(error) => {
            // The only direct output to users, because logging may not have started.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("dbplane: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
