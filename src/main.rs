//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

use dbplane::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::of_process().execute().await {
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
