//! Regular restarts.

use super::*;
use crate::api::{ComputeStatus, MaintenanceStatus};
use crate::decide::Action;
use crate::decide::identity::Maintained;

/// 30 minutes before NOW, which is 08:00 on a Friday.
const DAILY: &str = "30 7 * * *";
const HALF_AN_HOUR: i64 = 1800;
const DAY: i64 = 86400;

/// The schedule is followed up to yesterday's time, when no restart was due.
fn declared(restart: &Value) -> GivenCompute {
    let time = at(-HALF_AN_HOUR - DAY);
    followed(
        GivenCompute::bound().declaring(json!({"maintenance": {"restart": restart}})),
        time,
        None,
    )
    .seeing([started(-30 * DAY)])
}

fn daily() -> GivenCompute {
    declared(&json!({"schedule": DAILY}))
}

fn followed(given: GivenCompute, time: Timestamp, made: Option<Timestamp>) -> GivenCompute {
    given.identity(|identity| {
        let restart = identity.restart.as_mut().unwrap();
        restart.at = made.unwrap_or(at(-30 * DAY));
        restart.maintained = Some(Maintained {
            schedule: DAILY.into(),
            time,
            made,
        });
    })
}

fn started(seconds: i64) -> Compute {
    with(compute("ep-1"), |compute| {
        compute.started_at = Some(at(seconds))
    })
}

fn record(given: &GivenCompute) -> RestartRecord {
    match given.step() {
        ComputeStep::Restart { record, .. } => record,
        ComputeStep::Change {
            restart: Some(record),
            ..
        } => record,
        ComputeStep::RecordRestart { record, .. } => record,
        other => panic!("no restart: {other:?}"),
    }
}

fn restarts(given: &GivenCompute) -> Maintained {
    let record = record(given);
    assert!(record.calling.is_some(), "{record:?}");
    record.maintained.unwrap()
}

/// The next restart and the missed time.
fn status_of(given: &GivenCompute) -> MaintenanceStatus {
    let status = status(
        &Report::ready("fine"),
        &given.spec,
        &given.observed,
        &ComputeStatus::default(),
        given.now,
    );
    *status.maintenance.unwrap()
}

#[test]
fn it_restarts_once_for_each_time() {
    let maintained = restarts(&daily());
    assert_eq!(
        (maintained.time, maintained.made),
        (at(-HALF_AN_HOUR), Some(NOW))
    );
    let made = followed(daily(), maintained.time, maintained.made)
        .seeing([started(5)])
        .after(60);
    made.rest().until(at(DAY - HALF_AN_HOUR));
    made.clone().after(DAY - HALF_AN_HOUR - 1).rest().in_sync();
    assert_eq!(
        restarts(&made.after(DAY - HALF_AN_HOUR)).time,
        at(DAY - HALF_AN_HOUR)
    );
}

#[test]
fn a_new_schedule_counts_from_now_on() {
    let new = |given: GivenCompute| {
        let before = given
            .observed
            .identity
            .as_ref()
            .unwrap()
            .restart
            .clone()
            .unwrap();
        let record = record(&given);
        assert_eq!((record.at, &record.calling), (before.at, &None));
        let maintained = record.maintained.unwrap();
        (maintained.schedule, maintained.time, maintained.made)
    };
    let first =
        GivenCompute::bound().declaring(json!({"maintenance": {"restart": {"schedule": DAILY}}}));
    assert_eq!(new(first), (DAILY.into(), at(-HALF_AN_HOUR), None));
    let other = daily().declaring(
        json!({"maintenance": {"restart": {"schedule": "0 8 * * *", "timeZone": "Europe/Berlin"}}}),
    );
    assert_eq!(
        new(other),
        ("0 8 * * * Europe/Berlin".into(), at(-3600), None)
    );
    // A wrong clock has recorded a time far ahead.
    assert_eq!(
        new(followed(daily(), at(3 * DAY), None)),
        (DAILY.into(), at(-HALF_AN_HOUR), None)
    );
    // A time only a little ahead was recorded by another leader.
    followed(daily(), at(DAY - HALF_AN_HOUR), Some(at(-5)))
        .rest()
        .in_sync();
}

#[test]
fn a_new_compute_is_not_restarted_for_times_before_it() {
    let given =
        GivenCompute::new().declaring(json!({"maintenance": {"restart": {"schedule": DAILY}}}));
    let ComputeStep::Create { restart, .. } = given.step() else {
        panic!("no create")
    };
    let maintained = restart.maintained.unwrap();
    assert_eq!(
        (maintained.time, maintained.made),
        (at(-HALF_AN_HOUR), None)
    );
}

