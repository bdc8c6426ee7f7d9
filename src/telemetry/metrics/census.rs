//! Metrics that are computed only on request: the states of resources, accounts, their budgets,
//! lists and keys.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::bound::{ACCOUNT, AccountLabels, Series};
use super::gathered::{About, Gathered, Merge};
use super::left::{PAUSE, REQUESTS_LEFT};
use crate::platform::BudgetFigures;

/// The current counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    pub kinds: Vec<KindCensus>,
    /// The oldest first: when a namespace has too many, these are named.
    pub accounts: Vec<AccountCensus>,
    pub keys: Vec<AccountKeys>,
}

/// The resources of a kind in a namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindCensus {
    /// Empty for a kind without namespaces.
    pub namespace: String,
    pub kind: String,
    /// Number of resources, by status and reason of the condition Ready.
    pub ready: BTreeMap<(&'static str, &'static str), usize>,
    /// Number of stalled resources, by reason.
    pub stalled: BTreeMap<&'static str, usize>,
    /// Number of resources that differ from their spec, by reason of the condition Synced.
    pub unsynced: BTreeMap<&'static str, usize>,
    /// Number of healthy resources that wait, by the reason for the wait.
    pub waiting: BTreeMap<&'static str, usize>,
    /// Number of stored resources that cannot be read.
    pub unreadable: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountCensus {
    pub labels: AccountLabels,
    /// True if the condition Ready is, and its reason.
    pub ready: (bool, &'static str),
    /// `None` without its credentials.
    pub connected: Option<ConnectedAccount>,
    /// The start of its oldest reading, in seconds since 1970, by type of list.
    pub oldest: BTreeMap<&'static str, i64>,
    /// Number of unreadable entries, by type of list.
    pub unreadable: BTreeMap<&'static str, usize>,
    /// The number of all keys of its organization, if it is known.
    pub organization_keys: Option<usize>,
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

/// The keys of the ProjectKeys of a namespace, by account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountKeys {
    namespace: String,
    kind: String,
    account: String,
    states: BTreeMap<KeyStage, KeysInState>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeysInState {
    count: i64,
    /// Since when the oldest key is in this state, in seconds since 1970.
    oldest: Option<i64>,
}

impl AccountKeys {
    /// No keys so far. `namespace` is that of the ProjectKeys.
    pub fn of(namespace: &str, kind: &str, account: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            account: account.to_owned(),
            states: BTreeMap::new(),
        }
    }

    /// Counts a key that has been in this state since `since`.
    pub fn add(&mut self, state: KeyStage, since: Option<i64>) {
        let KeysInState { count, oldest } = self.states.entry(state).or_default();
        *count += 1;
        *oldest = oldest.iter().copied().chain(since).min();
    }

    fn states(&self) -> impl Iterator<Item = (Series<'_>, KeysInState)> {
        KeyStage::ALL.into_iter().map(move |state| {
            let series = Series {
                namespace: &self.namespace,
                labels: vec![
                    ("kind", &self.kind),
                    (ACCOUNT, &self.account),
                    ("state", state.label()),
                ],
            };
            (series, self.states.get(&state).copied().unwrap_or_default())
        })
    }
}

impl Census {
    pub(super) fn gather<'a>(&'a self, gathered: &mut Gathered<'a>) {
        resources(gathered, &self.kinds);
        accounts(gathered, &self.accounts);
        budgets(gathered, &self.accounts);
        waiting(gathered, &self.accounts);
        keys(gathered, &self.keys);
    }

    /// The namespaces that have resources.
    pub(super) fn namespaces(&self) -> HashSet<&str> {
        self.kinds.iter().map(|of| of.namespace.as_str()).collect()
    }
}

impl KindCensus {
    fn series<'a>(&'a self, labels: &[(&'static str, &'a str)]) -> Series<'a> {
        let mut all = vec![("kind", self.kind.as_str())];
        all.extend(labels);
        Series {
            namespace: &self.namespace,
            labels: all,
        }
    }
}

fn resources<'a>(gathered: &mut Gathered<'a>, kinds: &'a [KindCensus]) {
    let text = "Resources, by namespace, kind and by status and reason of the condition Ready";
    let ready = kinds.iter().flat_map(|of| {
        of.ready.iter().map(move |((ready, reason), count)| {
            (of.series(&[("ready", ready), ("reason", reason)]), *count)
        })
    });
    gathered.add(About::gauge("resources", text), ready);
    let text =
        "Resources that need attention, by namespace, kind and by reason of the condition Stalled";
    let stalled = by_reason(kinds, |of| &of.stalled);
    gathered.add(About::gauge("stalled_resources", text), stalled);
    let text = "Resources of which something declared is not in force, by namespace, kind and by reason of the condition Synced; \
                StrayCompute also beside another reason";
    let unsynced = by_reason(kinds, |of| &of.unsynced);
    gathered.add(About::gauge("unsynced_resources", text), unsynced);
    let text = "Resources that wait for a declared time or for a person although nothing is wrong with them, by namespace, kind and reason";
    let waiting = by_reason(kinds, |of| &of.waiting);
    gathered.add(About::gauge("waiting_resources", text), waiting);
    let text = "Stored resources that cannot be read, by namespace and kind";
    let unreadable = kinds.iter().map(|of| (of.series(&[]), of.unreadable));
    gathered.add(About::gauge("unreadable_resources", text), unreadable);
}

fn by_reason<'a>(
    kinds: &'a [KindCensus],
    counts: impl Fn(&'a KindCensus) -> &'a BTreeMap<&'static str, usize>,
) -> impl Iterator<Item = (Series<'a>, usize)> {
    kinds.iter().flat_map(move |of| {
        counts(of)
            .iter()
            .map(move |(reason, count)| (of.series(&[("reason", reason)]), *count))
    })
}

