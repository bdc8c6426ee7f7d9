//! The status that belongs to a decision.

use super::*;
use crate::api::{ComputeStatus, LastOperation, RestartStatus};
use crate::decide::memory::ExistenceAnswer;

fn status_of(given: &GivenCompute, old: &ComputeStatus) -> ComputeStatus {
    status(
        &Report::ready("fine"),
        &given.spec,
        &given.observed,
        old,
        given.now,
    )
}

fn active_at(time: Timestamp, state: ComputeState) -> GivenCompute {
    GivenCompute::bound().seeing([with(compute("ep-1"), |compute| {
        compute.current_state = state;
        compute.last_active = Some(time);
    })])
}

#[test]
fn it_shows_what_was_seen() {
    let seen = with(compute("ep-1"), |compute| {
        compute.pooled_host = Some("ep-1-pooler.postgres.example".into());
        (compute.settings.min, compute.settings.max) = (cu(0.25), cu(2.));
        compute.pending_state = Some(ComputeState::Idle);
    });
    let status = status_of(
        &GivenCompute::bound().seeing([compute("ep-0"), seen]),
        &ComputeStatus::default(),
    );
    assert_eq!(status.compute_id.as_deref(), Some("ep-1"));
    assert_eq!(
        (status.type_, status.region.as_deref()),
        (Some(ComputeType::ReadWrite), Some("region-1"))
    );
    assert_eq!(status.created_at, Some(at(-7200)));
    assert_eq!(status.host.as_deref(), Some("ep-1.postgres.example"));
    assert_eq!(
        status.pooled_host.as_deref(),
        Some("ep-1-pooler.postgres.example")
    );
    assert_eq!(
        (status.state.as_deref(), status.pending_state.as_deref()),
        (Some("active"), Some("idle"))
    );
    assert_eq!(status.size.as_deref(), Some("0.25-2"));
    assert_eq!(status.capacity.unwrap().max_connections, 112);
    assert_eq!(status.observed_generation, Some(3));
    assert!(
        status
            .conditions
            .iter()
            .all(|condition| condition.observed_generation == Some(3))
    );
    assert_eq!(status.restart, None);
}

#[test]
fn it_shows_what_waits_and_since_when() {
    let waiting = |until| {
        Some(PostponedChanges {
            changes: "size".into(),
            until,
        })
    };
    let shown = |given: &GivenCompute, waiting: Option<PostponedChanges>| {
        let report = Report {
            waiting,
            ..Report::ready("fine")
        };
        status(
            &report,
            &given.spec,
            &given.observed,
            &ComputeStatus::default(),
            given.now,
        )
        .waiting
    };
    let new = shown(&GivenCompute::bound(), waiting(Some(at(60)))).unwrap();
    assert_eq!(
        (new.changes.as_str(), new.since, new.until),
        ("size", NOW, Some(at(60)))
    );
    let given = GivenCompute::bound().observing(|seen| seen.waiting_since = Some(at(-60)));
    assert_eq!(shown(&given, waiting(None)).unwrap().since, at(-60));
    assert_eq!(shown(&given, None), None);
}

#[test]
fn it_names_the_connection_secret_where_a_service_binding_is_looked_for() {
    let given = GivenCompute::bound();
    assert_eq!(status_of(&given, &ComputeStatus::default()).binding, None);
    let given = given.observing(|observed| observed.connection_secret = Some("orders-db".into()));
    let status = status_of(&given, &ComputeStatus::default());
    assert_eq!(
        status.binding.as_ref().map(|binding| binding.name.as_str()),
        Some("orders-db")
    );
    // The Secret is not read while the resource is being deleted.
    let deleting = GivenCompute::bound().observing(|observed| observed.meta.deleting = true);
    assert_eq!(status_of(&deleting, &status).binding, status.binding);
}

#[test]
fn it_shows_the_type_that_the_compute_has_and_not_the_declared_one() {
    let status = status_of(
        &GivenCompute::bound().seeing([replica("ep-1")]),
        &ComputeStatus::default(),
    );
    assert_eq!(status.type_, Some(ComputeType::ReadOnly));
}

