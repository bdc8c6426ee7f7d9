//! Restarts: on request of the spec, when the spec allows, once for each token.

use super::*;
use crate::decide::Action;
use crate::decide::identity::{BeforeRestart, InVain, RestartAnswer};

fn asked() -> GivenCompute {
    GivenCompute::bound().declaring(json!({"restartToken": "one"}))
}

/// The record before the restart for this token was called.
fn earlier() -> RestartRecord {
    RestartRecord {
        at: at(-3600),
        ..RestartRecord::default()
    }
}

/// A restart that was recorded 10 s ago; its outcome is not recorded.
fn calling(seen: Compute) -> GivenCompute {
    let before = BeforeRestart::of(&compute("ep-1"), &earlier());
    let record = RestartRecord {
        calling: Some(before),
        ..done("one", at(-10))
    };
    asked()
        .seeing([seen])
        .identity(|identity| identity.restart = Some(record))
}

/// As `calling`, with this answer, on a platform that does not show when computes start.
fn undated(seen: Compute, answered: Option<RestartAnswer>) -> GivenCompute {
    let undated = |compute: Compute| with(compute, |compute| compute.started_at = None);
    calling(undated(seen)).identity(|identity| {
        let before = BeforeRestart::of(&undated(compute("ep-1")), &earlier());
        identity.restart.as_mut().unwrap().calling = Some(BeforeRestart { answered, ..before });
    })
}

fn restarts(given: &GivenCompute) -> RestartRecord {
    match given.step() {
        ComputeStep::Restart { id, record } => {
            assert_eq!(id, "ep-1");
            record
        }
        other => panic!("{other:?}"),
    }
}

/// The record that is written, and the compute whose restart is reported by an event.
fn recorded(given: &GivenCompute) -> (RestartRecord, Option<ComputeId>) {
    match given.step() {
        ComputeStep::RecordRestart { record, restarted } => (record, restarted),
        other => panic!("{other:?}"),
    }
}

/// The record that is written without an event.
fn notes(given: &GivenCompute) -> RestartRecord {
    let (record, restarted) = recorded(given);
    assert_eq!(restarted, None);
    record
}

/// The restart is recorded as made, and reported by an event.
fn made(given: &GivenCompute) {
    assert_eq!(recorded(given), (done("one", at(-10)), Some("ep-1".into())));
}

fn waits(given: &GivenCompute) {
    let reported = given.rest();
    reported.progressing(Reason::Restarting);
    reported.until(at(50));
}

fn unclear(given: &GivenCompute) {
    let record = notes(given);
    assert!(
        record.calling.as_ref().is_some_and(|before| before.unclear),
        "{record:?}"
    );
    let given = given
        .clone()
        .identity(|identity| identity.restart = Some(record));
    given.rest().out_of_sync(
        Reason::RestartUnconfirmed,
        &["ep-1", "is not known", "dbplane.dev/restart="],
    );
}

fn done(token: &str, at: Timestamp) -> RestartRecord {
    RestartRecord {
        token: token.into(),
        at,
        ..RestartRecord::default()
    }
}

fn updated() -> Compute {
    with(compute("ep-1"), |compute| compute.updated_at = Some(at(-5)))
}

fn pending(state: ComputeState) -> Compute {
    with(compute("ep-1"), |compute| {
        compute.pending_state = Some(state)
    })
}

fn resized() -> Compute {
    with(updated(), |compute| {
        (compute.settings.min, compute.settings.max) = (cu(2.), cu(2.))
    })
}

#[test]
fn a_new_token_restarts_an_active_compute() {
    let record = restarts(&asked());
    assert_eq!((record.token.as_str(), record.at), ("one", NOW));
    assert_eq!(record.calling.unwrap().started_at, Some(at(-3600)));
    let annotated = GivenCompute::bound()
        .observing(|observed| observed.restart_annotation = Some("two".into()));
    assert_eq!(restarts(&annotated).annotation, "two");
    let both = asked().observing(|observed| observed.restart_annotation = Some("two".into()));
    let record = restarts(&both);
    assert_eq!(
        (record.token.as_str(), record.annotation.as_str()),
        ("one", "two")
    );
}

