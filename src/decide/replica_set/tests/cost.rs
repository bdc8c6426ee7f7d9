//! Tests of the cost of schedules in a template: a pass of the set only parses them, and searches
//! for no time.

use super::*;
use crate::api::ReadReplicaSetStatus;
use crate::decide::cron::tests::{MOST_TO_READ, work_of};

#[test]
fn no_template_makes_a_set_look_for_times() {
    for times in [
        "* * * * *",
        "0 3 30 2 *",
        "0 3 29 2 *",
        "0 3 30W 2 *",
        "30 2 * 3 SUNL",
        "0 3 * 2 MON#5",
    ] {
        for zone in ["UTC", "Europe/Berlin", "Africa/Casablanca"] {
            let entry = |number: usize| json!({"name": format!("e-{number}"), "start": times, "end": times, "timeZone": zone, "size": {"fixed": 1}});
            let template = json!({
                "size": {"fixed": 1},
                "schedules": (0..16).map(entry).collect::<Vec<_>>(),
                "maintenance": {"restart": {"schedule": times, "timeZone": zone}},
                "disruption": {"policy": "Window", "window": {"schedule": times, "timeZone": zone, "duration": "1m"}},
            });
            let computes = (0..100).map(|number| replica(number, &json!({"spec": template})));
            let given = GivenSet::new(spec(100, &json!({}), &template), computes);
            let (evaluations, looks) = work_of(|| {
                let report = given.decide().report.unwrap();
                status(
                    &report,
                    &given.spec,
                    &given.observed,
                    &ReadReplicaSetStatus::default(),
                    NOW,
                );
            });
            // Each entry has two schedules.
            assert!(
                evaluations == 0 && looks <= (2 * 16 + 2) * MOST_TO_READ,
                "{evaluations}, {looks} of {times} in {zone}"
            );
        }
    }
}