#[test]
fn it_keeps_what_was_seen_while_nothing_can_be_seen() {
    let old = status_of(&GivenCompute::bound(), &ComputeStatus::default());
    for snapshot in [SnapshotState::Pending, SnapshotState::Failed(lost())] {
        let given = GivenCompute::bound().observing(|observed| observed.snapshot = snapshot);
        let status = status_of(&given, &old);
        assert_eq!(
            (status.host, status.state),
            (old.host.clone(), old.state.clone())
        );
    }
    // A list without the compute proves nothing.
    let missing = status_of(&GivenCompute::bound().seeing([]), &old);
    assert_eq!(
        (missing.host, missing.state),
        (old.host.clone(), old.state.clone())
    );
    let gone = status_of(&gone(), &old);
    assert_eq!(
        (gone.compute_id.as_deref(), gone.host, gone.state),
        (Some("ep-1"), None, None)
    );
    let invalid = GivenCompute::bound()
        .observing(|seen| seen.identity = Err(InvalidAnnotation::CopiedFrom("other".into())));
    assert_eq!(status_of(&invalid, &old).host, old.host);
    let unbound = status_of(&GivenCompute::new(), &old);
    assert_eq!((unbound.compute_id, unbound.last_operation), (None, None));
}

/// The platform has answered that the compute does not exist.
fn gone() -> GivenCompute {
    GivenCompute::bound().seeing([]).remembering(|memory| {
        memory.missing_since = Some(NOW);
        memory.asked = Some(ExistenceAnswer {
            at: NOW,
            exists: false,
        });
    })
}

fn status_with(serving: Option<bool>, since: Option<Timestamp>) -> ComputeStatus {
    ComputeStatus {
        last_seen_serving: serving,
        unseen_since: since,
        ..ComputeStatus::default()
    }
}

/// `last_seen_serving` and `unseen_since` after a pass.
fn serving(given: &GivenCompute, old: &ComputeStatus) -> (Option<bool>, Option<Timestamp>) {
    let shown = status_of(given, old);
    (shown.last_seen_serving, shown.unseen_since)
}

#[test]
fn it_shows_whether_the_compute_was_last_seen_to_serve() {
    let in_state = |state: ComputeState| {
        GivenCompute::bound().seeing([with(compute("ep-1"), |seen| seen.current_state = state)])
    };
    let odd = || in_state(ComputeState::Other("failed".into()));
    let serves = status_with(Some(true), None);
    let starts = status_with(Some(false), None);
    let never_seen = ComputeStatus::default();
    let unseen = status_with(Some(false), Some(at(-60)));
    for (what, given, old, expected) in [
        ("active", GivenCompute::bound(), &starts, Some(true)),
        ("idle", in_state(ComputeState::Idle), &starts, Some(true)),
        (
            "starting",
            in_state(ComputeState::Init),
            &serves,
            Some(false),
        ),
        ("a state that is not known", odd(), &serves, Some(true)),
        ("one after it started", odd(), &starts, Some(false)),
        ("one that was never seen before", odd(), &never_seen, None),
        ("seen again", GivenCompute::bound(), &unseen, Some(true)),
        ("gone", gone(), &serves, Some(false)),
        ("no compute", GivenCompute::new(), &serves, Some(false)),
    ] {
        assert_eq!(serving(&given, old), (expected, None), "{what}");
    }
}

#[test]
fn it_shows_since_when_the_compute_is_not_seen() {
    let failed =
        || GivenCompute::bound().observing(|seen| seen.snapshot = SnapshotState::Failed(lost()));
    let pending = || GivenCompute::bound().observing(|seen| seen.snapshot = SnapshotState::Pending);
    let not_admitted = pending().observing(|seen| {
        seen.account = AccountView::NamespaceNotAllowed {
            name: "ClusterAccount prod".into(),
        };
    });
    let elsewhere = gone().observing(|seen| {
        let identity = seen.identity.as_mut().unwrap();
        identity.binding.as_mut().unwrap().platform = Some("https://one.example".into());
        seen.platform = Some("https://other.example".into());
    });
    let not_listed = GivenCompute::bound().seeing([]);
    let serves = status_with(Some(true), None);
    let starts = status_with(Some(false), None);
    let never_seen = ComputeStatus::default();
    let (before, now) = (Some(at(-60)), Some(NOW));
    let unseen = status_with(Some(true), before);
    for (what, given, old, expected) in [
        ("503", failed(), &serves, (Some(true), now)),
        ("503 for a while", failed(), &unseen, (Some(true), before)),
        ("503 while it starts", failed(), &starts, (Some(false), now)),
        ("503 and an old status", failed(), &never_seen, (None, now)),
        ("not admitted", not_admitted, &serves, (Some(true), now)),
        ("the first list", pending(), &serves, (Some(true), None)),
        (
            "the first list after a failure",
            pending(),
            &unseen,
            (Some(true), before),
        ),
        ("not in the list", not_listed, &serves, (Some(true), now)),
        ("another platform", elsewhere, &serves, (Some(true), now)),
    ] {
        assert_eq!(serving(&given, old), expected, "{what}");
    }
}

