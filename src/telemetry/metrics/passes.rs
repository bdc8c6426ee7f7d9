//! Metrics of passes over resources.

use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::{OfKind, durations};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug)]
pub struct Passes {
    ended: Family<PassLabels, Counter>,
    seconds: Family<OfKind, Histogram>,
}

impl Passes {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let ended = Family::<PassLabels, Counter>::default();
        let text = "Passes over a resource, by kind and outcome: ok, or why the API server could not be asked or refused";
        registry.register("reconciles", text, ended.clone());
        let seconds = Family::<OfKind, Histogram>::new_with_constructor(durations);
        let text = "How long passes over a resource took, by kind";
        registry.register_with_unit("reconcile_duration", text, Unit::Seconds, seconds.clone());
        Self { ended, seconds }
    }

    /// Starts the timer for a pass over a resource of `kind`.
    pub fn begins(&self, kind: &str) -> Timer<'_> {
        Timer {
            passes: self,
            kind: kind.to_owned(),
            start: Instant::now(),
        }
    }
}

/// A pass in progress.
#[derive(Debug)]
pub struct Timer<'a> {
    passes: &'a Passes,
    kind: String,
    start: Instant,
}

impl Timer<'_> {
    /// `outcome` is `ok`, or a name from a closed set.
    pub fn ended(self, outcome: &'static str) {
        let Self {
            passes,
            kind,
            start,
        } = self;
        passes
            .ended
            .get_or_create(&PassLabels {
                kind: kind.clone(),
                outcome,
            })
            .inc();
        passes
            .seconds
            .get_or_create(&OfKind { kind })
            .observe(start.elapsed().as_secs_f64());
    }
}