#[test]
fn a_token_that_was_carried_out_restarts_nothing() {
    asked()
        .identity(|identity| identity.restart = Some(done("one", at(-60))))
        .rest()
        .in_sync();
}

#[test]
fn a_removed_token_restarts_nothing() {
    let both = RestartRecord {
        annotation: "two".into(),
        ..done("one", at(-60))
    };
    let given = |record: &RestartRecord| {
        GivenCompute::bound().identity(|identity| identity.restart = Some(record.clone()))
    };
    given(&both).rest().in_sync();
    given(&both)
        .declaring(json!({"restartToken": "one"}))
        .rest()
        .in_sync();
    given(&both)
        .observing(|observed| observed.restart_annotation = Some("two".into()))
        .rest()
        .in_sync();
    // A token that stays in the record is not requested again.
    let record = restarts(&given(&both).declaring(json!({"restartToken": "three"})));
    assert_eq!(
        (record.token.as_str(), record.annotation.as_str()),
        ("three", "two")
    );
}

#[test]
fn without_a_record_nothing_is_due() {
    let given = asked().identity(|identity| identity.restart = None);
    assert_eq!(
        notes(&given),
        RestartRecord {
            noted: true,
            ..done("one", NOW)
        }
    );
}

#[test]
fn an_idle_compute_is_not_woken() {
    assert_eq!(notes(&asked().seeing([idle("ep-1")])), done("one", NOW));
    let waking = with(idle("ep-1"), |compute| {
        compute.pending_state = Some(ComputeState::Active)
    });
    asked().seeing([waking]).rest().ready();
}

#[test]
fn a_compute_that_is_changing_is_waited_for() {
    for state in [
        ComputeState::Init,
        ComputeState::Active,
        ComputeState::Other("something-new".into()),
    ] {
        let seen = with(compute("ep-1"), |compute| {
            compute.current_state = state.clone();
            compute.pending_state = Some(ComputeState::Idle);
        });
        assert_eq!(asked().seeing([seen]).decide().step, None, "{state}");
    }
}

#[test]
fn a_restart_waits_for_its_time() {
    let reported = asked()
        .declaring(json!({"disruption": {"policy": "WhenIdle"}}))
        .rest();
    reported.ready();
    reported.out_of_sync(
        Reason::WaitingForDisruption,
        &["until the compute is idle", "restart"],
    );
    let window = json!({"disruption": {"policy": "Window", "window": {"schedule": "0 9 * * *", "duration": "1h"}}});
    asked().declaring(window).rest().until(at(3600));
}

#[test]
fn changes_come_before_the_restart() {
    let given = asked().declaring(json!({"size": {"fixed": 4}}));
    assert!(matches!(given.step(), ComputeStep::Change { .. }));
}

#[test]
fn a_restart_that_is_refused_is_tried_again_later() {
    let record = restarts(&asked());
    let given = asked()
        .identity(|identity| identity.restart = Some(record))
        .failed(Action::Restart, refused());
    let reported = given.rest();
    reported.refused(Reason::Refused, &["422"]);
    reported.until(at(30));
    restarts(&given.after(30));
}