#[test]
fn the_same_again_is_equal_so_that_nothing_is_written() {
    let first = status_of(
        &active_at(at(10), ComputeState::Active),
        &ComputeStatus::default(),
    );
    let later = status_of(&active_at(at(200), ComputeState::Active).after(300), &first);
    assert_eq!(first, later);
}

#[test]
fn last_active_is_kept_to_the_hour_while_active_and_is_never_put_back() {
    let hour = at(-NOW.as_second().rem_euclid(3600));
    let old = |time| ComputeStatus {
        last_active: time,
        ..ComputeStatus::default()
    };
    let of = |time, state, before| status_of(&active_at(time, state), &old(before)).last_active;
    let minutes = |minutes: u64| later(hour, Duration::from_secs(minutes * 60));
    assert_eq!(of(minutes(10), ComputeState::Active, None), Some(hour));
    assert_eq!(
        of(minutes(50), ComputeState::Active, Some(hour)),
        Some(hour)
    );
    assert_eq!(
        of(minutes(70), ComputeState::Active, Some(hour)),
        Some(minutes(60))
    );
    // Idle at ten past, then active again: the time is not set back to the full hour.
    assert_eq!(
        of(minutes(10), ComputeState::Idle, Some(hour)),
        Some(minutes(10))
    );
    assert_eq!(
        of(minutes(20), ComputeState::Active, Some(minutes(10))),
        Some(minutes(10))
    );
    assert_eq!(
        of(minutes(5), ComputeState::Idle, Some(minutes(10))),
        Some(minutes(5)),
        "idle is exact"
    );
}

#[test]
fn fractions_of_seconds_are_left_out() {
    let time = Timestamp::new(NOW.as_second(), 5_000_000).unwrap();
    let seen = with(compute("ep-1"), |compute| {
        compute.current_state = ComputeState::Idle;
        (compute.last_active, compute.created_at) = (Some(time), Some(time));
    });
    let status = status_of(
        &GivenCompute::bound().seeing([seen]),
        &ComputeStatus::default(),
    );
    assert_eq!(
        (status.last_active, status.created_at),
        (Some(NOW), Some(NOW))
    );
}

#[test]
fn the_last_operation_outlives_the_memory() {
    let operation = |id: &str| LastOperation {
        id: id.into(),
        action: "start_compute".into(),
        status: "running".into(),
        failures: Some(1),
        error: None,
    };
    let old = ComputeStatus {
        last_operation: Some(operation("old")),
        ..ComputeStatus::default()
    };
    assert_eq!(
        status_of(&GivenCompute::bound(), &old).last_operation,
        Some(operation("old"))
    );
    let given =
        GivenCompute::bound().remembering(|memory| memory.last_operation = Some(operation("new")));
    assert_eq!(
        status_of(&given, &old).last_operation,
        Some(operation("new"))
    );
}

#[test]
fn a_settled_compute_shows_no_operation_as_under_way() {
    let shown = |status: &str, given: GivenCompute| {
        let operation = LastOperation {
            id: "op-1".into(),
            action: "start_compute".into(),
            status: status.into(),
            failures: None,
            error: None,
        };
        let given = given.remembering(|memory| memory.last_operation = Some(operation));
        let status = status_of(&given, &ComputeStatus::default());
        status.last_operation.map(|operation| operation.status)
    };
    for open in ["scheduling", "running", "cancelling"] {
        assert_eq!(shown(open, GivenCompute::bound()), None, "{open}");
    }
    assert_eq!(
        shown("finished", GivenCompute::bound()).as_deref(),
        Some("finished")
    );
    // The list is older than the change, or cannot be read: the end is not known.
    let changing = GivenCompute::bound().remembering(|memory| memory.changing = true);
    assert_eq!(shown("running", changing).as_deref(), Some("running"));
    let unseen = GivenCompute::bound().observing(|observed| {
        observed.snapshot = SnapshotState::Failed(Fault::Server {
            status: 502,
            message: String::new(),
        });
    });
    assert_eq!(shown("running", unseen).as_deref(), Some("running"));
}

