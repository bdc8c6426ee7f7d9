//! Traces, exported with the OpenTelemetry protocol if the environment enables them:
//! docs/guide/traces.md.

mod export;
#[cfg(test)]
mod tests;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Subscriber, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use self::export::Exporter;
use crate::spans::TARGET;

const SERVICE: &str = "dbplane";
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
const TIMEOUTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
];
/// The default of the OpenTelemetry specification.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of the program waits for a collector.
const LAST_EXPORT: Duration = Duration::from_millis(1500);

/// Exported traces. Spans wait in a queue. They are dropped if the queue is full or the collector
/// is unavailable, so that nothing waits for them.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// The traces that the environment configures, or `None` if it enables none. `instance` names
    /// this process.
    ///
    /// # Errors
    /// If no exporter can be created.
    pub fn of_environment(instance: &str) -> Result<Option<Self>, String> {
        if !are_enabled(variable) {
            return Ok(None);
        }
        let exporter = Exporter::new(timeout())?;
        let provider = SdkTracerProvider::builder().with_resource(resource(instance));
        Ok(Some(Self(provider.with_batch_exporter(exporter).build())))
    }

    /// A layer for the spans of this program's traces only.
    pub fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> {
        let is_ours = filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET);
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer(SERVICE))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        layer.with_filter(is_ours.with_max_level_hint(tracing::Level::INFO))
    }

    /// Exports the queue. Spans that the collector does not accept in time are lost.
    pub async fn end(self) {
        let ended =
            tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(LAST_EXPORT)).await;
        if !matches!(ended, Ok(Ok(()))) {
            warn!("the last traces were not exported");
        }
    }
}

/// A variable of the environment; an empty one counts as absent.
fn variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

/// Traces are off unless an exporter or an endpoint is configured.
fn are_enabled(variable: impl Fn(&str) -> Option<String>) -> bool {
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return false;
    }
    match variable("OTEL_TRACES_EXPORTER") {
        Some(exporter) => exporter == "otlp",
        None => ENDPOINTS.iter().any(|name| variable(name).is_some()),
    }
}

/// The timeout of one request to the collector. The SDK applies it only to a client of its own.
fn timeout() -> Duration {
    let milliseconds = TIMEOUTS
        .iter()
        .find_map(|name| variable(name)?.trim().parse().ok());
    milliseconds.map_or(TIMEOUT, Duration::from_millis)
}

/// Attributes of the environment override ours.
fn resource(instance: &str) -> Resource {
    let ours = [
        KeyValue::new("service.name", SERVICE),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance.to_owned()),
    ];
    let detectors: [Box<dyn opentelemetry_sdk::resource::ResourceDetector>; 2] = [
        Box::new(TelemetryResourceDetector),
        Box::new(EnvResourceDetector::new()),
    ];
    let resource = Resource::builder_empty()
        .with_attributes(ours)
        .with_detectors(&detectors);
    match variable("OTEL_SERVICE_NAME") {
        Some(name) => resource.with_service_name(name).build(),
        None => resource.build(),
    }
}
