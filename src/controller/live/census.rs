//! Counts resources and accounts for the metrics, each time the metrics are read.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use kube::Resource;
use kube::core::object::HasStatus;

use super::Live;
use crate::api::{Account, ClusterAccount, Condition, Known};
use crate::controller::account::AnyAccount;
use crate::controller::environment::{Kind, KindVisitor, Kinds, Lists};
use crate::controller::key;
use crate::controller::object::{AccountName, Rank, Status, namespace, rank};
use crate::controller::registry::AllKinds;
use crate::controller::state::{SharedConnection, Wait};
use crate::decide::Reason;
use crate::domain::Unreadable;
use crate::platform::{Keys, Listing, ProjectComputes, RateLimited};
use crate::telemetry::metrics::{
    AccountCensus, AccountLabels, Census, ConnectedAccount, KindCensus,
};

/// The label for a status or reason that this version does not know.
const OTHER: &str = "Other";

pub fn census(env: &Live) -> Census {
    let mut kinds = CountKinds {
        env,
        waiting: env.state.waiting(),
        kinds: Vec::new(),
    };
    AllKinds::each(&mut kinds);
    Census {
        kinds: kinds.kinds,
        accounts: accounts(env),
        keys: key::census(env),
    }
}

struct CountKinds<'a> {
    env: &'a Live,
    waiting: BTreeMap<Wait, usize>,
    kinds: Vec<KindCensus>,
}

impl KindVisitor for CountKinds<'_> {
    fn visit<K: Kind>(&mut self) {
        let objects = self.env.stores.all::<K::Object>();
        let mut namespaces = HashMap::<&str, Vec<&[Condition]>>::new();
        for object in &objects {
            let conditions = object.status().map(Status::conditions).unwrap_or_default();
            let of_namespace = namespaces.entry(namespace(object.as_ref())).or_default();
            of_namespace.push(conditions);
        }
        let mut unreadable = HashMap::<String, usize>::new();
        for meta in self.env.stores.unreadable::<K::Object>() {
            let namespace = meta.namespace.clone().unwrap_or_default();
            *unreadable.entry(namespace).or_default() += 1;
        }
        let kind = K::Object::kind(&());
        let mut waiting = HashMap::<&str, BTreeMap<&'static str, usize>>::new();
        for (wait, count) in self.waiting.iter().filter(|(wait, _)| wait.kind == kind) {
            let of_namespace = waiting.entry(&wait.namespace).or_default();
            of_namespace.insert(wait.reason.as_str(), *count);
        }
        let all: HashSet<&str> = namespaces
            .keys()
            .copied()
            .chain(unreadable.keys().map(String::as_str))
            .collect();
        for namespace in all {
            let conditions = namespaces.get(namespace).into_iter().flatten().copied();
            self.kinds.push(KindCensus {
                namespace: namespace.to_owned(),
                waiting: waiting.remove(namespace).unwrap_or_default(),
                unreadable: unreadable.get(namespace).copied().unwrap_or_default(),
                ..of_kind(kind.clone().into_owned(), conditions)
            });
        }
    }
}

/// Groups by the text first: thousands of resources share a few reasons, and only these are looked
/// up.
fn of_kind<'a>(kind: String, all: impl Iterator<Item = &'a [Condition]>) -> KindCensus {
    let mut ready = HashMap::<_, usize>::new();
    let (mut stalled, mut unsynced) = (HashMap::<_, usize>::new(), HashMap::<_, usize>::new());
    for conditions in all {
        let of = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
        let seen =
            of("Ready").map(|condition| (condition.status.as_str(), condition.reason.as_str()));
        *ready
            .entry(seen.unwrap_or(("Unknown", Reason::Pending.as_str())))
            .or_default() += 1;
        for (type_, status, reasons) in [
            ("Stalled", "True", &mut stalled),
            ("Synced", "False", &mut unsynced),
        ] {
            if let Some(condition) = of(type_).filter(|condition| condition.status == status) {
                *reasons.entry(condition.reason.as_str()).or_default() += 1;
            }
        }
        // The condition of that name is present where Synced has another reason.
        let stray = Reason::StrayCompute.as_str();
        if of(stray).is_some_and(|condition| condition.status == "True") {
            *unsynced.entry(stray).or_default() += 1;
        }
    }
    let mut counted = KindCensus {
        kind,
        ..KindCensus::default()
    };
    for ((status, reason), count) in ready {
        *counted
            .ready
            .entry((known_status(status), known(reason)))
            .or_default() += count;
    }
    for (reasons, counts) in [
        (stalled, &mut counted.stalled),
        (unsynced, &mut counted.unsynced),
    ] {
        for (reason, count) in reasons {
            *counts.entry(known(reason)).or_default() += count;
        }
    }
    counted
}

