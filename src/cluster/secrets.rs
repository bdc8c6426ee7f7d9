//! The Secrets that dbplane writes. It only writes those that it created for their owner,
//! recognized by the owner's UID.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::explained;
use super::port::{AppliedSecret, Cluster};
use crate::api::Known;
use crate::decide::Recorded;
use crate::decide::names::{MANAGED_BY, SECRET_OF};

/// The resource that a Secret belongs to.
#[derive(Clone, Debug)]
pub struct Owner {
    pub namespace: String,
    pub uid: String,
    pub reference: OwnerReference,
}

impl Owner {
    pub fn of<K: Recorded>(object: &Known<K>) -> Self {
        Self {
            namespace: object.namespace().to_owned(),
            uid: object.uid().to_string(),
            reference: OwnerReference {
                api_version: K::api_version(&()).into_owned(),
                kind: K::kind(&()).into_owned(),
                name: object.name_any(),
                uid: object.uid().to_string(),
                controller: Some(true),
                block_owner_deletion: None,
            },
        }
    }

    /// True if dbplane created a Secret for a former resource of this kind and name. A resource
    /// that was restored from a backup has a new UID. If the backup lost the owner, an annotation
    /// of the Secret names it.
    pub fn formerly_owned(&self, secret: &Secret) -> bool {
        let named = match secret.owner_references() {
            [] => secret
                .annotations()
                .get(SECRET_OF)
                .is_some_and(|words| *words == self.words()),
            owners => owners.iter().all(|other| self.is_named_by(other)),
        };
        is_managed(secret) && named
    }

    fn words(&self) -> String {
        format!("{} {}", self.reference.kind, self.reference.name)
    }

    fn is_named_by(&self, other: &OwnerReference) -> bool {
        let me = &self.reference;
        group(other) == group(me) && other.kind == me.kind && other.name == me.name
    }
}

fn group(reference: &OwnerReference) -> Option<&str> {
    reference.api_version.split('/').next()
}

/// The default type.
const OPAQUE: &str = "Opaque";

/// The content to write to a Secret.
#[derive(Clone, Default)]
pub struct SecretContent {
    /// The Secret's type; Opaque when absent. The API server rejects a change of it.
    pub type_: Option<String>,
    pub data: BTreeMap<String, SecretString>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl std::fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretContent")
            .field("entries", &self.data.keys())
            .finish_non_exhaustive()
    }
}

impl SecretContent {
    /// The entries, labels and annotations that differ from this content, for messages. It never
    /// contains a value.
    pub fn differing(&self, stored: &Secret) -> Vec<String> {
        let mut differing = Vec::new();
        for (entry, wanted) in &self.data {
            let stored = stored.data.as_ref().and_then(|data| data.get(entry));
            if stored.is_none_or(|bytes| bytes.0 != wanted.expose_secret().as_bytes()) {
                differing.push(format!("entry {entry}"));
            }
        }
        for name in missing(stored.labels(), &self.labels) {
            differing.push(format!("label {name}"));
        }
        for name in missing(stored.annotations(), &self.annotations) {
            differing.push(format!("annotation {name}"));
        }
        differing
    }
}

fn missing<'a>(
    stored: &BTreeMap<String, String>,
    wanted: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a String> {
    wanted
        .iter()
        .filter(|(name, value)| stored.get(*name) != Some(value))
        .map(|(name, _)| name)
}

/// A Secret as it was read.
pub enum SecretState {
    Absent,
    /// It belongs to another owner, which the text names.
    Foreign(String),
    /// It may come from a backup: dbplane created it for a former resource of this kind and name,
    /// or it has no owner.
    Restored(Box<Secret>),
    Ours(Box<Secret>),
}

impl std::fmt::Debug for SecretState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::Foreign(_) => "Foreign",
            Self::Restored(_) => "Restored",
            Self::Ours(_) => "Ours",
        })
    }
}

