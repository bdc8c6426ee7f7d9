//! Checks of the final state, in the cluster and on the platform.

use std::fmt;
use std::time::Duration;

use dbplane::leadership::lease::LEASE_DURATION;
use k8s_openapi::ByteString;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::guarantees;
use super::manifests::key_secret;
use super::modes::{Mode, YOUTH};
use super::objects::{condition, name};
use super::passages::Purpose;
use super::platform::{PROJECT, TO_ADOPT};
use super::scenarios::Goal;
use super::site::{FOREIGN_SECRET, Site};
use super::world::world;
use crate::support::{Error, Result};

/// The pause between two requests with a key that is refused.
const POLL: Duration = Duration::from_millis(200);

/// The first part of the goal that is not reached yet.
pub async fn unsettled(site: &Site, goal: &Goal) -> Result<Option<String>> {
    if let Some(behind) = counts(site, goal)
        .iter()
        .find(|count| count.done < count.wanted)
    {
        return Ok(Some(behind.to_string()));
    }
    if site.platform.done("POST", "/api_keys") < goal.created_keys {
        return Ok(Some("a key is not created yet".to_owned()));
    }
    let found = if goal.namespace_gone {
        site.objects
            .get("Namespace", &site.objects.namespace)
            .await?
            .map(|_| "the namespace exists".to_owned())
    } else {
        unsettled_resources(site, goal).await?
    };
    match found {
        None => left_on_platform(site, goal).await,
        some => Ok(some),
    }
}

async fn unsettled_resources(site: &Site, goal: &Goal) -> Result<Option<String>> {
    for (kind, wanted) in [("Compute", &goal.computes), ("ProjectKey", &goal.keys)] {
        let found = site.objects.list(kind).await?;
        if let Some(missing) = wanted
            .iter()
            .find(|wanted| !found.iter().any(|object| name(object) == **wanted))
        {
            return Ok(Some(format!("{kind} {missing} does not exist")));
        }
        for object in &found {
            if !wanted.contains(&name(object)) {
                return Ok(Some(format!(
                    "{kind} {} exists: {}",
                    name(object),
                    object["status"]
                )));
            }
            if let Some(what) = unready(object, site) {
                return Ok(Some(format!(
                    "{kind} {} {what}: {}",
                    name(object),
                    object["status"]
                )));
            }
        }
    }
    let sets = site.objects.list("ReadReplicaSet").await?;
    let twin = site.gate.made_twice(Purpose::CreatesCompute) > 0;
    let what = sets
        .iter()
        .find_map(|set| Some((set, incomplete(set, twin)?)));
    Ok(what.map(|(set, what)| format!("ReadReplicaSet {} {what}: {}", name(set), set["status"])))
}

/// The first difference between a set and its declaration. `twin`: a create was made twice.
fn incomplete(set: &Value, twin: bool) -> Option<String> {
    let declared = &set["spec"]["replicas"];
    let numbers = ["replicas", "readyReplicas", "updatedReplicas"];
    if let Some(number) = numbers
        .into_iter()
        .find(|number| set["status"][number] != *declared)
    {
        return Some(format!("has another number of {number} than is declared"));
    }
    not_current(set, twin)
}

/// A set must be Ready, in sync and current, without anything in progress. It quotes a replica that
/// reports a twin.
fn not_current(object: &Value, twin: bool) -> Option<String> {
    let is = |kind: &str| condition(object, kind).is_some_and(|it| it["status"] == "True");
    if object["status"]["observedGeneration"] != object["metadata"]["generation"] {
        return Some("was not looked at since its last change".to_owned());
    }
    let quotes_twin =
        twin && condition(object, "Synced").is_some_and(|it| it["reason"] == "StrayCompute");
    if !is("Ready") || !is("Synced") && !quotes_twin {
        return Some("is not ready and in sync".to_owned());
    }
    let kind = ["Reconciling", "Stalled"]
        .into_iter()
        .find(|kind| condition(object, kind).is_some());
    kind.map(|kind| format!("is {kind}"))
}

/// True if the message of Synced names a listed compute that is not the resource's own.
fn names_another_compute(object: &Value, site: &Site) -> bool {
    let message = condition(object, "Synced")
        .and_then(|synced| synced["message"].as_str())
        .unwrap_or_default();
    let own = object["status"]["computeID"].as_str();
    let listed = site.platform.computes().unwrap_or_default();
    listed
        .iter()
        .any(|id| own != Some(id) && message.contains(id.as_str()))
}

