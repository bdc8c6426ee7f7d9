//! A day of a few resources: the judgement of tools in each stage and in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use dbplane::decide::names;
use serde_json::{Value, json};

use crate::checks::installed;
use crate::harness::{
    ADMIN, BRANCH_TO_ADOPT, EMPTY_BRANCH, FOREIGN, FOREIGN_SECRET, Goal, Lab, Recorder,
    SHARED_BRANCH, Scenario, Site, TO_ADOPT, Version, account, compute, condition, key, prepare,
    secret, with,
};
use crate::judge::{Verdict, judge};
use crate::support::{PATIENCE, wait_until};

/// The quiet period that ends a stage.
const QUIET: Duration = Duration::from_millis(800);

type Name = (&'static str, &'static str);

/// A user's action.
enum Deed {
    Create(Value),
    /// A merge patch for any object.
    Patch(Name, Value),
    Delete(Name),
}

/// An action with the expected result.
struct Stage {
    deed: Deed,
    of: Name,
    /// The type and reason of a condition; `None` if the object must be gone.
    until: Option<(&'static str, &'static str)>,
    kstatus: &'static str,
    health: &'static str,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_stage_is_reached_without_a_detour() {
    let lab = Lab::shared(PathBuf::from(env!("CARGO_BIN_EXE_dbplane")))
        .await
        .unwrap();
    let checks = &installed().await.patched;
    let scenario = Scenario::new("stages", Vec::new(), Goal::default());
    let (mut site, recorder) = Recorder::open(lab, &scenario).await.unwrap();
    prepare(&mut site, &scenario).await.unwrap();
    let stages = stages();
    let mut begun = Vec::new();
    for stage in &stages {
        begun.push(recorder.now().await.unwrap());
        perform(&site, &stage.deed).await;
        reach(&site, &recorder, stage, begun[begun.len() - 1]).await;
    }
    let versions = recorder.since(0);
    let objects: Vec<Value> = versions
        .iter()
        .map(|version| version.object.clone())
        .collect();
    let seen: Vec<(Version, Verdict)> = versions.into_iter().zip(judge(checks, &objects)).collect();
    let mut before = BTreeMap::new();
    for (stage, (from, to)) in stages
        .iter()
        .zip(begun.iter().zip(begun[1..].iter().chain([&u64::MAX])))
    {
        let within = seen
            .iter()
            .filter(|(version, _)| (*from..*to).contains(&(version.number().unwrap() - 1)));
        check(stage, &within.collect::<Vec<_>>(), &mut before);
    }
}

/// The resource has each status at most once and ends with the expected one; other resources keep
/// their statuses.
fn check(
    stage: &Stage,
    within: &[&(Version, Verdict)],
    before: &mut BTreeMap<(String, String), String>,
) {
    let mut courses: BTreeMap<(&str, &str), Vec<&Verdict>> = BTreeMap::new();
    for (version, verdict) in within {
        courses
            .entry((version.kind(), version.name()))
            .or_default()
            .push(verdict);
    }
    for (name, verdicts) in courses {
        let mut course: Vec<&str> = verdicts
            .iter()
            .map(|verdict| verdict.kstatus.as_str())
            .collect();
        let key = (name.0.to_owned(), name.1.to_owned());
        course.splice(0..0, before.get(&key).map(String::as_str));
        course.dedup();
        let what = format!("{:?} {:?}: {name:?} {course:?}", stage.of, stage.until);
        // The first and the last status may be the same.
        let once = course[1..].iter().collect::<BTreeSet<_>>().len() == course.len() - 1;
        assert!(once && course.len() <= 3, "{what}");
        let last = verdicts[verdicts.len() - 1];
        if name == stage.of {
            assert_eq!(
                (&*last.kstatus, &*last.health),
                (stage.kstatus, stage.health),
                "{what}"
            );
        } else {
            assert_eq!(course.len(), 1, "{what}");
        }
        before.insert(key, last.kstatus.clone());
    }
    assert!(
        within
            .iter()
            .any(|(version, _)| (version.kind(), version.name()) == stage.of),
        "{:?}",
        stage.of
    );
}

