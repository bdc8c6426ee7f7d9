//! Checks that the operator makes exactly the calls of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::lab::Lab;
use super::point::{prepare, run_until_stable};
use super::scenarios::{Act, Scenario};
use super::site::Site;
use crate::support::{Error, PATIENCE, Result};

const LOOK: Duration = Duration::from_millis(100);

/// Calls that change the platform, as planned and as made.
#[derive(Debug)]
pub struct Compared {
    pub scenario: String,
    pub planned: Vec<String>,
    pub made: Vec<String>,
    pub differences: Vec<String>,
}

/// Sets the scene, stops the operator, performs the acts, makes a plan, and restarts the operator.
pub async fn planned(lab: Arc<Lab>, scenario: Scenario) -> Result<Compared> {
    let _place = lab.place(scenario.elected).await?;
    alone(lab.clone(), &scenario).await
}

async fn alone(lab: Arc<Lab>, scenario: &Scenario) -> Result<Compared> {
    let namespace = format!("{}-planned", scenario.name);
    let mut site = Site::open(lab, scenario, &namespace).await?;
    let compared = compare(&mut site, scenario).await;
    compared.map_err(|error| Error::new(format!("{}: {error}", scenario.name)))
}

async fn compare(site: &mut Site, scenario: &Scenario) -> Result<Compared> {
    prepare(site, scenario).await?;
    site.stop_operators().await?;
    site.gate.arm(&[]);
    for act in &scenario.act {
        site.perform(act).await?;
    }
    until_deletions_are_known(site, scenario).await?;
    let (before, objects) = (site.platform.requests().len(), versions(site).await?);
    let plan = site.plan().await?;
    let during = site.platform.requests().split_off(before);
    let mut differences: Vec<String> = during
        .iter()
        .filter(|entry| entry.method != "GET")
        .map(|entry| {
            format!(
                "{}: the plan sent {} {}",
                scenario.name, entry.method, entry.path
            )
        })
        .collect();
    // Kubernetes itself writes to a namespace that is being deleted.
    let is_left_alone = !scenario
        .act
        .iter()
        .any(|act| matches!(act, Act::DeleteNamespace));
    if is_left_alone && versions(site).await? != objects {
        differences.push(format!("{}: the plan wrote to the cluster", scenario.name));
    }
    let known: BTreeSet<String> = site
        .platform
        .computes()?
        .into_iter()
        .chain(keys(site)?)
        .collect();
    let after = site.platform.requests().len();
    site.restart_ended(true).await?;
    if let Some(left) = run_until_stable(site, &scenario.goal).await? {
        return Err(Error::new(format!("not settled: {left}")));
    }
    let made = made(site, after, &known);
    let planned = of_plan(&plan);
    if by_target(&planned) != by_target(&made) {
        differences.push(format!(
            "{}: planned {planned:?}, made {made:?}\n{plan:#}",
            scenario.name
        ));
    }
    let unknown = plan["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| !it["unknown"].is_null());
    differences.extend(unknown.map(|it| format!("{}: unknown: {it}", scenario.name)));
    Ok(Compared {
        scenario: scenario.name.to_owned(),
        planned,
        made,
        differences,
    })
}

fn keys(site: &Site) -> Result<Vec<String>> {
    Ok(site
        .platform
        .keys()?
        .into_iter()
        .map(|key| key.id.to_string())
        .collect())
}

/// Waits until cascading deletions have reached every Compute and ProjectKey.
async fn until_deletions_are_known(site: &Site, scenario: &Scenario) -> Result<()> {
    let of_all = |act: &Act| matches!(act, Act::DeleteNamespace | Act::Delete("ReadReplicaSet", _));
    if !scenario.act.iter().any(of_all) {
        return Ok(());
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let (computes, keys) = (
            site.objects.list("Compute").await?,
            site.objects.list("ProjectKey").await?,
        );
        if computes
            .iter()
            .chain(&keys)
            .all(|object| !object["metadata"]["deletionTimestamp"].is_null())
        {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Error::new(
        "what is deleted with something else is not being deleted in time",
    ))
}

/// The resource versions of all objects that an operator may write.
async fn versions(site: &Site) -> Result<BTreeMap<String, Value>> {
    let mut versions = BTreeMap::new();
    for kind in [
        "Account",
        "Compute",
        "ProjectKey",
        "ReadReplicaSet",
        "Secret",
    ] {
        for object in site.objects.list(kind).await? {
            let name = format!("{kind} {}", object["metadata"]["name"]);
            versions.insert(name, object["metadata"]["resourceVersion"].clone());
        }
    }
    Ok(versions)
}

/// The calls in a plan.
fn of_plan(plan: &Value) -> Vec<String> {
    let steps = plan["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|it| it["steps"].as_array());
    let call = |step: &Value| {
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        let compute = match text("compute") {
            new if new.starts_with("new-compute-") => "new".to_owned(),
            known => known,
        };
        let key = if text("key") == "a new one" {
            "new".to_owned()
        } else {
            text("key")
        };
        Some(match step["action"].as_str()? {
            "createCompute" => "POST endpoints".to_owned(),
            "changeCompute" => format!("PATCH {compute}"),
            "restartCompute" => format!("POST {compute} restart"),
            "deleteCompute" => format!("DELETE {compute}"),
            "createKey" => "POST api_keys".to_owned(),
            "revokeKey" => format!("DELETE {key}"),
            _ => return None,
        })
    };
    steps.flatten().filter_map(call).collect()
}

/// The calls carried out after the first `since` requests.
fn made(site: &Site, since: usize, known: &BTreeSet<String>) -> Vec<String> {
    let entries = site.platform.requests().split_off(since).into_iter();
    let changes = entries.filter(|it| {
        it.method != "GET" && it.status.is_some_and(|status| (200..300).contains(&status))
    });
    let call = |method: &str, path: &str| {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let id = |id: &str| {
            let is_known = known.contains(id) || id == super::platform::TO_ADOPT;
            if is_known {
                id.to_owned()
            } else {
                "new".to_owned()
            }
        };
        match segments.as_slice() {
            [.., last @ ("endpoints" | "api_keys")] => format!("{method} {last}"),
            [.., compute, "restart"] => format!("{method} {} restart", id(compute)),
            [.., last] => format!("{method} {}", id(last)),
            [] => method.to_owned(),
        }
    };
    changes.map(|it| call(&it.method, &it.path)).collect()
}

/// Groups calls by compute or key. Their order matters only within one group.
fn by_target(calls: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut by_target: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in calls {
        let target = call.split(' ').nth(1).unwrap_or_default().to_owned();
        by_target.entry(target).or_default().push(call.clone());
    }
    by_target
}