#[test]
fn a_start_or_a_stop_since_the_call_shows_that_it_was_made() {
    let started = with(compute("ep-1"), |compute| compute.started_at = Some(at(-5)));
    let init = with(compute("ep-1"), |compute| {
        compute.current_state = ComputeState::Init
    });
    for seen in [started, idle("ep-1"), init, pending(ComputeState::Idle)] {
        made(&calling(seen));
    }
    for seen in [idle("ep-1"), pending(ComputeState::Idle)] {
        made(&undated(seen, None));
    }
    // A compute of another size, or on another branch, was stopped by that change, which has its
    // own event.
    let moved = with(updated(), |compute| compute.branch_id = "br-dev".into());
    assert_eq!(
        recorded(&undated(resized(), None)),
        (done("one", at(-10)), None)
    );
    let rebound = undated(moved, None).binding(|binding| binding.branch = Some("br-dev".into()));
    assert_eq!(recorded(&rebound), (done("one", at(-10)), None));
}

#[test]
fn what_has_other_causes_too_shows_nothing() {
    for seen in [
        compute("ep-1"),
        pending(ComputeState::Active),
        updated(),
        resized(),
    ] {
        let given = calling(seen);
        let reported = given.rest();
        reported.progressing(Reason::Restarting);
    }
    for seen in [compute("ep-1"), updated()] {
        waits(&undated(seen, None));
    }
    assert_eq!(
        undated(
            pending(ComputeState::Active),
            Some(RestartAnswer::ForCompute)
        )
        .decide()
        .step,
        None
    );
    // A platform that shows start times would show this start.
    waits(&calling(updated()).identity(|identity| {
        identity
            .restart
            .as_mut()
            .unwrap()
            .calling
            .as_mut()
            .unwrap()
            .answered = Some(RestartAnswer::ForCompute);
    }));
}

#[test]
fn where_starts_are_not_dated_an_answer_and_a_change_show_it_together() {
    for answered in [RestartAnswer::Plainly, RestartAnswer::ForCompute] {
        made(&undated(updated(), Some(answered)));
        let odd = with(updated(), |seen| {
            seen.current_state = ComputeState::Other("failed".into())
        });
        waits(&undated(odd, Some(answered)));
        waits(&undated(compute("ep-1"), Some(answered)));
    }
}

#[test]
fn what_nothing_shows_is_reported_and_not_called_again() {
    let unreadable = || with(compute("ep-1"), |compute| compute.updated_at = None);
    for given in [
        undated(updated(), None),
        undated(unreadable(), None),
        undated(unreadable(), Some(RestartAnswer::Plainly)),
        // The platform has answered that it restarts this compute.
        undated(compute("ep-1"), Some(RestartAnswer::ForCompute)),
    ] {
        unclear(&given.after(50));
    }
}

#[test]
fn what_is_unclear_ends_with_a_later_stop_or_another_request() {
    let given = undated(updated(), None).after(50);
    let record = notes(&given);
    let given = given.identity(|identity| identity.restart = Some(record));
    made(
        &given
            .clone()
            .seeing([with(idle("ep-1"), |compute| compute.started_at = None)]),
    );
    let given = given.declaring(json!({"restartToken": "two"}));
    let again = restarts(&given);
    assert_eq!(
        (again.token.as_str(), again.calling.unwrap().record),
        ("two", Some(Box::new(earlier())))
    );
    // Other changes continue in the meantime, and are no trace of the restart.
    let pooler = given.declaring(json!({"restartToken": "one", "pooler": {"enabled": true}}));
    assert!(matches!(
        pooler.step(),
        ComputeStep::Change { restart: None, .. }
    ));
}

#[test]
fn without_any_sign_it_is_called_again_after_the_settle_time() {
    for given in [
        calling(compute("ep-1")),
        undated(compute("ep-1"), None),
        undated(compute("ep-1"), Some(RestartAnswer::Plainly)),
    ] {
        waits(&given.clone().after(49));
        let given = given.after(50);
        let record = notes(&given);
        assert_eq!(
            record,
            RestartRecord {
                in_vain: Some(InVain {
                    calls: 1,
                    at: at(-10)
                }),
                ..earlier()
            }
        );
        assert_eq!(
            restarts(&given.identity(|identity| identity.restart = Some(record))).at,
            at(50)
        );
    }
}

