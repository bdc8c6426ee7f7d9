//! `dbplane run`: the operator.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kube::Client;
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::clock;
use crate::cluster::{Access, client, configuration, explained};
use crate::config::OperatorSettings;
use crate::controller::{self, Aside, Election, Operator};
use crate::decide::Limits;
use crate::decide::names::ClusterId;
use crate::leadership::Leadership;
use crate::leadership::lease::LEASE_DURATION;
use crate::platform::{PlatformAlias, PlatformPattern, Platforms, Reach};
use crate::telemetry::debug::{loopback, serve_debug};
use crate::telemetry::health::{Pulse, bind, serve_health, serve_metrics};
use crate::telemetry::logs::{self, LogFormat};
use crate::telemetry::traces::Traces;
use crate::telemetry::{Metrics, Readiness};

/// Run the operator until SIGTERM or SIGINT. It connects to the cluster of KUBECONFIG, or else to
/// the cluster that it runs in.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Run {
    /// Address that serves /livez and /readyz.
    #[arg(long, env = "DBPLANE_HEALTH_LISTEN", default_value = "127.0.0.1:8081")]
    health_listen: SocketAddr,
    /// Address that serves /metrics.
    #[arg(long, env = "DBPLANE_METRICS_LISTEN", default_value = "127.0.0.1:9090")]
    metrics_listen: SocketAddr,
    /// File with a token. /metrics is then served only with the header "Authorization: Bearer
    /// TOKEN". Without it, everyone who reaches the address reads the names of all accounts.
    #[arg(long, env = "DBPLANE_METRICS_TOKEN_FILE", value_name = "FILE")]
    metrics_token_file: Option<PathBuf>,
    /// Loopback address that serves /debug/log; not served when absent. GET shows the log filter,
    /// and PUT replaces it by the body of the request.
    #[arg(long, env = "DBPLANE_DEBUG_LISTEN", value_parser = loopback)]
    debug_listen: Option<SocketAddr>,
    /// Format of log lines.
    #[arg(long, env = "DBPLANE_LOG_FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
    /// Log filter, such as info or info,dbplane=debug.
    #[arg(long, env = "DBPLANE_LOG", default_value = "info")]
    log: String,
    /// Platforms that Accounts and ClusterAccounts may name, separated by commas; any https
    /// platform when absent. Write https://api.example.com, or https://*.example.com for the names
    /// one level below. Scheme, host and port have to match. A platform whose host is written in
    /// full, without a star, may have a private address; all others need public addresses.
    #[arg(long, env = "DBPLANE_ALLOWED_PLATFORMS", value_delimiter = ',')]
    allowed_platforms: Vec<PlatformPattern>,
    /// Base URLs that lead to the same platform, separated by commas, each as OTHER=PLATFORM:
    /// https://old.example/api/v2=https://new.example/api/v2. Resources that were created through
    /// one URL are then managed through the other, too. When absent, each base URL is a separate
    /// platform. Set this before resources refer to an account with another base URL of their
    /// platform.
    #[arg(long, env = "DBPLANE_PLATFORM_ALIASES", value_delimiter = ',')]
    platform_aliases: Vec<PlatformAlias>,
    /// For tests on loopback only: allow base URLs with http, which send the API key unencrypted,
    /// and base URLs with any address. This includes this machine, private networks, metadata
    /// services of clouds and the API server.
    #[arg(long, env = "DBPLANE_ALLOW_INSECURE_PLATFORM")]
    allow_insecure_platform: bool,
    /// Namespaces to watch, separated by commas; all when absent. With this flag dbplane does not
    /// read labels of namespaces, so label selectors of ClusterAccounts match nothing.
    #[arg(long, env = "DBPLANE_WATCH_NAMESPACES", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// With --watch-namespaces: further namespaces in which dbplane watches Secrets, separated by
    /// commas. They are the namespaces of the API keys of ClusterAccounts. Without this flag,
    /// dbplane uses a new API key from there at the next check of the account, within an hour.
    #[arg(long, env = "DBPLANE_CREDENTIALS_NAMESPACES", value_delimiter = ',')]
    credentials_namespaces: Vec<String>,
    /// Do not read ClusterAccounts, which requires a ClusterRole. A resource that refers to one
    /// reports this in its conditions.
    #[arg(long, env = "DBPLANE_NO_CLUSTER_ACCOUNTS")]
    no_cluster_accounts: bool,
    /// Six digits or lowercase letters that identify this cluster in the names of keys and
    /// computes. When absent: the first six of the UID of namespace kube-system. If this cluster
    /// replaces another one, set it to the identity of the old cluster.
    #[arg(long, env = "DBPLANE_CLUSTER_ID")]
    cluster_id: Option<ClusterId>,
    /// Make changes only while this process is the leader: it holds the Lease "dbplane" in the
    /// operator's namespace.
    #[arg(long, env = "DBPLANE_LEADER_ELECT")]
    leader_elect: bool,
    /// Number of resources of one kind that are reconciled at the same time, for each account and
    /// namespace.
    #[arg(long, env = "DBPLANE_CONCURRENCY", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// Memory limit in MiB for the platform's lists that dbplane keeps, for all Accounts of a
    /// namespace together. dbplane does not keep lists beyond it, and the account reports them in
    /// its condition ListsTooLarge.
    #[arg(long, env = "DBPLANE_LIST_MEMORY", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    list_memory: u16,
    /// Timeout of one request to the platform, in seconds.
    #[arg(long, env = "DBPLANE_REQUEST_TIMEOUT", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    request_timeout: u64,
    /// Settle time, in seconds. If the result of an unanswered create has not appeared on the
    /// platform after this time, the create counts as failed. It must be longer than
    /// --request-timeout. With --leader-elect it must be longer than --request-timeout and the
    /// lease (15 s) together.
    #[arg(long, env = "DBPLANE_SETTLE_TIME", default_value_t = 60)]
    settle_time: u64,
    /// Seconds that a compute may take to start. After that it is reported as Stalled with
    /// StartTimeout.
    #[arg(long, env = "DBPLANE_START_TIMEOUT", default_value_t = Limits::default().start.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    start_timeout: u64,
    /// Seconds between two checks that the platform still accepts a project key, if the platform
    /// does not list keys. Each check is a request with that key. If the platform lists keys,
    /// dbplane reads the list every minute. It reads a list of more than 1,000 keys less often,
    /// after three quarters of this time at the latest.
    #[arg(long, env = "DBPLANE_KEY_CHECK_INTERVAL", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    key_check_interval: u64,
    /// Limit of the brake on mass deletion: number of computes and keys of deleted resources that
    /// dbplane deletes within a minute, for each account and namespace. Further deletions wait
    /// until a user confirms them. Beyond four times this number for one account in all namespaces,
    /// deletions wait for their turn. 0 disables the brake.
    #[arg(long, env = "DBPLANE_DELETES_PER_MINUTE", default_value_t = Limits::default().deletes_per_minute)]
    deletes_per_minute: u32,
    /// Name of this process in events and in the Lease; host name and process ID when absent.
    #[arg(long, env = "DBPLANE_IDENTITY")]
    identity: Option<String>,
}

