//! Tests of the reports of a set.

use super::*;
use crate::decide::{Health, Sync};

fn told(given: &GivenSet) -> Report {
    given.decide().report.unwrap()
}

fn health(given: &GivenSet) -> (&'static str, Reason, String) {
    let of = |kind, reason: &Reason, message: &String| (kind, *reason, message.clone());
    match &told(given).health {
        Health::Ready(reason, message) => of("ready", reason, message),
        Health::Progressing(reason, message) => of("progressing", reason, message),
        Health::Stalled(reason, message) => of("stalled", reason, message),
        Health::Unknown(reason, message) => of("unknown", reason, message),
        Health::Paused(message) => of("paused", &Reason::Paused, message),
    }
}

fn not_ready(status: &str, kind: Option<&str>) -> Value {
    let stalled = kind.map(|kind| conditioned(kind, "True", "Refused", "The plan is too small."));
    let ready = conditioned("Ready", status, "Refused", "The plan is too small.");
    let conditions: Vec<_> = [ready].into_iter().chain(stalled).collect();
    json!({"status": {"conditions": conditions}})
}

#[test]
fn how_the_replicas_stand_together() {
    let with = |more: Value| GivenSet::of(2, [replica(0, &json!({})), replica(1, &more)]);
    let why = "Compute reads-1: The plan is too small.";
    for (given, kind, reason, message) in [
        (
            GivenSet::of(0, []),
            "ready",
            Reason::Available,
            "Replicas: 0 declared, 0 ready, 0 up to date.".to_owned(),
        ),
        (
            GivenSet::of(1, ready(1)),
            "ready",
            Reason::Available,
            "Replicas: 1 declared, 1 ready, 1 up to date.".to_owned(),
        ),
        (
            GivenSet::of(2, ready(1)),
            "progressing",
            Reason::Creating,
            "Replicas: 2 declared, 1 ready, 1 up to date.".to_owned(),
        ),
        (
            with(starting()),
            "progressing",
            Reason::Updating,
            "Replicas: 2 declared, 1 ready, 1 up to date.".to_owned(),
        ),
        (
            GivenSet::of(1, ready(2)),
            "progressing",
            Reason::Updating,
            "Replicas: 1 declared, 2 ready, 2 up to date.".to_owned(),
        ),
        (
            with(not_ready("False", Some("Stalled"))),
            "stalled",
            Reason::ReplicaNotReady,
            format!("Replicas: 2 declared, 1 ready, 1 up to date. {why}"),
        ),
        (
            with(not_ready("Unknown", None)),
            "unknown",
            Reason::ReplicaNotReady,
            format!("Replicas: 2 declared, 1 ready, 1 up to date. {why}"),
        ),
        (
            with(not_ready("Unknown", Some("Paused"))),
            "progressing",
            Reason::Updating,
            "Replicas: 2 declared, 1 ready, 1 up to date.".to_owned(),
        ),
    ] {
        assert_eq!(health(&given), (kind, reason, message));
    }
}

#[test]
fn a_field_of_a_replica_is_changed_in_the_template() {
    let message = "Branch br-nope is not in project p-1: correct spec.branchID.";
    let stalled = ["Ready", "Stalled"].map(|kind| {
        let status = if kind == "Ready" { "False" } else { "True" };
        conditioned(kind, status, "Refused", message)
    });
    let stalled = json!({"status": {"conditions": stalled}});
    let (_, _, reported) = health(&GivenSet::of(1, [replica(0, &stalled)]));
    let place = "Change fields in spec.template.spec of the set.";
    assert!(
        reported.ends_with(&format!("Compute reads-0: {message} {place}")),
        "{reported}"
    );
}

#[test]
fn a_set_with_one_that_cannot_be_read_is_not_known_to_be_ready() {
    let given = GivenSet::of(2, ready(1)).observing(|seen| seen.unreadable = 1);
    let message =
        "Replicas: 2 declared, 1 ready, 1 up to date. 1 cannot be read, see their conditions."
            .to_owned();
    assert_eq!(
        health(&given),
        ("unknown", Reason::ReplicaNotReady, message.clone())
    );
    assert_eq!(
        told(&given).sync,
        Sync::Refused(Reason::ReplicaNotReady, message),
        "a person is needed for it"
    );
    let before = crate::api::ReadReplicaSetStatus::default();
    let shown = crate::decide::replica_set::status(
        &told(&given),
        &given.spec,
        &given.observed,
        &before,
        NOW,
    );
    assert_eq!((shown.replicas, shown.ready_replicas), (2, 1));
}

