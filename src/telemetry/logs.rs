//! Structured logs on standard error.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use super::lines::{Json, Text, fields};
use super::traces::Traces;
use crate::spans::TARGET;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For users.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The log filter in tracing's syntax, which can be replaced at runtime.
#[derive(Clone, Debug)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// The current filter.
    pub fn text(&self) -> String {
        self.0
            .with_current(EnvFilter::to_string)
            .unwrap_or_default()
    }

    /// Replaces the filter.
    ///
    /// # Errors
    /// If it cannot be parsed; the previous filter then stays.
    pub fn set(&self, filter: &str) -> Result<(), String> {
        self.0
            .reload(parse(filter)?)
            .map_err(|error| error.to_string())
    }
}

/// True for kube's log line about a failed request. It lacks the cause, and the caller logs the
/// failure with its cause.
fn is_told_with_its_cause(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "kube_client::client::builder" && *metadata.level() == Level::ERROR
}

fn parse(filter: &str) -> Result<EnvFilter, String> {
    EnvFilter::from_str(filter)
        .map_err(|error| format!("the log filter {filter:?} cannot be read: {error}"))
}

/// Starts logging, and `traces` if there are any. `filter` is in tracing's syntax, such as
/// `info,dbplane=debug`, and applies only to log lines.
///
/// # Errors
/// If the filter cannot be parsed, or logging was already started.
pub fn start(
    format: LogFormat,
    filter: &str,
    traces: Option<&Traces>,
) -> Result<LogFilter, String> {
    let (filter, handle) = reload::Layer::new(parse(filter)?);
    let is_a_line =
        filter_fn(|metadata| metadata.target() != TARGET && !is_told_with_its_cause(metadata))
            .with_max_level_hint(LevelFilter::TRACE);
    let filter = filter.and(is_a_line);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => {
            let ansi = std::io::stderr().is_terminal();
            lines
                .with_ansi(ansi)
                .fmt_fields(fields())
                .event_format(Text::new(ansi))
                .with_filter(filter)
                .boxed()
        }
        LogFormat::Json => lines
            .with_ansi(false)
            .fmt_fields(JsonFields::new())
            .event_format(Json)
            .with_filter(filter)
            .boxed(),
    };
    let started = tracing_subscriber::registry()
        .with(lines)
        .with(traces.map(Traces::layer))
        .try_init();
    started.map_err(|error| error.to_string())?;
    Ok(LogFilter(handle))
}