impl SecretState {
    /// The state of the Secret as `owner` sees it.
    pub fn of(found: Option<Secret>, owner: &Owner) -> Self {
        let Some(secret) = found else {
            return Self::Absent;
        };
        if secret
            .owner_references()
            .iter()
            .any(|reference| reference.uid == owner.uid)
        {
            return Self::Ours(Box::new(secret));
        }
        let unowned = is_managed(&secret) && secret.owner_references().is_empty();
        if secret.metadata.deletion_timestamp.is_none()
            && (unowned || owner.formerly_owned(&secret))
        {
            return Self::Restored(Box::new(secret));
        }
        let owner = secret
            .owner_references()
            .first()
            .map(|other| owned_by(&other.kind, &other.name));
        Self::Foreign(owner.unwrap_or_else(|| "not dbplane's".to_owned()))
    }

    /// The Secret if it belongs to `owner`, or an error if it belongs to another owner.
    fn own(self) -> Result<Option<Box<Secret>>, WriteError> {
        match self {
            Self::Absent => Ok(None),
            Self::Ours(secret) => Ok(Some(secret)),
            Self::Foreign(who) => Err(WriteError::Foreign(who)),
            Self::Restored(_) => Err(WriteError::Foreign(FROM_BEFORE.to_owned())),
        }
    }
}

/// The reason why a Secret was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// It belongs to another owner.
    #[error("it exists and is {0}")]
    Foreign(String),
    /// It existed when the decision was made.
    #[error("it has been deleted since, or is about to be")]
    Gone,
    #[error("{}", explained(.0))]
    Cluster(#[from] kube::Error),
}

/// The state of a Secret as `owner` sees it.
pub async fn state<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
) -> Result<SecretState, kube::Error> {
    Ok(SecretState::of(
        cluster.secret(&owner.namespace, name).await?,
        owner,
    ))
}

/// Adds or removes a finalizer that protects credentials. Only the Secret's finalizers are changed.
pub async fn protect<C: Cluster>(
    cluster: &C,
    namespace: &str,
    name: &str,
    finalizer: &str,
    protected: bool,
) -> Result<(), kube::Error> {
    let Some(secret) = cluster.secret(namespace, name).await? else {
        return Ok(());
    };
    let others = secret
        .finalizers()
        .iter()
        .filter(|other| *other != finalizer)
        .cloned();
    let finalizers: Vec<String> = others
        .chain(protected.then(|| finalizer.to_owned()))
        .collect();
    let metadata = json!({"resourceVersion": secret.resource_version(), "finalizers": finalizers});
    cluster
        .patch_secret(namespace, name, &json!({"metadata": metadata}))
        .await
}

/// Creates an empty Secret for `owner`; fails if one with this name exists.
pub async fn create_empty<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
    type_: Option<&str>,
) -> Result<(), kube::Error> {
    cluster
        .create_secret(&owner.namespace, &empty(owner, name, type_))
        .await
}

/// Makes `owner` the only owner of a Secret, if the Secret still has this version.
pub async fn adopt<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
    version: &str,
) -> Result<(), kube::Error> {
    let annotations = json!({SECRET_OF: owner.words()});
    let metadata = json!({"resourceVersion": version, "ownerReferences": [owner.reference], "annotations": annotations});
    cluster
        .patch_secret(&owner.namespace, name, &json!({"metadata": metadata}))
        .await
}

/// Writes dbplane's entries if the Secret is still as found; entries of others stay. Returns the
/// resulting Secret.
pub async fn write<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
    found: Option<&Secret>,
    content: &SecretContent,
) -> Result<Secret, kube::Error> {
    cluster
        .apply_secret(
            &owner.namespace,
            &applied(owner, name, found, content),
            false,
        )
        .await
}

/// The Secret if it belongs to `owner`.
pub async fn own<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
) -> Result<Option<Box<Secret>>, WriteError> {
    state(cluster, owner, name).await?.own()
}

/// Writes the owner's Secret as it was found, or creates one. Returns the resulting Secret.
pub async fn write_own<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
    own: Option<&Secret>,
    content: &SecretContent,
) -> Result<Secret, WriteError> {
    if own.is_none() {
        // Created, not applied, so that a Secret that appears meanwhile is not overwritten.
        create_empty(cluster, owner, name, content.type_.as_deref()).await?;
    }
    Ok(write(cluster, owner, name, own, content).await?)
}

