//! Scheduled settings.

use super::*;
use crate::api::{ComputeStatus, ScheduleStatus};

/// NOW is 08:00 UTC on a Friday, and 09:00 in Berlin.
fn scheduled(entries: &Value) -> GivenCompute {
    GivenCompute::bound().declaring(
        json!({"size": {"fixed": 1}, "scaleToZero": {"after": "5m"}, "schedules": entries}),
    )
}

fn office(more: &Value) -> Value {
    let mut entry = json!({
        "name": "office", "start": "0 9 * * MON-FRI", "end": "0 18 * * MON-FRI", "timeZone": "Europe/Berlin",
        "size": {"fixed": 4},
    });
    entry
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    entry
}

fn on(given: &GivenCompute, time: &str) -> GivenCompute {
    GivenCompute {
        now: time.parse().unwrap(),
        ..given.clone()
    }
}

/// The size and the suspension that apply.
fn applies(given: &GivenCompute, time: &str) -> String {
    let spec = on(given, time).in_force();
    let size = spec.size.unwrap().fixed.unwrap();
    let scale = spec.scale_to_zero.unwrap();
    format!(
        "{size} {}",
        scale.after.map_or("never".to_owned(), |after| after.0)
    )
}

fn shown(given: &GivenCompute, time: &str) -> ScheduleStatus {
    let given = on(given, time);
    let status = status(
        &Report::ready("fine"),
        &given.spec,
        &given.observed,
        &ComputeStatus::default(),
        given.now,
    );
    *status.schedule.unwrap()
}

#[test]
fn an_entry_applies_from_its_start_to_its_end() {
    let given = scheduled(&json!([office(&json!({}))]));
    for (time, expected) in [
        ("2027-01-15T07:59:59Z", "1 5m"),
        ("2027-01-15T08:00:00Z", "4 5m"),
        ("2027-01-15T16:59:59Z", "4 5m"),
        ("2027-01-15T17:00:00Z", "1 5m"),
        // A Saturday.
        ("2027-01-16T08:00:00Z", "1 5m"),
        // Summer.
        ("2027-07-15T06:59:59Z", "1 5m"),
        ("2027-07-15T07:00:00Z", "4 5m"),
    ] {
        assert_eq!(applies(&given, time), expected, "{time}");
    }
}

#[test]
fn an_entry_applies_for_its_duration() {
    // Clocks go forward in the night to 2027-03-28, and back in the night to 2027-10-31.
    let night = json!({"name": "night", "start": "30 2 * * *", "duration": "2h", "timeZone": "Europe/Berlin", "size": {"fixed": 2}});
    let given = scheduled(&json!([night]));
    for (time, expected) in [
        ("2027-03-27T01:30:00Z", "2 5m"),
        ("2027-03-27T03:29:59Z", "2 5m"),
        ("2027-03-27T03:30:00Z", "1 5m"),
        // 02:30 does not exist.
        ("2027-03-28T00:59:59Z", "1 5m"),
        ("2027-03-28T01:00:00Z", "1 5m"),
        ("2027-03-29T00:30:00Z", "2 5m"),
        // 02:30 occurs twice, an hour apart.
        ("2027-10-31T00:30:00Z", "2 5m"),
        ("2027-10-31T02:30:00Z", "2 5m"),
        ("2027-10-31T03:29:59Z", "2 5m"),
        ("2027-10-31T03:30:00Z", "1 5m"),
    ] {
        assert_eq!(applies(&given, time), expected, "{time}");
    }
}

#[test]
fn one_that_ends_when_it_begins_goes_on() {
    let always =
        json!({"name": "always", "start": "0 8 * * *", "end": "0 8 * * *", "size": {"fixed": 2}});
    let given = scheduled(&json!([always]));
    assert_eq!(applies(&given, "2027-01-15T07:59:59Z"), "2 5m");
    assert_eq!(applies(&given, "2027-01-15T08:00:00Z"), "2 5m");
    assert_eq!(shown(&given, "2027-01-15T08:00:00Z").next, None);
}