#[test]
fn what_is_removed_is_kept_in_the_record() {
    let mut given = daily().declaring(json!({"restartToken": "now"}));
    given.spec.maintenance = None;
    assert_eq!(restarts(&given).time, at(-HALF_AN_HOUR - DAY));
}

#[test]
fn it_is_left_out_when_the_compute_has_started_since_the_time_before() {
    for (started_at, made, restarted) in [
        (-HALF_AN_HOUR - DAY - 1, None, true),
        (-HALF_AN_HOUR - DAY + 1, None, false),
        (-5, None, false),
        // The start by the previous time's restart, which may take as long as any start may.
        (-DAY + 600, Some(-DAY), true),
        (-DAY + 601, Some(-DAY), false),
    ] {
        let given =
            followed(daily(), at(-HALF_AN_HOUR - DAY), made.map(at)).seeing([started(started_at)]);
        assert_eq!(
            given.decide().step.is_some(),
            restarted,
            "{started_at} {made:?}"
        );
    }
    // A restart made for a time before the previous one proves nothing.
    let given =
        followed(daily(), at(-HALF_AN_HOUR - 5 * DAY), Some(at(-DAY))).seeing([started(-DAY + 5)]);
    given.rest().in_sync();
}

#[test]
fn a_restart_of_our_own_counts_where_starts_are_not_shown() {
    let unseen = with(compute("ep-1"), |compute| compute.started_at = None);
    let given = |restarted| {
        followed(daily(), at(-HALF_AN_HOUR - DAY), Some(at(-DAY)))
            .identity(|identity| identity.restart.as_mut().unwrap().at = at(restarted))
            .seeing([unseen.clone()])
    };
    restarts(&given(-DAY));
    given(-DAY + 601).rest().in_sync();
}

#[test]
fn the_first_time_after_adopting_is_not_left_out() {
    let unseen = with(compute("ep-1"), |compute| compute.started_at = None);
    for seen in [started(-30 * DAY), unseen] {
        // The resource was bound after the previous time, and the compute has run since before
        // that.
        let bound = followed(daily(), at(-HALF_AN_HOUR - DAY), None)
            .seeing([seen.clone()])
            .identity(|identity| {
                let restart = identity.restart.as_mut().unwrap();
                (restart.at, restart.noted) = (at(-DAY / 2), true);
            });
        assert_eq!(restarts(&bound).time, at(-HALF_AN_HOUR));
        let created = bound.identity(|identity| identity.restart.as_mut().unwrap().noted = false);
        assert_eq!(
            created.decide().step,
            None,
            "it started when it was created"
        );
    }
}

#[test]
fn a_call_that_was_not_carried_out_is_not_made_up_for_after_the_deadline() {
    let record = record(&daily());
    let refused = daily()
        .identity(|identity| identity.restart = Some(record))
        .failed(Action::Restart, refused());
    restarts(&refused.clone().after(30));
    let late = refused.after(3600 - HALF_AN_HOUR);
    let record = self::record(&late);
    assert_eq!(
        record,
        daily().observed.facts.identity.unwrap().restart.unwrap()
    );
    let late = late.identity(|identity| identity.restart = Some(record));
    late.rest().in_sync();
    assert_eq!(status_of(&late).missed, Some(at(-HALF_AN_HOUR)));
}

#[test]
fn a_time_that_will_be_left_out_is_not_promised() {
    let next = |seconds| {
        status_of(&daily().seeing([started(seconds)]))
            .next_restart
            .unwrap()
    };
    assert_eq!(next(-HALF_AN_HOUR), at(DAY - HALF_AN_HOUR));
    assert_eq!(next(-HALF_AN_HOUR + 1), at(2 * DAY - HALF_AN_HOUR));
    daily()
        .seeing([started(-5)])
        .rest()
        .until(at(2 * DAY - HALF_AN_HOUR));
}

#[test]
fn an_idle_compute_is_left_to_the_next_connection() {
    let record = record(&daily().seeing([with(started(-30 * DAY), |compute| {
        compute.current_state = ComputeState::Idle
    })]));
    assert_eq!(record.calling, None);
    assert_eq!(record.maintained.unwrap().time, at(-HALF_AN_HOUR));
}

