//! Plans what the operator would do. It runs the operator's own passes on the resources of the
//! cluster and the platform, and on manifests that are not in the cluster yet. In the environment
//! of these passes, reads are real and writes stay in memory.
//!
//! Time does not advance, and changes on the platform succeed at once. A plan therefore ends where
//! the operator would have to wait. It shows the reason and the time limit of the wait, but not
//! what happens after it.

mod cluster;
mod credentials;
mod environment;
mod fields;
mod id;
mod live;
mod manifests;
mod outside;
mod platform;
mod report;
mod rounds;
mod steps;
mod trail;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

pub use credentials::GivenKey;
pub use id::Id;
pub use live::{ListError, ListOptions, ListedResources, list};
pub use manifests::is_namespaced;
pub use outside::{Network, Outside};
pub use steps::{
    Cost, Counts, FieldChange, ManifestChange, Plan, Planned, PlannedCondition, PlannedStep,
    PlannedWait, Units,
};

use self::cluster::PlanCluster;
use self::credentials::{AccountCredentials, ClusterCredential};
use self::environment::Planner;
use self::trail::StepTrail;
use crate::api::{Account, ClusterAccount, Known, ObjectMeta, ProjectKey};
use crate::controller::account::{AnyAccount, CredentialRef};
use crate::controller::environment::PassSettings;
use crate::controller::object::AccountName;
use crate::in_memory::full_name;

/// The input of a plan.
#[derive(Debug)]
pub struct Beginning {
    pub now: Timestamp,
    pub settings: PassSettings,
    /// The resources in the cluster, as JSON of the API server.
    pub objects: Vec<Value>,
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Manifests that are not in the cluster yet.
    pub manifests: Vec<Value>,
    /// The namespace of manifests that name none.
    pub namespace: String,
    /// The resources to plan if there are no manifests.
    pub selected: BTreeSet<Id>,
    pub given: Option<GivenKey>,
    /// Parts that could not be read so far.
    pub not_read: Vec<String>,
}

/// The reason why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    Manifest(String),
    #[error(
        "the accounts have several platforms, and --api-key is for one: name it with --base-url. They are: {}",
        .0.join(", ")
    )]
    SeveralPlatforms(Vec<String>),
    #[error(
        "a plan needs the right to get Secrets, and you may not get Secret {namespace}/{name}. The ClusterRole edit of Kubernetes has this right. \
         For the Secret of an account, --api-key will do instead"
    )]
    Secret { namespace: String, name: String },
    #[error(
        "the platform of {0} is not read: the cluster has no such account with this platform and Secret, and a key goes only where it went \
         before. Give one for this platform with --api-key and --base-url"
    )]
    NoKey(String),
}

/// Finds the platform of a key that the user gave.
///
/// # Errors
/// If there are several platforms to choose from.
pub fn given(
    key: SecretString,
    base_url: Option<&String>,
    objects: &[Value],
) -> Result<GivenKey, PlanError> {
    if let Some(base_url) = base_url {
        return Ok(GivenKey {
            key,
            base_url: base_url.clone(),
        });
    }
    let accounts = objects.iter().filter(|object| {
        ["Account", "ClusterAccount"]
            .iter()
            .any(|kind| object["kind"] == *kind)
    });
    let urls: BTreeSet<String> = accounts
        .filter_map(|account| {
            Some(
                account["spec"]["baseURL"]
                    .as_str()?
                    .trim_end_matches('/')
                    .to_owned(),
            )
        })
        .collect();
    match urls.len() {
        0 | 1 => Ok(GivenKey {
            key,
            base_url: urls.into_iter().next().unwrap_or_default(),
        }),
        _ => Err(PlanError::SeveralPlatforms(urls.into_iter().collect())),
    }
}

/// Makes the plan.
///
/// # Errors
/// If a manifest cannot be read, or a Secret or a platform may not be read.
pub async fn make(beginning: Beginning, outside: Arc<dyn Outside>) -> Result<Plan, PlanError> {
    let Beginning {
        now,
        settings,
        objects,
        namespaces,
        manifests,
        namespace,
        selected,
        given,
        not_read,
    } = beginning;
    let trail = Arc::new(StepTrail::default());
    for what in not_read {
        trail.not_read(what);
    }
    let mut cluster = PlanCluster::new(objects, outside.clone(), trail, now);
    let in_cluster = accounts_in_cluster(&cluster);
    let mut declared = BTreeMap::new();
    for manifest in &manifests {
        let applied = manifests::apply(&cluster, manifest, &namespace);
        declared.extend(applied.map_err(PlanError::Manifest)?);
    }
    if let Some(given) = &given {
        give(given, &mut cluster);
    }
    let credentials = AccountCredentials {
        outside,
        given,
        in_cluster,
    };
    let selected = if manifests.is_empty() {
        selected
    } else {
        declared.keys().cloned().collect()
    };
    let before = report::bindings(&cluster);
    let planner = Planner::new(cluster, settings, credentials, namespaces);
    let planned: BTreeSet<Id> = planner.planned(&selected);
    let ended = planner.run_until_stable(&selected).await;
    if let Some(failure) = planner.trail.take_failure() {
        return Err(failure);
    }
    let all: BTreeSet<Id> = planned
        .into_iter()
        .chain(planner.planned(&selected))
        .chain(selected)
        .collect();
    Ok(report::plan(&planner, &all, &ended, &before, &declared))
}

fn accounts_in_cluster(cluster: &PlanCluster) -> BTreeMap<AccountName, ClusterCredential> {
    let mut accounts = BTreeMap::new();
    let objects = cluster.stored();
    for account in objects.all::<Known<Account>>() {
        accounts.insert(account.account_name(), credential_of(account.as_ref()));
    }
    for account in objects.all::<Known<ClusterAccount>>() {
        accounts.insert(account.account_name(), credential_of(account.as_ref()));
    }
    accounts
}

fn credential_of<A: AnyAccount>(account: &A) -> ClusterCredential {
    ClusterCredential {
        base_url: account.access().base_url.clone(),
        credential: account.credential(),
    }
}

/// Gives the key to the accounts of its platform. The Secret of a ProjectKey holds more than the
/// key, so it is read.
fn give(given: &GivenKey, cluster: &mut PlanCluster) {
    let objects = cluster.stored();
    let of_keys: BTreeSet<String> = objects
        .all::<Known<ProjectKey>>()
        .iter()
        .map(|key| full_name(Some(key.namespace()), &key.spec.secret.name))
        .collect();
    let mut credentials = Vec::new();
    for account in objects.all::<Known<Account>>() {
        if given.is_for(account.access()) {
            credentials.push(account.credential());
        }
    }
    for account in objects.all::<Known<ClusterAccount>>() {
        if given.is_for(account.access()) {
            credentials.push(account.credential());
        }
    }
    drop(objects);
    for credential in credentials {
        let name = full_name(Some(&credential.namespace), &credential.name);
        if !of_keys.contains(&name) {
            cluster.give_secret(name, secret_with(credential, &given.key));
        }
    }
}

fn secret_with(credential: CredentialRef, key: &SecretString) -> Secret {
    let value = ByteString(key.expose_secret().as_bytes().to_vec());
    Secret {
        metadata: ObjectMeta {
            namespace: Some(credential.namespace),
            name: Some(credential.name),
            ..ObjectMeta::default()
        },
        data: Some([(credential.key, value)].into()),
        ..Secret::default()
    }
}
