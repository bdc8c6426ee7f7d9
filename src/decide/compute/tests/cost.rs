//! The cost of a Compute's schedules in a pass: how many times are evaluated, and how many looks an
//! evaluation takes.

use super::*;
use crate::api::ComputeStatus;
use crate::decide::cron::tests::work_of;

/// Four to begin with for each of 16 entries, and two for each examined start or end.
const MOST_AHEAD: usize = 4 * 16 + 2 * (256 + 16);
/// For the times of regular restarts and of the window.
const MOST_IN_A_PASS: usize = 16;
/// For reading the schedules of entries, each twice, and those of restarts and of the window.
const MOST_READ: usize = 2 * 2 * 16 + MOST_IN_A_PASS;
/// The number of months and clock changes in five years, in the zone with the most clock changes.
const MOST_LOOKS: usize = 110;

/// The maximum that the definition admits: entries that change no setting, restarts and a window,
/// all with these times.
fn worst(start: &str, end: &Value, zone: &str) -> GivenCompute {
    let entry = |number: usize| {
        let mut entry = json!({"name": format!("e-{number}"), "start": start, "timeZone": zone, "size": {"fixed": 1}});
        entry
            .as_object_mut()
            .unwrap()
            .extend(end.as_object().unwrap().clone());
        entry
    };
    let given = GivenCompute::bound().declaring(json!({
        "size": {"fixed": 1},
        "scaleToZero": {"after": "5m"},
        "schedules": (0..16).map(entry).collect::<Vec<_>>(),
        "maintenance": {"restart": {"schedule": start, "timeZone": zone, "jitter": "24h"}},
        "disruption": {"policy": "Window", "window": {"schedule": start, "timeZone": zone, "duration": "1m"}},
    }));
    let maintained = crate::decide::identity::Maintained {
        schedule: format!("{start} {zone}"),
        time: at(-40 * 365 * 86400),
        made: None,
    };
    given.identity(|identity| identity.restart.as_mut().unwrap().maintained = Some(maintained))
}

fn pass(given: &GivenCompute) {
    given.decide();
    status(
        &Report::ready("fine"),
        &given.spec,
        &given.observed,
        &ComputeStatus::default(),
        given.now,
    );
}

#[test]
fn no_spec_makes_a_pass_look_for_many_times() {
    let lasting = |length: &str| json!({"duration": length});
    let until = |end: &str| json!({"end": end});
    for times in [
        ("* * * * *", lasting("1m")),
        ("* * * * *", lasting("744h")),
        ("*/2 * * * *", lasting("1m")),
        ("* * * * *", until("* * * * *")),
        ("*/2 * * * *", until("1-59/2 * * * *")),
        // Times that never occur, or seldom.
        ("0 3 30 2 *", until("0 3 30 2 *")),
        ("0 3 29 2 *", until("59 23 29 2 *")),
        ("0 3 30W 2 *", until("0 3 * 2 MON#5")),
        ("0 3 L 12 *", until("0 3 1 1 *")),
    ] {
        for zone in ["UTC", "Europe/Berlin", "Africa/Casablanca"] {
            let given = worst(times.0, &times.1, zone);
            let mut memory = Memory::default();
            let (evaluations, looks) =
                work_of(|| foresee(&mut memory, &given.spec, GENERATION, given.now));
            assert!(
                evaluations <= MOST_AHEAD,
                "{evaluations} times ahead of {times:?} in {zone}"
            );
            assert!(
                looks <= (evaluations + MOST_READ) * MOST_LOOKS,
                "{looks} looks ahead of {times:?} in {zone}"
            );
            let given = given.remembering(|remembered| *remembered = memory);
            let (evaluations, looks) = work_of(|| pass(&given));
            assert!(
                evaluations <= MOST_IN_A_PASS,
                "{evaluations} times in a pass of {times:?} in {zone}"
            );
            assert!(
                looks <= 2 * MOST_IN_A_PASS * MOST_LOOKS,
                "{looks} looks in a pass of {times:?} in {zone}"
            );
        }
    }
}

#[test]
fn schedules_alone_cost_nothing_until_something_changes() {
    let office = json!({"name": "office", "start": "0 9 * * MON-FRI", "end": "0 18 * * MON-FRI", "size": {"fixed": 4}});
    let given =
        GivenCompute::bound().declaring(json!({"size": {"fixed": 1}, "schedules": [office]}));
    let mut memory = Memory::default();
    foresee(&mut memory, &given.spec, GENERATION, given.now);
    let given = given.remembering(|remembered| *remembered = memory);
    assert_eq!(work_of(|| pass(&given)), (0, 0));
}