#[test]
fn it_is_not_made_after_its_deadline() {
    let hour = 3600 - HALF_AN_HOUR;
    restarts(&daily().after(hour - 1));
    let missed = daily().after(hour);
    missed.rest().in_sync();
    let status = |given: &GivenCompute| {
        (
            status_of(given).missed,
            status_of(given).next_restart.unwrap(),
        )
    };
    assert_eq!(
        status(&missed),
        (Some(at(-HALF_AN_HOUR)), at(DAY - HALF_AN_HOUR))
    );
    assert_eq!(status(&daily()), (None, at(DAY - HALF_AN_HOUR)));
    let two_hours = declared(&json!({"schedule": DAILY, "startingDeadline": "2h"}));
    restarts(&two_hours.clone().after(hour));
    two_hours.after(hour + 3600).rest().in_sync();
}

#[test]
fn each_compute_is_later_by_a_length_of_its_own() {
    let delay = |id: &str| {
        let given = declared(&json!({"schedule": DAILY, "jitter": "20m"}));
        let seen = with(started(-30 * DAY), |compute| compute.id = id.into());
        let given = given
            .binding(|binding| binding.id = id.into())
            .seeing([seen]);
        let next = status_of(&given).next_restart.unwrap();
        let delay = next.duration_since(at(DAY - HALF_AN_HOUR)).as_secs();
        assert!((0..1200).contains(&delay), "{delay}");
        let due = at(delay - HALF_AN_HOUR);
        let mut before = given.clone();
        before.now = later(due, Duration::ZERO) - Duration::from_secs(1);
        before.rest().until(due);
        before.now = due;
        assert_eq!(restarts(&before).time, at(-HALF_AN_HOUR));
        delay
    };
    let delays: BTreeSet<_> = (0..20)
        .map(|number| delay(&format!("ep-{number}")))
        .collect();
    assert!(delays.len() > 15, "{delays:?}");
    assert_eq!(delay("ep-7"), delay("ep-7"));
}

#[test]
fn it_waits_for_its_time() {
    let idle = json!({"disruption": {"policy": "WhenIdle"}});
    let reported = daily().declaring(idle.clone()).rest();
    reported.out_of_sync(
        Reason::WaitingForDisruption,
        &["until the compute is idle", "the regular restart"],
    );
    let resized = daily().declaring(json!({"size": {"fixed": 2}}));
    resized.clone().declaring(idle).rest().out_of_sync(
        Reason::WaitingForDisruption,
        &["size", "; the regular restart"],
    );
    assert_eq!(restarts(&resized).time, at(-HALF_AN_HOUR));
}

#[test]
fn the_wait_for_an_idle_compute_has_to_end_before_the_restart_is_too_late() {
    let waiting = |deadline: &str| {
        daily()
            .declaring(json!({"disruption": {"policy": "WhenIdle", "deadline": deadline}}))
            .observing(|observed| observed.waiting_since = Some(at(-HALF_AN_HOUR)))
    };
    restarts(&waiting("30m"));
    let too_long = waiting("2h").after(HALF_AN_HOUR - 1);
    too_long
        .rest()
        .out_of_sync(Reason::WaitingForDisruption, &["the regular restart"]);
    too_long.after(HALF_AN_HOUR).rest().in_sync();
}

#[test]
fn a_requested_restart_serves_the_time_as_well() {
    let record = record(&daily().declaring(json!({"restartToken": "now"})));
    assert_eq!(
        (record.token.as_str(), record.maintained.unwrap().time),
        ("now", at(-HALF_AN_HOUR))
    );
}

#[test]
fn a_schedule_that_cannot_be_read_is_reported() {
    let mars = declared(&json!({"schedule": DAILY, "timeZone": "Mars/Base"}));
    mars.rest().refused(
        Reason::InvalidSchedule,
        &["spec.maintenance", "there is no time zone \"Mars/Base\""],
    );
}

#[test]
fn what_is_long_overdue_is_made_within_its_deadline() {
    let given = GivenCompute::bound().declaring(
        json!({"maintenance": {"restart": {"schedule": "0 20 * * *", "startingDeadline": "168h"}}}),
    );
    let unseen = with(compute("ep-1"), |compute| compute.started_at = None);
    let given = given.seeing([unseen]).identity(|identity| {
        let restart = identity.restart.as_mut().unwrap();
        restart.at = at(-3 * DAY);
        restart.maintained = Some(Maintained {
            schedule: "0 20 * * *".into(),
            time: at(-DAY / 2 - 3 * DAY),
            made: None,
        });
    });
    assert_eq!(restarts(&given).time, at(-DAY / 2));
}
