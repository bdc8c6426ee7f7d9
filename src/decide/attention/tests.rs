use super::*;
use crate::decide::{Health, Report, Sync};

fn of(report: &Report) -> (Attention, String) {
    let conditions = report.conditions(&[], 1, jiff::Timestamp::UNIX_EPOCH);
    let need = Attention::of(&conditions);
    (need.what, need.condition.unwrap().reason.clone())
}

#[test]
fn the_most_urgent_condition_counts() {
    let ready = |sync| Report::ready("a").with_sync(sync);
    let refused = Health::Stalled(Reason::Refused, "b".into());
    for (report, what, reason) in [
        (Report::ready("a"), Attention::Nothing, Reason::Available),
        (
            Report::progressing(Reason::Creating, "a"),
            Attention::Work,
            Reason::Creating,
        ),
        (
            ready(Sync::OutOfSync(Reason::WaitingForDisruption, "b".into())),
            Attention::Time,
            Reason::WaitingForDisruption,
        ),
        (
            ready(Sync::OutOfSync(Reason::StrayCompute, "b".into())),
            Attention::User,
            Reason::StrayCompute,
        ),
        (
            Report::stalled(Reason::WaitingForDisruption, "b"),
            Attention::User,
            Reason::WaitingForDisruption,
        ),
        (
            Report::ready("a").beside(refused),
            Attention::User,
            Reason::Refused,
        ),
        (
            Report::unknown(Reason::PlatformUnreachable, "b"),
            Attention::Time,
            Reason::PlatformUnreachable,
        ),
        (
            Report::of(Health::Paused("b".into())),
            Attention::User,
            Reason::Paused,
        ),
        (
            Report {
                notices: vec![(Reason::ManyKeys, "9000".into())],
                ..Report::ready("a")
            },
            Attention::User,
            Reason::ManyKeys,
        ),
    ] {
        assert_eq!(of(&report), (what, reason.to_string()), "{report:?}");
    }
    assert_eq!(
        Attention::of(&[]),
        Need {
            what: Attention::Work,
            condition: None
        }
    );
}

#[test]
fn what_is_well_needs_nothing_whatever_its_reason() {
    let mut conditions = Report::ready("a").conditions(&[], 1, jiff::Timestamp::UNIX_EPOCH);
    let ready = conditions
        .iter()
        .position(|condition| condition.type_ == "Ready")
        .unwrap();
    conditions[ready].reason = "Juggling".to_owned();
    let over = Condition {
        type_: "Stalled".to_owned(),
        status: "False".to_owned(),
        ..conditions[ready].clone()
    };
    conditions.push(over);
    assert_eq!(
        Attention::of(&conditions),
        Need {
            what: Attention::Nothing,
            condition: Some(&conditions[ready])
        }
    );
}

#[test]
fn a_reason_of_another_version_needs_a_person_unless_something_is_in_progress() {
    let mut conditions =
        Report::progressing(Reason::Creating, "a").conditions(&[], 1, jiff::Timestamp::UNIX_EPOCH);
    conditions.retain(|condition| condition.type_ == "Reconciling");
    conditions[0].reason = "Juggling".to_owned();
    assert_eq!(Attention::of(&conditions).what, Attention::Work);
    conditions[0].type_ = "Synced".to_owned();
    conditions[0].status = "False".to_owned();
    assert_eq!(Attention::of(&conditions).what, Attention::User);
    assert!(
        Reason::ALL
            .iter()
            .all(|reason| Reason::of(reason.as_str()) == Some(*reason))
    );
}