const HELP: &str = "Examples:
  dbplane run                                         against the cluster of KUBECONFIG
  dbplane run --leader-elect --watch-namespaces shop

Exit status:
  0  it was stopped by a signal
  1  it cannot start, or has lost the lead
  2  the command line is wrong";

/// An empty variable names no namespace.
fn named(namespaces: &[String]) -> Vec<String> {
    namespaces
        .iter()
        .filter(|name| !name.is_empty())
        .cloned()
        .collect()
}

impl Run {
    pub async fn execute(self) -> Result<(), String> {
        let mut settings = self.settings()?;
        let traces = Traces::of_environment(&settings.identity)?;
        let log = logs::start(self.log_format, &self.log, traces.as_ref())?;
        let stop = super::stop_on_signal()?;
        let leadership = self.leadership();
        let readiness = Readiness::default();
        let metrics = Arc::new(Metrics::default());
        let aside = Aside::start().map_err(|error| format!("cannot start a thread: {error}"))?;
        let pulse = Pulse::default();
        tokio::spawn(pulse.clone().beat());
        let health = listen_on(&aside, self.health_listen).await?;
        let exposition = bind(self.metrics_listen).await?;
        readiness.lacks("the API server");
        let served = CancellationToken::new();
        if let Some(address) = self.debug_listen {
            tokio::spawn(serve_debug(bind(address).await?, log, served.clone()));
        }
        let probed = serve_health(health, readiness.clone(), pulse, served.clone());
        let health = aside.runtime().spawn(probed);
        let exposition = tokio::spawn(serve_metrics(
            exposition,
            metrics.clone(),
            self.metrics_token_file.clone(),
            served.clone(),
        ));
        info!(version = env!("CARGO_PKG_VERSION"), "dbplane starts");
        let ended = match clients(&aside, &leadership, &stop, &readiness).await {
            Some(clients) => {
                settings.reach.api_server = clients.api_server;
                let operator = Operator {
                    client: clients.client,
                    settings,
                    election: self.leader_elect.then(|| Election {
                        client: clients.lease_client,
                        runtime: aside.runtime().clone(),
                        leadership,
                    }),
                    readiness,
                    metrics,
                    clock: clock::now,
                };
                controller::run(operator, stop).await
            }
            None => Ok(()),
        };
        served.cancel();
        let _ = tokio::join!(health, exposition);
        info!("dbplane stops");
        if let Some(traces) = traces {
            traces.end().await;
        }
        ended
    }

