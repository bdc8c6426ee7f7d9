//! Metrics in OpenMetrics text, with one registry and a file for each group. Label values are
//! namespaces, the names of accounts, or from closed sets. `bound` limits the series of a namespace.
//! A test generates docs/metrics.md from this registry.

mod bound;
mod census;
mod counted;
mod counters;
mod gathered;
mod left;
mod passes;
mod platform;
mod process;
mod steps;

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use self::bound::{AccountLabels, OTHER};
pub use self::census::{
    AccountCensus, AccountKeys, Census, ConnectedAccount, KeyStage, KindCensus,
};
pub use self::counted::Counted;
pub use self::left::{BudgetLeft, is_of_leader};
pub use self::passes::{Passes, Timer};
pub use self::platform::Requests;
pub use self::steps::{CreateOutcome, KeyChange, Steps};
use crate::leadership::Leadership;

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub passes: Passes,
    pub steps: Steps,
    pub requests: Requests,
    pub counted: Arc<Counted>,
    leadership: Arc<OnceLock<Leadership>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let leadership = Arc::<OnceLock<Leadership>>::default();
        let mut registry = Registry::default();
        let own = registry.sub_registry_with_prefix("dbplane");
        let passes = Passes::register(own);
        let steps = Steps::default();
        let requests = Requests::register(own);
        let mut of_resources = vec![Arc::clone(&passes.ended)];
        of_resources.extend(steps.counters());
        let of_accounts = vec![Arc::clone(&requests.sent)];
        let counted = Arc::new(Counted::new(of_resources, of_accounts));
        own.register_collector(Box::new(Arc::clone(&counted)));
        process::register(own, Arc::clone(&leadership));
        registry.register_collector(Box::new(process::ProcessMetrics));
        registry.register_collector(Box::new(process::Runtime));
        Self {
            registry,
            passes,
            steps,
            requests,
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
