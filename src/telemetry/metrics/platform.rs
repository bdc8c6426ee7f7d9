//! Metrics of requests to the platform.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::durations;
use crate::platform::Meter;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    call: &'static str,
    outcome: &'static str,
    account: Arc<str>,
}

/// Has no account label, because a histogram has 17 series per label set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Timed {
    call: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug)]
pub struct Requests {
    sent: Family<CallLabels, Counter>,
    seconds: Family<Timed, Histogram>,
    /// By the UID of the account.
    accounts: Arc<Mutex<HashMap<String, Weak<OfAccount>>>>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let sent = Family::<CallLabels, Counter>::default();
        let text =
            "Requests to the platform, by call, outcome (ok, or the fault) and account (its UID)";
        registry.register("platform_requests", text, sent.clone());
        let seconds = Family::<Timed, Histogram>::new_with_constructor(durations);
        let text = "How long requests to the platform took, from the first byte sent to the last byte read, by call and outcome";
        registry.register_with_unit(
            "platform_request_duration",
            text,
            Unit::Seconds,
            seconds.clone(),
        );
        Self {
            sent,
            seconds,
            accounts: Arc::default(),
        }
    }

    /// Records the requests of the account with this UID. Its series are removed when no client
    /// uses it any more.
    pub fn of_account(&self, uid: &str) -> Arc<dyn Meter> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts.get(uid).and_then(Weak::upgrade) {
            return known;
        }
        accounts.retain(|_, known| known.strong_count() > 0);
        let (sent, seconds) = (self.sent.clone(), self.seconds.clone());
        let made = Arc::new(OfAccount {
            sent,
            seconds,
            account: uid.into(),
            calls: Mutex::default(),
        });
        accounts.insert(uid.to_owned(), Arc::downgrade(&made));
        made
    }
}

struct OfAccount {
    sent: Family<CallLabels, Counter>,
    seconds: Family<Timed, Histogram>,
    account: Arc<str>,
    /// The calls and outcomes that have a series.
    calls: Mutex<BTreeSet<(&'static str, &'static str)>>,
}

impl fmt::Debug for OfAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OfAccount").field(&self.account).finish()
    }
}

impl Drop for OfAccount {
    fn drop(&mut self) {
        for (call, outcome) in self
            .calls
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
        {
            self.sent.remove(&CallLabels {
                call,
                outcome,
                account: Arc::clone(&self.account),
            });
        }
    }
}

impl Meter for OfAccount {
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((call, outcome));
        self.sent
            .get_or_create(&CallLabels {
                call,
                outcome,
                account: Arc::clone(&self.account),
            })
            .inc();
        self.seconds
            .get_or_create(&Timed { call, outcome })
            .observe(seconds);
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::Metrics;

    #[test]
    fn accounts_that_come_and_go_leave_no_series() {
        let metrics = Metrics::default();
        let lines = || metrics.text().unwrap().lines().count();
        let called = |uid: &str| {
            let meter = metrics.requests.of_account(uid);
            meter.call("list_projects", "ok", 0.1);
            meter.call("list_computes", "server", 0.1);
            meter
        };
        let stays = called("stays");
        let before = lines();
        for number in 0..300 {
            let gone = called(&format!("account-{number}"));
            assert_eq!(lines(), before + 2);
            drop(gone);
        }
        assert_eq!(lines(), before);
        // Another key creates another client of the same account.
        let again = called("stays");
        drop(stays);
        let sent = r#"dbplane_platform_requests_total{call="list_projects",outcome="ok",account="stays"} 2"#;
        assert!(metrics.text().unwrap().contains(sent));
        drop(again);
        drop(called("another"));
        assert_eq!(
            metrics.requests.accounts.lock().unwrap().len(),
            1,
            "who is gone is forgotten when the next one comes"
        );
    }
}
