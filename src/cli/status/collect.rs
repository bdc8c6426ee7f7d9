//! Reads the data for a status from the cluster, with the user's rights.

use std::fmt;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::Serialize;

use super::Error;
use crate::cli::common::bad_selector;
use crate::cli::resource::{ObservedResource, ResourceKind};
use crate::cluster::explained;
use crate::decide::names::LEASE;
use crate::telemetry::metrics::is_of_leader;
use crate::telemetry::{Source, served};

/// The sources of the data.
pub struct Collector {
    pub client: Client,
    /// `None` for all.
    pub namespace: Option<String>,
    pub params: ListParams,
    pub operator_namespace: String,
    /// The URL of the operator's metrics.
    pub metrics: Option<Source>,
}

/// Something that could not be read. Programs get its text.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "String")]
pub struct NotRead {
    pub what: String,
    why: String,
    /// The code of the API server's answer.
    code: Option<u16>,
}

impl NotRead {
    fn of(what: String, error: &kube::Error) -> Self {
        let code = match error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        };
        Self {
            what,
            why: explained(error),
            code,
        }
    }

    fn because(what: &str, why: impl fmt::Display) -> Self {
        Self {
            what: what.to_owned(),
            why: why.to_string(),
            code: None,
        }
    }

    pub fn is_forbidden(&self) -> bool {
        self.code == Some(403)
    }

    /// The API server does not know the kind.
    pub fn is_unknown(&self) -> bool {
        self.code == Some(404)
    }
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl From<NotRead> for String {
    fn from(missing: NotRead) -> Self {
        missing.to_string()
    }
}

/// The leader, according to the Lease.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    pub namespace: String,
    /// `None` if there is no leader, or no leader election.
    pub leader: Option<String>,
}

/// The data for a fleet.
pub struct FoundFleet {
    pub namespace: Option<String>,
    pub resources: Vec<ObservedResource>,
    /// All accounts, even if the selector does not match: resources refer to them.
    pub accounts: Vec<ObservedResource>,
    pub operator: Option<OperatorStatus>,
    pub metrics: Option<String>,
    pub not_read: Vec<NotRead>,
}

/// The data for one resource.
pub struct FoundOne {
    pub resource: ObservedResource,
    pub account: Option<ObservedResource>,
    pub events: Vec<Event>,
    pub operator: Option<OperatorStatus>,
    pub metrics: Option<String>,
    pub not_read: Vec<NotRead>,
}

/// Only the newest ones are shown.
const MOST_EVENTS: usize = 10;

pub fn is_account(kind: &str) -> bool {
    ["Account", "ClusterAccount"].contains(&kind)
}

impl Collector {
    pub async fn fleet(&self) -> Result<FoundFleet, Error> {
        let (kinds, none) = (ResourceKind::all(), ListParams::default());
        let lists = kinds.iter().map(|kind| {
            let params = if is_account(kind.name()) {
                &none
            } else {
                &self.params
            };
            kind.list(&self.client, self.namespace.as_deref(), params)
        });
        let (lists, operator, metrics) =
            futures::join!(join_all(lists), self.operator(), self.metrics());
        let (mut all, mut not_read) = (Vec::new(), Vec::new());
        for (kind, listed) in kinds.iter().zip(lists) {
            match listed {
                Ok(found) => all.extend(found),
                Err(error) => {
                    if let Some(message) = bad_selector(&self.params, &error) {
                        return Err(Error::Selector(message));
                    }
                    not_read.push(NotRead::of(kind.resource.plural.clone(), &error));
                }
            }
        }
        if not_read.len() == kinds.len() {
            return Err(Error::NothingRead {
                namespace: self.namespace.clone(),
                not_read,
            });
        }
        let operator = read_or_noted(operator, &mut not_read);
        let metrics = read_or_noted(metrics, &mut not_read).flatten();
        let (accounts, resources) = all
            .into_iter()
            .partition(|resource| is_account(&resource.kind));
        Ok(FoundFleet {
            namespace: self.namespace.clone(),
            resources,
            accounts,
            operator,
            metrics,
            not_read,
        })
    }

