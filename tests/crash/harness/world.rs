//! The final state of the cluster and the platform, as input of the promises.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dbplane::decide::names;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::guarantees::{self, BoundCompute, LiveCompute, LiveKey, Maker, RecordedKey, World};
use super::objects::condition;
use super::platform::{FOREIGN, TO_ADOPT};
use super::scenarios::Goal;
use super::site::Site;
use crate::support::{Error, Result};

pub async fn world(site: &Site, goal: &Goal) -> Result<World> {
    let (computes, keys) = if goal.namespace_gone {
        (Vec::new(), Vec::new())
    } else {
        (
            site.objects.list("Compute").await?,
            site.objects.list("ProjectKey").await?,
        )
    };
    let mut key_secrets = BTreeMap::new();
    for key in &keys {
        if let Some(name) = key["spec"]["secret"]["name"].as_str() {
            let secret = site.objects.get("Secret", name).await?.unwrap_or_default();
            key_secrets.insert(name.to_owned(), key_of(&secret));
        }
    }
    Ok(World {
        computes: live_computes(site)?,
        keys: live_keys(site)?,
        resources: computes
            .iter()
            .map(|object| typed(object).map(BoundCompute::from))
            .collect::<Result<_>>()?,
        project_keys: keys
            .iter()
            .map(|object| typed(object).map(RecordedKey::from))
            .collect::<Result<_>>()?,
        key_secrets,
        known_keys: BTreeSet::new(),
        keys_left: keys.iter().flat_map(keys_left).collect(),
        strays: computes.iter().flat_map(reported_strays).collect(),
    })
}

/// Keys that the status lists as valid but not in use.
fn keys_left(object: &Value) -> Vec<String> {
    let listed = ["lostKeys", "previousKeys"]
        .into_iter()
        .filter_map(|keys| object["status"][keys].as_array());
    listed
        .flatten()
        .filter_map(|key| key["name"].as_str().map(str::to_owned))
        .collect()
}

/// Names in the condition that reports additional computes of a create.
fn reported_strays(object: &Value) -> Vec<String> {
    let synced = condition(object, "Synced").filter(|synced| synced["reason"] == "StrayCompute");
    let message = synced.and_then(|synced| synced["message"].as_str());
    message
        .into_iter()
        .flat_map(guarantees::words)
        .map(str::to_owned)
        .collect()
}

fn live_computes(site: &Site) -> Result<Vec<LiveCompute>> {
    let ours = site.platform.computes()?.into_iter();
    let ours = ours.map(|id| LiveCompute {
        id,
        made_by: Maker::Operator(None),
        late: false,
    });
    let mut all: Vec<LiveCompute> = ours.collect();
    for id in FOREIGN.into_iter().chain([TO_ADOPT]) {
        if site.platform.has(id)? {
            all.push(LiveCompute {
                id: id.to_owned(),
                made_by: Maker::SomebodyElse,
                late: false,
            });
        }
    }
    Ok(all)
}

fn live_keys(site: &Site) -> Result<Vec<LiveKey>> {
    let live = site.platform.keys()?.into_iter().filter(|key| !key.revoked);
    Ok(live
        .map(|key| LiveKey {
            id: key.id,
            name: key.name,
            made_by: Maker::Operator(None),
        })
        .collect())
}

fn key_of(secret: &Value) -> Option<i64> {
    secret["metadata"]["annotations"][names::SECRET_KEY_ID]
        .as_str()?
        .parse()
        .ok()
}

fn typed<T: DeserializeOwned>(object: &Value) -> Result<Arc<T>> {
    serde_json::from_value(object.clone())
        .map(Arc::new)
        .map_err(Error::while_doing("reading an object"))
}