    fn settings(&self) -> Result<OperatorSettings, String> {
        self.check_settle_time()?;
        Ok(OperatorSettings {
            reach: Reach {
                platforms: self.allowed_platforms.clone(),
                insecure: self.allow_insecure_platform,
                api_server: Vec::new(),
            },
            platforms: Platforms::with_aliases(self.platform_aliases.clone()),
            watch_namespaces: named(&self.watch_namespaces),
            credentials_namespaces: named(&self.credentials_namespaces),
            cluster_accounts: !self.no_cluster_accounts,
            cluster_id: self.cluster_id.clone(),
            request_timeout: Duration::from_secs(self.request_timeout),
            concurrency: self.concurrency,
            list_memory: usize::from(self.list_memory) << 20,
            limits: Limits {
                settle: Duration::from_secs(self.settle_time),
                key_check: Duration::from_secs(self.key_check_interval),
                start: Duration::from_secs(self.start_timeout),
                deletes_per_minute: self.deletes_per_minute,
            },
            identity: self.identity.clone().unwrap_or_else(default_identity),
        })
    }

    fn check_settle_time(&self) -> Result<(), String> {
        let (lease, and_lease) = if self.leader_elect {
            let lease = LEASE_DURATION.as_secs();
            (lease, format!(" and the lease ({lease}) together"))
        } else {
            (0, String::new())
        };
        if self.settle_time > self.request_timeout + lease {
            return Ok(());
        }
        Err(format!(
            "--settle-time {} is too short: it must be longer than --request-timeout {}{and_lease}",
            self.settle_time, self.request_timeout
        ))
    }

    fn leadership(&self) -> Leadership {
        if self.leader_elect {
            Leadership::elected()
        } else {
            Leadership::default()
        }
    }
}

/// The process ID distinguishes two operators on one machine.
fn default_identity() -> String {
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    format!("{}-{}", host.trim(), std::process::id())
}

const PAUSE: Duration = Duration::from_secs(2);

/// The clients for the cluster.
struct ClusterClients {
    client: Client,
    /// For the Lease, so that no pass delays it.
    lease_client: Client,
    api_server: Vec<IpAddr>,
}

/// Retries until the configuration for the cluster can be read.
async fn clients(
    aside: &Aside,
    leadership: &Leadership,
    stop: &CancellationToken,
    readiness: &Readiness,
) -> Option<ClusterClients> {
    loop {
        match try_clients(aside, leadership, stop).await {
            Ok(clients) => return Some(clients),
            Err(error) => {
                warn!(error, "no configuration for the cluster");
                readiness.only(&[format!("the configuration for the cluster ({error})")]);
            }
        }
        stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await?;
    }
}

async fn try_clients(
    aside: &Aside,
    leadership: &Leadership,
    stop: &CancellationToken,
) -> Result<ClusterClients, String> {
    let config = configuration(&Access::default())
        .await
        .map_err(|error| error.to_string())?;
    let host = config.cluster_url.host().map(str::to_owned);
    let lease_client = aside
        .client(config.clone())
        .map_err(|error| explained(&error))?;
    let client = client(config, leadership, stop).map_err(|error| explained(&error))?;
    Ok(ClusterClients {
        client,
        lease_client,
        api_server: api_server(host).await,
    })
}

/// A listener that the separate thread serves.
async fn listen_on(aside: &Aside, address: SocketAddr) -> Result<TcpListener, String> {
    aside
        .runtime()
        .spawn(bind(address))
        .await
        .map_err(|error| error.to_string())?
}

/// The addresses of the API server: those of the configuration, and that of the Service, which
/// every Pod knows.
async fn api_server(configured: Option<String>) -> Vec<IpAddr> {
    let service = std::env::var("KUBERNETES_SERVICE_HOST").ok();
    let mut addresses = Vec::new();
    for host in configured.into_iter().chain(service) {
        match lookup_host((host.trim_matches(['[', ']']), 0)).await {
            Ok(found) => addresses.extend(found.map(|address| address.ip())),
            Err(error) => {
                warn!(host, %error, "the API server's host name leads to no address, so accounts may name it")
            }
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        run: Run,
    }

    fn accepted(flags: &[&str]) -> bool {
        let arguments = ["dbplane"].into_iter().chain(flags.iter().copied());
        Whole::try_parse_from(arguments)
            .unwrap()
            .run
            .settings()
            .is_ok()
    }

    #[test]
    fn platforms_that_are_allowed_are_separated_by_commas_and_have_to_be_readable() {
        let parsed = |value: &str| Whole::try_parse_from(["dbplane", "--allowed-platforms", value]);
        let run = parsed("https://api.example.com,https://*.example.org")
            .unwrap()
            .run;
        assert_eq!(run.settings().unwrap().reach.platforms.len(), 2);
        for value in [
            "",
            "api.example.com",
            "https://api.example.com,",
            "https://api.example.com/v2",
        ] {
            assert!(parsed(value).is_err(), "{value}");
        }
    }

    #[test]
    fn the_settle_time_covers_what_another_process_may_still_do() {
        assert!(accepted(&["--leader-elect"]));
        assert!(!accepted(&["--request-timeout=2", "--settle-time=2"]));
        assert!(accepted(&["--request-timeout=2", "--settle-time=3"]));
        assert!(!accepted(&[
            "--request-timeout=2",
            "--settle-time=17",
            "--leader-elect"
        ]));
        assert!(accepted(&[
            "--request-timeout=2",
            "--settle-time=18",
            "--leader-elect"
        ]));
    }
}