/// The restart in the status that follows `old`.
fn restart_of(given: &GivenCompute, old: Option<&RestartStatus>) -> Option<RestartStatus> {
    let old = old.cloned().map(Box::new);
    status_of(
        given,
        &ComputeStatus {
            restart: old,
            ..ComputeStatus::default()
        },
    )
    .restart
    .map(|restart| *restart)
}

#[test]
fn a_restart_is_shown_when_it_was_asked_for_and_when_it_was_done() {
    let record = |calling| RestartRecord {
        token: "one".into(),
        annotation: "two".into(),
        at: at(-5),
        calling,
        ..RestartRecord::default()
    };
    let given = |record| {
        GivenCompute::bound()
            .declaring(json!({"restartToken": "one"}))
            .identity(|it| it.restart = record)
    };
    let times = |shown: &RestartStatus| (shown.requested_at, shown.completed_at);
    let bound = GivenCompute::bound().observed.facts.identity.unwrap();
    let asked = restart_of(&given(bound.restart), None).unwrap();
    assert_eq!(
        (asked.token.as_str(), times(&asked)),
        ("one", (Some(NOW), None))
    );
    let asked = RestartStatus {
        token: "one two".into(),
        requested_at: Some(at(-60)),
        completed_at: None,
    };
    let calling = crate::decide::identity::BeforeRestart::default();
    let called = restart_of(&given(Some(record(Some(calling)))), Some(&asked)).unwrap();
    assert_eq!(
        (called.token.as_str(), times(&called)),
        ("one two", (Some(at(-60)), None))
    );
    let made = given(Some(record(None)));
    let restarting = with(compute("ep-1"), |compute| {
        compute.pending_state = Some(ComputeState::Idle)
    });
    assert_eq!(
        times(&restart_of(&made.clone().seeing([restarting]), Some(&asked)).unwrap()),
        (Some(at(-60)), None)
    );
    let done = restart_of(&made, Some(&asked)).unwrap();
    assert_eq!(times(&done), (Some(at(-60)), Some(NOW)));
    assert_eq!(
        restart_of(&made.clone().after(60), Some(&done)).unwrap(),
        done
    );
    // A restart that no status showed in progress counts as completed when it was recorded.
    for old in [
        None,
        Some(RestartStatus {
            token: "one two".into(),
            ..RestartStatus::default()
        }),
    ] {
        assert_eq!(
            times(&restart_of(&made, old.as_ref()).unwrap()),
            (Some(at(-5)), Some(at(-5)))
        );
    }
}

#[test]
fn it_keeps_what_was_seen_last_where_the_record_is_invalid() {
    let old = ComputeStatus {
        compute_id: Some("ep-1".into()),
        record: Some("the record".into()),
        ..ComputeStatus::default()
    };
    let given = GivenCompute::bound().with_invalid_record(&InvalidAnnotation::HandOver);
    let report = Report::stalled(Reason::BindingConflict, "a");
    let status = status(&report, &given.spec, &given.observed, &old, given.now);
    let (conditions, observed_generation) = (status.conditions.clone(), status.observed_generation);
    assert_eq!(conditions[0].reason, "BindingConflict");
    let unseen_since = Some(given.now);
    assert_eq!(
        status,
        ComputeStatus {
            conditions,
            observed_generation,
            unseen_since,
            ..old
        }
    );
}

#[test]
fn an_observed_compute_shows_no_restarts() {
    let given =
        GivenCompute::bound().declaring(json!({"restartToken": "one", "management": "Observe"}));
    assert_eq!(restart_of(&given, None), None);
}

#[test]
fn a_request_to_look_again_is_handled_once_the_platform_was_looked_at() {
    let given =
        GivenCompute::bound().observing(|observed| observed.meta.reconcile = Some("two".into()));
    let old = ComputeStatus {
        last_handled_reconcile_at: Some("one".into()),
        ..ComputeStatus::default()
    };
    let handled = |given: &GivenCompute| status_of(given, &old).last_handled_reconcile_at.unwrap();
    assert_eq!(handled(&given), "two");
    for snapshot in [SnapshotState::Pending, SnapshotState::Failed(lost())] {
        assert_eq!(
            handled(
                &given
                    .clone()
                    .observing(|observed| observed.snapshot = snapshot)
            ),
            "one"
        );
    }
    assert_eq!(handled(&GivenCompute::bound()), "one");
}
