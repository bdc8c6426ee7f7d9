//! Runs a scenario without faults, and records every version of its resources that the API server
//! shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbplane::decide::names;
use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::lab::Lab;
use super::objects::Objects;
use super::platform::Platform;
use super::point::{prepare, run_until_stable};
use super::scenarios::Scenario;
use super::site::Site;
use crate::support::{Error, PATIENCE, Result, objects, wait_until};

const KINDS: [&str; 5] = [
    "Account",
    "ClusterAccount",
    "Compute",
    "ProjectKey",
    "ReadReplicaSet",
];
/// The longest watch that the API server is asked for. A watch that ends fails the scenario,
/// because versions could be missing.
const WATCHED_SECONDS: u32 = 290;

/// A version of a resource.
#[derive(Clone, Debug)]
pub struct Version {
    pub object: Value,
    /// True after the scene is set: the change may result from the act.
    pub after_the_act: bool,
    /// True if this is the last version of a deleted resource.
    pub gone: bool,
    /// Why the resource was unusable when this version was seen; `None` if it was usable.
    pub unusable: Option<String>,
}

impl Version {
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.object["metadata"]["uid"].as_str().unwrap_or_default()
    }

    pub fn number(&self) -> Result<u64> {
        number(self.object["metadata"]["resourceVersion"].as_str())
    }
}

/// All versions of all resources, in write order for each resource.
pub async fn recorded(lab: Arc<Lab>, scenario: &Scenario) -> Result<Vec<Version>> {
    let _place = lab.place(scenario.elected).await?;
    let (mut site, recorder) = Recorder::open(lab.clone(), scenario).await?;
    prepare(&mut site, scenario).await?;
    let act = recorder.now().await?;
    site.gate.arm(&[]);
    for act in &scenario.act {
        site.perform(act).await?;
    }
    if let Some(what) = run_until_stable(&mut site, &scenario.goal).await? {
        return Err(Error::new(format!(
            "{} does not settle: {what}",
            scenario.name
        )));
    }
    recorder.finish(&site, act).await
}

/// The scenario's resources of one kind.
struct Collection {
    api: Api<DynamicObject>,
    /// The name to select, for cluster-scoped kinds.
    name: Option<String>,
    /// The resource version at which the watch starts.
    from: String,
}

impl Collection {
    async fn list(&self) -> Result<Vec<DynamicObject>> {
        let selected = self.name.iter().fold(ListParams::default(), |all, name| {
            all.fields(&selector(name))
        });
        Ok(self.api.list(&selected).await?.items)
    }
}

fn selector(name: &str) -> String {
    format!("metadata.name={name}")
}

async fn collections(lab: &Lab, namespace: &str) -> Result<Vec<Collection>> {
    let mut found = Vec::new();
    for kind in KINDS {
        let api = objects(&lab.client, namespace, kind);
        let from = api
            .list(&ListParams::default())
            .await?
            .metadata
            .resource_version
            .unwrap_or_default();
        let name = (kind == "ClusterAccount").then(|| namespace.to_owned());
        found.push(Collection { api, name, from });
    }
    Ok(found)
}

/// Since Kubernetes 1.35, resource versions are guaranteed to be increasing numbers.
fn number(resource_version: Option<&str>) -> Result<u64> {
    resource_version
        .unwrap_or_default()
        .parse()
        .map_err(Error::while_doing("reading a resource version"))
}

type Versions = Arc<Mutex<Vec<Version>>>;

/// Watches the resources of a site.
pub struct Recorder {
    collections: Vec<Arc<Collection>>,
    watches: Vec<JoinHandle<Result<()>>>,
    versions: Versions,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

impl Recorder {
    /// Opens a site. The watches start before its account exists.
    pub async fn open(lab: Arc<Lab>, scenario: &Scenario) -> Result<(Site, Self)> {
        let namespace = format!("{}-recorded", scenario.name);
        let collections = collections(&lab, &namespace).await?;
        let site = Site::open(lab, scenario, &namespace).await?;
        let recorder = Self::start(&site, collections);
        Ok((site, recorder))
    }

    /// A lower bound of all later resource versions.
    pub async fn now(&self) -> Result<u64> {
        let listed = self.collections[0].api.list(&ListParams::default()).await?;
        number(listed.metadata.resource_version.as_deref())
    }

    /// The versions recorded after this number.
    pub fn since(&self, number: u64) -> Vec<Version> {
        let all = lock(&self.versions);
        all.iter()
            .filter(|version| version.number().is_ok_and(|it| it > number))
            .cloned()
            .collect()
    }

    fn start(site: &Site, collections: Vec<Collection>) -> Self {
        let collections: Vec<Arc<Collection>> = collections.into_iter().map(Arc::new).collect();
        let versions = Versions::default();
        let watch = |collection: &Arc<Collection>| {
            let witness = Witness {
                objects: site.objects.clone(),
                platform: site.platform.clone(),
            };
            tokio::spawn(watch(collection.clone(), witness, versions.clone()))
        };
        let watches = collections.iter().map(watch).collect();
        Self {
            collections,
            watches,
            versions,
        }
    }

