//! The command line of the program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Command, CommandFactory, Parser};

use crate::clock;
use crate::world::Profile;

/// Serves a simulated platform; prints the base URL of its API when it is ready.
#[derive(Debug, Parser)]
#[command(name = "dbplane-simulator", version, about, after_help = HELP)]
pub struct Arguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(
        long,
        env = "DBPLANE_SIMULATE_LISTEN",
        default_value = "127.0.0.1:4010"
    )]
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
    /// Which platform to simulate
    #[arg(long, env = "DBPLANE_SIMULATE_PROFILE", value_enum, default_value_t = ProfileName::Default)]
    pub profile: ProfileName,
    /// Seed of made-up ids and tokens; without it they differ from run to run
    #[arg(long, env = "DBPLANE_SIMULATE_SEED")]
    pub seed: Option<u64>,
    /// What is logged, such as info or info,dbplane=debug
    #[arg(long, env = "DBPLANE_LOG", default_value = "info")]
    pub log: String,
}

const HELP: &str = "Examples:
  dbplane-simulator --world deploy/examples/world.yaml
  dbplane-simulator --world world.yaml --state world.redb --clock-speed 60

Exit status:
  0  it was stopped by a signal
  1  it cannot start
  2  the command line is wrong";

/// For code that documents the command line.
pub fn command() -> Command {
    Arguments::command()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileName {
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
