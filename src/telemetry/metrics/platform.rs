//! Requests to the platform.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::durations;
use crate::platform::Meter;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    call: &'static str,
    outcome: &'static str,
    account: Arc<str>,
}

/// Without the account: a histogram has 17 series for each of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Timed {
    call: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug)]
pub struct Requests {
    sent: Family<Call, Counter>,
    seconds: Family<Timed, Histogram>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let sent = Family::<Call, Counter>::default();
        let text = "Requests to the platform, by call, outcome (ok, or the fault) and account (its UID)";
        registry.register("platform_requests", text, sent.clone());
        let seconds = Family::<Timed, Histogram>::new_with_constructor(durations);
        let text = "How long requests to the platform took, from the first byte sent to the last byte read, by call and outcome";
        registry.register_with_unit("platform_request_duration", text, Unit::Seconds, seconds.clone());
        Self { sent, seconds }
    }

    /// What records the requests of the account with this UID.
    pub fn of_account(&self, uid: &str) -> Arc<dyn Meter> {
        Arc::new(OfAccount { requests: self.clone(), account: uid.into() })
    }
}

struct OfAccount {
    requests: Requests,
    account: Arc<str>,
}

impl Meter for OfAccount {
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64) {
        let Requests { sent, seconds: took } = &self.requests;
        sent.get_or_create(&Call { call, outcome, account: Arc::clone(&self.account) }).inc();
        took.get_or_create(&Timed { call, outcome }).observe(seconds);
    }
}
