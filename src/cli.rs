//! The command line, with one command per file.

mod account;
mod act;
mod advice;
mod bug_report;
mod called;
mod common;
mod complete;
pub mod crds;
mod files;
mod help;
mod import;
mod plan;
mod platform;
mod progress;
mod remove_finalizers;
mod resource;
mod run;
mod screen;
mod shell;
mod status;
pub mod validate;

use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
pub use complete::answer as complete;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A Kubernetes operator that manages the computes and API keys of a hosted Postgres platform as
/// declared by custom resources.
#[derive(Debug, Parser)]
#[command(name = "dbplane", version, about)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Run),
    Crds(crds::CrdsArgs),
    Validate(validate::ValidateArgs),
    Plan(plan::PlanArgs),
    Account(account::AccountArgs),
    Import(Box<import::ImportArgs>),
    RemoveFinalizers(remove_finalizers::RemoveFinalizersArgs),
    #[command(name = "bugreport")]
    BugReport(bug_report::BugReportArgs),
    Status(status::StatusArgs),
    #[command(flatten)]
    Act(act::Verbs),
    Completion(shell::Completion),
    Man(shell::Man),
}

/// The command line, independent of the name that the program was called by.
pub fn command() -> Command {
    help::grouped(Cli::command())
}

impl Cli {
    /// The command line of this process. An invalid one, and `--help`, end the process.
    pub fn of_process() -> Self {
        let matches = called::renamed(command(), called::program()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Runs the command. The error is a message for the user.
    pub async fn execute(self) -> Result<ExitCode, String> {
        self.dispatch()
            .await
            .map_err(|error| crate::text::lines(&error).into_owned())
    }

    async fn dispatch(self) -> Result<ExitCode, String> {
        match self.verb {
            Verb::Run(run) => run.execute().await?,
            Verb::Crds(args) => {
                crds::run(&args, &mut std::io::stdout()).map_err(|error| error.to_string())?
            }
            Verb::BugReport(args) => {
                bug_report::run(&args, &mut screen::stdout())
                    .await
                    .map_err(|error| error.to_string())?;
            }
            Verb::RemoveFinalizers(args) => {
                let ended =
                    remove_finalizers::run(&args, &mut screen::stdout(), &mut screen::stderr())
                        .await;
                return ended
                    .map(|()| ExitCode::SUCCESS)
                    .or_else(|error| screen::report_error(&error, error.exit_code()));
            }
            Verb::Account(args) => {
                return account::run(&args, &mut screen::stdout())
                    .await
                    .map_err(|error| error.to_string());
            }
            Verb::Plan(args) => {
                let made = plan::run(&args, &mut screen::stdout()).await;
                return made.or_else(|error| screen::report_error(&error, error.exit_code()));
            }
            Verb::Import(args) => {
                let ran = import::run(&args, &mut screen::stdout(), &mut screen::stderr()).await;
                return ran.map_err(|error| error.to_string());
            }
            Verb::Validate(args) => {
                let ran = validate::run(&args, &mut screen::stdout(), &mut screen::stderr());
                return ran.map_err(|error| error.to_string());
            }
            Verb::Status(args) => {
                let shown = status::run(&args, &mut screen::stdout()).await;
                return shown.or_else(|error| screen::report_error(&error, error.exit_code()));
            }
            Verb::Act(verb) => {
                let ended = verb.execute(&mut screen::stdout()).await;
                return ended.or_else(|error| screen::report_error(&error, error.exit_code()));
            }
            Verb::Completion(args) => args
                .run(&mut std::io::stdout())
                .map_err(|error| error.to_string())?,
            Verb::Man(args) => args.run().map_err(|error| error.to_string())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Cancelled by the first SIGTERM or SIGINT.
fn stop_on_signal() -> Result<CancellationToken, String> {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stopped.cancel();
    });
    Ok(stop)
}
