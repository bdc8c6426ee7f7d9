//! Restarts: when the spec asks, as the spec allows, once for each token.

use super::*;
use crate::decide::Action;
use crate::decide::identity::BeforeRestart;

fn asked() -> Given {
    Given::bound().declaring(json!({"restartToken": "one"}))
}

/// A restart that was recorded 10 s ago, and whose outcome was not.
fn calling(seen: Compute) -> Given {
    let before = BeforeRestart { updated_at: Some(at(-3600)), started_at: Some(at(-3600)) };
    let record = RestartRecord { maintained: None, calling: Some(before), ..done("one", at(-10)) };
    asked().seeing([seen]).identity(|identity| identity.restart = Some(record))
}

fn restarts(given: &Given) -> RestartRecord {
    match given.step() {
        ComputeStep::Restart { id, record } => {
            assert_eq!(id, "ep-1");
            record
        }
        other => panic!("{other:?}"),
    }
}

fn notes(given: &Given) -> RestartRecord {
    match given.step() {
        ComputeStep::RecordRestart { record } => record,
        other => panic!("{other:?}"),
    }
}

fn done(token: &str, at: Timestamp) -> RestartRecord {
    RestartRecord { token: token.into(), annotation: String::new(), at, maintained: None, calling: None }
}

#[test]
fn a_new_token_restarts_an_active_compute() {
    let record = restarts(&asked());
    assert_eq!((record.token.as_str(), record.at), ("one", NOW));
    assert_eq!(record.calling.unwrap().started_at, Some(at(-3600)));
    let annotated = Given::bound().observing(|observed| observed.restart_annotation = Some("two".into()));
    assert_eq!(restarts(&annotated).annotation, "two");
    let both = asked().observing(|observed| observed.restart_annotation = Some("two".into()));
    let record = restarts(&both);
    assert_eq!((record.token.as_str(), record.annotation.as_str()), ("one", "two"));
}

#[test]
fn a_token_that_was_carried_out_restarts_nothing() {
    asked().identity(|identity| identity.restart = Some(done("one", at(-60)))).rest().in_sync();
}

#[test]
fn a_removed_token_restarts_nothing() {
    let both = RestartRecord { annotation: "two".into(), ..done("one", at(-60)) };
    let given = |record: &RestartRecord| Given::bound().identity(|identity| identity.restart = Some(record.clone()));
    given(&both).rest().in_sync();
    given(&both).declaring(json!({"restartToken": "one"})).rest().in_sync();
    given(&both).observing(|observed| observed.restart_annotation = Some("two".into())).rest().in_sync();
    // What stays in the record is not requested again.
    let record = restarts(&given(&both).declaring(json!({"restartToken": "three"})));
    assert_eq!((record.token.as_str(), record.annotation.as_str()), ("three", "two"));
}

#[test]
fn without_a_record_nothing_is_due() {
    let given = asked().identity(|identity| identity.restart = None);
    assert_eq!(notes(&given), done("one", NOW));
}

#[test]
fn an_idle_compute_is_not_woken() {
    assert_eq!(notes(&asked().seeing([idle("ep-1")])), done("one", NOW));
    let waking = with(idle("ep-1"), |compute| compute.pending_state = Some(ComputeState::Active));
    asked().seeing([waking]).rest().ready();
}

#[test]
fn a_compute_that_is_changing_is_waited_for() {
    for state in [ComputeState::Init, ComputeState::Active, ComputeState::Other("something-new".into())] {
        let seen = with(compute("ep-1"), |compute| {
            compute.current_state = state.clone();
            compute.pending_state = Some(ComputeState::Idle);
        });
        assert_eq!(asked().seeing([seen]).decide().step, None, "{state}");
    }
}

#[test]
fn a_restart_waits_for_its_time() {
    let reported = asked().declaring(json!({"disruption": {"policy": "WhenIdle"}})).rest();
    reported.ready();
    reported.out_of_sync(Reason::WaitingForDisruption, &["until the compute is idle", "restart"]);
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
    let given = asked().identity(|identity| identity.restart = Some(record)).failed(Action::Restart, refused());
    let reported = given.rest();
    reported.refused(Reason::Refused, &["422"]);
    reported.until(at(30));
    restarts(&given.after(30));
}

#[test]
fn an_unanswered_restart_is_resolved() {
    let started = with(compute("ep-1"), |compute| compute.started_at = Some(at(-5)));
    let stopped = idle("ep-1");
    for seen in [started, stopped] {
        assert_eq!(notes(&calling(seen)), done("one", at(-10)));
    }
    // The time of the start shows more than a pending state or an update, which have many causes.
    for seen in [
        compute("ep-1"),
        with(compute("ep-1"), |compute| compute.pending_state = Some(ComputeState::Active)),
        with(compute("ep-1"), |compute| compute.updated_at = Some(at(-5))),
    ] {
        let reported = calling(seen).rest();
        reported.progressing(Reason::Restarting);
        reported.until(at(50));
    }
}

#[test]
fn where_starts_are_not_dated_any_sign_counts() {
    let undated = |compute: Compute| with(compute, |compute| compute.started_at = None);
    let updated = with(compute("ep-1"), |compute| compute.updated_at = Some(at(-5)));
    let pending = with(compute("ep-1"), |compute| compute.pending_state = Some(ComputeState::Active));
    for seen in [updated, pending] {
        assert_eq!(notes(&calling(undated(seen))), done("one", at(-10)));
    }
    calling(undated(compute("ep-1"))).rest().progressing(Reason::Restarting);
}

#[test]
fn without_any_sign_it_is_called_again_after_the_settle_time() {
    let given = calling(compute("ep-1"));
    assert_eq!(given.clone().after(49).decide().step, None);
    assert_eq!(restarts(&given.after(50)).at, at(50));
}

#[test]
fn one_that_certainly_did_not_happen_is_called_again() {
    let fault = Fault::Busy { message: "busy".into(), retry_after: None };
    let given = calling(compute("ep-1")).failed(Action::Restart, fault);
    let reported = given.rest();
    reported.progressing(Reason::PlatformBusy);
    reported.until(at(1));
    restarts(&given.after(1));
    let open = calling(compute("ep-1")).failed(Action::Restart, lost());
    open.rest().progressing(Reason::Restarting);
}

#[test]
fn a_newer_token_waits_for_the_outcome_of_the_older() {
    let given = calling(with(compute("ep-1"), |compute| compute.started_at = Some(at(-5))));
    let given = given.declaring(json!({"restartToken": "two"}));
    let record = notes(&given);
    assert_eq!(record, done("one", at(-10)));
    assert_eq!(restarts(&given.identity(|identity| identity.restart = Some(record))).token, "two");
}
