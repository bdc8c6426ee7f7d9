//! Metrics that are computed only on request: the states of resources, accounts, their budgets,
//! lists and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::left::{PAUSE, REQUESTS_LEFT};
use crate::platform::BudgetFigures;

/// The current counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    pub kinds: Vec<KindCensus>,
    pub accounts: Vec<AccountCensus>,
    pub keys: Vec<AccountKeys>,
}

/// The resources of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindCensus {
    pub kind: String,
    /// Number of resources, by status and reason of the condition Ready.
    pub ready: BTreeMap<(&'static str, &'static str), usize>,
    /// Number of stalled resources, by reason.
    pub stalled: BTreeMap<&'static str, usize>,
    /// Number of resources that differ from their spec, by reason of the condition Synced.
    pub unsynced: BTreeMap<&'static str, usize>,
    /// Number of healthy resources that wait, by the reason for the wait.
    pub waiting: BTreeMap<&'static str, usize>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountCensus {
    /// The UID, because labels contain no names.
    pub uid: String,
    pub kind: String,
    /// `None` without its credentials.
    pub connected: Option<ConnectedAccount>,
    /// The start of its oldest reading, in seconds since 1970, by type of list.
    pub oldest: BTreeMap<&'static str, i64>,
    /// Number of unreadable entries, by type of list.
    pub unreadable: BTreeMap<&'static str, usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConnectedAccount {
    pub poll_interval: Duration,
    pub budget: BudgetFigures,
}

/// The state of a ProjectKey's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyStage {
    InUse,
    /// Replaced, and still valid.
    Previous,
    /// A user has to revoke it.
    Lost,
}

impl KeyStage {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountKeys {
    /// The UID of the account.
    account: String,
    /// The number of all keys of its organization, if it is known.
    organization: Option<usize>,
    states: BTreeMap<KeyStage, KeysInState>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeysInState {
    count: i64,
    /// Since when the oldest key is in this state, in seconds since 1970.
    oldest: Option<i64>,
}

/// Label names and values.
type Labels<'a> = [(&'static str, &'a str); 2];

impl AccountKeys {
    /// An account without keys so far.
    pub fn of(account: String, organization: Option<usize>) -> Self {
        Self {
            account,
            organization,
            states: BTreeMap::new(),
        }
    }

    /// Counts a key that has been in this state since `since`.
    pub fn add(&mut self, state: KeyStage, since: Option<i64>) {
        let KeysInState { count, oldest } = self.states.entry(state).or_default();
        *count += 1;
        *oldest = oldest.iter().copied().chain(since).min();
    }

    fn states(&self) -> impl Iterator<Item = (Labels<'_>, KeysInState)> {
        KeyStage::ALL.into_iter().map(move |state| {
            let labels = [("account", self.account.as_str()), ("state", state.label())];
            (labels, self.states.get(&state).copied().unwrap_or_default())
        })
    }
}

/// Exposes the counts of the function that it is given.
#[derive(Default)]
pub struct Counted(OnceLock<Box<dyn Fn() -> Census + Send + Sync>>);

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").finish_non_exhaustive()
    }
}

impl Counted {
    /// From now on, `census` computes the counts.
    pub fn by(&self, census: impl Fn() -> Census + Send + Sync + 'static) {
        // The first function is kept for the life of the process.
        let _ = self.0.set(Box::new(census));
    }
}

impl Collector for Counted {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let Some(census) = self.0.get().map(|count| count()) else {
            return Ok(());
        };
        let mut exposed = Exposed(encoder);
        resources(&mut exposed, &census.kinds)?;
        accounts(&mut exposed, &census.accounts)?;
        keys(&mut exposed, &census.keys)
    }
}

fn resources(exposed: &mut Exposed, kinds: &[KindCensus]) -> fmt::Result {
    let text = "Resources, by kind and by status and reason of the condition Ready";
    let ready = kinds.iter().flat_map(|of| {
        of.ready.iter().map(move |((ready, reason), count)| {
            let kind = of.kind.as_str();
            let labels = [("kind", kind), ("ready", *ready), ("reason", *reason)];
            (labels, *count)
        })
    });
    exposed.gauges("resources", None, text, ready)?;
    let text = "Resources that need a person, by kind and by reason of the condition Stalled";
    exposed.gauges(
        "stalled_resources",
        None,
        text,
        by_reason(kinds, |of| &of.stalled),
    )?;
    let text = "Resources of which something declared is not in force, by kind and by reason of the condition Synced; StrayCompute also beside another reason";
    exposed.gauges(
        "unsynced_resources",
        None,
        text,
        by_reason(kinds, |of| &of.unsynced),
    )?;
    let text = "Resources that wait for a declared time or for a person although nothing is wrong with them, by kind and reason";
    exposed.gauges(
        "waiting_resources",
        None,
        text,
        by_reason(kinds, |of| &of.waiting),
    )
}

