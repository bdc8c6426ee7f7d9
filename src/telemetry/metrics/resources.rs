//! Resources, as the passes and the watches tell of them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::OfKind;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Waiting {
    kind: String,
    reason: &'static str,
}

#[derive(Clone, Debug)]
pub struct Resources {
    waiting: Family<Waiting, Gauge>,
    unreadable: Family<OfKind, Gauge>,
}

impl Resources {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let waiting = Family::<Waiting, Gauge>::default();
        let text = "Resources that wait for a declared time or for a person although nothing is wrong with them, by kind and reason";
        registry.register("waiting_resources", text, waiting.clone());
        let unreadable = Family::<OfKind, Gauge>::default();
        let text = "Stored resources that cannot be read, by kind";
        registry.register("unreadable_resources", text, unreadable.clone());
        Self { waiting, unreadable }
    }

    /// So many resources of `kind` wait for this reason.
    pub fn waiting(&self, kind: &str, reason: &'static str, count: usize) {
        self.waiting.get_or_create(&Waiting { kind: kind.to_owned(), reason }).set(number(count));
    }

    /// So many stored resources of `kind` cannot be read.
    pub fn unreadable(&self, kind: &str, count: usize) {
        self.unreadable.get_or_create(&OfKind { kind: kind.to_owned() }).set(number(count));
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