/// The same for a Secret without irreplaceable content. A Secret of a former resource of this name
/// is adopted first. The entries in `without` are removed, even if others wrote them. Returns the
/// Secret before that removal.
pub async fn write_replaceable<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
    content: &SecretContent,
    without: &BTreeSet<String>,
) -> Result<Secret, WriteError> {
    if let SecretState::Restored(secret) = state(cluster, owner, name).await?
        && owner.formerly_owned(&secret)
    {
        adopt(
            cluster,
            owner,
            name,
            &secret.resource_version().unwrap_or_default(),
        )
        .await?;
    }
    let own = own(cluster, owner, name).await?;
    let stored = write_own(cluster, owner, name, own.as_deref(), content).await?;
    // An apply gives up entries that only dbplane has written. Entries that a backup tool has
    // written too stay until they are removed.
    remove(cluster, &owner.namespace, &stored, without).await?;
    Ok(stored)
}

/// Removes those of these entries that the Secret has.
pub async fn remove<C: Cluster>(
    cluster: &C,
    namespace: &str,
    stored: &Secret,
    entries: impl IntoIterator<Item = &String>,
) -> Result<(), kube::Error> {
    let left: Map<String, Value> = entries
        .into_iter()
        .filter(|entry| has(stored, entry))
        .map(|entry| (entry.clone(), Value::Null))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let patch = json!({"metadata": {"resourceVersion": stored.resource_version()}, "data": left});
    cluster
        .patch_secret(namespace, &stored.name_any(), &patch)
        .await
}

fn has(secret: &Secret, entry: &str) -> bool {
    secret
        .data
        .as_ref()
        .is_some_and(|data| data.contains_key(entry))
}

/// Checks that a Secret belongs to `owner`, and that the API server would accept this content.
/// Returns the Secret as it would become.
pub async fn dry_run<C: Cluster>(
    cluster: &C,
    owner: &Owner,
    name: &str,
    content: &SecretContent,
) -> Result<Secret, WriteError> {
    let own = own(cluster, owner, name).await?;
    if own.is_none_or(|secret| secret.metadata.deletion_timestamp.is_some()) {
        return Err(WriteError::Gone);
    }
    let applied = applied(owner, name, None, content);
    Ok(cluster
        .apply_secret(&owner.namespace, &applied, true)
        .await?)
}

/// The owner of a Secret that dbplane created for a former resource, for messages.
pub const FROM_BEFORE: &str = "from an earlier resource";

fn applied(
    owner: &Owner,
    name: &str,
    found: Option<&Secret>,
    content: &SecretContent,
) -> AppliedSecret {
    let mut data = BTreeMap::new();
    for (entry, value) in &content.data {
        let bytes = value.expose_secret().as_bytes().to_vec();
        data.insert(entry.clone(), ByteString(bytes));
    }
    let mut labels = content.labels.clone();
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    let secret = Secret {
        metadata: ObjectMeta {
            labels: Some(labels),
            annotations: Some(content.annotations.clone()),
            owner_references: Some(vec![owner.reference.clone()]),
            ..ObjectMeta::default()
        },
        data: Some(data),
        type_: Some(content.type_.as_deref().unwrap_or(OPAQUE).to_owned()),
        ..Secret::default()
    };
    let (uid, version) = found
        .map(|found| (found.uid(), found.resource_version()))
        .unwrap_or_default();
    AppliedSecret {
        name: name.to_owned(),
        uid,
        version,
        secret,
    }
}

/// An empty Secret for `owner`.
pub fn empty(owner: &Owner, name: &str, type_: Option<&str>) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(
                MANAGED_BY.0.to_owned(),
                MANAGED_BY.1.to_owned(),
            )])),
            annotations: Some(BTreeMap::from([(SECRET_OF.to_owned(), owner.words())])),
            owner_references: Some(vec![owner.reference.clone()]),
            ..ObjectMeta::default()
        },
        type_: Some(type_.unwrap_or(OPAQUE).to_owned()),
        ..Secret::default()
    }
}

/// True if a Secret has dbplane's label. Users can set the label too, so it proves nothing by
/// itself.
pub fn is_managed(secret: &Secret) -> bool {
    secret
        .labels()
        .get(MANAGED_BY.0)
        .is_some_and(|value| value == MANAGED_BY.1)
}

/// The owner of a Secret, for messages.
pub fn owned_by(kind: &str, name: &str) -> String {
    format!("{kind} {name}'s")
}

#[cfg(test)]
mod tests;