fn by_reason(
    kinds: &[KindCensus],
    counts: impl Fn(&KindCensus) -> &BTreeMap<&'static str, usize>,
) -> impl Iterator<Item = (Labels<'_>, usize)> {
    kinds.iter().flat_map(move |of| {
        counts(of)
            .iter()
            .map(move |(reason, count)| ([("kind", of.kind.as_str()), ("reason", *reason)], *count))
    })
}

fn accounts(exposed: &mut Exposed, accounts: &[AccountCensus]) -> fmt::Result {
    let info = accounts
        .iter()
        .map(|account| ([("account", &account.uid), ("kind", &account.kind)], 1_u32));
    exposed.gauges(
        "account_info",
        None,
        "1 for each account: its UID and its kind",
        info,
    )?;
    let text = "When the oldest of the readings that dbplane works with began, in seconds since 1970, by account (its UID) and by what the \
                lists are of: project (its computes) or organization (its keys)";
    exposed.gauges(
        "oldest_snapshot_timestamp",
        Some(&Unit::Seconds),
        text,
        by_list(accounts, |account| &account.oldest),
    )?;
    let text = "Entries of the platform's lists that dbplane cannot read, by account (its UID) and by what the lists are of: project (its \
                computes) or organization (its keys)";
    exposed.gauges(
        "unreadable_entries",
        None,
        text,
        by_list(accounts, |account| &account.unreadable),
    )?;
    budgets(exposed, accounts)?;
    waiting(exposed, accounts)
}

fn by_list<V: Copy + 'static>(
    accounts: &[AccountCensus],
    values: impl Fn(&AccountCensus) -> &BTreeMap<&'static str, V>,
) -> impl Iterator<Item = (Labels<'_>, V)> {
    accounts.iter().flat_map(move |account| {
        values(account).iter().map(move |(list, value)| {
            ([("account", account.uid.as_str()), ("list", *list)], *value)
        })
    })
}

fn budgets(exposed: &mut Exposed, accounts: &[AccountCensus]) -> fmt::Result {
    let mut intervals = Vec::new();
    let mut allowed = Vec::new();
    let mut left = Vec::new();
    let mut pauses = Vec::new();
    for account in accounts {
        let Some(ConnectedAccount {
            poll_interval,
            budget,
        }) = &account.connected
        else {
            continue;
        };
        let labels = [("account", account.uid.as_str())];
        intervals.push((labels, poll_interval.as_secs_f64()));
        allowed.push((labels, budget.requests_per_minute));
        left.push((labels, budget.left));
        pauses.push((labels, budget.pause.as_secs_f64()));
    }
    let seconds = Some(&Unit::Seconds);
    let text =
        "The time between two reads of a project while nothing changes, by account (its UID)";
    exposed.gauges("poll_interval", seconds, text, intervals)?;
    let text = "Requests to the platform that are allowed in any minute, by account (its UID)";
    exposed.gauges("budget_requests_per_minute", None, text, allowed)?;
    let text = "Requests that may be made at once, by account (its UID); 0 during a pause";
    exposed.gauges(REQUESTS_LEFT, None, text, left)?;
    let text = "How long no request may be made because the platform asked for fewer (429, Retry-After), by account (its UID); 0 where \
                there is no pause";
    exposed.gauges(PAUSE, seconds, text, pauses)
}

fn waiting(exposed: &mut Exposed, accounts: &[AccountCensus]) -> fmt::Result {
    let mut waiting = Vec::new();
    let mut waited = Vec::new();
    for account in accounts {
        let Some(connected) = &account.connected else {
            continue;
        };
        for waits in &connected.budget.waits {
            let labels = [
                ("account", account.uid.as_str()),
                ("priority", waits.priority.name()),
            ];
            waiting.push((labels, waits.waiting));
            waited.push((labels, waits.waited.as_secs_f64()));
        }
    }
    let text = "Requests that wait for the budget, by account (its UID) and priority: change, fresh_read (somebody waits for what it reads), \
                poll or early_poll";
    exposed.gauges("budget_waiting_requests", None, text, waiting)?;
    let text = "How long requests have waited for the budget, all together, by account (its UID) and priority";
    exposed.second_counters("budget_waited", text, waited)
}

fn keys(exposed: &mut Exposed, accounts: &[AccountKeys]) -> fmt::Result {
    let mut counts = Vec::new();
    let mut oldest = Vec::new();
    let mut all = Vec::new();
    for of in accounts {
        for (labels, keys) in of.states() {
            counts.push((labels, keys.count));
            oldest.extend(keys.oldest.map(|since| (labels, since)));
        }
        all.extend(
            of.organization
                .map(|count| ([("account", of.account.as_str())], count)),
        );
    }
    let text = "API keys of ProjectKeys, by account (its UID) and state: in_use, previous (replaced, and still valid) or lost (for a person \
                to revoke)";
    exposed.gauges("keys", None, text, counts)?;
    let text = "Since when the oldest key is in its state, in seconds since 1970, by account (its UID) and state";
    exposed.gauges("oldest_key_timestamp", Some(&Unit::Seconds), text, oldest)?;
    let text =
        "All API keys of the organization of an account (its UID), where the platform lists them";
    exposed.gauges("organization_keys", None, text, all)
}

