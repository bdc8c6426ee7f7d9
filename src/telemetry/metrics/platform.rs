//! Metrics of requests to the platform.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::bound::ACCOUNT;
use super::bound::AccountLabels;
use super::counters::Counters;
use super::durations;
use crate::platform::Meter;

/// Has no account label, because a histogram has 17 series per label set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Timed {
    call: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug)]
pub struct Requests {
    pub(super) sent: Arc<Counters>,
    seconds: Family<Timed, Histogram>,
    accounts: Arc<Mutex<HashMap<AccountLabels, Weak<OfAccount>>>>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let sent = Counters::new(
            "platform_requests",
            &["kind", ACCOUNT, "call", "outcome"],
            "Requests to the platform, by account, call and outcome (ok, or the fault)",
        );
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

    /// Records the requests of this account. Its series are removed when no client uses it any
    /// more.
    pub fn of_account(&self, account: AccountLabels) -> Arc<dyn Meter> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts.get(&account).and_then(Weak::upgrade) {
            return known;
        }
        accounts.retain(|_, known| known.strong_count() > 0);
        let made = Arc::new(OfAccount {
            sent: Arc::clone(&self.sent),
            seconds: self.seconds.clone(),
            account: account.clone(),
        });
        accounts.insert(account, Arc::downgrade(&made));
        made
    }
}

struct OfAccount {
    sent: Arc<Counters>,
    seconds: Family<Timed, Histogram>,
    account: AccountLabels,
}

impl fmt::Debug for OfAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OfAccount").field(&self.account).finish()
    }
}

impl Drop for OfAccount {
    fn drop(&mut self) {
        let AccountLabels {
            namespace,
            kind,
            name,
        } = &self.account;
        self.sent.remove(namespace, &[kind.clone(), name.clone()]);
    }
}

impl Meter for OfAccount {
    fn call(&self, call: &'static str, outcome: &'static str, seconds: f64) {
        let AccountLabels {
            namespace,
            kind,
            name,
        } = &self.account;
        self.sent.add(namespace, &[kind, name, call, outcome]);
        self.seconds
            .get_or_create(&Timed { call, outcome })
            .observe(seconds);
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::Metrics;
    use crate::telemetry::metrics::AccountLabels;

    #[test]
    fn accounts_that_come_and_go_leave_no_series() {
        let metrics = Metrics::default();
        let lines = || metrics.text().unwrap().lines().count();
        let called = |name: &str| {
            let account = AccountLabels {
                namespace: "shop".to_owned(),
                kind: "Account".to_owned(),
                name: name.to_owned(),
            };
            let meter = metrics.requests.of_account(account);
            meter.call("list_projects", "ok", 0.1);
            meter.call("list_computes", "server", 0.1);
            meter
        };
        let stays = called("stays");
        let before = lines();
        for number in 0..50 {
            let gone = called(&format!("account-{number}"));
            assert_eq!(lines(), before + 2);
            drop(gone);
        }
        assert_eq!(lines(), before);
        // Another key creates another client of the same account.
        let again = called("stays");
        drop(stays);
        let sent = r#"dbplane_platform_requests_total{namespace="shop",kind="Account",account="stays",call="list_projects",outcome="ok"} 2"#;
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
