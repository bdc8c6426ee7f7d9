//! The status of a fleet, as a document.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::collect::{FoundFleet, NotRead, OperatorStatus};
use crate::cli::resource::ObservedResource;
use crate::decide::Attention;
use crate::platform::Rate;
use crate::telemetry::metrics::{AccountLabels, BudgetLeft};

/// The attention that a resource needs, in the words of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StatusGroup {
    NeedsPerson,
    Waits,
    UnderWay,
    Well,
}

impl From<Attention> for StatusGroup {
    fn from(needs: Attention) -> Self {
        match needs {
            Attention::User => Self::NeedsPerson,
            Attention::Time => Self::Waits,
            Attention::Work => Self::UnderWay,
            Attention::Nothing => Self::Well,
        }
    }
}

impl StatusGroup {
    pub fn needs(self) -> Attention {
        match self {
            Self::NeedsPerson => Attention::User,
            Self::Waits => Attention::Time,
            Self::UnderWay => Attention::Work,
            Self::Well => Attention::Nothing,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::NeedsPerson => "needs a person",
            Self::Waits => "waits for time",
            Self::UnderWay => "is under way",
            Self::Well => "is well",
        }
    }
}

/// Fields are only ever added.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    pub kind: &'static str,
    /// `None` for all.
    pub namespace: Option<String>,
    pub operator: Option<OperatorStatus>,
    pub counts: Vec<Count>,
    pub needs_person: Vec<ListedResource>,
    pub waits: Vec<ListedResource>,
    pub under_way: Vec<ListedResource>,
    pub accounts: Vec<AccountLine>,
    /// Parts that could not be read, for instance for lack of rights.
    pub not_read: Vec<NotRead>,
}

/// Number of resources of a kind in each state.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    pub kind: String,
    pub all: usize,
    pub needs_person: usize,
    pub waits: usize,
    pub under_way: usize,
    pub well: usize,
}

/// A resource that does not match its spec.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedResource {
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
    pub reason: String,
    pub message: String,
    /// Since when the condition has this status.
    pub since: Option<Timestamp>,
    /// The latest end of the wait, if it is known.
    pub until: Option<Timestamp>,
}

/// An account, its state, and its rate budget.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountLine {
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
    pub state: StatusGroup,
    pub ready: String,
    pub reason: String,
    pub message: String,
    /// The number of listed resources that refer to it.
    pub resources: usize,
    pub projects: Option<u64>,
    pub organization_keys: Option<u64>,
    /// The budget: requests in any minute, and how many of them at once.
    pub requests_per_minute: u64,
    pub burst: u64,
    /// The remaining budget, if the operator's metrics show it.
    pub left: Option<BudgetLeft>,
}

impl Fleet {
    pub fn of(found: FoundFleet) -> Self {
        let FoundFleet {
            namespace,
            resources,
            accounts,
            operator,
            metrics,
            not_read,
        } = found;
        let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
        let mut items: BTreeMap<Attention, Vec<ListedResource>> = BTreeMap::new();
        for resource in accounts.iter().chain(&resources) {
            let needs = resource.need().what;
            let count = counts.entry(&resource.kind).or_default();
            count.all += 1;
            *match needs {
                Attention::User => &mut count.needs_person,
                Attention::Time => &mut count.waits,
                Attention::Work => &mut count.under_way,
                Attention::Nothing => &mut count.well,
            } += 1;
            items
                .entry(needs)
                .or_default()
                .push(ListedResource::of(resource));
        }
        let counts = counts
            .into_iter()
            .map(|(kind, count)| Count {
                kind: kind.to_owned(),
                ..count
            })
            .collect();
        for listed in items.values_mut() {
            listed.sort_by(|one, other| one.place().cmp(&other.place()));
        }
        Self {
            kind: "FleetStatus",
            namespace,
            operator,
            counts,
            needs_person: items.remove(&Attention::User).unwrap_or_default(),
            waits: items.remove(&Attention::Time).unwrap_or_default(),
            under_way: items.remove(&Attention::Work).unwrap_or_default(),
            accounts: accounts
                .iter()
                .map(|account| AccountLine::of(account, Some(&resources), metrics.as_deref()))
                .collect(),
            not_read,
        }
    }
}

impl ListedResource {
    pub fn of(resource: &ObservedResource) -> Self {
        let condition = resource.need().condition;
        let (reason, message) = match condition {
            Some(condition) => (condition.reason.as_str(), condition.message.as_str()),
            None => ("Pending", "dbplane has not looked at it yet."),
        };
        Self {
            kind: resource.kind.clone(),
            namespace: resource.meta.namespace.clone(),
            name: resource.name().to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: condition.map(|condition| condition.last_transition_time.0),
            until: resource.time("/waiting/until"),
        }
    }

    fn place(&self) -> (&Option<String>, &str, &str) {
        (&self.namespace, &self.kind, &self.name)
    }

    /// The form that commands accept.
    pub fn target(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }
}

impl AccountLine {
    /// Uses the resources that may refer to it, and the operator's metrics, if they are known.
    pub fn of(
        account: &ObservedResource,
        resources: Option<&[ObservedResource]>,
        metrics: Option<&str>,
    ) -> Self {
        let ready = account.condition("Ready");
        let (status, reason, message) = match ready {
            Some(ready) => (
                ready.status.as_str(),
                ready.reason.as_str(),
                ready.message.as_str(),
            ),
            None => ("Unknown", "", ""),
        };
        let declared = &account.spec["rateLimit"];
        let usual = Rate::default();
        Self {
            kind: account.kind.clone(),
            namespace: account.meta.namespace.clone(),
            name: account.name().to_owned(),
            state: account.need().what.into(),
            ready: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            resources: resources
                .into_iter()
                .flatten()
                .filter(|resource| refers_to(resource, account))
                .count(),
            projects: account.status["projectCount"].as_u64(),
            organization_keys: account.status["organizationKeys"].as_u64(),
            requests_per_minute: declared["requestsPerMinute"]
                .as_u64()
                .unwrap_or(usual.requests_per_minute.into()),
            burst: declared["burst"].as_u64().unwrap_or(usual.burst.into()),
            left: metrics.and_then(|metrics| BudgetLeft::of(metrics, &labels(account))),
        }
    }
}

fn labels(account: &ObservedResource) -> AccountLabels {
    AccountLabels {
        namespace: account.meta.namespace.clone().unwrap_or_default(),
        kind: account.kind.clone(),
        name: account.name().to_owned(),
    }
}

fn refers_to(resource: &ObservedResource, account: &ObservedResource) -> bool {
    let is_near =
        account.meta.namespace.is_none() || account.meta.namespace == resource.meta.namespace;
    is_near && resource.account() == Some((account.kind.as_str(), account.name()))
}