struct Exposed<'a>(DescriptorEncoder<'a>);

impl Exposed<'_> {
    /// `name` has no prefix and no unit.
    fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        unit: Option<&Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in samples {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Counters in seconds.
    fn second_counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: Vec<(L, f64)>,
    ) -> fmt::Result {
        let mut metric =
            self.0
                .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?;
        for (labels, value) in samples {
            metric
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::telemetry::metrics::{BudgetLeft, Metrics};

    fn keys() -> AccountKeys {
        let mut keys = AccountKeys::of("uid-1".to_owned(), Some(7));
        keys.add(KeyStage::InUse, Some(30));
        keys.add(KeyStage::InUse, Some(20));
        keys.add(KeyStage::Lost, None);
        keys
    }

    fn computes() -> KindCensus {
        KindCensus {
            kind: "Compute".to_owned(),
            ready: [(("True", "Available"), 3), (("False", "Refused"), 1)].into(),
            stalled: [("Refused", 1)].into(),
            unsynced: [("DriftPersists", 2)].into(),
            waiting: [("DeletionPaused", 2), ("WaitingForDisruption", 0)].into(),
        }
    }

    /// An account whose credentials are missing, and another one during a pause.
    fn accounts() -> Vec<AccountCensus> {
        let without_credentials = AccountCensus {
            uid: "uid-1".to_owned(),
            oldest: [("project", 1000)].into(),
            unreadable: [("project", 2)].into(),
            ..AccountCensus::default()
        };
        let budget = BudgetFigures {
            requests_per_minute: 600,
            left: 0,
            pause: Duration::from_millis(12_500),
            waits: Vec::new(),
        };
        let paused = AccountCensus {
            uid: "uid-2".to_owned(),
            connected: Some(ConnectedAccount {
                poll_interval: Duration::from_secs(60),
                budget,
            }),
            ..AccountCensus::default()
        };
        vec![without_credentials, paused]
    }

    /// The metrics, and the census that they show.
    fn metrics() -> (Metrics, Arc<Mutex<Census>>) {
        let census = Arc::new(Mutex::new(Census {
            kinds: vec![computes()],
            accounts: accounts(),
            keys: vec![keys()],
        }));
        let metrics = Metrics::default();
        let shared = Arc::clone(&census);
        metrics.counted.by(move || shared.lock().unwrap().clone());
        (metrics, census)
    }

    #[test]
    fn resources_accounts_and_keys_are_counted_on_request() {
        let (metrics, census) = metrics();
        let text = metrics.text().unwrap();
        for line in [
            r#"dbplane_resources{kind="Compute",ready="True",reason="Available"} 3"#,
            r#"dbplane_stalled_resources{kind="Compute",reason="Refused"} 1"#,
            r#"dbplane_unsynced_resources{kind="Compute",reason="DriftPersists"} 2"#,
            r#"dbplane_waiting_resources{kind="Compute",reason="DeletionPaused"} 2"#,
            r#"dbplane_waiting_resources{kind="Compute",reason="WaitingForDisruption"} 0"#,
            r#"dbplane_oldest_snapshot_timestamp_seconds{account="uid-1",list="project"} 1000"#,
            r#"dbplane_unreadable_entries{account="uid-1",list="project"} 2"#,
            r#"dbplane_keys{account="uid-1",state="in_use"} 2"#,
            r#"dbplane_keys{account="uid-1",state="previous"} 0"#,
            r#"dbplane_keys{account="uid-1",state="lost"} 1"#,
            r#"dbplane_oldest_key_timestamp_seconds{account="uid-1",state="in_use"} 20"#,
            r#"dbplane_organization_keys{account="uid-1"} 7"#,
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing:\n{text}"
            );
        }
        assert!(!text.contains(r#"key_timestamp_seconds{account="uid-1",state="lost"}"#));
        *census.lock().unwrap() = Census::default();
        assert!(
            !metrics.text().unwrap().contains("uid-1"),
            "an account that is gone is not counted any more"
        );
    }

    #[test]
    fn the_text_shows_what_is_left_of_a_budget() {
        let text = metrics().0.text().unwrap();
        let left = BudgetLeft::of(&text, "uid-2").unwrap();
        assert_eq!(
            left,
            BudgetLeft {
                requests: 0,
                pause_seconds: 12.5
            }
        );
        assert_eq!(
            left.to_string(),
            "none for 13 s: the platform asked for a pause"
        );
        assert_eq!(
            BudgetLeft::of(&text, "uid-1"),
            None,
            "nothing is known of its budget"
        );
    }
}
