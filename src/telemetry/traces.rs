//! Traces, exported with the OpenTelemetry protocol if the environment enables them:
//! docs/guide/traces.md.

mod environment;
mod export;

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

use self::environment::{Wanted, wanted};
use self::export::Exporter;
use crate::spans::TARGET;

const SERVICE: &str = "dbplane";
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
    /// If a setting is unsupported, with advice.
    pub fn of_environment(instance: &str) -> Result<Option<Self>, String> {
        let Some(wanted) = wanted(|name| std::env::var(name).ok())? else {
            return Ok(None);
        };
        let exporter = Exporter::new(wanted.timeout)?;
        let provider = SdkTracerProvider::builder().with_resource(resource(wanted, instance));
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

/// Attributes of the environment override ours.
fn resource(wanted: Wanted, instance: &str) -> Resource {
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
    match wanted.service_name {
        Some(name) => resource.with_service_name(name).build(),
        None => resource.build(),
    }
}
