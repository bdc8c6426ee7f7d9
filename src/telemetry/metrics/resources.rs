//! Metrics of resources, reported by passes and watches.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::OfKind;

#[derive(Clone, Debug)]
pub struct ResourceMetrics {
    unreadable: Family<OfKind, Gauge>,
}

impl ResourceMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let unreadable = Family::<OfKind, Gauge>::default();
        let text = "Stored resources that cannot be read, by kind";
        registry.register("unreadable_resources", text, unreadable.clone());
        Self { unreadable }
    }

    /// Sets the number of stored resources of `kind` that cannot be read.
    pub fn unreadable(&self, kind: &str, count: usize) {
        self.unreadable
            .get_or_create(&OfKind {
                kind: kind.to_owned(),
            })
            .set(number(count));
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
