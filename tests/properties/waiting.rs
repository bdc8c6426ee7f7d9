//! Delayed changes: the operator makes exactly the change of the plan, at the time of the plan.

use std::collections::{BTreeMap, BTreeSet};

use dbplane::plan::Planned;
use dbplane_simulator::world::Profile;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::in_memory::Resource;
use super::planned::{made_call, plan_of};
use super::process::Process;
use super::recorded::{run_until_stable, stored};
use super::simulation::Shared;
use super::upgrade::{BEFORE, Recording, folder};

/// How late the operator may be. It decides once it wakes and its observations are recent enough.
const LATE: SignedDuration = SignedDuration::from_secs(10);

/// A Compute in sync, a change of it that has to wait, and the time until which it waits.
struct Case {
    name: &'static str,
    spec: Value,
    until: Option<Timestamp>,
    call: &'static str,
}

/// Windows that open at this time, with a schedule in UTC and one in another zone.
fn windows(opens: Timestamp) -> [Value; 2] {
    let schedule = |zone: &str| {
        opens
            .in_tz(zone)
            .unwrap()
            .strftime("%-M %-H * * *")
            .to_string()
    };
    ["UTC", "Asia/Kathmandu"].map(
        |zone| json!({"policy": "Window", "window": {"schedule": schedule(zone), "timeZone": zone, "duration": "1h"}}),
    )
}

fn cases(now: Timestamp, opens: Timestamp) -> Vec<Case> {
    let [utc, kathmandu] = windows(opens);
    let by_deadline = json!({"policy": "WhenIdle", "deadline": "90s"});
    let deadline = now + SignedDuration::from_secs(90);
    let case = |name, spec, until, call| Case {
        name,
        spec,
        until,
        call,
    };
    vec![
        case(
            "restarted-0",
            json!({"size": {"fixed": 4}, "disruption": utc}),
            Some(opens),
            "change ID: size=4",
        ),
        case(
            "restarted-1",
            json!({"restartToken": "twice", "disruption": utc}),
            Some(opens),
            "restart ID",
        ),
        case(
            "restarted-2",
            json!({"size": {"fixed": 4}, "disruption": kathmandu}),
            Some(opens),
            "change ID: size=4",
        ),
        // Both changes wait, and one request makes both.
        case(
            "restarted-3",
            json!({"size": {"fixed": 4}, "restartToken": "twice", "disruption": utc}),
            Some(opens),
            "change ID: size=4",
        ),
        case(
            "resized-0",
            json!({"size": {"fixed": 4}, "disruption": by_deadline}),
            Some(deadline),
            "change ID: size=4",
        ),
        case(
            "resized-1",
            json!({"size": {"fixed": 4}, "disruption": {"policy": "WhenIdle"}}),
            None,
            "",
        ),
    ]
}

/// The changes of a resource that were made, with their times.
fn made(simulation: &Shared, name: &str) -> Vec<(Timestamp, String)> {
    let changes = simulation.lock().ledger.changes.clone();
    let is_of = |(kind, of): &Resource| *kind == "Compute" && of == name;
    let of_resource = changes
        .iter()
        .filter(|changed| changed.actor.as_ref().is_some_and(is_of));
    of_resource
        .map(|changed| (changed.at, made_call(changed, &BTreeSet::new())))
        .collect()
}

fn reported_wait(planned: &Planned) -> (&str, Option<Timestamp>) {
    let waits = planned
        .waits
        .as_ref()
        .unwrap_or_else(|| panic!("{} waits for nothing", planned.id));
    (&waits.reason, waits.until)
}

#[test]
fn waiting_changes_happen_when_the_plan_says() {
    let simulation = stored(&Recording::load(&folder(BEFORE, Profile::Default)));
    // This version first rewrites all that the previous one recorded, which takes longer than
    // `LATE`.
    run_until_stable(&simulation, Process::new(&simulation, 1000));
    let now = simulation.lock().now;
    // The first full minute after the plan and the operator have looked.
    let opens = Timestamp::from_second((now.as_second() / 60 + 2) * 60).unwrap();
    let cases = cases(now, opens);
    let mut computes = BTreeMap::new();
    for Case { name, spec, .. } in &cases {
        let mut simulation = simulation.lock();
        let resource = ("Compute", (*name).to_owned());
        simulation.cluster.edit(&resource, &json!({"spec": spec}));
        let object = &simulation.cluster.objects[&resource].value;
        let id = object["status"]["computeID"].as_str().unwrap().to_owned();
        // Under load, so that it is not idle.
        simulation
            .world
            .console_activity(&id, Some(0.5), now)
            .unwrap();
        computes.insert(*name, id);
    }
    let plan = plan_of(&simulation);
    for case in &cases {
        let planned = plan
            .resources
            .iter()
            .find(|planned| planned.id.name == case.name)
            .unwrap();
        assert_eq!(planned.steps, [], "{}", case.name);
        let (reason, until) = reported_wait(planned);
        assert_eq!(reason, "WaitingForDisruption", "{}", case.name);
        assert_eq!(until.is_some(), case.until.is_some(), "{}", case.name);
        let apart = until
            .zip(case.until)
            .map_or(SignedDuration::ZERO, |(one, other)| {
                one.duration_since(other).abs()
            });
        assert!(
            apart < SignedDuration::from_secs(2),
            "{}: {until:?}, and not {:?}",
            case.name,
            case.until
        );
    }
    run_until_stable(&simulation, Process::new(&simulation, 1000));
    for Case {
        name, until, call, ..
    } in cases
    {
        let made = made(&simulation, name);
        let Some(until) = until else {
            assert_eq!(made, [], "{name} is never idle");
            continue;
        };
        let [(at, what)] = made.as_slice() else {
            panic!("{name}: {made:?}")
        };
        assert_eq!(*what, call.replace("ID", &computes[name]), "{name}");
        assert!(
            *at >= until && at.duration_since(until) < LATE,
            "{name} was changed at {at}, and not at {until}"
        );
    }
}
