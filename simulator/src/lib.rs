//! A simulator of the hosted platform, for the demo and the tests.
//!
//! It shares no logic with the operator's client, so that neither can hide a mistake of the other.
//! [`world`] is the platform as a pure state machine; the rest serves it over HTTP.

mod answers;
pub mod arguments;
pub mod clock;
mod console;
pub mod faults;
mod guard;
mod http;
pub mod line;
pub mod log;
mod odd;
mod pages;
mod rewritten;
mod shell;
pub mod state;
pub mod world;

pub use answers::respond;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use clock::Clock;
use faults::FaultOrder;
use guard::OnLoopback;
use line::{Lines, Peer};
use log::Entry;
use pages::Desk;
use shell::Shell;
use state::{StateError, Store};
use world::file::{WorldFile, WorldFileError};
use world::{Profile, World};

/// How long open requests may take to finish when the simulator stops.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct Options {
    pub world: WorldFile,
    pub profile: Profile,
    /// Simulated seconds per real second; at 0 the clock moves only by advances.
    pub clock_speed: f64,
    /// File that keeps the world across restarts. If it holds a world, `world` is ignored.
    pub state: Option<PathBuf>,
    /// Seed of generated ids and tokens.
    pub seed: u64,
}

impl Options {
    /// The default profile in real time, without a state file and with a random seed.
    pub fn new(world: WorldFile) -> Self {
        Self {
            world,
            profile: Profile::default(),
            clock_speed: 1.0,
            state: None,
            seed: rand::random(),
        }
    }
}

/// Errors that prevent the start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error("the world file is wrong at {0}")]
    World(#[from] WorldFileError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// A running simulator. Dropping this value does not stop it; [`Simulator::stop`] does.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    shell: Arc<Shell>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

/// Starts a simulator as a background task of the current runtime. It accepts requests on return.
pub async fn serve(listener: TcpListener, options: Options) -> Result<Simulator, StartError> {
    let address = listener.local_addr()?;
    let profile = options.profile;
    let shell = Arc::new(open(options)?);
    let stop = CancellationToken::new();
    let router = router(&shell, profile, address.ip().is_loopback())
        .into_make_service_with_connect_info::<Peer>();
    let server =
        axum::serve(Lines(listener), router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let served = tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the simulator's server ended");
        }
    });
    Ok(Simulator {
        address,
        shell,
        stop,
        served,
    })
}

fn router(shell: &Arc<Shell>, profile: Profile, on_loopback: bool) -> Router {
    let desk = Desk::new(Arc::clone(shell), profile);
    let console = Router::new()
        .nest(
            "/console",
            console::routes().merge(pages::routes(Arc::clone(&desk))),
        )
        .route("/console/", pages::first(desk))
        .route("/", get(async || Redirect::to("/console/")))
        .layer(from_fn_with_state(OnLoopback(on_loopback), guard::protect));
    console
        .fallback(http::serve_api)
        .with_state(Arc::clone(shell))
}

fn open(options: Options) -> Result<Shell, StartError> {
    let store = options.state.as_deref().map(Store::open).transpose()?;
    let saved = store
        .as_ref()
        .map(|store| store.load(options.profile))
        .transpose()?
        .flatten();
    let (world, clock) = match saved {
        Some((world, clock)) => {
            tracing::info!("continuing from the state file; the world file is not used");
            (world, clock.at_speed(options.clock_speed))
        }
        None => {
            let clock = Clock::start(options.world.settings.start_time, options.clock_speed);
            (
                World::new(&options.world, options.profile, options.seed, clock.now())?,
                clock,
            )
        }
    };
    Ok(Shell::new(world, clock, store)?)
}

impl Simulator {
    /// The base URL of the API, e.g. `http://127.0.0.1:4010/api/v2`.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, http::BASE_PATH)
    }

    /// The URL of the console, e.g. `http://127.0.0.1:4010/console`.
    pub fn console_url(&self) -> String {
        format!("http://{}/console", self.address)
    }

    pub fn now(&self) -> Timestamp {
        self.shell.clock().now()
    }

    /// Advances the clock and processes everything that becomes due.
    pub fn advance(&self, by: Duration) -> Result<Timestamp, StateError> {
        self.shell
            .advance(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX))
    }

    /// Runs `work` on the world, as a user of the console would, and saves its changes.
    pub fn with_world<T>(
        &self,
        work: impl FnOnce(&mut World, Timestamp) -> T,
    ) -> Result<T, StateError> {
        self.shell.perform_now(work)
    }

    /// Orders a fault; the error says why the order is invalid.
    pub fn order_fault(&self, order: FaultOrder) -> Result<u64, String> {
        self.shell.faults().order(order)
    }

    /// Removes all ordered faults.
    pub fn clear_faults(&self) {
        self.shell.faults().clear();
    }

    /// The logged requests with a number greater than `since`; 0 returns all that are kept.
    pub fn requests(&self, since: u64) -> Vec<Entry> {
        self.shell.log().since(since)
    }

    /// Stops accepting requests, waits up to `GRACE` for open ones, and closes the state file.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(GRACE, &mut self.served).await.is_err() {
            tracing::warn!("requests were still under way when the simulator stopped");
            self.served.abort();
        }
        self.shell.close();
    }
}