async fn perform(site: &Site, deed: &Deed) {
    let done = match deed {
        Deed::Create(manifest) if manifest["spec"]["projectID"].is_string() => {
            site.declare(manifest).await
        }
        Deed::Create(manifest) => site.objects.create(manifest).await,
        Deed::Patch((kind, name), patch) => site.objects.patch(kind, name, patch).await,
        Deed::Delete((kind, name)) => site.objects.delete(kind, name).await,
    };
    done.unwrap();
}

/// Waits until the resource is in the expected state and nothing is written any more.
async fn reach(site: &Site, recorder: &Recorder, stage: &Stage, begun: u64) {
    let looked_at =
        |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let there = |version: &Version| match stage.until {
        None => version.gone,
        // A paused resource is not reconciled.
        Some((kind, _)) if kind != "Paused" && !looked_at(&version.object) => false,
        Some((kind, reason)) => {
            condition(&version.object, kind).is_some_and(|it| it["reason"] == reason)
        }
    };
    let mut last = None;
    let reached = wait_until("the stage", PATIENCE, async || {
        let versions = recorder.since(begun);
        last = versions
            .into_iter()
            .rfind(|version| (version.kind(), version.name()) == stage.of);
        last.as_ref().is_some_and(there) && site.gate.quiet_for() >= QUIET
    });
    let reached = reached.await;
    assert!(
        reached.is_ok(),
        "{:?} is not {:?} but {last:#?}",
        stage.of,
        stage.until
    );
}

