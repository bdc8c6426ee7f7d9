//! Declared fields that are not in force.

use super::*;
use crate::api::{ComputeStatus, NotApplied};
use crate::decide::Action;

fn change(given: &GivenCompute) -> ComputeChange {
    match given.step() {
        ComputeStep::Change { id, change, .. } => {
            assert_eq!(id, "ep-1");
            change
        }
        other => panic!("{other:?}"),
    }
}

fn parts(given: &GivenCompute) -> BTreeMap<String, ComputeChange> {
    match given.step() {
        ComputeStep::Change { parts, .. } => parts,
        other => panic!("{other:?}"),
    }
}

fn resized() -> GivenCompute {
    GivenCompute::bound().declaring(json!({"size": {"fixed": 4}}))
}

/// As if the change had been sent, and a snapshot still showed these fields differing.
fn sent(given: GivenCompute, at: Timestamp, differing: &[&str]) -> GivenCompute {
    let parts = parts(&given);
    given.remembering(|memory| {
        memory.sent(&parts, at);
        memory.note_differing(differing, at);
    })
}

#[test]
fn only_what_differs_is_changed() {
    let given = resized().declaring(json!({"pooler": {"enabled": false}, "branchID": BRANCH}));
    let expected = ComputeChange {
        settings: Settings {
            min: cu(4.),
            max: cu(4.),
            ..Settings::default()
        },
        ..ComputeChange::default()
    };
    assert_eq!(change(&given), expected);
    let moved = ComputeChange {
        branch_id: Some("br-dev".into()),
        ..ComputeChange::default()
    };
    assert_eq!(
        change(&GivenCompute::bound().declaring(json!({"branchID": "br-dev"}))),
        moved
    );
}

#[test]
fn what_was_in_force_before_is_drift() {
    let drift = |given: &GivenCompute| match given.step() {
        ComputeStep::Change { drift, .. } => drift,
        other => panic!("{other:?}"),
    };
    let seen = |given: GivenCompute, found: Compute| {
        let spec = given.spec.clone();
        given.remembering(|memory| {
            remember(
                memory,
                version(&spec, GENERATION),
                None,
                &Shown::Entry(&found),
                NOW,
            )
        })
    };
    assert!(!drift(&resized()), "declared a moment ago");
    let four = with(compute("ep-1"), |compute| {
        (compute.settings.min, compute.settings.max) = (cu(4.), cu(4.));
    });
    let was = seen(resized(), four);
    assert!(drift(&was), "somebody else has changed it");
    assert!(
        !drift(&was.declaring(json!({"size": {"fixed": 2}}))),
        "and then the spec was changed as well"
    );
    assert!(
        !drift(&seen(resized(), compute("ep-1"))),
        "it never was in force"
    );
}

#[test]
fn what_is_left_to_others_is_neither_changed_nor_reported() {
    let ignoring = |fields: Value| resized().declaring(json!({"disabled": true, "ignore": fields}));
    assert_eq!(
        change(&ignoring(json!(["size"]))).settings,
        Settings {
            disabled: Some(true),
            ..Settings::default()
        }
    );
    ignoring(json!(["size", "disabled"])).rest().in_sync();
}

#[test]
fn a_change_waits_until_the_compute_is_settled() {
    for unsettled in [
        with(compute("ep-1"), |compute| {
            compute.pending_state = Some(ComputeState::Idle)
        }),
        with(compute("ep-1"), |compute| {
            compute.current_state = ComputeState::Init
        }),
    ] {
        let reported = resized().seeing([unsettled]).rest();
        reported.out_of_sync(Reason::Updating, &["settle", "size is 1, declared is 4"]);
    }
}

#[test]
fn disruptive_changes_wait_and_others_do_not() {
    let when_idle = json!({"disruption": {"policy": "WhenIdle"}});
    let given = resized().declaring(when_idle);
    let reported = given.rest();
    reported.ready();
    reported.out_of_sync(
        Reason::WaitingForDisruption,
        &["until the compute is idle", "size is 1, declared is 4"],
    );
    assert_eq!(reported.wake, Wake::OnChange);
    assert!(
        change(&given.clone().seeing([idle("ep-1")]))
            .settings
            .max
            .is_some()
    );
    let both = given.declaring(json!({"pooler": {"enabled": true}}));
    let expected = Settings {
        pooler_enabled: Some(true),
        ..Settings::default()
    };
    assert_eq!(change(&both).settings, expected);
}