#[test]
fn the_first_entry_that_sets_a_field_decides() {
    let always = |name: &str, more: Value| {
        let mut entry = json!({"name": name, "start": "0 0 * * *", "duration": "24h"});
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        entry
    };
    let given = scheduled(&json!([
        always("awake", json!({"scaleToZero": {"never": true}})),
        office(&json!({"scaleToZero": {"after": "1h"}})),
        always("large", json!({"size": {"fixed": 8}})),
        always("small", json!({"size": {"fixed": 2}})),
    ]));
    let noon = "2027-01-15T12:00:00Z";
    assert_eq!(applies(&given, noon), "4 never");
    let shown_at = |time| {
        let shown = shown(&given, time);
        (shown.applies, shown.overridden, shown.next)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        shown_at(noon),
        (
            "awake, office".into(),
            text("large, small"),
            text("2027-01-15T17:00:00Z size 8 (awake, large)")
        )
    );
    assert_eq!(applies(&given, "2027-01-15T17:00:00Z"), "8 never");
    assert_eq!(
        shown_at("2027-01-15T17:00:00Z"),
        (
            "awake, large".into(),
            text("small"),
            text("2027-01-18T08:00:00Z size 4 (awake, office)")
        )
    );
}

#[test]
fn what_comes_next_is_shown_and_waited_for() {
    let given = scheduled(&json!([office(&json!({"scaleToZero": {"never": true}}))]));
    let before = "2027-01-15T07:00:00Z";
    let next = shown(&given, before);
    assert_eq!((next.applies.as_str(), next.overridden), ("none", None));
    assert_eq!(
        next.next.unwrap(),
        "2027-01-15T08:00:00Z size 4, scaleToZero never (office)"
    );
    on(&given, before).rest().until(NOW);
    let during = shown(&given, "2027-01-15T08:00:00Z");
    assert_eq!(during.applies, "office");
    assert_eq!(
        during.next.unwrap(),
        "2027-01-15T17:00:00Z size 1, scaleToZero after 300s (no schedule)"
    );
    let nothing = GivenCompute::bound();
    let status = status(
        &Report::ready("fine"),
        &nothing.spec,
        &nothing.observed,
        &ComputeStatus::default(),
        NOW,
    );
    assert_eq!(status.schedule, None);
}

/// Applies every five minutes, and sets nothing while `office` applies.
fn often(start: &str) -> Value {
    json!({"name": "often", "start": start, "duration": "1m", "size": {"fixed": 2}})
}

#[test]
fn starts_that_change_no_setting_hide_no_change() {
    let given = scheduled(&json!([office(&json!({})), often("*/5 * * * *")]));
    let during = shown(&given, "2027-01-15T08:00:00Z");
    assert_eq!(during.next.unwrap(), "2027-01-15T17:00:00Z size 2 (often)");
}

#[test]
fn where_no_change_is_found_soon_it_is_looked_for_later() {
    let given = scheduled(&json!([office(&json!({})), often("* * * * *")]));
    assert_eq!(shown(&given, "2027-01-15T08:00:00Z").next, None);
    let later = "2027-01-15T12:16:00Z";
    given
        .seeing([sized(4.)])
        .rest()
        .until(later.parse().unwrap());
    let given = scheduled(&json!([office(&json!({})), often("* * * * *")]));
    assert_eq!(
        shown(&given, "2027-01-15T16:00:00Z").next.unwrap(),
        "2027-01-15T17:00:00Z size 2 (often)"
    );
}

#[test]
fn what_is_remembered_is_what_would_be_worked_out() {
    let entries = json!([
        office(&json!({"scaleToZero": {"never": true}})),
        {"name": "month-end", "start": "0 20 L * *", "duration": "12h", "timeZone": "Europe/Berlin", "size": {"fixed": 8}},
        {"name": "often", "start": "*/20 * * * *", "duration": "5m", "size": {"fixed": 2}},
        {"name": "night", "start": "30 2 * * *", "end": "0 4 * * *", "timeZone": "America/New_York", "scaleToZero": {"never": true}},
        {"name": "broken", "start": "0 3 * * *", "end": "0 4 * * *", "timeZone": "Mars/Base", "size": {"fixed": 2}},
    ]);
    let given = scheduled(&entries);
    let mut memory = Memory::default();
    // Past the end of a month and changes of the clocks, then back like a clock that is corrected.
    for minutes in (0..60_000_i32)
        .step_by(7)
        .chain((0..60_000).step_by(4999).rev())
        .map(i64::from)
    {
        let fresh = on(&given, &at(24 * 3600 * 40 + minutes * 60).to_string());
        foresee(&mut memory, &fresh.spec, GENERATION, fresh.now);
        let remembering = fresh
            .clone()
            .remembering(|remembered| *remembered = memory.clone());
        assert_eq!(remembering.decide(), fresh.decide(), "{}", fresh.now);
        let status = |given: &GivenCompute| shown(given, &fresh.now.to_string());
        assert_eq!(status(&remembering), status(&fresh), "{}", fresh.now);
    }
}