/// A resource must be Ready, in sync and current, without anything in progress or unresolved.
fn unready(object: &Value, site: &Site) -> Option<String> {
    let lists_keys = site.platform.lists_keys;
    let has = |kind: &str, field: &str, value: &str| {
        condition(object, kind).is_some_and(|it| it[field] == value)
    };
    let meta = &object["metadata"];
    if object["status"]["observedGeneration"] != meta["generation"] {
        return Some("was not looked at since its last change".to_owned());
    }
    let lost = object["status"]["lostKeys"]
        .as_array()
        .is_some_and(|keys| !keys.is_empty());
    if lost && lists_keys {
        return Some("has lost keys, which could be revoked".to_owned());
    }
    // A user has to revoke these keys where dbplane cannot.
    let waits = lost && has("Synced", "reason", "RevocationUnsupported");
    // The minimal platform does not show when a compute started, and one of the simulator restarts
    // in 200 ms: a later list shows no trace of it.
    let unconfirmed = !lists_keys && site.gate.passages().lost_answer_to_restart();
    let waits = waits || unconfirmed && has("Synced", "reason", "RestartUnconfirmed");
    let twin = site.gate.made_twice(Purpose::CreatesCompute) > 0;
    let waits = waits
        || twin && has("Synced", "reason", "StrayCompute") && names_another_compute(object, site);
    if !has("Ready", "status", "True") || (!has("Synced", "status", "True") && !waits) {
        return Some("is not ready and in sync".to_owned());
    }
    if let Some(kind) = ["Reconciling", "Stalled"]
        .into_iter()
        .find(|kind| condition(object, kind).is_some())
    {
        return Some(format!("is {kind}"));
    }
    if meta["finalizers"].as_array().is_none_or(Vec::is_empty) {
        return Some("is held by no finalizer".to_owned());
    }
    if !guarantees::is_annotated(object) {
        return Some("has another record in its annotation than in its status".to_owned());
    }
    let is_open = object["status"]["record"]
        .as_str()
        .is_some_and(|text| text.contains("\"intent\":"));
    is_open.then(|| "still has an intent".to_owned())
}

/// Compares the platform with the resources, in both directions.
async fn left_on_platform(site: &Site, goal: &Goal) -> Result<Option<String>> {
    let world = world(site, goal).await?;
    if let Some(forgotten) = guarantees::forgotten_computes(&world).first() {
        return Ok(Some(format!(
            "compute {} belongs to no resource",
            forgotten.id
        )));
    }
    if let Some(forgotten) = guarantees::forgotten_keys(&world).first() {
        return Ok(Some(format!(
            "key {} ({}) is valid and belongs to no resource",
            forgotten.name, forgotten.id
        )));
    }
    let computes = world
        .resources
        .iter()
        .find_map(|it| guarantees::without_compute(&world, it));
    Ok(computes.or_else(|| {
        world
            .project_keys
            .iter()
            .find_map(|it| guarantees::without_key(&world, it))
    }))
}

/// The expected and the actual number of changes on the platform.
struct Count {
    what: &'static str,
    wanted: usize,
    done: usize,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "computes {}: {} instead of {}",
            self.what, self.done, self.wanted
        )
    }
}

fn counts(site: &Site, goal: &Goal) -> [Count; 4] {
    let platform = &site.platform;
    let restarted = platform.done("POST", "/restart");
    let repeated = site.gate.passages().changes_repeated_after_a_stop();
    let twins = site.gate.made_twice(Purpose::CreatesCompute);
    [
        (
            "created",
            goal.created,
            platform.done("POST", "/endpoints") - restarted - twins,
        ),
        ("restarted", goal.restarted, restarted),
        (
            "changed",
            goal.changed,
            platform.done("PATCH", "/endpoints/") - repeated,
        ),
        (
            "deleted",
            goal.deleted,
            platform.done("DELETE", "/endpoints/"),
        ),
    ]
    .map(|(what, wanted, done)| Count { what, wanted, done })
}