#[test]
fn what_is_called_in_vain_is_called_less_and_less_often_and_reported() {
    let after = |calls, seconds| {
        let in_vain = Some(InVain { calls, at: NOW });
        asked()
            .identity(|it| {
                it.restart = Some(RestartRecord {
                    in_vain,
                    ..earlier()
                })
            })
            .after(seconds)
    };
    for (calls, pause) in [(1, 60), (2, 120), (4, 480), (5, 600), (50, 600)] {
        let reported = after(calls, pause - 1).rest();
        reported.out_of_sync(
            Reason::RestartUnconfirmed,
            &["ep-1", &format!("{calls} times"), "again at 2027-"],
        );
        reported.until(at(pause));
        let record = restarts(&after(calls, pause));
        // The compute serves while the restart is called once more.
        let open = after(calls, pause).identity(|identity| identity.restart = Some(record));
        open.rest()
            .out_of_sync(Reason::RestartUnconfirmed, &["ep-1"]);
    }
    // The retries end with a change that interrupts connections, an idle compute, or a withdrawn
    // request.
    let resized = after(9, 10).declaring(json!({"size": {"fixed": 4}}));
    assert!(matches!(
        resized.step(),
        ComputeStep::Change {
            restart: Some(_),
            ..
        }
    ));
    assert_eq!(
        notes(&after(9, 10).seeing([idle("ep-1")])),
        done("one", at(10))
    );
    let mut taken_back = after(9, 10);
    taken_back.spec.restart_token = None;
    assert_eq!(notes(&taken_back), earlier());
}

#[test]
fn nothing_else_is_changed_while_a_call_may_be_carried_out() {
    let pooler = json!({"pooler": {"enabled": true}});
    waits(&undated(compute("ep-1"), None).declaring(pooler.clone()));
    waits(&calling(compute("ep-1")).declaring(json!({"size": {"fixed": 4}})));
    assert_eq!(
        recorded(&undated(idle("ep-1"), None).declaring(pooler))
            .0
            .calling,
        None
    );
}

#[test]
fn what_earlier_versions_recorded_is_called_again_as_well() {
    let given = calling(compute("ep-1")).identity(|identity| {
        identity.restart.as_mut().unwrap().calling = Some(BeforeRestart {
            updated_at: Some(at(-3600)),
            started_at: Some(at(-3600)),
            ..BeforeRestart::default()
        });
    });
    waits(&given);
    assert_eq!(restarts(&given.after(50)).token, "one");
}

#[test]
fn one_that_certainly_did_not_happen_is_called_again() {
    let fault = Fault::Busy {
        message: "busy".into(),
        retry_after: None,
    };
    let given = calling(compute("ep-1")).failed(Action::Restart, fault);
    let reported = given.rest();
    reported.progressing(Reason::PlatformBusy);
    reported.until(at(1));
    assert_eq!(
        restarts(&given.after(1)).calling.unwrap().record,
        Some(Box::new(earlier()))
    );
    // A refused change that would have restarted the compute did not restart it either.
    let given = calling(compute("ep-1")).failed(Action::Change, refused());
    restarts(&given);
    // After the request is withdrawn, the earlier record is in force again.
    let mut taken_back = given;
    taken_back.spec.restart_token = None;
    assert_eq!(notes(&taken_back), earlier());
    let open = calling(compute("ep-1")).failed(Action::Restart, lost());
    open.rest().progressing(Reason::Restarting);
}

#[test]
fn a_newer_token_waits_for_the_outcome_of_the_older() {
    let given = calling(with(compute("ep-1"), |compute| {
        compute.started_at = Some(at(-5))
    }));
    let given = given.declaring(json!({"restartToken": "two"}));
    let (record, _) = recorded(&given);
    assert_eq!(record, done("one", at(-10)));
    assert_eq!(
        restarts(&given.identity(|identity| identity.restart = Some(record))).token,
        "two"
    );
}
