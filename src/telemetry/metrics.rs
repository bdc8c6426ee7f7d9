//! Metrics, in OpenMetrics text. Labels are from closed sets; none contains the name of an object.

use std::fmt;
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::platform::Meter;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    call: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pass {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfField {
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Waiting {
    kind: String,
    reason: &'static str,
}

/// All metrics of one process.
pub struct Metrics {
    registry: Registry,
    platform_requests: Family<Call, Counter>,
    platform_seconds: Family<Call, Histogram>,
    passes: Family<Pass, Counter>,
    pass_seconds: Family<OfKind, Histogram>,
    deletes: Family<OfKind, Counter>,
    drift_corrected: Family<OfField, Counter>,
    waiting: Family<Waiting, Gauge>,
    unreadable: Family<OfKind, Gauge>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let buckets = || Histogram::new(exponential_buckets(0.002, 2.0, 15));
        let mut registry = Registry::with_prefix("dbplane");
        let platform_requests = Family::<Call, Counter>::default();
        let platform_seconds = Family::<Call, Histogram>::new_with_constructor(buckets);
        let passes = Family::<Pass, Counter>::default();
        let pass_seconds = Family::<OfKind, Histogram>::new_with_constructor(buckets);
        registry.register(
            "platform_requests",
            "Requests to the platform, by call and outcome",
            platform_requests.clone(),
        );
        registry.register_with_unit(
            "platform_request_duration",
            "Duration of requests to the platform",
            Unit::Seconds,
            platform_seconds.clone(),
        );
        registry.register("reconciles", "Passes over a resource, by kind and outcome", passes.clone());
        registry.register_with_unit(
            "reconcile_duration",
            "Duration of passes over a resource",
            Unit::Seconds,
            pass_seconds.clone(),
        );
        let deletes = Family::<OfKind, Counter>::default();
        let waiting = Family::<Waiting, Gauge>::default();
        let text = "Deletions and revocations begun on the platform because a resource was deleted, by its kind";
        registry.register("platform_deletes", text, deletes.clone());
        let text = "Resources that wait for a declared time or for a person, by kind and reason";
        registry.register("waiting_resources", text, waiting.clone());
        let drift_corrected = Family::<OfField, Counter>::default();
        let text = "Corrections of declared fields that somebody else had changed on the platform, by field";
        registry.register("drift_corrected", text, drift_corrected.clone());
        let unreadable = Family::<OfKind, Gauge>::default();
        let text = "Stored resources that cannot be read, by kind";
        registry.register("unreadable_resources", text, unreadable.clone());
        Self {
            registry,
            platform_requests,
            platform_seconds,
            passes,
            pass_seconds,
            deletes,
            drift_corrected,
            waiting,
            unreadable,
        }
    }
}

impl Metrics {
    /// Everything, as OpenMetrics text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Something is deleted on the platform because a resource of `kind` was deleted.
    pub fn deletes(&self, kind: &str) {
        self.deletes.get_or_create(&OfKind { kind: kind.to_owned() }).inc();
    }

    /// A declared field that somebody else had changed was corrected.
    pub fn drift_corrected(&self, field: &str) {
        self.drift_corrected.get_or_create(&OfField { field: field.to_owned() }).inc();
    }

    /// The number of resources of `kind` that wait for this reason.
    pub fn waiting(&self, kind: &str, reason: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.waiting.get_or_create(&Waiting { kind: kind.to_owned(), reason }).set(count);
    }

    /// So many stored resources of `kind` cannot be read.
    pub fn unreadable(&self, kind: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.unreadable.get_or_create(&OfKind { kind: kind.to_owned() }).set(count);
    }

    /// A pass over a resource of `kind` begins.
    pub fn reconcile_begins(&self, kind: &str) -> Timer<'_> {
        Timer { metrics: self, kind: kind.to_owned(), start: Instant::now() }
    }
}

impl Meter for Metrics {
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64) {
        let label = Call { call, outcome };
        self.platform_requests.get_or_create(&label).inc();
        self.platform_seconds.get_or_create(&label).observe(seconds);
    }
}

/// A pass in progress.
#[derive(Debug)]
pub struct Timer<'a> {
    metrics: &'a Metrics,
    kind: String,
    start: Instant,
}

impl Timer<'_> {
    pub fn ended(self, well: bool) {
        let outcome = if well { "ok" } else { "error" };
        self.metrics.passes.get_or_create(&Pass { kind: self.kind.clone(), outcome }).inc();
        self.metrics
            .pass_seconds
            .get_or_create(&OfKind { kind: self.kind })
            .observe(self.start.elapsed().as_secs_f64());
    }
}
