use super::*;

#[test]
fn a_message_is_one_line_of_bounded_length() {
    let message = format!("a\n\u{1b}[2J{}", "ü".repeat(20_000));
    for condition in Report::stalled(Reason::Refused, message).conditions(&[], 1, at(1)) {
        assert!(
            condition.message.starts_with("a \u{fffd}[2Jü"),
            "{}",
            condition.message
        );
        assert!(
            condition.message.len() <= LONGEST_MESSAGE,
            "{}",
            condition.message.len()
        );
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn of<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

#[test]
fn transition_time_moves_only_with_the_status() {
    let first = Report::progressing(Reason::Creating, "a").conditions(&[], 1, at(10));
    let same = Report::progressing(Reason::Starting, "b").conditions(&first, 1, at(20));
    assert_eq!(of(&same, "Ready").unwrap().last_transition_time.0, at(10));
    assert_eq!(of(&same, "Ready").unwrap().reason, "Starting");
    let ready = Report::ready("c").conditions(&same, 2, at(30));
    assert_eq!(of(&ready, "Ready").unwrap().last_transition_time.0, at(30));
    assert_eq!(of(&ready, "Ready").unwrap().observed_generation, Some(2));
}

#[test]
fn what_waits_on_purpose_is_told_from_what_is_wrong() {
    let (waiting, refused) = (Reason::WaitingForDisruption, Reason::Refused);
    let ready = |sync| Report::ready("a").with_sync(sync);
    for (report, expected) in [
        (
            Report::stalled(Reason::DeletionPaused, "b"),
            Some(Reason::DeletionPaused),
        ),
        (
            Report::stalled(Reason::DeletionProtected, "b"),
            Some(Reason::DeletionProtected),
        ),
        (
            Report::progressing(Reason::DeletionSlowed, "b"),
            Some(Reason::DeletionSlowed),
        ),
        (ready(Sync::OutOfSync(waiting, "b".into())), Some(waiting)),
        (ready(Sync::Refused(waiting, "b".into())), Some(waiting)),
        (Report::stalled(refused, "b"), None),
        (ready(Sync::OutOfSync(refused, "b".into())), None),
        (ready(Sync::InSync), None),
    ] {
        assert_eq!(report.waits_for(), expected, "{report:?}");
    }
}

#[test]
fn pausing_changes_nothing_of_what_is_ready() {
    let paused = Report::of(Health::Paused("by a person".into()));
    let ready = Report::ready("a").conditions(&[], 1, at(10));
    let seen = paused.conditions(&ready, 2, at(20));
    assert_eq!(of(&seen, "Ready"), of(&ready, "Ready"));
    assert_eq!(of(&seen, "Paused").unwrap().status, "True");
    assert_eq!(of(&seen, "Synced").unwrap().status, "Unknown");
    assert_eq!(
        paused.conditions(&seen, 3, at(30))[0],
        ready[0],
        "however long"
    );
    assert_eq!(paused.observed_generation(Some(1), 2), Some(1));
    let resumed = Report::ready("a").conditions(&seen, 2, at(40));
    assert!(of(&resumed, "Paused").is_none() && of(&resumed, "Synced").unwrap().status == "True");
    let new = paused.conditions(&[], 1, at(10));
    assert_eq!(
        (of(&new, "Ready").unwrap().status.as_str(), new.len()),
        ("Unknown", 3)
    );
    // A resource that was in progress or had failed does not report that while it is paused.
    let stalled = Report::stalled(Reason::Refused, "a").conditions(&[], 1, at(10));
    let seen = paused.conditions(&stalled, 1, at(20));
    assert_eq!(
        (of(&seen, "Ready"), of(&seen, "Stalled")),
        (of(&stalled, "Ready"), None)
    );
}

#[test]
fn a_refusal_beside_what_can_be_used_leaves_it_ready() {
    let refused = Health::Stalled(Reason::Refused, "no".into());
    let serving = Report::ready("a").beside(refused.clone());
    let seen = serving.conditions(&[], 1, at(10));
    for (kind, status, reason) in [
        ("Ready", "True", "Available"),
        ("Synced", "False", "Refused"),
        ("Stalled", "True", "Refused"),
    ] {
        let condition = of(&seen, kind).unwrap();
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            (status, reason),
            "{kind}"
        );
    }
    let unknown = Report::unknown(Reason::StateUnknown, "a")
        .beside(refused.clone())
        .conditions(&[], 1, at(10));
    let said = |kind| {
        of(&unknown, kind).map(|condition| (condition.status.as_str(), condition.reason.as_str()))
    };
    assert_eq!(
        (said("Ready"), said("Stalled")),
        (Some(("Unknown", "StateUnknown")), Some(("True", "Refused")))
    );
    let starting = Report::progressing(Reason::Starting, "a");
    assert_eq!(starting.beside(refused.clone()), Report::of(refused));
    let unknown = Health::Unknown(Reason::PlatformUnreachable, "no".into());
    assert_eq!(
        Report::ready("a").beside(unknown.clone()),
        Report::of(unknown)
    );
}

#[test]
fn what_hinders_is_told_beside_what_was_reported() {
    let hindered = |old: &[Condition]| {
        let told = Report::hindered(old, Reason::RequestRefused, "no", 2, at(20));
        let told = told
            .into_iter()
            .map(|it| format!("{}={} {}", it.type_, it.status, it.reason));
        told.collect::<Vec<_>>()
    };
    let new = [
        "Ready=False RequestRefused",
        "Stalled=True RequestRefused",
        "Synced=False RequestRefused",
    ];
    assert_eq!(hindered(&[]), new);
    assert_eq!(
        hindered(&Report::progressing(Reason::Creating, "a").conditions(&[], 1, at(10))),
        new
    );
    let serves = Report::ready("a").conditions(&[], 1, at(10));
    let beside = [
        "Ready=True Available",
        "Stalled=True RequestRefused",
        "Synced=False RequestRefused",
    ];
    assert_eq!(hindered(&serves), beside);
    let again = Report::hindered(&serves, Reason::RequestRefused, "no", 2, at(20));
    assert_eq!(hindered(&again), beside);
    let paused = Report::stalled(Reason::DeletionPaused, "a").conditions(&[], 1, at(10));
    let mut kept = paused
        .iter()
        .map(|it| format!("{}={} {}", it.type_, it.status, it.reason))
        .collect::<Vec<_>>();
    kept.push("RequestRefused=True RequestRefused".to_owned());
    assert_eq!(
        hindered(&paused),
        kept,
        "the pause of a deletion is in its condition"
    );
}

#[test]
fn a_notice_is_a_condition_of_its_own_only_while_it_is_so() {
    let notices = vec![(Reason::ManyKeys, "9000".to_owned())];
    let noticed = Report {
        notices,
        ..Report::ready("a")
    }
    .conditions(&[], 1, at(10));
    let many = of(&noticed, "ManyKeys").unwrap();
    assert_eq!(
        (
            many.status.as_str(),
            many.reason.as_str(),
            many.message.as_str()
        ),
        ("True", "ManyKeys", "9000")
    );
    assert_eq!(of(&noticed, "Ready").unwrap().status, "True");
    assert!(
        of(
            &Report::ready("a").conditions(&noticed, 1, at(20)),
            "ManyKeys"
        )
        .is_none()
    );
}

#[test]
fn reconciling_and_stalled_are_present_only_while_true() {
    let creating = Report::progressing(Reason::Creating, "a").conditions(&[], 1, at(10));
    assert_eq!(of(&creating, "Reconciling").unwrap().status, "True");
    let stalled = Report::stalled(Reason::Refused, "a").conditions(&creating, 1, at(10));
    assert!(of(&stalled, "Reconciling").is_none());
    assert_eq!(of(&stalled, "Stalled").unwrap().status, "True");
    let ready = Report::ready("a").conditions(&stalled, 1, at(10));
    assert!(of(&ready, "Stalled").is_none());
    assert_eq!(of(&ready, "Synced").unwrap().status, "True");
}
