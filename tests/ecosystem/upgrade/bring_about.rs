//! Makes an operator bring objects into their states, and kills it while work is in progress.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dbplane::cluster::merge;
use dbplane::decide::names::RECORD;
use serde_json::{Value, json};

use super::site::{Operator, Site};
use crate::recorded::{Deed, Moment, Object, Recording, Says, says};

/// The delay of late calls: after the process is killed, but before the next one starts.
const LATE: Duration = Duration::from_secs(40);
/// The settle time of the operators, during which open calls stay open.
const SETTLE: Duration = Duration::from_secs(45);
/// Longer than the settle time plus a create on a busy machine.
const STRAY: Duration = Duration::from_secs(55);
const ALWAYS: u32 = 1_000_000;

const CREATES: &str = "/endpoints$";
const RESTARTS: &str = "/restart$";
const KEYS: &str = "/api_keys$";

/// Brings all objects into their states, kills the operator, and records the result.
pub async fn bring_about(site: &Site, operator: &mut Operator, objects: &[Object]) -> Recording {
    declare(site, objects, Moment::Calm).await;
    until(site, objects, Moment::Calm, |object| {
        Some(object.state.first)
    })
    .await;
    act(site, objects, Moment::Calm).await;
    until(site, objects, Moment::Calm, |object| {
        if object.state.done == Moment::Calm {
            object.state.recorded
        } else {
            None
        }
    })
    .await;
    leave_creates_unanswered(site, objects).await;
    site.until_at_rest().await;
    refuse(site, objects).await;
    let begun = Instant::now();
    for (moment, fault) in [
        (Moment::Dropped, json!({"kind": "drop"})),
        (
            Moment::Late,
            json!({"kind": "late_work", "delay_ms": LATE.as_millis()}),
        ),
    ] {
        interrupt_calls(site, objects, moment, &fault).await;
    }
    operator.process.kill().unwrap();
    let taken = begun.elapsed();
    assert!(
        taken < LATE.min(SETTLE),
        "it took {taken:?} to get into the midst: the machine is too busy to record"
    );
    site.platform.clear_faults();
    until_carried_out(site, objects).await;
    site.record().await
}

async fn declare(site: &Site, objects: &[Object], moment: Moment) {
    for object in objects
        .iter()
        .filter(|object| object.state.declared == moment)
    {
        site.create(&object.manifest(&site.account())).await;
    }
}

/// Performs the users' deeds of this moment.
async fn act(site: &Site, objects: &[Object], moment: Moment) {
    for object in objects.iter().filter(|object| object.state.done == moment) {
        for deed in &object.state.deeds {
            let (kind, name) = (object.state.kind, &object.name);
            match deed {
                Deed::Change(patch) => site.patch(kind, name, &object.filled(patch)).await,
                Deed::Delete => site.delete(kind, name).await,
                Deed::ComputeDeleted => {
                    let id = status(site, kind, name, "computeID")
                        .await
                        .as_str()
                        .unwrap()
                        .to_owned();
                    site.platform
                        .with_world(|world, now| world.console_delete_compute(&id, now))
                        .unwrap()
                        .unwrap();
                }
                Deed::KeyRevoked => {
                    let id = status(site, kind, name, "keyID").await.as_i64().unwrap();
                    site.platform
                        .with_world(|world, now| world.console_revoke_key(id, now))
                        .unwrap()
                        .unwrap();
                }
            }
        }
    }
}

async fn status(site: &Site, kind: &str, name: &str, field: &str) -> Value {
    site.all(kind).await[name]["status"][field].clone()
}

/// Waits until all objects declared up to this moment have the wanted condition.
async fn until(
    site: &Site,
    objects: &[Object],
    moment: Moment,
    wanted: impl Fn(&Object) -> Option<Says>,
) {
    let declared: Vec<&Object> = objects
        .iter()
        .filter(|object| object.state.declared <= moment)
        .collect();
    let what = format!("all that was declared to be as it is to be recorded ({moment:?})");
    site.until(&what, async || {
        let mut missing = Vec::new();
        for kind in ["Compute", "ProjectKey", "ReadReplicaSet"] {
            let all = site.all(kind).await;
            for object in declared.iter().filter(|object| object.state.kind == kind) {
                let seen = &all[&object.name];
                match wanted(object) {
                    Some(wanted) if !is_current(seen, wanted) || !says(seen, wanted) => {
                        missing.push(format!(
                            "{} {wanted:?}: {}",
                            object.name, seen["status"]["conditions"]
                        ));
                    }
                    _ => {}
                }
            }
        }
        missing
    })
    .await;
}

/// True if the condition is about the current generation.
fn is_current(object: &Value, (kind, _): Says) -> bool {
    let mut conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    conditions.any(|condition| {
        condition["type"] == kind
            && condition["observedGeneration"] == object["metadata"]["generation"]
    })
}

fn order(site: &Site, method: &str, path: &str, times: usize, fault: &Value) {
    let mut order = json!({"method": method, "path": path, "times": times});
    merge(&mut order, fault);
    if times > 0 {
        site.platform
            .order_fault(serde_json::from_value(order).unwrap())
            .unwrap();
    }
}

