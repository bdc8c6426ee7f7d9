//! The program: serves a simulated platform until it is asked to stop.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use dbplane_simulator::world::Profile;
use dbplane_simulator::world::file::WorldFile;
use dbplane_simulator::{Options, StartError, clock, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Serves a simulated platform; prints the base URL of its API when it is ready.
#[derive(Debug, Parser)]
#[command(name = "dbplane-simulator", version, about)]
struct Arguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "DBPLANE_SIMULATE_LISTEN", default_value = "127.0.0.1:4010")]
    listen: SocketAddr,
    /// File (YAML) with the organizations, users, projects and keys that exist at the beginning
    #[arg(long, env = "DBPLANE_SIMULATE_WORLD")]
    world: PathBuf,
    /// File to keep the state in over restarts; when it holds a state, the world file is not used
    #[arg(long, env = "DBPLANE_SIMULATE_STATE")]
    state: Option<PathBuf>,
    /// Simulated seconds for each real second; 0 makes the clock stand still
    #[arg(long, env = "DBPLANE_SIMULATE_CLOCK_SPEED", default_value_t = 1.0, value_parser = speed)]
    clock_speed: f64,
    /// Which platform to simulate
    #[arg(long, env = "DBPLANE_SIMULATE_PROFILE", value_enum, default_value_t = ProfileName::Default)]
    profile: ProfileName,
    /// Seed of made-up ids and tokens; without it they differ from run to run
    #[arg(long, env = "DBPLANE_SIMULATE_SEED")]
    seed: Option<u64>,
    /// What is logged, such as info or info,dbplane=debug
    #[arg(long, env = "DBPLANE_LOG", default_value = "info")]
    log: String,
}

/// Which platform is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProfileName {
    /// Obeys every statement of the specification, and adds calls, fields and parameters where it is silent
    Default,
    /// The public API of this family of platforms, also where it contradicts the specification
    Public,
    /// What the specification shows, and nothing more
    Minimal,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Default => Profile::Default,
            ProfileName::Public => Profile::Public,
            ProfileName::Minimal => Profile::Minimal,
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    clock::speed(speed).map_err(str::to_owned)
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The one place that speaks to people directly: logging may not have started.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("dbplane-simulator: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM or SIGINT; the text of an error is for people.
async fn run(arguments: Arguments) -> Result<(), String> {
    log(&arguments.log)?;
    let shown = arguments.world.display().to_string();
    let yaml = std::fs::read_to_string(&arguments.world).map_err(|error| format!("{shown}: {error}"))?;
    let world = WorldFile::parse(&yaml).map_err(|error| format!("{shown}: {error}"))?;
    let defaults = Options::new(world);
    let options = Options {
        profile: arguments.profile.into(),
        clock_speed: arguments.clock_speed,
        state: arguments.state,
        seed: arguments.seed.unwrap_or(defaults.seed),
        ..defaults
    };
    // Before the address is printed: whoever reads it may send the signal at once.
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let listener =
        TcpListener::bind(arguments.listen).await.map_err(|error| format!("{}: {error}", arguments.listen))?;
    let simulator = serve(listener, options).await.map_err(|error| match error {
        StartError::World(fault) => format!("{shown}: {fault}"),
        other => other.to_string(),
    })?;
    announce(&simulator.base_url()).map_err(|error| error.to_string())?;
    tracing::info!(console = simulator.console_url(), "the simulated platform is ready");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    simulator.stop().await;
    Ok(())
}

/// Starts logging to standard error.
fn log(filter: &str) -> Result<(), String> {
    let filter =
        EnvFilter::try_new(filter).map_err(|error| format!("the log filter {filter:?} cannot be read: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(std::io::stderr().is_terminal());
    log.with_writer(std::io::stderr).try_init().map_err(|error| error.to_string())
}

/// The one line on stdout: scripts wait for it.
fn announce(base_url: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{base_url}")?;
    stdout.flush()
}