#[test]
fn what_waits_leaves_the_set_ready_and_not_in_sync() {
    let size = json!({"size": {"fixed": 2}});
    let waits = conditioned(
        "Synced",
        "False",
        "WaitingForDisruption",
        "It waits for the window.",
    );
    let more = json!({
        "spec": size, "status": {"conditions": [conditioned("Ready", "True", "Available", ""), waits]},
    });
    let given = GivenSet::new(
        spec(2, &json!({}), &size),
        [replica(0, &more), replica(1, &json!({}))],
    );
    assert_eq!(given.does(), "rests", "the others wait for it");
    assert_eq!(health(&given).0, "ready");
    let report = told(&given);
    let message = "Compute reads-0: It waits for the window.".to_owned();
    assert_eq!(
        report.sync,
        Sync::OutOfSync(Reason::WaitingForDisruption, message)
    );
    assert_eq!(report.waits_for(), Some(Reason::WaitingForDisruption));
}

/// A condition with the message of a refused size.
fn said(kind: &str, status: &str, reason: &str) -> Value {
    conditioned(kind, status, reason, "The plan is too small.")
}

/// A replica that is being deleted.
fn leaving<const N: usize>(conditions: [Value; N]) -> Value {
    json!({
        "metadata": {"deletionTimestamp": "2026-11-20T10:00:00Z"},
        "status": {"conditions": conditions.as_slice()},
    })
}

/// A set of one, with another replica beside it.
fn and_one(more: &Value) -> GivenSet {
    GivenSet::of(1, [replica(0, &json!({})), replica(1, more)])
}

fn size() -> Value {
    json!({"size": {"fixed": 2}})
}

/// A replica whose new size was refused.
fn refused_size() -> Value {
    let conditions = [
        said("Ready", "True", "Available"),
        said("Synced", "False", "Refused"),
        said("Stalled", "True", "Refused"),
    ];
    json!({"spec": size(), "status": {"conditions": conditions}})
}

/// A set reports the worst obstacle to its spec, and Ready as its replicas serve.
#[test]
fn what_needs_a_person_of_a_replica_needs_one_of_the_set() {
    let stuck = |reason: &str| {
        and_one(&leaving([
            said("Ready", "False", reason),
            said("Stalled", "True", reason),
        ]))
    };
    let nothing = json!({});
    let of_three = GivenSet::new(
        spec(3, &nothing, &size()),
        [
            replica(0, &refused_size()),
            replica(1, &nothing),
            replica(2, &nothing),
        ],
    );
    for (given, number, reason) in [
        (of_three, 0, Reason::Refused),
        (stuck("Refused"), 1, Reason::Refused),
        (stuck("DeletionPaused"), 1, Reason::DeletionPaused),
        (stuck("DeletionProtected"), 1, Reason::DeletionProtected),
    ] {
        assert_eq!(
            (given.does().as_str(), health(&given).0),
            ("rests", "ready")
        );
        let message = format!("Compute reads-{number}: The plan is too small.");
        assert_eq!(told(&given).sync, Sync::Refused(reason, message));
    }
}

#[test]
fn a_replica_in_deletion_needs_nobody_unless_it_is_paused() {
    let deleting = leaving([
        said("Ready", "False", "Deleting"),
        said("Reconciling", "True", "Deleting"),
    ]);
    assert_eq!(told(&and_one(&deleting)).sync, Sync::InSync);
    let paused = leaving([
        said("Ready", "True", "Available"),
        said("Synced", "Unknown", "Paused"),
        said("Paused", "True", "Paused"),
    ]);
    let message = "Compute reads-1: The plan is too small.".to_owned();
    assert_eq!(
        told(&and_one(&paused)).sync,
        Sync::OutOfSync(Reason::Paused, message)
    );
}

#[test]
fn an_unknown_state_of_another_replica_hides_no_refusal() {
    let dark = merged(
        json!({"status": {"state": "failed"}}),
        not_ready("Unknown", None),
    );
    let hidden = GivenSet::new(
        spec(2, &json!({}), &size()),
        [replica(0, &refused_size()), replica(1, &dark)],
    );
    assert_eq!(health(&hidden).0, "unknown");
    assert!(
        matches!(told(&hidden).sync, Sync::Refused(Reason::Refused, _)),
        "{:?}",
        told(&hidden)
    );
}

#[test]
fn a_paused_replica_that_serves_leaves_the_set_ready_and_not_in_sync() {
    let paused = [
        conditioned("Ready", "True", "Available", ""),
        conditioned("Synced", "Unknown", "Paused", "By a person."),
        conditioned("Paused", "True", "Paused", "By a person."),
    ];
    let given = GivenSet::of(
        2,
        [
            replica(0, &json!({"status": {"conditions": paused}})),
            replica(1, &json!({})),
        ],
    );
    assert_eq!(health(&given).0, "ready");
    assert_eq!(
        told(&given).sync,
        Sync::OutOfSync(Reason::Paused, "Compute reads-0: By a person.".to_owned())
    );
}