    /// Waits for the last versions. Versions after `act` may result from the act.
    async fn finish(mut self, site: &Site, act: u64) -> Result<Vec<Version>> {
        wait_until(
            "the watches to show the last versions",
            PATIENCE,
            async || {
                self.is_complete().await.unwrap_or_default()
                    || self.watches.iter().any(JoinHandle::is_finished)
            },
        )
        .await?;
        for watch in std::mem::take(&mut self.watches) {
            if watch.is_finished() {
                watch.await.map_err(Error::while_doing("watching"))??;
            } else {
                watch.abort();
            }
        }
        let mut all = std::mem::take(&mut *lock(&self.versions));
        for version in &mut all {
            version.after_the_act = version.number()? > act;
        }
        if all.is_empty() {
            return Err(Error::new(format!(
                "nothing was recorded in {}",
                site.objects.namespace
            )));
        }
        Ok(all)
    }

    async fn is_complete(&self) -> Result<bool> {
        let mut stored = BTreeMap::new();
        for collection in &self.collections {
            let found = collection.list().await?.into_iter();
            stored.extend(
                found.map(|object| (object.metadata.uid, object.metadata.resource_version)),
            );
        }
        let seen = lock(&self.versions);
        let last: BTreeMap<&str, &Version> = seen
            .iter()
            .map(|version| (version.uid(), version))
            .collect();
        let is_last = |version: &&Version| {
            let uid = Some(version.uid().to_owned());
            match stored.get(&uid) {
                Some(found) => {
                    version.object["metadata"]["resourceVersion"].as_str() == found.as_deref()
                }
                None => version.gone,
            }
        };
        Ok(last.values().all(is_last)
            && stored
                .keys()
                .flatten()
                .all(|uid| last.contains_key(uid.as_str())))
    }
}

fn lock(versions: &Versions) -> MutexGuard<'_, Vec<Version>> {
    versions.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch(collection: Arc<Collection>, witness: Witness, versions: Versions) -> Result<()> {
    let params = WatchParams::default().timeout(WATCHED_SECONDS);
    let params = collection
        .name
        .iter()
        .fold(params, |all, name| all.fields(&selector(name)));
    let mut events = collection
        .api
        .watch(&params, &collection.from)
        .await?
        .boxed();
    while let Some(event) = events.try_next().await? {
        let (object, gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => return Err(Error::new(format!("a watch failed: {error}"))),
        };
        let object = json!(object);
        let unusable = witness.unusable(&object).await?;
        lock(&versions).push(Version {
            object,
            after_the_act: false,
            gone,
            unusable,
        });
    }
    Err(Error::new("a watch ended before its scenario"))
}

/// Inspects the cluster and the platform when a version is seen.
struct Witness {
    objects: Objects,
    platform: Arc<Platform>,
}

impl Witness {
    async fn unusable(&self, object: &Value) -> Result<Option<String>> {
        match object["kind"].as_str() {
            Some("Compute") => self.unusable_compute(object),
            Some("ProjectKey") => self.unusable_key(object).await,
            _ => Ok(None),
        }
    }

    fn unusable_compute(&self, object: &Value) -> Result<Option<String>> {
        let Some(id) = object["status"]["computeID"].as_str() else {
            return Ok(Some("it names no compute".to_owned()));
        };
        let Some(size) = self.platform.serves(id)? else {
            return Ok(Some(format!("compute {id} does not serve")));
        };
        let declared = &object["spec"]["size"]["fixed"];
        if !declared.is_null() && size != format!("{declared} CU") {
            return Ok(Some(format!("compute {id} has {size}")));
        }
        let (requested, restart) = (
            &object["spec"]["restartToken"],
            &object["status"]["restart"],
        );
        let restarted = requested == &restart["token"] && !restart["completedAt"].is_null();
        Ok((!requested.is_null() && !restarted)
            .then(|| format!("compute {id} was not restarted for {requested}")))
    }

    /// During a rotation the status may name either key, so the key in the Secret counts.
    async fn unusable_key(&self, object: &Value) -> Result<Option<String>> {
        let name = object["spec"]["secret"]["name"]
            .as_str()
            .unwrap_or_default();
        let secret = self.objects.get("Secret", name).await?.unwrap_or_default();
        let Some(held) = secret["metadata"]["annotations"][names::SECRET_KEY_ID].as_str() else {
            return Ok(Some(format!("Secret {name} holds no key")));
        };
        let valid = self
            .platform
            .keys()?
            .iter()
            .any(|key| key.id.to_string() == held && !key.revoked);
        Ok((!valid).then(|| format!("Secret {name} holds key {held}, which is not valid")))
    }
}