/// Forbidden changes, and results that cannot be used.
pub async fn violations(site: &Site, goal: &Goal) -> Result<Vec<String>> {
    let platform = &site.platform;
    let mut found: Vec<String> = platform
        .forbidden_changes()
        .into_iter()
        .map(|what| format!("unasked: {what}"))
        .collect();
    found.extend(platform.foreign_change()?);
    found.extend(guarantees::bound_wrongly(&world(site, goal).await?));
    let wrong = counts(site, goal)
        .into_iter()
        .filter(|count| count.done != count.wanted);
    found.extend(wrong.map(|count| count.to_string()));
    found.extend(wasted_keys(site, goal));
    if site.elected {
        found.extend(site.gate.passages().change_of_a_former_leader());
        found.extend(lease_that_ran_out(site));
    }
    if !platform.has(TO_ADOPT)? {
        found.push(format!("compute {TO_ADOPT} was deleted"));
    }
    if !goal.namespace_gone {
        if site.objects.get("Secret", FOREIGN_SECRET).await? != Some(site.foreign_secret.clone()) {
            found.push(format!(
                "Secret {FOREIGN_SECRET}, which is not ours, was changed"
            ));
        }
        for key in &goal.keys {
            found.extend(unusable(site, key).await?);
        }
        for compute in &goal.computes {
            found.extend(wrong_connection_secret(site, compute).await?);
        }
    }
    Ok(found)
}

/// A leader that is asked to end releases the Lease, so that its successor need not wait for the
/// expiry.
fn lease_that_ran_out(site: &Site) -> Option<String> {
    let rolled = site.gate.met().iter().any(|met| met.mode == Mode::Rolled);
    let without = site
        .gate
        .passages()
        .without_leader()
        .filter(|time| rolled && *time >= LEASE_DURATION);
    without.map(|time| format!("nobody led for {time:?} after the leader was asked to end"))
}

/// Additional keys are created only if a secret can have been lost.
fn wasted_keys(site: &Site, goal: &Goal) -> Option<String> {
    let created = site.platform.done("POST", "/api_keys");
    let twins = site.gate.made_twice(Purpose::CreatesKey);
    let most = goal.created_keys + twins + site.gate.passages().keys_replaced_with_cause();
    (created > most).then(|| format!("keys created: {created} instead of {}", goal.created_keys))
}

/// The Secret must hold a key that the platform accepts, at once or when it is no longer young.
async fn unusable(site: &Site, key: &str) -> Result<Option<String>> {
    let name = key_secret(key);
    let Some(secret) = site.objects.get("Secret", &name).await? else {
        return Ok(Some(format!("Secret {name} does not exist")));
    };
    let token = entry(&secret, "api-key");
    let url = format!(
        "{}/projects/{PROJECT}/endpoints",
        site.platform.simulator.base_url()
    );
    let refuses_young = site.gate.met().iter().any(|met| met.mode == Mode::YoungKey);
    let until = Instant::now() + if refuses_young { YOUTH } else { Duration::ZERO };
    let status = loop {
        let answer = site.lab.http.get(&url).bearer_auth(&token).send().await;
        let status = answer
            .map_err(Error::while_doing("asking the platform"))?
            .status()
            .as_u16();
        if status != 401 || Instant::now() >= until {
            break status;
        }
        sleep(POLL).await;
    };
    Ok((status != 200).then(|| format!("the key in Secret {name} is answered with {status}")))
}

/// The connection Secret must name the same compute as the status.
async fn wrong_connection_secret(site: &Site, compute: &str) -> Result<Option<String>> {
    let Some(object) = site.objects.get("Compute", compute).await? else {
        return Ok(None);
    };
    let Some(name) = object["spec"]["connection"]["secretName"].as_str() else {
        return Ok(None);
    };
    let secret = site.objects.get("Secret", name).await?.unwrap_or_default();
    let (named, bound) = (entry(&secret, "computeID"), &object["status"]["computeID"]);
    Ok((*bound != named)
        .then(|| format!("Secret {name} names compute {named:?} instead of {bound}")))
}

fn entry(secret: &Value, name: &str) -> String {
    let bytes: ByteString =
        serde_json::from_value(secret["data"][name].clone()).unwrap_or_default();
    String::from_utf8_lossy(&bytes.0).into_owned()
}