#[test]
fn what_the_api_server_refuses_leaves_those_ready_that_serve() {
    use crate::decide::memory::ActionProblem;
    let refused = |given: GivenSet, action| {
        let failed = |seen: &mut SetObserved| {
            seen.memory
                .failed(action, ActionProblem::Object("not admitted".into()), 3, NOW)
        };
        let report = told(&given.observing(failed));
        let refused = |sync: &Sync| matches!(sync, Sync::Refused(Reason::Refused, text) if text == "not admitted");
        match report.health {
            Health::Ready(..) => assert!(refused(&report.sync), "{report:?}"),
            _ => assert_eq!(report, Report::stalled(Reason::Refused, "not admitted")),
        }
        matches!(report.health, Health::Ready(..))
    };
    let size = json!({"size": {"fixed": 2}});
    assert!(
        refused(GivenSet::of(1, ready(2)), Action::Delete),
        "one too many"
    );
    assert!(
        refused(
            GivenSet::new(spec(2, &json!({}), &size), ready(2)),
            Action::Change
        ),
        "with another size"
    );
    assert!(
        !refused(GivenSet::of(3, ready(2)), Action::Create),
        "one too few"
    );
    assert!(!refused(
        GivenSet::of(1, [replica(0, &json!({})), replica(1, &starting())]),
        Action::Delete
    ));
}

#[test]
fn what_a_replica_said_of_an_older_spec_holds_nothing_back() {
    let size = json!({"size": {"fixed": 2}});
    let waits = conditioned(
        "Synced",
        "False",
        "WaitingForDisruption",
        "It waits for the window.",
    );
    let conditions = json!([conditioned("Ready", "True", "Available", ""), waits]);
    let older =
        json!({"metadata": {"generation": 2}, "spec": size, "status": {"conditions": conditions}});
    let given = GivenSet::new(
        spec(2, &json!({}), &size),
        [replica(0, &older), replica(1, &json!({"spec": size}))],
    );
    let message = "Replicas: 2 declared, 2 ready, 1 up to date.".to_owned();
    assert_eq!(health(&given), ("progressing", Reason::Updating, message));
}

#[test]
fn the_status_counts() {
    let leaving = replica(
        3,
        &json!({"metadata": {"deletionTimestamp": "2026-11-20T10:00:00Z"}}),
    );
    let old = replica(1, &former());
    let new = replica(2, &json!({"status": {"host": null, "conditions": []}}));
    let given = GivenSet::of(2, [replica(0, &json!({})), old, new, leaving]).observing(|seen| {
        (seen.connection_secret, seen.unused_secrets) = (Some("db".into()), vec!["old".into()])
    });
    let status = |given: &GivenSet| {
        let before = crate::api::ReadReplicaSetStatus {
            connection_secret: Some("was".into()),
            ..Default::default()
        };
        crate::decide::replica_set::status(&told(given), &given.spec, &given.observed, &before, NOW)
    };
    let shown = status(&given);
    let numbers = (
        shown.replicas,
        shown.ready_replicas,
        shown.updated_replicas,
        shown.hosts,
    );
    assert_eq!(numbers, (3, 2, 1, 2));
    assert_eq!(shown.selector.as_deref(), Some("app=reads"));
    assert_eq!(shown.connection_secret.as_deref(), Some("db"));
    assert_eq!(shown.binding.unwrap().name, "db");
    assert_eq!(
        (shown.unused_secrets, shown.observed_generation),
        (vec!["old".to_owned()], Some(3))
    );
    let going = status(&given.observing(|seen| seen.meta.deleting = true));
    assert_eq!(
        going.connection_secret.as_deref(),
        Some("was"),
        "nobody looks any more"
    );
}

#[test]
fn a_schedule_of_the_template_that_never_comes_is_reported_without_a_replica() {
    let restart = |schedule: &str| json!({"maintenance": {"restart": {"schedule": schedule}}});
    let report = |schedule: &str| told(&GivenSet::new(spec(0, &json!({}), &restart(schedule)), []));
    let Sync::Refused(Reason::InvalidSchedule, text) = report("0 0 30 2 *").sync else {
        panic!("not reported")
    };
    assert!(
        text.starts_with(
            "spec.template.spec.maintenance is not followed: the schedule \"0 0 30 2 *\""
        ),
        "{text}"
    );
    assert_eq!(report("0 0 29 2 *").sync, Sync::InSync);
}
