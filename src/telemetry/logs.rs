//! Structured logs on standard error.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging. `filter` is in tracing's syntax, such as `info,dbplane=debug`.
///
/// # Errors
/// When the filter cannot be read, or logging was started already.
pub fn start(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter =
        EnvFilter::from_str(filter).map_err(|error| format!("the log filter {filter:?} cannot be read: {error}"))?;
    let registry = tracing_subscriber::registry().with(filter);
    let started = match format {
        LogFormat::Text => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_ansi(std::io::stderr().is_terminal())
                    .with_writer(std::io::stderr),
            )
            .try_init(),
        LogFormat::Json => {
            registry.with(tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr)).try_init()
        }
    };
    started.map_err(|error| error.to_string())
}