#[test]
fn what_is_remembered_of_another_spec_counts_nothing() {
    let before = scheduled(&json!([office(&json!({}))]));
    let mut memory = Memory::default();
    foresee(&mut memory, &before.spec, GENERATION - 1, before.now);
    let now = scheduled(&json!([office(&json!({"size": {"fixed": 2}}))]));
    let now = now.remembering(|remembered| *remembered = memory);
    let ComputeStep::Change { change, .. } = now.step() else {
        panic!("no change")
    };
    assert_eq!(change.settings.min, cu(2.));
}

#[test]
fn a_scheduled_change_is_a_change_like_any_other() {
    let given = scheduled(&json!([office(&json!({}))]));
    let ComputeStep::Change { change, drift, .. } = given.step() else {
        panic!("no change")
    };
    assert_eq!((change.settings.min, drift), (cu(4.), false));
    let idle = json!({"disruption": {"policy": "WhenIdle"}});
    let waiting = given.declaring(idle).rest();
    waiting.out_of_sync(Reason::WaitingForDisruption, &["size is 1, declared is 4"]);
    waiting.until("2027-01-15T17:00:00Z".parse().unwrap());
}

#[test]
fn what_was_in_force_before_is_no_drift() {
    let given = scheduled(&json!([office(&json!({}))]));
    let before = on(&given, "2027-01-15T07:00:00Z");
    let mut memory = Memory::default();
    remember(
        &mut memory,
        version(&before.spec, GENERATION),
        None,
        &Shown::Entry(&compute("ep-1")),
        before.now,
    );
    assert!(memory.was_in_force(&crate::decide::drift::enforced(&before.spec)));
    let during = given.remembering(|remembered| *remembered = memory.clone());
    assert!(matches!(
        during.step(),
        ComputeStep::Change { drift: false, .. }
    ));
    // A change by somebody else during the entry is drift.
    remember(
        &mut memory,
        version(&during.spec, GENERATION),
        None,
        &Shown::Entry(&sized(4.)),
        during.now,
    );
    let during = during.remembering(|remembered| *remembered = memory);
    assert!(matches!(
        during.step(),
        ComputeStep::Change { drift: true, .. }
    ));
}

fn sized(size: f64) -> Compute {
    with(compute("ep-1"), |compute| {
        (compute.settings.min, compute.settings.max) = (cu(size), cu(size))
    })
}

#[test]
fn an_immediate_entry_waits_for_nothing() {
    let idle = json!({"disruption": {"policy": "WhenIdle"}});
    let immediate = office(&json!({"disruption": "Immediate"}));
    let other =
        json!({"name": "other", "start": "0 20 * * *", "duration": "1h", "size": {"fixed": 8}});
    let given = scheduled(&json!([immediate, other])).declaring(idle);
    let changes =
        |given: &GivenCompute| matches!(given.decide().step, Some(ComputeStep::Change { .. }));
    assert!(changes(&given));
    // The end of the entry is immediate as well; a size that the entry did not set waits.
    let evening = on(&given, "2027-01-15T18:00:00Z");
    assert!(changes(&evening.clone().seeing([sized(4.)])));
    assert!(!changes(&evening.seeing([sized(2.)])));
    assert!(!changes(&on(&given, "2027-01-15T20:00:00Z")));
}

#[test]
fn an_observed_compute_is_compared_with_what_applies() {
    let given = scheduled(&json!([office(&json!({}))])).declaring(json!({"management": "Observe"}));
    given
        .rest()
        .out_of_sync(Reason::Drifted, &["size is 1, declared is 4"]);
    given
        .seeing([with(sized(4.), |compute| {
            compute.settings.suspend_after = Some(SuspendAfter::Seconds(300))
        })])
        .rest()
        .in_sync();
}

