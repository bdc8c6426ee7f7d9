use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::constant(1_800_000_000 + second, 0)
}

fn record(content: u64) -> Repair {
    Repair::of(WrittenPart::Metadata, content)
}

#[test]
fn what_is_undone_each_time_is_repaired_five_times_a_minute() {
    let mut repairs = WriteContention::default();
    let made: Vec<_> = (0..600)
        .filter(|second| {
            let may = repairs.waits_until("a", &record(1), at(*second)).is_none();
            may.then(|| repairs.made("a", record(1), at(*second)))
                .is_some()
        })
        .collect();
    assert_eq!(made.len(), 50, "{made:?}");
    assert_eq!(made[..7], [0, 1, 2, 3, 4, 60, 61]);
}

#[test]
fn what_is_written_with_another_content_or_for_another_resource_waits_for_nothing() {
    let mut repairs = WriteContention::default();
    (0..5).for_each(|second| repairs.made("a", record(1), at(second)));
    assert_eq!(repairs.waits_until("a", &record(1), at(5)), Some(at(60)));
    assert_eq!(repairs.waits_until("a", &record(2), at(5)), None);
    assert_eq!(repairs.waits_until("b", &record(1), at(5)), None);
    assert_eq!(
        repairs.waits_until(
            "a",
            &Repair::of(WrittenPart::Secret("db".to_owned()), 1),
            at(5)
        ),
        None
    );
    repairs.made("a", record(2), at(6));
    assert_eq!(
        repairs.waits_until("a", &record(1), at(7)),
        None,
        "it was something else in between"
    );
}

#[test]
fn people_are_told_once_and_for_as_long_as_it_goes_on() {
    let mut repairs = WriteContention::default();
    (0..5).for_each(|second| repairs.made("a", record(1), at(second)));
    assert_eq!(repairs.reported("a", at(5)), None, "nobody was told yet");
    repairs.keep_message("a", "look".to_owned());
    assert_eq!(
        repairs.reported("a", at(59)),
        Some(("look".to_owned(), at(60)))
    );
    assert_eq!(repairs.reported("a", at(60)), None);
    (60..65).for_each(|second| repairs.made("a", record(1), at(second)));
    assert!(repairs.reported("a", at(65)).is_some(), "it goes on");
    assert_eq!(repairs.reported("a", at(125)), None);
    assert!(repairs.0.is_empty(), "nothing is kept of what is over");
}

#[test]
fn what_is_undone_is_named_as_people_find_it() {
    for (what, named) in [
        (
            WrittenPart::Metadata,
            "the annotation dbplane.dev/record or the finalizer",
        ),
        (WrittenPart::Status, "the status"),
        (WrittenPart::Secret("db".to_owned()), "Secret db"),
        (
            WrittenPart::Compute("replica-1".to_owned()),
            "Compute replica-1",
        ),
    ] {
        assert_eq!(what.to_string(), named);
    }
}
