//! Structured logs on standard error.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged: a filter in tracing's syntax, which can be replaced while the program runs.
#[derive(Clone, Debug)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// The filter as it is now.
    pub fn text(&self) -> String {
        self.0.with_current(EnvFilter::to_string).unwrap_or_default()
    }

    /// From now on this filter holds.
    ///
    /// # Errors
    /// When it cannot be read; then the one before stays.
    pub fn set(&self, filter: &str) -> Result<(), String> {
        self.0.reload(parse(filter)?).map_err(|error| error.to_string())
    }
}

fn parse(filter: &str) -> Result<EnvFilter, String> {
    EnvFilter::from_str(filter).map_err(|error| format!("the log filter {filter:?} cannot be read: {error}"))
}

/// Starts logging. `filter` is in tracing's syntax, such as `info,dbplane=debug`.
///
/// # Errors
/// When the filter cannot be read, or logging was started already.
pub fn start(format: LogFormat, filter: &str) -> Result<LogFilter, String> {
    let (filter, handle) = reload::Layer::new(parse(filter)?);
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
    started.map_err(|error| error.to_string())?;
    Ok(LogFilter(handle))
}