#[test]
fn a_compute_is_created_as_declared_for_that_time() {
    let mut given = scheduled(&json!([office(&json!({}))]));
    given.observed = GivenCompute::new().observed;
    let ComputeStep::Create { new, .. } = given.step() else {
        panic!("no create")
    };
    assert_eq!(new.settings.min, cu(4.));
}

#[test]
fn an_entry_that_cannot_be_read_never_applies_and_is_reported() {
    let given = scheduled(&json!([office(&json!({"timeZone": "Mars/Base"}))]));
    given.rest().refused(
        Reason::InvalidSchedule,
        &[
            "The entry office of spec.schedules never applies",
            "Mars/Base",
        ],
    );
    assert_eq!(shown(&given, "2027-01-15T12:00:00Z").applies, "none");
}

#[test]
fn what_never_comes_is_reported_wherever_it_is() {
    let never = "0 0 31 2 *";
    let entry = |more: Value| json!({"size": {"fixed": 1}, "scaleToZero": {"after": "5m"}, "schedules": [office(&more)]});
    let window = |schedule: &str| json!({"disruption": {"policy": "Window", "window": {"schedule": schedule, "duration": "2h"}}});
    let restart = |schedule: &str| json!({"maintenance": {"restart": {"schedule": schedule}}});
    let named = "The entry office of spec.schedules never applies";
    for (spec, field, text) in [
        (entry(json!({"start": never})), "schedules[0].start", named),
        (entry(json!({"end": never})), "schedules[0].end", named),
        (
            entry(json!({"timeZone": "Mars/Base"})),
            "schedules[0].timeZone",
            named,
        ),
        (
            restart(never),
            "maintenance.restart.schedule",
            "spec.maintenance is not followed",
        ),
        (
            window(never),
            "disruption.window.schedule",
            "spec.disruption.window never opens",
        ),
    ] {
        let given = GivenCompute::bound().declaring(spec);
        given.rest().refused(Reason::InvalidSchedule, &[text]);
        let paths: Vec<_> = unfollowed(&given.spec, "spec")
            .into_iter()
            .map(|it| it.path)
            .collect();
        assert_eq!(paths, [format!("spec.{field}")]);
    }
    for spec in [
        entry(json!({"start": "0 0 29 2 *"})),
        restart("0 0 29 2 *"),
        window("0 0 29 2 *"),
    ] {
        assert_eq!(
            unfollowed(&GivenCompute::bound().declaring(spec).spec, "spec"),
            []
        );
    }
    let all = GivenCompute::bound()
        .declaring(restart(never))
        .declaring(window(never));
    all.rest().refused(
        Reason::InvalidSchedule,
        &[
            "spec.maintenance is not followed",
            "spec.disruption.window never",
        ],
    );
    // A requested restart has to wait for the window too.
    let waiting = all.declaring(json!({"restartToken": "now"})).rest();
    waiting.refused(
        Reason::InvalidSchedule,
        &[
            "spec.maintenance is not followed",
            "Waiting for it: the requested restart",
        ],
    );
}

#[test]
fn a_time_zone_that_does_not_exist_is_reported_before_a_change_waits() {
    for (spec, field, text) in [
        (
            json!({"maintenance": {"restart": {"schedule": "0 3 * * *", "timeZone": "Mars/Base"}}}),
            "maintenance.restart.timeZone",
            "spec.maintenance is not followed: there is no time zone \"Mars/Base\".",
        ),
        (
            json!({"disruption": {"policy": "Window", "window": {"schedule": "0 3 * * *", "timeZone": "Europe/Berln", "duration": "2h"}}}),
            "disruption.window.timeZone",
            "spec.disruption.window never opens: there is no time zone \"Europe/Berln\" (nearest: Europe/Berlin).",
        ),
    ] {
        let given = GivenCompute::bound().declaring(spec);
        let observed = given.clone().declaring(json!({"management": "Observe"}));
        for given in [&given, &observed] {
            given.rest().refused(Reason::InvalidSchedule, &[text]);
        }
        let found = unfollowed(&given.spec, "spec");
        assert_eq!(found[0].path, format!("spec.{field}"));
    }
}
