//! The simulator's program: serves a simulated platform until it receives a signal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use dbplane_simulator::arguments::Arguments;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{Options, StartError, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Print directly: logging may not have started.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("dbplane-simulator: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM or SIGINT. The error is printed to the user.
async fn run(arguments: Arguments) -> Result<(), String> {
    log(&arguments.log)?;
    let shown = arguments.world.display().to_string();
    let yaml =
        std::fs::read_to_string(&arguments.world).map_err(|error| format!("{shown}: {error}"))?;
    let world = WorldFile::parse(&yaml).map_err(|error| format!("{shown}: {error}"))?;
    let defaults = Options::new(world);
    let options = Options {
        profile: arguments.profile.into(),
        clock_speed: arguments.clock_speed,
        state: arguments.state,
        seed: arguments.seed.unwrap_or(defaults.seed),
        ..defaults
    };
    // Install the handlers before printing the address: a script may send the signal as soon as it
    // reads it.
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| format!("{}: {error}", arguments.listen))?;
    let simulator = serve(listener, options)
        .await
        .map_err(|error| match error {
            StartError::World(fault) => format!("{shown}: {fault}"),
            other => other.to_string(),
        })?;
    announce(&simulator.base_url()).map_err(|error| error.to_string())?;
    tracing::info!(
        console = simulator.console_url(),
        "the simulated platform is ready"
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    simulator.stop().await;
    Ok(())
}

/// Starts logging to standard error.
fn log(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("the log filter {filter:?} cannot be read: {error}"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal());
    log.with_writer(std::io::stderr)
        .try_init()
        .map_err(|error| error.to_string())
}

/// The only line on stdout; scripts wait for it.
fn announce(base_url: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{base_url}")?;
    stdout.flush()
}