#[test]
fn what_waits_is_one_interruption_and_is_shown() {
    let when_idle = |more: Value| {
        let mut disruption = json!({"policy": "WhenIdle"});
        disruption
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        resized().declaring(
            json!({"restartToken": "now", "branchID": "br-dev", "disruption": disruption}),
        )
    };
    let all =
        "branchID is br-main, declared is br-dev; size is 1, declared is 4; the requested restart";
    let waiting = |given: &GivenCompute| given.decide().report.unwrap().waiting;
    let given = when_idle(json!({}));
    given.rest().out_of_sync(
        Reason::WaitingForDisruption,
        &["until the compute is idle", all],
    );
    assert_eq!(
        waiting(&given),
        Some(PostponedChanges {
            changes: all.to_owned(),
            until: None
        })
    );
    let alone = GivenCompute::bound()
        .declaring(json!({"restartToken": "now", "disruption": {"policy": "WhenIdle"}}));
    assert_eq!(waiting(&alone).unwrap().changes, "the requested restart");

    // The waiting time is counted from the time in the status, so another process continues it.
    let given =
        when_idle(json!({"deadline": "1h"})).observing(|seen| seen.waiting_since = Some(at(-600)));
    given.rest().until(at(3000));
    assert_eq!(waiting(&given).unwrap().until, Some(at(3000)));
    match given.after(3000).step() {
        ComputeStep::Change {
            change, restart, ..
        } => {
            assert_eq!(
                (change.branch_id.as_deref(), change.settings.max),
                (Some("br-dev"), cu(4.))
            );
            assert!(
                restart.is_some_and(|record| record.token == "now" && record.calling.is_some())
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_change_that_interrupts_nobody_is_no_restart() {
    let restart = |given: GivenCompute| match given.step() {
        ComputeStep::Change { restart, .. } => restart,
        other => panic!("{other:?}"),
    };
    let pooler = json!({"pooler": {"enabled": true}});
    assert_eq!(
        restart(
            GivenCompute::bound()
                .declaring(json!({"restartToken": "now"}))
                .declaring(pooler)
        ),
        None
    );
    assert_eq!(restart(resized()), None, "none is requested");
}

#[test]
fn a_window_is_waited_for() {
    // NOW is 2027-01-15T08:00:00Z, a Friday.
    let window = |schedule: &str| json!({"disruption": {"policy": "Window", "window": {"schedule": schedule, "duration": "2h"}}});
    let reported = resized().declaring(window("0 9 * * *")).rest();
    reported.ready();
    reported.out_of_sync(Reason::WaitingForDisruption, &["2027-01-15T09:00:00Z"]);
    reported.until(at(3600));
    assert!(
        change(&resized().declaring(window("0 7 * * *")))
            .settings
            .max
            .is_some()
    );
    let never = resized().declaring(window("0 25 * * *")).rest();
    never.refused(
        Reason::InvalidSchedule,
        &[
            "spec.disruption.window never opens",
            "size is 1, declared is 4",
        ],
    );
    let seldom = resized().declaring(window("0 0 * 2 MON#5")).rest();
    seldom.refused(
        Reason::WaitingForDisruption,
        &["no time within five years", "size is 1, declared is 4"],
    );
}

#[test]
fn a_refused_change_is_reported_and_tried_again_later_or_with_another_spec() {
    let given = resized().failed(Action::Change, refused());
    let reported = given.rest();
    reported.refused(Reason::Refused, &["422", "not on this plan"]);
    reported.until(at(30));
    change(&given.clone().after(30));
    change(&given.observing(|observed| observed.meta.generation = 4));
}

#[test]
fn a_setting_that_is_not_applied_is_not_sent_in_a_loop() {
    let given = GivenCompute::bound().declaring(json!({"scaleToZero": {"after": "10m"}}));
    let given = sent(given, NOW, &["scaleToZero"]);
    let reported = given.rest();
    reported.ready();
    reported.out_of_sync(
        Reason::SettingNotApplied,
        &["scaleToZero is the platform's default, declared is after 600s"],
    );
    reported.until(at(300));
    change(&given.after(300));
}

/// The status after `old`.
fn status_after(given: &GivenCompute, old: &ComputeStatus) -> ComputeStatus {
    status(
        &given.decide().report.unwrap(),
        &given.spec,
        &given.observed,
        old,
        given.now,
    )
}

fn suspending_after(length: &str) -> GivenCompute {
    GivenCompute::bound().declaring(json!({"scaleToZero": {"after": length}}))
}

/// The status after scaleToZero, declared as 10m, was sent and not applied.
fn not_applied() -> ComputeStatus {
    let first = sent(suspending_after("10m"), NOW, &["scaleToZero"]);
    let status = status_after(&first, &ComputeStatus::default());
    let expected = NotApplied {
        setting: "scaleToZero".into(),
        declared: "after 600s".into(),
        since: NOW,
    };
    assert_eq!(status.not_applied, [expected]);
    let again = sent(first.after(300), at(300), &["scaleToZero"]);
    assert_eq!(
        status_after(&again, &status),
        status,
        "one write, however often it is sent"
    );
    status
}

/// The decision of a process that started after `seconds`, with this status.
fn successor(
    given: GivenCompute,
    status: &ComputeStatus,
    generation: i64,
    seconds: i64,
) -> GivenCompute {
    let given = given.after(seconds);
    let spec = given.spec.clone();
    given.clone().remembering(|memory| {
        remember(
            memory,
            version(&spec, generation),
            Some(status),
            &Shown::Entry(&compute("ep-1")),
            given.now,
        );
    })
}

#[test]
fn the_pause_after_a_setting_that_is_not_applied_survives_the_process() {
    let status = not_applied();
    // The pauses are 5, 10, 20 and 40 minutes, then one hour each.
    for (start, next) in [
        (0, 300),
        (299, 300),
        (300, 900),
        (899, 900),
        (4499, 4500),
        (4500, 8100),
        (8100, 11700),
        (90_000, 90_900),
    ] {
        let given = successor(suspending_after("10m"), &status, GENERATION, start);
        given
            .rest()
            .out_of_sync(Reason::SettingNotApplied, &["scaleToZero"]);
        assert_eq!(given.rest().wake, Wake::At(at(next)), "{start}");
        assert_eq!(status_after(&given, &status), status);
        assert_eq!(
            change(&given.after(next)).settings.suspend_after,
            Some(SuspendAfter::Seconds(600))
        );
    }
}

#[test]
fn another_declaration_ends_the_pause_after_a_setting_that_is_not_applied() {
    let status = not_applied();
    let other = successor(suspending_after("20m"), &status, GENERATION, 10);
    assert_eq!(
        change(&other).settings.suspend_after,
        Some(SuspendAfter::Seconds(1200))
    );
    change(&successor(
        suspending_after("10m"),
        &status,
        GENERATION + 1,
        0,
    ));
    let not_declared = successor(GivenCompute::bound(), &status, GENERATION, 10);
    assert_eq!(status_after(&not_declared, &status).not_applied, []);
}

#[test]
fn a_field_that_is_not_applied_delays_neither_others_nor_restarts() {
    let given = GivenCompute::bound().declaring(json!({"scaleToZero": {"after": "10m"}}));
    let given = sent(given, NOW, &["scaleToZero"]);
    let resized = given.clone().declaring(json!({"size": {"fixed": 4}}));
    let change = change(&resized);
    assert_eq!(
        (change.settings.max, change.settings.suspend_after),
        (cu(4.), None)
    );
    let reported = resized
        .declaring(json!({"disruption": {"policy": "WhenIdle"}}))
        .rest();
    reported.out_of_sync(Reason::WaitingForDisruption, &["size"]);
    reported.until(at(300));
    assert!(matches!(
        given.declaring(json!({"restartToken": "now"})).step(),
        ComputeStep::Restart { .. }
    ));
}

#[test]
fn a_drift_is_corrected_and_a_repeated_one_is_reported() {
    let mut given = resized();
    for _ in 0..3 {
        change(&given);
        given = sent(given, NOW, &[]);
    }
    let reported = given.rest();
    reported.ready();
    reported.out_of_sync(
        Reason::DriftPersists,
        &["again and again", "size is 1, declared is 4"],
    );
    reported.until(at(300));
    change(&given.after(300));
}

#[test]
fn a_restart_is_not_delayed_by_a_refused_change() {
    let given = resized()
        .failed(Action::Change, refused())
        .declaring(json!({"restartToken": "now"}));
    assert!(matches!(given.step(), ComputeStep::Restart { .. }));
}

#[test]
fn a_restart_comes_with_a_change_that_is_tried_again_soon() {
    let failed = |given: GivenCompute| {
        given.failed(
            Action::Change,
            Fault::Transport {
                message: "refused".into(),
            },
        )
    };
    let given = failed(resized().declaring(json!({"restartToken": "now"})));
    given.rest().until(at(1));
    assert!(matches!(
        given.after(1).step(),
        ComputeStep::Change {
            restart: Some(_),
            ..
        }
    ));
    let restarts = |given: GivenCompute| matches!(given.step(), ComputeStep::Restart { .. });
    // A change that restarts nothing, and a change that the platform does not apply.
    let pooler = json!({"pooler": {"enabled": true}, "restartToken": "now"});
    assert!(restarts(failed(GivenCompute::bound().declaring(pooler))));
    assert!(restarts(failed(
        sent(resized(), NOW, &["size"]).declaring(json!({"restartToken": "now"}))
    )));
}

#[test]
fn without_a_step_the_first_report_and_the_earliest_wake_count() {
    let window = json!({"disruption": {"policy": "Window", "window": {"schedule": "0 9 * * *", "duration": "2h"}}});
    let given = resized()
        .declaring(window)
        .declaring(json!({"restartToken": "now"}));
    let reported = given
        .observing(|observed| observed.stale_from = Some(at(20)))
        .rest();
    reported.out_of_sync(Reason::WaitingForDisruption, &["size"]);
    reported.until(at(20));
}
