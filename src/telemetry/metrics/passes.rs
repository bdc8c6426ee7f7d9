//! Metrics of passes over resources.

use std::sync::Arc;
use std::time::Instant;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::counters::Counters;
use super::{OfKind, durations};

/// The durations have no namespace, because a histogram has 17 series per label set.
#[derive(Clone, Debug)]
pub struct Passes {
    pub(super) ended: Arc<Counters>,
    seconds: Family<OfKind, Histogram>,
}

impl Passes {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let ended = Counters::new(
            "reconciles",
            &["kind", "outcome"],
            "Passes over a resource, by namespace, kind and outcome: ok, or why the API server could not be asked or refused",
        );
        let seconds = Family::<OfKind, Histogram>::new_with_constructor(durations);
        let text = "How long passes over a resource took, by kind";
        registry.register_with_unit("reconcile_duration", text, Unit::Seconds, seconds.clone());
        Self { ended, seconds }
    }

    /// Starts the timer for a pass over a resource of `kind`. `namespace` is empty for a resource
    /// without one.
    pub fn begins(&self, namespace: &str, kind: &str) -> Timer<'_> {
        Timer {
            passes: self,
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            start: Instant::now(),
        }
    }
}

/// A pass in progress.
#[derive(Debug)]
pub struct Timer<'a> {
    passes: &'a Passes,
    namespace: String,
    kind: String,
    start: Instant,
}

impl Timer<'_> {
    /// `outcome` is `ok`, or a name from a closed set.
    pub fn ended(self, outcome: &'static str) {
        let Self {
            passes,
            namespace,
            kind,
            start,
        } = self;
        passes.ended.add(&namespace, &[&kind, outcome]);
        passes
            .seconds
            .get_or_create(&OfKind { kind })
            .observe(start.elapsed().as_secs_f64());
    }
}
