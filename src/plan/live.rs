//! Reads the resources of a cluster once, as far as the user's rights allow.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};

use super::cluster::is_forbidden;
use super::id::Id;
use crate::cluster::explained;
use crate::controller::environment::{Kind, KindVisitor, Kinds};
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;
use crate::decide::names::ClusterId;

/// The resources to read.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// The namespaces to list if the user may not list all of them.
    pub namespaces: BTreeSet<String>,
    /// The namespaces that the operator watches; all if empty.
    pub watched: BTreeSet<String>,
    /// The namespace of the selected resources, or `None` for all.
    pub selected: Option<String>,
    /// The label selector for resources.
    pub labels: ListParams,
}

/// The resources that were read.
#[derive(Debug, Default)]
pub struct ListedResources {
    pub objects: Vec<Value>,
    pub selected: BTreeSet<Id>,
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// The identity of the cluster, if it may be read.
    pub cluster: Option<ClusterId>,
    pub not_read: Vec<String>,
}

/// Required resources could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot list {what}: {}", explained(.cause))]
pub struct ListError {
    what: String,
    cause: kube::Error,
}

impl ListError {
    pub fn cause(&self) -> &kube::Error {
        &self.cause
    }
}

struct ListedKind {
    kind: String,
    plural: String,
    api_version: String,
    namespaced: bool,
    /// The URL for one namespace, or for all.
    url: fn(Option<&str>) -> String,
}

struct AllKindsListed(Vec<ListedKind>);

impl KindVisitor for AllKindsListed {
    fn visit<K: Kind>(&mut self) {
        self.0.push(ListedKind {
            kind: K::Object::kind(&()).into_owned(),
            plural: K::Object::plural(&()).into_owned(),
            api_version: K::Object::api_version(&()).into_owned(),
            namespaced: K::Object::is_namespaced(),
            url: |namespace| K::Object::url_path(&(), namespace),
        });
    }
}

/// Lists all kinds.
///
/// # Errors
/// If the user may not list the resources to plan.
pub async fn list(client: &Client, listing: &ListOptions) -> Result<ListedResources, ListError> {
    let mut kinds = AllKindsListed(Vec::new());
    AllKinds::each(&mut kinds);
    let mut listed = ListedResources::default();
    for kind in &kinds.0 {
        of_kind(client, listing, kind, &mut listed).await?;
    }
    select(client, listing, &kinds.0, &mut listed).await?;
    namespaces(client, &mut listed).await;
    Ok(listed)
}

async fn of_kind(
    client: &Client,
    listing: &ListOptions,
    kind: &ListedKind,
    listed: &mut ListedResources,
) -> Result<(), ListError> {
    if kind.namespaced && !listing.watched.is_empty() {
        return of_namespaces(client, &listing.watched, kind, listed).await;
    }
    match items(client, (kind.url)(None), &ListParams::default()).await {
        Ok(found) => {
            listed
                .objects
                .extend(found.into_iter().map(|item| named(item, kind)));
            return Ok(());
        }
        Err(error) if !is_forbidden(&error) => {
            return Err(ListError {
                what: kind.plural.clone(),
                cause: error,
            });
        }
        Err(_) if !kind.namespaced => {
            listed
                .not_read
                .push(format!("{}s: you may not list them.", kind.kind));
            return Ok(());
        }
        Err(_) => {}
    }
    of_namespaces(client, &listing.namespaces, kind, listed).await?;
    listed.not_read.push(format!(
        "{}s of other namespaces: you may not list them.",
        kind.kind
    ));
    Ok(())
}

async fn of_namespaces(
    client: &Client,
    namespaces: &BTreeSet<String>,
    kind: &ListedKind,
    listed: &mut ListedResources,
) -> Result<(), ListError> {
    for namespace in namespaces {
        let found = items(client, (kind.url)(Some(namespace)), &ListParams::default()).await;
        let found = found.map_err(|cause| ListError {
            what: format!("{} in {namespace}", kind.plural),
            cause,
        })?;
        listed
            .objects
            .extend(found.into_iter().map(|item| named(item, kind)));
    }
    Ok(())
}

/// Adds kind and version, which the API server leaves out in lists.
fn named(mut item: Value, kind: &ListedKind) -> Value {
    item["kind"] = json!(kind.kind);
    item["apiVersion"] = json!(kind.api_version);
    item
}

async fn items(
    client: &Client,
    url: String,
    params: &ListParams,
) -> Result<Vec<Value>, kube::Error> {
    let request = Request::new(url)
        .list(params)
        .map_err(kube::Error::BuildRequest)?;
    let mut listed: Value = client.request(request).await?;
    match listed["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

async fn select(
    client: &Client,
    listing: &ListOptions,
    kinds: &[ListedKind],
    listed: &mut ListedResources,
) -> Result<(), ListError> {
    let is_selected = |id: &Id| listing.selected.is_none() || id.namespace == listing.selected;
    if listing.labels.label_selector.is_none() {
        listed.selected = listed
            .objects
            .iter()
            .filter_map(Id::of_value)
            .filter(is_selected)
            .collect();
        return Ok(());
    }
    // The API server evaluates the selector.
    for kind in kinds
        .iter()
        .filter(|kind| kind.namespaced || listing.selected.is_none())
    {
        let url = (kind.url)(listing.selected.as_deref());
        let found = items(client, url, &listing.labels).await;
        let found = found.map_err(|cause| ListError {
            what: kind.plural.clone(),
            cause,
        })?;
        listed.selected.extend(
            found
                .into_iter()
                .map(|item| named(item, kind))
                .filter_map(|item| Id::of_value(&item)),
        );
    }
    Ok(())
}

async fn namespaces(client: &Client, listed: &mut ListedResources) {
    let api: Api<Namespace> = Api::all(client.clone());
    match api.list_metadata(&ListParams::default()).await {
        Ok(found) => {
            let labelled = found
                .items
                .iter()
                .map(|it| (it.name_any(), it.labels().clone()));
            listed.namespaces.extend(labelled);
            let system = found
                .items
                .iter()
                .find(|namespace| namespace.name_any() == "kube-system");
            listed.cluster =
                system.and_then(|system| ClusterId::of_uid(system.metadata.uid.as_deref()?));
        }
        Err(_) => {
            if let Ok(system) = api.get_metadata("kube-system").await {
                listed.cluster = system.metadata.uid.as_deref().and_then(ClusterId::of_uid);
            }
            listed.not_read.push(
                "Namespaces: you may not list them. ClusterAccounts that admit namespaces by labels are taken to admit none."
                    .to_owned(),
            );
        }
    }
}
