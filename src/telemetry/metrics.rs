//! Metrics, in OpenMetrics text. Labels are from closed sets; none contains the name of an object.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKeys {
    account: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfAccount {
    account: String,
}

/// What state a key of a ProjectKey is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyState {
    InUse,
    /// Replaced, and still valid.
    Previous,
    /// For a person to revoke.
    Lost,
}

impl KeyState {
    const ALL: [Self; 3] = [Self::InUse, Self::Previous, Self::Lost];

    fn label(self) -> &'static str {
        match self {
            Self::InUse => "in_use",
            Self::Previous => "previous",
            Self::Lost => "lost",
        }
    }
}

/// The keys of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountKeys {
    /// Its UID: names are in no label.
    account: String,
    /// All keys of its organization, where that is known.
    organization: Option<usize>,
    /// How many there are, and since when the oldest is in this state, in seconds since 1970.
    states: BTreeMap<KeyState, (i64, Option<i64>)>,
}

impl AccountKeys {
    /// No key of an account yet.
    pub fn of(account: String, organization: Option<usize>) -> Self {
        Self { account, organization, states: BTreeMap::new() }
    }

    /// Counts a key that is in this state since then.
    pub fn add(&mut self, state: KeyState, since: Option<i64>) {
        let (count, oldest) = self.states.entry(state).or_default();
        *count += 1;
        *oldest = oldest.iter().copied().chain(since).min();
    }
}

type Census = Box<dyn Fn() -> Vec<AccountKeys> + Send + Sync>;

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
    keys: Family<OfKeys, Gauge>,
    oldest_key: Family<OfKeys, Gauge>,
    organization_keys: Family<OfAccount, Gauge>,
    /// Counts the keys whenever somebody wants to know.
    census: OnceLock<Census>,
    /// One who wants to know after the other.
    counting: Mutex<()>,
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
        let keys = Family::<OfKeys, Gauge>::default();
        registry.register("keys", "API keys of ProjectKeys, by account (its UID) and state", keys.clone());
        let oldest_key = Family::<OfKeys, Gauge>::default();
        let text = "Since when the oldest key is in its state, by account (its UID) and state";
        registry.register_with_unit("oldest_key_timestamp", text, Unit::Seconds, oldest_key.clone());
        let organization_keys = Family::<OfAccount, Gauge>::default();
        let text = "All API keys of the organization of an account (its UID), where the platform lists them";
        registry.register("organization_keys", text, organization_keys.clone());
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
            keys,
            oldest_key,
            organization_keys,
            census: OnceLock::new(),
            counting: Mutex::new(()),
        }
    }
}

impl Metrics {
    /// Everything, as OpenMetrics text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let _one_at_a_time = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        self.count_keys();
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// From now on `census` counts the keys.
    pub fn keys_are_counted_by(&self, census: impl Fn() -> Vec<AccountKeys> + Send + Sync + 'static) {
        // The first one counts for the life of the process.
        let _ = self.census.set(Box::new(census));
    }

    fn count_keys(&self) {
        let Some(census) = self.census.get() else { return };
        self.keys.clear();
        self.oldest_key.clear();
        self.organization_keys.clear();
        for AccountKeys { account, organization, states } in census() {
            for state in KeyState::ALL {
                let (count, oldest) = states.get(&state).copied().unwrap_or_default();
                let label = OfKeys { account: account.clone(), state: state.label() };
                self.keys.get_or_create(&label).set(count);
                if let Some(oldest) = oldest {
                    self.oldest_key.get_or_create(&label).set(oldest);
                }
            }
            if let Some(count) = organization.and_then(|count| i64::try_from(count).ok()) {
                self.organization_keys.get_or_create(&OfAccount { account }).set(count);
            }
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn keys_are_counted_when_somebody_wants_to_know() {
        let known = Arc::new(Mutex::new(Vec::new()));
        let metrics = Metrics::default();
        let shared = Arc::clone(&known);
        metrics.keys_are_counted_by(move || shared.lock().unwrap().clone());
        let mut one = AccountKeys::of("uid-1".to_owned(), Some(7));
        for (state, since) in [(KeyState::InUse, Some(30)), (KeyState::InUse, Some(20)), (KeyState::Lost, None)] {
            one.add(state, since);
        }
        known.lock().unwrap().push(one);
        let text = metrics.text().unwrap();
        for line in [
            r#"dbplane_keys{account="uid-1",state="in_use"} 2"#,
            r#"dbplane_keys{account="uid-1",state="previous"} 0"#,
            r#"dbplane_keys{account="uid-1",state="lost"} 1"#,
            r#"dbplane_oldest_key_timestamp_seconds{account="uid-1",state="in_use"} 20"#,
            r#"dbplane_organization_keys{account="uid-1"} 7"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains(r#"timestamp_seconds{account="uid-1",state="lost"}"#));
        known.lock().unwrap().clear();
        assert!(!metrics.text().unwrap().contains("uid-1"), "an account without keys is not counted any more");
    }
}
