//! Tests of the state of the brake, and of its messages.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn paused_with(text: &str) -> Vec<Condition> {
    Report::stalled(Reason::DeletionPaused, text).conditions(&[], 1, at(0))
}

#[test]
fn the_status_remembers_and_the_annotation_confirms() {
    let (wait, since) = (paused_with("wait"), Some(at(60)));
    assert_eq!(Brake::of(None, since, &wait), Brake::Paused("wait".into()));
    for (confirmed, until) in [
        ("1970-01-01T00:01:00Z", 60),
        (" 1970-01-01T01:01:30+01:00 ", 90),
        ("1970-01-02T00:00:00Z", 86_400),
    ] {
        assert_eq!(
            Brake::of(Some(confirmed), since, &wait),
            Brake::Confirmed,
            "{confirmed}"
        );
        assert_eq!(
            Brake::of(Some(confirmed), since, &[]),
            Brake::ConfirmedUntil(at(until)),
            "{confirmed}"
        );
    }
    // The value is from an earlier deletion, or is no time.
    for other in ["1970-01-01T00:00:59Z", "true", "", "2000-13-01T00:00:00Z"] {
        assert_eq!(
            Brake::of(Some(other), since, &wait),
            Brake::Paused("wait".into()),
            "{other}"
        );
        assert_eq!(Brake::of(Some(other), since, &[]), Brake::Free, "{other}");
    }
    assert_eq!(
        Brake::of(Some("1970-01-02T00:00:00Z"), None, &[]),
        Brake::Free,
        "nothing is deleted"
    );
    let other = Report::stalled(Reason::Refused, "no").conditions(&[], 1, at(0));
    assert_eq!(Brake::of(None, since, &other), Brake::Free);
}

#[test]
fn a_confirmation_in_the_future_counts_from_now_and_exempts_nothing_that_is_deleted_later() {
    let future = "2099-01-01T00:00:00Z";
    let now = at(1000);
    let before = Brake::of(Some(future), Some(now), &[]);
    assert!(
        !before.is_confirmed(now),
        "it was there when the deletion was requested"
    );
    assert!(
        Brake::of(Some("1970-01-01T00:17:40Z"), Some(now), &[]).is_confirmed(now),
        "a minute is no future"
    );

    let meta = Meta {
        brake: before,
        ..Meta::default()
    };
    let Brake::Paused(message) = DeletionRefusal::Full(30).brake("Compute", &meta) else {
        panic!("it is not paused")
    };
    assert!(
        message.contains("confirm-deletion was set to 2099-01-01T00:00:00Z before"),
        "{message}"
    );
    let paused = paused_with(&message);
    for (annotation, confirmed) in [
        (future, false),
        (" 2099-01-01T01:00:00+01:00", false),
        ("2098-01-01T00:00:00Z", true),
        ("1970-01-01T00:20:00Z", true),
    ] {
        let brake = Brake::of(Some(annotation), Some(now), &paused);
        assert_eq!(
            brake.is_confirmed(at(1100)),
            confirmed,
            "{annotation}: {brake:?}"
        );
        let much_later: Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            brake.is_confirmed(much_later),
            confirmed,
            "{annotation}: {brake:?}"
        );
    }
}

#[test]
fn only_a_deletion_that_waits_is_held() {
    let of = |brake| Meta {
        deleting: true,
        has_finalizer: true,
        brake,
        ..Meta::default()
    };
    let paused = of(Brake::Paused("wait".into()));
    let limits = Limits::default();
    let report = Report::stalled(Reason::DeletionPaused, "wait");
    assert_eq!(held::<()>(&paused, &limits), Some(Decision::rest(report)));
    let slowed = of(Brake::Slowed("wait".into(), at(7)));
    let report = Report::progressing(Reason::DeletionSlowed, "wait");
    assert_eq!(
        held::<()>(&slowed, &limits),
        Some(Decision::wait(report, at(7)))
    );
    for meta in [paused, slowed] {
        assert_eq!(
            held::<()>(
                &Meta {
                    deleting: false,
                    ..meta.clone()
                },
                &limits
            ),
            None
        );
        assert_eq!(
            held::<()>(
                &Meta {
                    has_finalizer: false,
                    ..meta.clone()
                },
                &limits
            ),
            None
        );
        assert_eq!(
            held::<()>(
                &meta,
                &Limits {
                    deletes_per_minute: 0,
                    ..limits
                }
            ),
            None,
            "there is no brake"
        );
    }
    for brake in [Brake::Free, Brake::Confirmed, Brake::ConfirmedUntil(at(1))] {
        assert_eq!(held::<()>(&of(brake), &limits), None);
    }
}

#[test]
fn the_message_names_the_cause_and_the_commands() {
    let meta = Meta {
        namespace: "shop".into(),
        name: "ci".into(),
        ..Meta::default()
    };
    let text = |refusal: DeletionRefusal, kind| match refusal.brake(kind, &meta) {
        Brake::Paused(message) | Brake::Slowed(message, _) => message,
        other => panic!("{other:?}"),
    };
    let full = text(DeletionRefusal::Full(30), "ProjectKey");
    for words in [
        "30 deletions",
        "--deletes-per-minute",
        "kubectl annotate --overwrite projectkey ci -n shop dbplane.dev/confirm-deletion=$(date -u +%FT%TZ)",
        r#"kubectl -n shop patch projectkey ci --type merge -p '{"spec":{"deletion":"Orphan"}}'"#,
    ] {
        assert!(full.contains(words), "{words:?} is not in {full:?}");
    }
    assert!(
        text(DeletionRefusal::OthersWait, "Compute")
            .contains("other deletions in namespace shop through the same account")
    );
    assert!(
        text(DeletionRefusal::AccountFull(120), "Compute").contains("massDeletionPolicy is Pause")
    );
    let slowed = |turn| {
        text(
            DeletionRefusal::Slowed {
                turn: at(turn),
                ask: at(1),
            },
            "Compute",
        )
    };
    assert!(
        slowed(61).contains("before 1970-01-01T00:02:00Z"),
        "{}",
        slowed(61)
    );
    assert_eq!(slowed(61), slowed(120), "it changes once a minute at most");
}
