//! Metrics in OpenMetrics text, with one registry and a file for each group. Label values come from
//! closed sets, or are the UID of an account; no label contains the name of an object.
//! A test generates docs/metrics.md from this registry.

mod census;
mod left;
mod passes;
mod platform;
mod process;
mod resources;
mod steps;

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use self::census::{
    AccountCensus, AccountKeys, Census, ConnectedAccount, Counted, KeyStage, KindCensus,
};
pub use self::left::{BudgetLeft, is_of_leader};
pub use self::passes::{Passes, Timer};
pub use self::platform::Requests;
pub use self::resources::ResourceMetrics;
pub use self::steps::{CreateOutcome, KeyChange, Steps};
use crate::leadership::Leadership;

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub passes: Passes,
    pub steps: Steps,
    pub requests: Requests,
    pub resources: ResourceMetrics,
    pub counted: Arc<Counted>,
    leadership: Arc<OnceLock<Leadership>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let (counted, leadership) = (
            Arc::<Counted>::default(),
            Arc::<OnceLock<Leadership>>::default(),
        );
        let mut registry = Registry::default();
        let own = registry.sub_registry_with_prefix("dbplane");
        let passes = Passes::register(own);
        let steps = Steps::register(own);
        let requests = Requests::register(own);
        let resources = ResourceMetrics::register(own);
        own.register_collector(Box::new(Arc::clone(&counted)));
        process::register(own, Arc::clone(&leadership));
        registry.register_collector(Box::new(process::ProcessMetrics));
        registry.register_collector(Box::new(process::Runtime));
        Self {
            registry,
            passes,
            steps,
            requests,
            resources,
            counted,
            leadership,
        }
    }
}

impl Metrics {
    /// All metrics as OpenMetrics text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// This process counts as the leader while `leadership` holds. Before this call it does not.
    pub fn leads_while(&self, leadership: Leadership) {
        // A process becomes the leader only once.
        let _ = self.leadership.set(leadership);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

/// Buckets from 2 ms to 33 s, each twice the previous one.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.002, 2.0, 15))
}
