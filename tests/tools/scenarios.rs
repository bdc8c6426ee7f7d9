//! Judges every version of every resource in all scenarios.

use std::collections::BTreeMap;
use std::path::PathBuf;

use futures::future::join_all;
use serde_json::Value;

use crate::checks::installed;
use crate::course::{Deed, flaw};
use crate::harness::{Act, Lab, Scenario, Version, key_secret, recorded, scenarios};
use crate::judge::{Verdict, judge};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_resource_is_current_too_early_or_oscillates() {
    let lab = Lab::shared(PathBuf::from(env!("CARGO_BIN_EXE_dbplane")))
        .await
        .unwrap();
    let checks = &installed().await.patched;
    let scenarios = scenarios();
    let recordings = join_all(
        scenarios
            .iter()
            .map(|scenario| recorded(lab.clone(), scenario)),
    )
    .await;
    let mut flaws = Vec::new();
    for (recording, scenario) in recordings.into_iter().zip(&scenarios) {
        let versions = recording.unwrap();
        let objects: Vec<Value> = versions
            .iter()
            .map(|version| version.object.clone())
            .collect();
        let seen: Vec<(Version, Verdict)> =
            versions.into_iter().zip(judge(checks, &objects)).collect();
        let found = seen
            .iter()
            .filter_map(|(version, verdict)| too_early(&scenario.act, version, verdict));
        let found = found.chain(courses(scenario, &seen));
        flaws.extend(found.map(|what| format!("{}: {what}", scenario.name)));
    }
    assert!(flaws.is_empty(), "{flaws:#?}");
}

/// The reason why a tool reports success too early, if it does.
fn too_early(acts: &[Act], version: &Version, verdict: &Verdict) -> Option<String> {
    let Version {
        object, unusable, ..
    } = version;
    let expected = match verdict.kstatus.as_str() {
        "Current" => "Healthy",
        "Failed" => "Degraded",
        _ => "Progressing",
    };
    let what = format!("{} {}: {verdict:?}", version.kind(), version.name());
    if verdict.health != expected {
        return Some(format!("{what}, and Argo CD should say {expected}"));
    }
    if verdict.kstatus != "Current" {
        return None;
    }
    let ready = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    if !ready
        .into_iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    {
        return Some(format!("{what}, and it is not Ready"));
    }
    if object["status"]["observedGeneration"] != object["metadata"]["generation"] {
        return Some(format!("{what}, and its last change was not looked at"));
    }
    // A Secret deleted by a user is gone before dbplane can report it (docs/guide/gitops.md).
    let taken_away = version.after_the_act
        && acts
            .iter()
            .any(|act| matches!(act, Act::Delete("Secret", _)));
    if taken_away {
        return None;
    }
    unusable.as_ref().map(|why| format!("{what}, and {why}"))
}

/// Errors in the order of statuses.
fn courses(scenario: &Scenario, seen: &[(Version, Verdict)]) -> Vec<String> {
    // Two operators that do not know each other both write what they see (docs/guarantees.md, 5).
    if scenario.operators > 1 {
        return Vec::new();
    }
    let mut stages: BTreeMap<(bool, &str, &str), Vec<&str>> = BTreeMap::new();
    for (version, verdict) in seen {
        let stage = stages
            .entry((version.after_the_act, version.kind(), version.name()))
            .or_default();
        stage.push(&verdict.kstatus);
    }
    let flaws = stages.iter().filter_map(|((after, kind, name), statuses)| {
        let deed = if *after {
            deed(scenario, kind, name)
        } else {
            Deed::Created
        };
        Some(format!("{kind} {name}, {}", flaw(deed, statuses)?))
    });
    flaws.collect()
}

/// The effect of the scenario's act on a resource.
fn deed(scenario: &Scenario, kind: &str, name: &str) -> Deed {
    let is = |other: (&str, &str)| other == (kind, name);
    let done = scenario.act.iter().find_map(|act| match act {
        // The act concerns the set, which creates, changes and deletes its Computes.
        Act::Create(manifest) if manifest["kind"] == "ReadReplicaSet" && kind == "Compute" => {
            Some(Deed::Created)
        }
        Act::Change("ReadReplicaSet", ..) | Act::Delete("ReadReplicaSet", _)
            if kind == "Compute" =>
        {
            Some(Deed::OfItsSet)
        }
        Act::Create(manifest) => {
            let created = (
                manifest["kind"].as_str()?,
                manifest["metadata"]["name"].as_str()?,
            );
            is(created).then_some(Deed::Created)
        }
        Act::Change(kind, name, _) => is((kind, name)).then_some(Deed::Changed),
        Act::Age(kind, name) | Act::Annotate(kind, name, ..) => {
            is((kind, name)).then_some(Deed::Changed)
        }
        Act::Delete("Secret", secret) => {
            (kind == "ProjectKey" && *secret == key_secret(name)).then_some(Deed::Changed)
        }
        Act::Delete("ReadReplicaSet", name) if is(("ReadReplicaSet", name)) => {
            Some(Deed::DeletedAtOnce)
        }
        Act::Delete(kind, name) => is((kind, name)).then_some(Deed::Deleted),
        Act::DeleteNamespace => (kind != "ClusterAccount").then_some(Deed::DeletedWithNamespace),
    });
    done.unwrap_or(Deed::Nothing)
}