/// Orders creates that are never answered, and some that are executed after the operator has given
/// them up.
async fn leave_creates_unanswered(site: &Site, objects: &[Object]) {
    let late = json!({"kind": "late_work", "delay_ms": STRAY.as_millis()});
    for (moment, fault) in [
        (Moment::Unanswered, json!({"kind": "drop"})),
        (Moment::Stray, late),
    ] {
        start(site, objects, moment, &fault).await;
    }
    until(site, objects, Moment::Stray, |object| object.state.recorded).await;
}

async fn until_asked(site: &Site, since: u64, method: &str, count: usize) {
    let what = format!("{count} requests {method}");
    site.until(&what, async || {
        let asked: Vec<_> = site
            .asked(since)
            .into_iter()
            .filter(|(with, ..)| with == method)
            .collect();
        if asked.len() >= count {
            Vec::new()
        } else {
            asked
                .into_iter()
                .map(|(_, path, _)| path)
                .collect::<Vec<_>>()
                .into_iter()
                .chain([what.clone()])
                .collect()
        }
    })
    .await;
}

/// Makes all later changes and deletions on the platform fail.
async fn refuse(site: &Site, objects: &[Object]) {
    site.platform
        .order_fault(
            serde_json::from_value(json!({"method": "DELETE", "status": 503, "times": ALWAYS}))
                .unwrap(),
        )
        .unwrap();
    site.platform
        .order_fault(
            serde_json::from_value(json!({"method": "PATCH", "kind": "drop", "times": ALWAYS}))
                .unwrap(),
        )
        .unwrap();
    let since = site.requests();
    act(site, objects, Moment::Refused).await;
    let wanted = objects
        .iter()
        .filter(|object| object.state.done == Moment::Refused && !object.state.calls.is_empty())
        .count();
    site.until("changes and deletions to be refused", async || {
        let refused: BTreeSet<String> = site
            .asked(since)
            .into_iter()
            .map(|(_, path, _)| path)
            .collect();
        if refused.len() >= wanted {
            Vec::new()
        } else {
            refused
                .into_iter()
                .collect::<Vec<_>>()
                .into_iter()
                .chain([format!("{wanted} are wanted")])
                .collect()
        }
    })
    .await;
}

/// Interrupts calls so that their outcome is unknown.
async fn interrupt_calls(site: &Site, objects: &[Object], moment: Moment, fault: &Value) {
    let group = start(site, objects, moment, fault).await;
    site.until("all calls to be recorded as open", async || {
        let mut missing = Vec::new();
        for kind in ["Compute", "ProjectKey"] {
            let all = site.all(kind).await;
            let open = group
                .iter()
                .filter(|object| object.state.kind == kind && !is_open(&all[&object.name]));
            missing.extend(open.map(|object| object.name.clone()));
        }
        missing
    })
    .await;
}

/// Performs the deeds of a moment, with this fault for each of the resulting calls.
async fn start<'a>(
    site: &Site,
    objects: &'a [Object],
    moment: Moment,
    fault: &Value,
) -> Vec<&'a Object> {
    let group: Vec<&Object> = objects
        .iter()
        .filter(|object| object.state.declared == moment || object.state.done == moment)
        .collect();
    let of = |path: &str| {
        group
            .iter()
            .filter(|object| call_of(object) == path)
            .count()
    };
    for path in [CREATES, RESTARTS, KEYS] {
        order(site, "POST", path, of(path), fault);
    }
    let since = site.requests();
    declare(site, objects, moment).await;
    act(site, objects, moment).await;
    until_asked(site, since, "POST", group.len()).await;
    group
}

/// The path of the call that fails for an object.
fn call_of(object: &Object) -> &'static str {
    match object.state.kind {
        "ProjectKey" => KEYS,
        "Compute" if !object.state.deeds.is_empty() => RESTARTS,
        _ => CREATES,
    }
}

/// True if both copies of the record show an open call.
fn is_open(object: &Value) -> bool {
    let open = |record: &Value| {
        record
            .as_str()
            .is_some_and(|text| text.contains("\"intent\":") || text.contains("\"calling\":"))
    };
    open(&object["metadata"]["annotations"][RECORD]) && open(&object["status"]["record"])
}

/// Waits until the platform has executed the late calls.
async fn until_carried_out(site: &Site, objects: &[Object]) {
    let late: Vec<&Object> = objects
        .iter()
        .filter(|object| object.state.declared == Moment::Late)
        .collect();
    site.until("what is late to be carried out", async || {
        let world = site.platform.with_world(|world, now| {
            world.advance_to(now);
            world.clone()
        });
        let platform = crate::recorded::Platform::of(&world.unwrap());
        let is_there = |object: &&&Object| match object.state.kind {
            "ProjectKey" => !platform.keys_of(&object.name).is_empty(),
            _ => !platform.computes_on(&object.branch()).is_empty(),
        };
        late.iter()
            .filter(|object| !is_there(object))
            .map(|object| object.name.clone())
            .collect()
    })
    .await;
    // Rotations and restarts are not visible yet, but have the same delay, so they arrive at the
    // same time.
    site.until_at_rest().await;
}