/// The known reason, or `OTHER`: a status can contain any text, but labels come from closed sets.
fn known(reason: &str) -> &'static str {
    Reason::ALL
        .iter()
        .map(|known| known.as_str())
        .find(|known| *known == reason)
        .unwrap_or(OTHER)
}

fn known_status(status: &str) -> &'static str {
    ["True", "False"]
        .into_iter()
        .find(|known| *known == status)
        .unwrap_or("Unknown")
}

fn accounts(env: &Live) -> Vec<AccountCensus> {
    let known = KnownAccounts {
        env,
        connections: env.state.connections(),
        lists: [
            (ProjectComputes::OF, env.observers.oldest()),
            (Keys::OF, env.key_observers.oldest()),
        ],
    };
    let (own, shared) = (
        env.stores.all::<Known<Account>>(),
        env.stores.all::<Known<ClusterAccount>>(),
    );
    let own = own.iter().map(|account| known.of(account.as_ref()));
    let mut all: Vec<_> = own
        .chain(shared.iter().map(|account| known.of(account.as_ref())))
        .collect();
    all.sort_by(|(one, _), (two, _)| one.cmp(two));
    all.into_iter().map(|(_, account)| account).collect()
}

/// The labels of an account in all metrics.
pub fn labels(account: &AccountName) -> AccountLabels {
    AccountLabels {
        namespace: account.namespace.clone().unwrap_or_default(),
        kind: format!("{:?}", account.kind),
        name: account.name.clone(),
    }
}

/// The state of all accounts, by name.
struct KnownAccounts<'a> {
    env: &'a Live,
    connections: BTreeMap<AccountName, SharedConnection<RateLimited>>,
    /// When the oldest current list of each account was read, for each kind of list.
    lists: [(&'static str, BTreeMap<String, Timestamp>); 2],
}

impl KnownAccounts<'_> {
    fn of<A: AnyAccount>(&self, account: &A) -> (Rank, AccountCensus) {
        let name = account.account_name();
        let label = name.to_string();
        let connected = self.connections.get(&name);
        let oldest = self
            .lists
            .iter()
            .filter_map(|(of, oldest)| Some((*of, oldest.get(&label)?.as_second())));
        let conditions = account.status().map(Status::conditions).unwrap_or_default();
        let mut conditions = conditions.iter();
        let ready = conditions.find(|condition| condition.type_ == "Ready");
        let census = AccountCensus {
            labels: labels(&name),
            ready: ready.map_or((false, Reason::Pending.as_str()), |ready| {
                (ready.status == "True", known(&ready.reason))
            }),
            organization_keys: connected
                .and_then(|known| self.env.count_keys(&name, known))
                .map(|counted| counted.what),
            connected: connected.map(|known| ConnectedAccount {
                poll_interval: known.poll_interval,
                budget: known.platform.budget().figures(),
            }),
            oldest: oldest.collect(),
            unreadable: [
                (
                    ProjectComputes::OF,
                    counted(&self.env.observers.unreadable(&label)),
                ),
                (
                    Keys::OF,
                    counted(&self.env.key_observers.unreadable(&label)),
                ),
            ]
            .into(),
        };
        (rank(account), census)
    }
}

fn counted(lists: &BTreeMap<String, Unreadable>) -> usize {
    lists.values().map(Unreadable::len).sum()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str) -> Condition {
        Condition {
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            message: String::new(),
            observed_generation: None,
            reason: reason.to_owned(),
            status: status.to_owned(),
            type_: type_.to_owned(),
        }
    }

    #[test]
    fn resources_are_counted_by_what_their_conditions_say() {
        let serving = vec![
            condition("Ready", "True", "Available"),
            condition("Stalled", "True", "Refused"),
        ];
        let all = [
            serving,
            vec![
                condition("Ready", "True", "Available"),
                condition("Synced", "False", "Drifted"),
            ],
            vec![
                condition("Ready", "False", "Creating"),
                condition("Stalled", "False", "Refused"),
            ],
            vec![
                condition("Ready", "Perhaps", "one of a thousand texts"),
                condition("StrayCompute", "True", "StrayCompute"),
            ],
            Vec::new(),
        ];
        let counted = of_kind("Compute".to_owned(), all.iter().map(Vec::as_slice));
        let ready = [
            (("True", "Available"), 2),
            (("False", "Creating"), 1),
            (("Unknown", OTHER), 1),
            (("Unknown", "Pending"), 1),
        ];
        assert_eq!(counted.ready, ready.into());
        assert_eq!(counted.stalled, [("Refused", 1)].into());
        assert_eq!(
            counted.unsynced,
            [("Drifted", 1), ("StrayCompute", 1)].into()
        );
    }
}