impl AccountCensus {
    fn series<'a>(&'a self, label: Option<(&'static str, &'a str)>) -> Series<'a> {
        let AccountLabels {
            namespace,
            kind,
            name,
        } = &self.labels;
        let mut labels = vec![("kind", kind.as_str()), (ACCOUNT, name.as_str())];
        labels.extend(label);
        Series { namespace, labels }
    }
}

fn accounts<'a>(gathered: &mut Gathered<'a>, accounts: &'a [AccountCensus]) {
    let info = accounts.iter().map(|account| (account.series(None), 1_u32));
    let text = "1 for each account: its namespace, kind and name";
    gathered.add(About::gauge("account_info", text), info);
    let text = "1 for each account whose condition Ready is True, 0 for the others, by account and by reason of the condition";
    let ready = accounts.iter().map(|account| {
        let (is_ready, reason) = account.ready;
        (
            account.series(Some(("reason", reason))),
            u32::from(is_ready),
        )
    });
    gathered.add(
        About::gauge("account_ready", text).merged(Merge::Least),
        ready,
    );
    let text = "When the oldest of the readings that dbplane works with began, in seconds since 1970, by account and by what the lists \
                are of: project (its computes) or organization (its keys)";
    let about = About::gauge("oldest_snapshot_timestamp", text).in_seconds();
    let oldest = by_list(accounts, |account| &account.oldest);
    gathered.add(about.merged(Merge::Least), oldest);
    let text = "Entries of the platform's lists that dbplane cannot read, by account and by what the lists are of: project (its computes) \
                or organization (its keys)";
    let unreadable = by_list(accounts, |account| &account.unreadable);
    gathered.add(About::gauge("unreadable_entries", text), unreadable);
    let text = "All API keys of the organization of an account, where the platform lists them";
    let counted = accounts.iter().filter_map(|account| {
        let count = account.organization_keys?;
        Some((account.series(None), count))
    });
    gathered.add(About::gauge("organization_keys", text), counted);
}

fn by_list<'a, V: Copy + 'static>(
    accounts: &'a [AccountCensus],
    values: impl Fn(&'a AccountCensus) -> &'a BTreeMap<&'static str, V>,
) -> impl Iterator<Item = (Series<'a>, V)> {
    accounts.iter().flat_map(move |account| {
        values(account)
            .iter()
            .map(move |(list, value)| (account.series(Some(("list", list))), *value))
    })
}

fn connected(
    accounts: &[AccountCensus],
) -> impl Iterator<Item = (&AccountCensus, &ConnectedAccount)> {
    accounts
        .iter()
        .filter_map(|account| Some((account, account.connected.as_ref()?)))
}

fn budgets<'a>(gathered: &mut Gathered<'a>, accounts: &'a [AccountCensus]) {
    let of = |value: fn(&ConnectedAccount) -> f64| {
        connected(accounts).map(move |(account, known)| (account.series(None), value(known)))
    };
    let counted = |value: fn(&ConnectedAccount) -> u32| {
        connected(accounts).map(move |(account, known)| (account.series(None), value(known)))
    };
    let text = "The time between two reads of a project while nothing changes, by account";
    let about = About::gauge("poll_interval", text).in_seconds();
    let intervals = of(|known| known.poll_interval.as_secs_f64());
    gathered.add(about.merged(Merge::Most), intervals);
    let text = "Requests to the platform that are allowed in any minute, by account";
    let allowed = counted(|known| known.budget.requests_per_minute);
    gathered.add(About::gauge("budget_requests_per_minute", text), allowed);
    let text = "Requests that may be made at once, by account; 0 during a pause";
    let left = counted(|known| known.budget.left);
    gathered.add(About::gauge(REQUESTS_LEFT, text), left);
    let text = "How long no request may be made because the platform asked for fewer (429, Retry-After), by account; 0 where there is no \
                pause";
    let about = About::gauge(PAUSE, text).in_seconds();
    let pauses = of(|known| known.budget.pause.as_secs_f64());
    gathered.add(about.merged(Merge::Most), pauses);
}

fn waiting<'a>(gathered: &mut Gathered<'a>, accounts: &'a [AccountCensus]) {
    let all = || {
        connected(accounts).flat_map(|(account, known)| {
            known.budget.waits.iter().map(move |waits| {
                let priority = ("priority", waits.priority.name());
                (account.series(Some(priority)), waits)
            })
        })
    };
    let text = "Requests that wait for the budget, by account and priority: change, fresh_read (somebody waits for what it reads), poll or \
                early_poll";
    let waiting = all().map(|(series, waits)| (series, waits.waiting));
    gathered.add(About::gauge("budget_waiting_requests", text), waiting);
    let text =
        "How long requests have waited for the budget, all together, by account and priority";
    let waited = all().map(|(series, waits)| (series, waits.waited.as_secs_f64()));
    gathered.add(About::counter("budget_waited", text).in_seconds(), waited);
}

fn keys<'a>(gathered: &mut Gathered<'a>, keys: &'a [AccountKeys]) {
    let all = || keys.iter().flat_map(AccountKeys::states);
    let text = "API keys of ProjectKeys, by their namespace, account and state: in_use, previous (replaced, and still valid) or lost (for a \
                user to revoke)";
    let counts = all().map(|(series, keys)| (series, keys.count));
    gathered.add(About::gauge("keys", text), counts);
    let text = "Since when the oldest key is in its state, in seconds since 1970, by namespace, account and state";
    let oldest = all().filter_map(|(series, keys)| Some((series, keys.oldest?)));
    let about = About::gauge("oldest_key_timestamp", text).in_seconds();
    gathered.add(about.merged(Merge::Least), oldest);
}

#[cfg(test)]
mod tests;
