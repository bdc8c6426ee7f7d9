use super::*;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn at(seconds: u64) -> Timestamp {
    later(NOW, Duration::from_secs(seconds))
}

fn operation(id: &str, status: &str, failures: u32) -> LastOperation {
    LastOperation {
        id: id.into(),
        action: "start_compute".into(),
        status: status.into(),
        failures: Some(failures).filter(|failures| *failures > 0),
        error: None,
    }
}

#[test]
fn a_failure_counts_until_a_later_operation_has_finished() {
    for (newest, expected) in [
        (vec![], None),
        (vec![("a", "running", 0)], None),
        (vec![("a", "a word of a later version", 0)], None),
        (vec![("a", "failed", 0)], Some("a")),
        (vec![("a", "error", 3)], Some("a")),
        // The platform retries it.
        (vec![("a", "running", 2)], Some("a")),
        (vec![("a", "finished", 2)], None),
        (vec![("b", "scheduling", 0), ("a", "failed", 1)], Some("a")),
        (vec![("b", "cancelled", 0), ("a", "error", 1)], Some("a")),
        (vec![("b", "finished", 0), ("a", "error", 1)], None),
        (vec![("b", "skipped", 0), ("a", "error", 1)], None),
        (vec![("a", "cancelled", 0)], Some("a")),
        (vec![("a", "cancelled", 1)], Some("a")),
        // The operation was replaced.
        (vec![("b", "running", 0), ("a", "cancelled", 1)], None),
    ] {
        let newest: Vec<_> = newest
            .iter()
            .map(|(id, status, count)| operation(id, status, *count))
            .collect();
        assert_eq!(
            failed(&newest).map(|failed| failed.id.as_str()),
            expected,
            "{newest:?}"
        );
    }
}

#[test]
fn nothing_is_asked_while_all_is_well() {
    let mut known = Operations::default();
    known.started(&[operation("a", "running", 0)]);
    known.observed(true, true, NOW);
    assert_eq!(known.ask_at(false, NOW, NOW), None);
}

#[test]
fn what_takes_long_is_asked_for_after_growing_pauses() {
    let mut known = Operations::default();
    known.observed(false, true, NOW);
    known.observed(false, true, at(20));
    assert_eq!(known.ask_at(false, at(20), at(20)), Some(at(30)));
    assert_eq!(
        known.ask_at(true, at(20), at(20)),
        Some(at(20)),
        "the start deadline has passed"
    );
    for (seen, due) in [(0, 60), (19, 60), (20, 30), (30, 30)] {
        assert_eq!(
            known.ask_at(false, at(seen), at(30)),
            Some(at(due)),
            "as a list of {seen} s shows"
        );
    }
    let mut time = at(30);
    for pause in [30, 60, 120, 240, 300, 300] {
        known.listed(&[], time);
        let next = known.ask_at(true, time, time).unwrap();
        assert_eq!(next, later(time, Duration::from_secs(pause)));
        time = next;
    }
    known.observed(true, true, time);
    assert_eq!(known.ask_at(false, time, time), None, "it has settled");
}

#[test]
fn a_failure_is_asked_about_at_once_and_until_it_is_over() {
    let mut known = Operations::default();
    known.started(&[operation("a", "failed", 1), operation("b", "scheduling", 0)]);
    known.observed(true, true, NOW);
    assert_eq!(known.ask_at(false, NOW, NOW), Some(NOW));
    known.listed(
        &[operation("b", "scheduling", 0), operation("a", "failed", 2)],
        NOW,
    );
    known.observed(true, true, at(1));
    assert_eq!(
        (
            known.failed().unwrap().failures,
            known.ask_at(false, at(1), at(1))
        ),
        (Some(2), Some(at(30)))
    );
    known.listed(
        &[operation("b", "finished", 0), operation("a", "finished", 2)],
        at(30),
    );
    known.observed(true, true, at(31));
    assert_eq!(
        (known.failed(), known.ask_at(false, at(31), at(31))),
        (None, None)
    );
    assert_eq!(known.newest(), [], "nothing more is to be said of them");
}

#[test]
fn a_platform_that_lists_none_is_not_asked_again_and_its_computes_decide() {
    let mut known = Operations::default();
    known.started(&[operation("a", "failed", 1)]);
    known.not_listed();
    known.observed(false, true, NOW);
    assert_eq!(
        (known.ask_at(true, at(9999), at(9999)), known.are_listed()),
        (None, false)
    );
    known.observed(true, false, NOW);
    assert!(
        known.failed().is_some(),
        "what was asked for is not in force"
    );
    known.observed(true, true, NOW);
    assert_eq!(known.failed(), None);
    known.ask_anew();
    known.observed(false, true, NOW);
    assert!(
        known.ask_at(false, NOW, NOW).is_some(),
        "it may be another platform now"
    );
}

#[test]
fn what_the_status_shows_counts_until_something_newer_is_known() {
    let mut known = Operations::default();
    known.shown(&operation("a", "failed", 1));
    assert_eq!(known.failed().unwrap().id, "a");
    known.listed(&[], NOW);
    known.shown(&operation("a", "failed", 1));
    assert_eq!(known.failed(), None);
}

#[test]
fn a_few_are_remembered() {
    let many: Vec<_> = (0..9)
        .map(|number| operation(&number.to_string(), "running", 0))
        .collect();
    let mut known = Operations::default();
    let ids = |known: &Operations| {
        known
            .newest()
            .iter()
            .map(|it| it.id.clone())
            .collect::<Vec<_>>()
    };
    known.listed(&many, NOW);
    assert_eq!(ids(&known), ["0", "1", "2"]);
    known.started(&many);
    assert_eq!(
        ids(&known),
        ["8", "7", "6"],
        "the last one that was begun is the newest"
    );
}

#[test]
fn an_operation_is_told_with_its_id_its_action_and_how_often_it_failed() {
    let told = |status, count, error: Option<&str>| {
        text(&LastOperation {
            error: error.map(str::to_owned),
            ..operation("a", status, count)
        })
    };
    assert_eq!(told("running", 0, None), "start_compute a (running)");
    assert_eq!(
        told("failed", 1, None),
        "start_compute a (failed, 1 failure)"
    );
    assert_eq!(
        told("error", 3, Some("no room")),
        "start_compute a (error, 3 failures: no room)"
    );
}