    pub async fn one(&self, kind: &ResourceKind, name: &str) -> Result<FoundOne, Error> {
        let label = format!("{}/{name}", kind.name().to_lowercase());
        let found = kind
            .get(&self.client, self.namespace.as_deref(), name)
            .await;
        let found = found.map_err(|cause| Error::Read {
            what: label.clone(),
            cause,
        })?;
        let Some(resource) = found else {
            return Err(Error::NotFound(match &self.namespace {
                Some(namespace) if kind.is_namespaced => {
                    format!("{label} in namespace {namespace}")
                }
                _ => label,
            }));
        };
        let (account, events, operator, metrics) = futures::join!(
            self.account_of(&resource),
            self.events(&resource),
            self.operator(),
            self.metrics()
        );
        let mut not_read = Vec::new();
        let account = read_or_noted(account, &mut not_read).flatten();
        let events = read_or_noted(events, &mut not_read).unwrap_or_default();
        let operator = read_or_noted(operator, &mut not_read);
        let metrics = read_or_noted(metrics, &mut not_read).flatten();
        Ok(FoundOne {
            resource,
            account,
            events,
            operator,
            metrics,
            not_read,
        })
    }

    async fn account_of(
        &self,
        resource: &ObservedResource,
    ) -> Result<Option<ObservedResource>, NotRead> {
        let Some((kind, name)) = resource.account() else {
            return Ok(None);
        };
        let what = format!("{kind} {name}");
        let of_kind = ResourceKind::named(kind).map_err(|error| NotRead::because(&what, error))?;
        let namespace = resource.meta.namespace.as_deref();
        of_kind
            .get(&self.client, namespace, name)
            .await
            .map_err(|error| NotRead::of(what, &error))
    }

    /// The events, newest first.
    async fn events(&self, about: &ObservedResource) -> Result<Vec<Event>, NotRead> {
        // Events of cluster-scoped objects are in the default namespace.
        let namespace = about.meta.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let uid = about.meta.uid.as_deref().unwrap_or_default();
        let params = ListParams::default().fields(&format!("regarding.uid={uid}"));
        let listed = api
            .list(&params)
            .await
            .map_err(|error| NotRead::of("events".to_owned(), &error))?;
        let mut events = listed.items;
        events.sort_by_key(|event| std::cmp::Reverse(last_seen(event)));
        events.truncate(MOST_EVENTS);
        Ok(events)
    }

    async fn metrics(&self) -> Result<Option<String>, NotRead> {
        let Some(source) = &self.metrics else {
            return Ok(None);
        };
        let asked = async {
            let metrics = served(source).await?;
            match is_of_leader(&metrics) {
                Some(true) => Ok(metrics),
                Some(false) => Err(
                    "this process does not lead, so it has no budgets: forward the port of the Pod that the Lease names",
                )?,
                None => Err("what is served there are not the metrics of dbplane")?,
            }
        };
        asked
            .await
            .map(Some)
            .map_err(|error: String| NotRead::because("the operator's metrics", error))
    }

    async fn operator(&self) -> Result<OperatorStatus, NotRead> {
        let namespace = self.operator_namespace.clone();
        let api: Api<Lease> = Api::namespaced(self.client.clone(), &namespace);
        let lease = api
            .get_opt(LEASE)
            .await
            .map_err(|error| NotRead::of("the operator's Lease".to_owned(), &error))?;
        let leader = lease
            .and_then(|lease| lease.spec?.holder_identity)
            .filter(|holder| !holder.is_empty());
        Ok(OperatorStatus { namespace, leader })
    }
}

fn read_or_noted<T>(read: Result<T, NotRead>, not_read: &mut Vec<NotRead>) -> Option<T> {
    read.map_err(|error| not_read.push(error)).ok()
}

pub fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event
        .series
        .as_ref()
        .map(|series| series.last_observed_time.0);
    series.or_else(|| event.event_time.as_ref().map(|time| time.0))
}
