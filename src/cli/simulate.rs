//! `dbplane simulate`: serves a simulated platform.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;

use crate::simulator::world::Profile;
use crate::simulator::world::file::WorldFile;
use crate::simulator::{self, Options, StartError};
use crate::telemetry::logs::{self, LogFormat};

/// Serve a simulated platform; prints the base URL of its API when it is ready.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "DBPLANE_SIMULATE_LISTEN", default_value = "127.0.0.1:4010")]
    pub listen: SocketAddr,
    /// File (YAML) with the organizations, users, projects and keys that exist at the beginning
    #[arg(long, env = "DBPLANE_SIMULATE_WORLD")]
    pub world: PathBuf,
    /// File to keep the state in over restarts; when it holds a state, the world file is not used
    #[arg(long, env = "DBPLANE_SIMULATE_STATE")]
    pub state: Option<PathBuf>,
    /// Simulated seconds for each real second; 0 makes the clock stand still
    #[arg(long, env = "DBPLANE_SIMULATE_CLOCK_SPEED", default_value_t = 1.0, value_parser = speed)]
    pub clock_speed: f64,
    /// How much of the platform to offer
    #[arg(long, env = "DBPLANE_SIMULATE_PROFILE", value_enum, default_value_t = ProfileName::Full)]
    pub profile: ProfileName,
    /// Seed of made-up ids and tokens; without it they differ from run to run
    #[arg(long, env = "DBPLANE_SIMULATE_SEED")]
    pub seed: Option<u64>,
    /// What is logged, such as info or info,dbplane=debug
    #[arg(long, env = "DBPLANE_LOG", default_value = "info")]
    pub log: String,
}

/// How much of the platform is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileName {
    /// Everything the family of platforms is known to do
    Full,
    /// Only what the specification shows
    Minimal,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Full => Profile::Full,
            ProfileName::Minimal => Profile::Minimal,
        }
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match speed.is_finite() && speed >= 0.0 {
        true => Ok(speed),
        false => Err("a clock runs forwards, at a finite speed".to_owned()),
    }
}

/// Runs the verb until SIGTERM or SIGINT.
///
/// # Errors
/// When the world or the state cannot be read, or the address cannot be listened on; the text is for people.
pub async fn run(args: Args) -> Result<(), String> {
    logs::start(LogFormat::Text, &args.log)?;
    let shown = args.world.display().to_string();
    let yaml = std::fs::read_to_string(&args.world).map_err(|error| format!("{shown}: {error}"))?;
    let world = WorldFile::parse(&yaml).map_err(|error| format!("{shown}: {error}"))?;
    let defaults = Options::new(world);
    let options = Options {
        profile: args.profile.into(),
        clock_speed: args.clock_speed,
        state: args.state,
        seed: args.seed.unwrap_or(defaults.seed),
        ..defaults
    };
    // Before the address is told: whoever reads it may send the signal at once.
    let stop = super::stop_on_signal()?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| format!("{}: {error}", args.listen))?;
    let simulator = simulator::serve(listener, options).await.map_err(|error| match error {
        StartError::World(fault) => format!("{shown}: {fault}"),
        other => other.to_string(),
    })?;
    announce(&simulator.base_url()).map_err(|error| error.to_string())?;
    tracing::info!(console = simulator.console_url(), "the simulated platform is ready");
    stop.cancelled().await;
    simulator.stop().await;
    Ok(())
}

/// The one line on stdout: scripts wait for it.
fn announce(base_url: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{base_url}")?;
    stdout.flush()
}
