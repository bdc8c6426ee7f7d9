//! Metrics that are computed only on request: the states of resources, accounts, their budgets,
//! lists and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder, NoLabelSet,
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
    /// The poll interval and the budget, if its credentials are available.
    pub connected: Option<(Duration, BudgetFigures)>,
    /// The start of its oldest reading, in seconds since 1970, by type of list.
    pub oldest: BTreeMap<&'static str, i64>,
    /// Number of unreadable entries, by type of list.
    pub unreadable: BTreeMap<&'static str, usize>,
}

/// The state of a ProjectKey's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyState {
    InUse,
    /// Replaced, and still valid.
    Previous,
    /// A user has to revoke it.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountKeys {
    /// The UID of the account.
    account: String,
    /// The number of all keys of its organization, if it is known.
    organization: Option<usize>,
    states: BTreeMap<KeyState, KeysInState>,
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
    pub fn add(&mut self, state: KeyState, since: Option<i64>) {
        let KeysInState { count, oldest } = self.states.entry(state).or_default();
        *count += 1;
        *oldest = oldest.iter().copied().chain(since).min();
    }

    fn states(&self) -> impl Iterator<Item = (Labels<'_>, KeysInState)> {
        KeyState::ALL.into_iter().map(move |state| {
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
        let labels = |ready, reason| {
            [
                ("kind", of.kind.as_str()),
                ("ready", ready),
                ("reason", reason),
            ]
        };
        of.ready
            .iter()
            .map(move |((ready, reason), count)| (labels(*ready, *reason), *count))
    });
    exposed.gauges("resources", text, ready)?;
    let text = "Resources that need a person, by kind and by reason of the condition Stalled";
    exposed.gauges(
        "stalled_resources",
        text,
        by_reason(kinds, |of| &of.stalled),
    )?;
    let text = "Resources of which something declared is not in force, by kind and by reason of the condition Synced; StrayCompute also beside another reason";
    exposed.gauges(
        "unsynced_resources",
        text,
        by_reason(kinds, |of| &of.unsynced),
    )?;
    let text = "Resources that wait for a declared time or for a person although nothing is wrong with them, by kind and reason";
    exposed.gauges(
        "waiting_resources",
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
    let of = |account: &AccountCensus| [("account", account.uid.clone())];
    let info = accounts
        .iter()
        .map(|account| ([("account", &account.uid), ("kind", &account.kind)], 1_u32));
    exposed.gauges(
        "account_info",
        "1 for each account: its UID and its kind",
        info,
    )?;
    let text = "When the oldest of the readings that dbplane works with began, in seconds since 1970, by account (its UID) and by what the \
                lists are of: project (its computes) or organization (its keys)";
    let oldest = accounts.iter().flat_map(|account| {
        account
            .oldest
            .iter()
            .map(move |(list, at)| ([("account", account.uid.as_str()), ("list", *list)], *at))
    });
    exposed.second_gauges("oldest_snapshot_timestamp", text, oldest)?;
    let text = "Entries of the platform's lists that dbplane cannot read, by account (its UID) and by what the lists are of: project (its \
                computes) or organization (its keys)";
    let unreadable = accounts.iter().flat_map(|account| {
        account.unreadable.iter().map(move |(list, count)| {
            ([("account", account.uid.as_str()), ("list", *list)], *count)
        })
    });
    exposed.gauges("unreadable_entries", text, unreadable)?;
    let connected = || {
        accounts
            .iter()
            .filter_map(|it| it.connected.as_ref().map(|known| (it, known)))
    };
    let text =
        "The time between two reads of a project while nothing changes, by account (its UID)";
    let intervals =
        connected().map(|(account, (interval, _))| (of(account), interval.as_secs_f64()));
    exposed.second_gauges("poll_interval", text, intervals)?;
    let text = "Requests to the platform that are allowed in any minute, by account (its UID)";
    let allowed =
        connected().map(|(account, (_, budget))| (of(account), budget.requests_per_minute));
    exposed.gauges("budget_requests_per_minute", text, allowed)?;
    let text = "Requests that may be made at once, by account (its UID); 0 during a pause";
    let left = connected().map(|(account, (_, budget))| (of(account), budget.left));
    exposed.gauges(REQUESTS_LEFT, text, left)?;
    let text = "How long no request may be made because the platform asked for fewer (429, Retry-After), by account (its UID); 0 where \
                there is no pause";
    let pauses =
        connected().map(|(account, (_, budget))| (of(account), budget.pause.as_secs_f64()));
    exposed.second_gauges(PAUSE, text, pauses)?;
    waiting(exposed, accounts)
}

fn waiting(exposed: &mut Exposed, accounts: &[AccountCensus]) -> fmt::Result {
    let waits = || {
        accounts.iter().flat_map(|account| {
            let figures = account
                .connected
                .iter()
                .flat_map(|(_, budget)| &budget.waits);
            figures.map(move |waits| {
                (
                    [
                        ("account", account.uid.as_str()),
                        ("priority", waits.priority.name()),
                    ],
                    waits,
                )
            })
        })
    };
    let text = "Requests that wait for the budget, by account (its UID) and priority: change, fresh_read (somebody waits for what it reads), \
                poll or early_poll";
    exposed.gauges(
        "budget_waiting_requests",
        text,
        waits().map(|(labels, waits)| (labels, waits.waiting)),
    )?;
    let text = "How long requests have waited for the budget, all together, by account (its UID) and priority";
    let waited = waits().map(|(labels, waits)| (labels, waits.waited.as_secs_f64()));
    exposed.second_counters("budget_waited", text, waited)
}

fn keys(exposed: &mut Exposed, accounts: &[AccountKeys]) -> fmt::Result {
    let states = || accounts.iter().flat_map(AccountKeys::states);
    let text = "API keys of ProjectKeys, by account (its UID) and state: in_use, previous (replaced, and still valid) or lost (for a person \
                to revoke)";
    exposed.gauges(
        "keys",
        text,
        states().map(|(labels, keys)| (labels, keys.count)),
    )?;
    let text = "Since when the oldest key is in its state, in seconds since 1970, by account (its UID) and state";
    let oldest = states().filter_map(|(labels, keys)| Some((labels, keys.oldest?)));
    exposed.second_gauges("oldest_key_timestamp", text, oldest)?;
    let text =
        "All API keys of the organization of an account (its UID), where the platform lists them";
    let all = accounts
        .iter()
        .filter_map(|of| Some(([("account", of.account.as_str())], of.organization?)));
    exposed.gauges("organization_keys", text, all)
}

struct Exposed<'a>(DescriptorEncoder<'a>);

impl Exposed<'_> {
    /// `name` has no prefix and no unit.
    fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (L, V)>,
    ) -> fmt::Result {
        let metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        encode_gauges(metric, samples)
    }

    /// Gauges in seconds.
    fn second_gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (L, V)>,
    ) -> fmt::Result {
        let metric =
            self.0
                .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        encode_gauges(metric, samples)
    }

    /// Counters in seconds.
    fn second_counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (L, f64)>,
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

fn encode_gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
    mut metric: MetricEncoder<'_>,
    samples: impl Iterator<Item = (L, V)>,
) -> fmt::Result {
    for (labels, value) in samples {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::telemetry::metrics::{BudgetLeft, Metrics};

    fn keys() -> AccountKeys {
        let mut keys = AccountKeys::of("uid-1".to_owned(), Some(7));
        keys.add(KeyState::InUse, Some(30));
        keys.add(KeyState::InUse, Some(20));
        keys.add(KeyState::Lost, None);
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
            connected: Some((Duration::from_secs(60), budget)),
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