fn stages() -> Vec<Stage> {
    [
        computes(),
        foreign_secret(),
        waiting(),
        accounts(),
        deletion(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

fn stage(
    deed: Deed,
    of: Name,
    until: (&'static str, &'static str),
    (kstatus, health): Name,
) -> Stage {
    Stage {
        deed,
        of,
        until: Some(until),
        kstatus,
        health,
    }
}

fn gone(deed: Deed, of: Name) -> Stage {
    let (kstatus, health) = TERMINATING;
    Stage {
        deed,
        of,
        until: None,
        kstatus,
        health,
    }
}

const ORDERS: Name = ("Compute", "orders");
const TAKEN: Name = ("Compute", "taken");
const CI: Name = ("ProjectKey", "ci");
const OTHER: Name = ("Account", "other");

const CURRENT: Name = ("Current", "Healthy");
const FAILED: Name = ("Failed", "Degraded");
const IN_PROGRESS: Name = ("InProgress", "Progressing");
const TERMINATING: Name = ("Terminating", "Progressing");

fn computes() -> Vec<Stage> {
    let orders = with(
        compute("orders", EMPTY_BRANCH, "ReadWrite"),
        &json!({"size": {"fixed": 1}}),
    );
    let rival = with(
        compute("rival", BRANCH_TO_ADOPT, "ReadWrite"),
        &json!({"computeID": TO_ADOPT}),
    );
    let taken = compute("taken", BRANCH_TO_ADOPT, "ReadWrite");
    let observed = |name: &str, id: &str| {
        let observe =
            json!({"computeID": id, "management": "Observe", "scaleToZero": {"after": "47m"}});
        Deed::Create(with(compute(name, SHARED_BRANCH, "ReadOnly"), &observe))
    };
    vec![
        stage(
            Deed::Create(orders),
            ORDERS,
            ("Ready", "Available"),
            CURRENT,
        ),
        stage(
            Deed::Create(taken),
            TAKEN,
            ("Stalled", "PrimaryExists"),
            FAILED,
        ),
        stage(
            Deed::Patch(TAKEN, spec(json!({"existing": "Adopt"}))),
            TAKEN,
            ("Ready", "Available"),
            CURRENT,
        ),
        stage(
            Deed::Create(rival),
            ("Compute", "rival"),
            ("Stalled", "ClaimedByAnother"),
            FAILED,
        ),
        stage(
            observed("missing", "ep-unknown-1"),
            ("Compute", "missing"),
            ("Stalled", "ComputeNotFound"),
            FAILED,
        ),
        stage(
            observed("seen", FOREIGN[1]),
            ("Compute", "seen"),
            ("Synced", "Drifted"),
            CURRENT,
        ),
    ]
}

/// A ProjectKey whose Secret already exists.
fn foreign_secret() -> Vec<Stage> {
    let foreign = with(key("ci"), &json!({"secret": {"name": FOREIGN_SECRET}}));
    vec![
        stage(
            Deed::Create(foreign),
            CI,
            ("Stalled", "SecretNotOurs"),
            FAILED,
        ),
        stage(
            Deed::Delete(("Secret", FOREIGN_SECRET)),
            CI,
            ("Ready", "Available"),
            CURRENT,
        ),
    ]
}

/// A waiting change, and a pause with another change.
fn waiting() -> Vec<Stage> {
    let window = json!({"schedule": "0 3 29 2 *", "timeZone": "UTC", "duration": "1h"});
    let wait = json!({"size": {"fixed": 2}, "disruption": {"policy": "Window", "window": window}});
    let at_once = json!({"disruption": {"policy": "Immediate", "window": null}});
    let pause = |value| json!({"metadata": {"annotations": {names::PAUSED: value}}});
    vec![
        stage(
            Deed::Patch(ORDERS, spec(wait)),
            ORDERS,
            ("Synced", "WaitingForDisruption"),
            CURRENT,
        ),
        stage(
            Deed::Patch(ORDERS, pause(json!("true"))),
            ORDERS,
            ("Paused", "Paused"),
            ("Current", "Suspended"),
        ),
        stage(
            Deed::Patch(ORDERS, spec(at_once)),
            ORDERS,
            ("Paused", "Paused"),
            ("InProgress", "Suspended"),
        ),
        stage(
            Deed::Patch(ORDERS, pause(Value::Null)),
            ORDERS,
            ("Ready", "Available"),
            CURRENT,
        ),
    ]
}

fn accounts() -> Vec<Stage> {
    let mut other = account("http://127.0.0.1:1/api/v2");
    other["metadata"]["name"] = json!("other");
    other["spec"]["apiKeySecretRef"]["name"] = json!("other");
    let through = |name: &str| Deed::Patch(TAKEN, spec(json!({"accountRef": {"name": name}})));
    let credentials = |token: &str| json!({"stringData": {"api-key": token}});
    vec![
        stage(
            Deed::Create(other),
            OTHER,
            ("Stalled", "CredentialsMissing"),
            FAILED,
        ),
        stage(
            through("other"),
            TAKEN,
            ("Ready", "AccountNotReady"),
            IN_PROGRESS,
        ),
        stage(
            through("nobody"),
            TAKEN,
            ("Stalled", "AccountNotFound"),
            FAILED,
        ),
        stage(through("prod"), TAKEN, ("Ready", "Available"), CURRENT),
        stage(
            Deed::Create(secret("other", "unknown")),
            OTHER,
            ("Stalled", "Unauthorized"),
            FAILED,
        ),
        stage(
            Deed::Patch(("Secret", "other"), credentials(ADMIN)),
            OTHER,
            ("Ready", "Available"),
            CURRENT,
        ),
    ]
}

fn deletion() -> Vec<Stage> {
    let protection = |on: bool| Deed::Patch(ORDERS, spec(json!({"deletionProtection": on})));
    vec![
        stage(protection(true), ORDERS, ("Ready", "Available"), CURRENT),
        stage(
            Deed::Delete(ORDERS),
            ORDERS,
            ("Stalled", "DeletionProtected"),
            TERMINATING,
        ),
        gone(protection(false), ORDERS),
    ]
}
