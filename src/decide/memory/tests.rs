use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn rejected() -> ActionProblem {
    ActionProblem::Platform(Fault::Rejected {
        status: 422,
        message: "limit reached".into(),
    })
}

#[test]
fn a_refusal_waits_longer_each_time_and_not_for_a_new_spec() {
    let mut memory = Memory::default();
    memory.failed(Action::Create, rejected(), 1, at(0));
    let backoff = memory.backoff(Action::Create, 1, at(29)).unwrap();
    assert_eq!(backoff.until, at(30));
    assert_eq!(
        backoff.health,
        Health::Stalled(
            Reason::Refused,
            "The platform refuses (422): limit reached".into()
        )
    );
    assert_eq!(memory.backoff(Action::Create, 1, at(30)), None);
    assert_eq!(memory.backoff(Action::Create, 2, at(1)), None);
    memory.failed(Action::Create, rejected(), 1, at(30));
    assert_eq!(
        memory.backoff(Action::Create, 1, at(31)).unwrap().until,
        at(90)
    );
}

#[test]
fn a_success_ends_the_pauses() {
    let mut memory = Memory::default();
    memory.failed(Action::Create, rejected(), 1, at(0));
    memory.failed(Action::Change, rejected(), 1, at(0));
    memory.succeeded(Action::Create);
    assert_eq!(memory.backoff(Action::Create, 1, at(1)), None);
    assert!(memory.backoff(Action::Change, 1, at(1)).is_some());
    assert_eq!(
        memory
            .failures()
            .map(|(action, _)| action)
            .collect::<Vec<_>>(),
        [Action::Change]
    );
}

#[test]
fn another_key_is_remembered_of_ones_own_creation_alone() {
    let mut memory = Memory::default();
    let other = ActionProblem::Platform(Fault::OtherKey {
        id: KeyId(9),
        message: String::new(),
    });
    memory.recorded(Action::CreateKey, at(10));
    memory.failed(Action::CreateKey, other, 1, at(11));
    assert_eq!(memory.other_key(at(10)), Some(KeyId(9)));
    assert_eq!(
        memory.other_key(at(5)),
        None,
        "another process recorded that one"
    );
    memory.recorded(Action::CreateKey, at(20));
    assert_eq!(memory.other_key(at(20)), None, "that was the one before");
}

#[test]
fn the_clock_of_another_process_does_not_count() {
    let settle = Duration::from_secs(60);
    let mut memory = Memory::default();
    for (recorded, now, settled) in [
        (100, 5000, 5060),
        (100, 5030, 5060),
        (90_000, 5040, 5100),
        (100, 5050, 5110),
    ] {
        memory.note_unresolved(Some(at(recorded)), at(now));
        assert_eq!(memory.settles_at(at(recorded), settle), at(settled));
    }
    memory.note_unresolved(None, at(5055));
    memory.note_unresolved(Some(at(100)), at(5060));
    assert_eq!(memory.settles_at(at(100), settle), at(5120));
}

#[test]
fn retry_after_is_obeyed() {
    let mut memory = Memory::default();
    let fault = Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(17)),
    };
    memory.failed(Action::Change, ActionProblem::Platform(fault), 1, at(0));
    assert_eq!(
        memory.backoff(Action::Change, 1, at(1)).unwrap().until,
        at(17)
    );
    // Repeating the answer does not make the pause longer.
    for second in 20..30 {
        let fault = Fault::Throttled {
            status: 429,
            retry_after: Some(Duration::from_secs(1)),
        };
        memory.failed(
            Action::Change,
            ActionProblem::Platform(fault),
            1,
            at(second),
        );
        assert_eq!(
            memory.backoff(Action::Change, 1, at(second)).unwrap().until,
            at(second + 1)
        );
    }
}

fn parts(fields: &[&str]) -> BTreeMap<String, ComputeChange> {
    fields
        .iter()
        .map(|field| ((*field).to_owned(), ComputeChange::default()))
        .collect()
}

fn repeated(memory: &Memory, field: &str, now: Timestamp) -> Option<(Reason, Timestamp)> {
    memory.repeated(field, &ComputeChange::default(), now)
}

#[test]
fn a_setting_that_is_never_seen_in_force_is_not_sent_in_a_loop() {
    let mut memory = Memory::default();
    assert_eq!(repeated(&memory, "size", at(0)), None);
    memory.sent(&parts(&["size"]), at(0));
    memory.note_differing(&["size"], at(0));
    assert_eq!(
        repeated(&memory, "size", at(10)),
        Some((Reason::SettingNotApplied, at(300)))
    );
    assert_eq!(repeated(&memory, "size", at(300)), None);
    memory.sent(&parts(&["size"]), at(300));
    assert_eq!(
        repeated(&memory, "size", at(301)),
        Some((Reason::SettingNotApplied, at(900)))
    );
}

#[test]
fn an_ignored_field_does_not_delay_the_others() {
    let mut memory = Memory::default();
    memory.sent(&parts(&["scaleToZero", "size"]), at(0));
    memory.note_differing(&["scaleToZero"], at(0));
    assert_eq!(
        repeated(&memory, "scaleToZero", at(1)),
        Some((Reason::SettingNotApplied, at(300)))
    );
    assert_eq!(repeated(&memory, "size", at(1)), None);
    assert_eq!(repeated(&memory, "disabled", at(1)), None);
}

#[test]
fn another_value_of_a_field_does_not_wait() {
    let mut memory = Memory::default();
    memory.sent(&parts(&["branchID"]), at(0));
    let other = ComputeChange {
        branch_id: Some("br-2".into()),
        ..ComputeChange::default()
    };
    assert_eq!(memory.repeated("branchID", &other, at(1)), None);
}

#[test]
fn what_is_sent_again_counts_only_where_it_is_the_same_and_was_undone_soon() {
    let other = BTreeMap::from([(
        "size".to_owned(),
        ComputeChange {
            branch_id: Some("br-2".into()),
            ..ComputeChange::default()
        },
    )]);
    for (between, in_force_for, expected) in [
        (None, Duration::ZERO, Some(Reason::DriftPersists)),
        // Another change was declared meanwhile.
        (Some(&other), Duration::ZERO, None),
        // It was in force for long.
        (None, SETTLED, None),
    ] {
        let mut memory = Memory::default();
        for second in 0..3 {
            memory.sent(&parts(&["size"]), at(second));
            memory.note_differing(&[], at(second));
        }
        let last = later(at(2), in_force_for);
        memory.note_differing(&[], last);
        between
            .into_iter()
            .for_each(|other| memory.sent(other, last));
        memory.sent(&parts(&["size"]), last);
        memory.note_differing(&[], last);
        assert_eq!(
            repeated(&memory, "size", last).map(|(reason, _)| reason),
            expected,
            "{between:?} {in_force_for:?}"
        );
    }
}

#[test]
fn a_difference_that_comes_back_is_corrected_thrice_and_then_with_pauses() {
    let mut memory = Memory::default();
    for second in 0..3 {
        assert_eq!(repeated(&memory, "size", at(second)), None);
        memory.sent(&parts(&["size"]), at(second));
        memory.note_differing(&[], at(second));
    }
    assert_eq!(
        repeated(&memory, "size", at(3)),
        Some((Reason::DriftPersists, at(302)))
    );
    assert_eq!(repeated(&memory, "size", at(302)), None);
}

#[test]
fn the_pauses_between_corrections_grow_up_to_an_hour() {
    let mut memory = Memory::default();
    let mut now = at(0);
    for pause in [0, 0, 300, 600, 1200, 2400, 3600, 3600] {
        memory.sent(&parts(&["size"]), now);
        memory.note_differing(&[], now);
        let until = later(now, Duration::from_secs(pause));
        let expected = (pause > 0).then_some((Reason::DriftPersists, until));
        assert_eq!(repeated(&memory, "size", now), expected);
        memory.note_differing(&["size"], until);
        assert_eq!(repeated(&memory, "size", until), None);
        now = until;
    }
    // If a correction was in force for a while, a new difference is not a reversal of it.
    memory.sent(&parts(&["size"]), now);
    memory.note_differing(&[], later(now, SETTLED));
    assert_eq!(repeated(&memory, "size", later(now, SETTLED)), None);
    memory.sent(&parts(&["size"]), later(now, SETTLED));
    assert_eq!(
        repeated(&memory, "size", later(now, SETTLED)).map(|(reason, _)| reason),
        Some(Reason::SettingNotApplied)
    );
}

/// An attempt at second 0 of this process failed.
fn attempted(fault: Fault) -> Memory {
    let mut memory = Memory::default();
    memory.failed(Action::Create, ActionProblem::Platform(fault), 1, at(0));
    assert!(
        !memory.not_done(Action::Create, at(0)),
        "of another process"
    );
    memory.recorded(Action::Create, at(0));
    assert!(!memory.not_done(Action::Create, at(1)), "of an earlier try");
    assert!(!memory.not_done(Action::Change, at(0)));
    memory
}

#[test]
fn only_what_was_certainly_not_done_counts_as_not_done() {
    let message = String::new;
    for certain in [
        Fault::Rejected {
            status: 422,
            message: message(),
        },
        Fault::Conflict { message: message() },
        Fault::Busy {
            message: message(),
            retry_after: None,
        },
        Fault::Throttled {
            status: 429,
            retry_after: None,
        },
        Fault::Transport { message: message() },
        Fault::Unauthorized { message: message() },
    ] {
        let memory = attempted(certain.clone());
        assert!(memory.not_done(Action::Create, at(0)), "{certain:?}");
    }
    for open in [
        Fault::Server {
            status: 503,
            message: message(),
        },
        Fault::Unknown { message: message() },
        Fault::Undecodable {
            path: message(),
            message: message(),
        },
        Fault::TooLarge { message: message() },
    ] {
        let memory = attempted(open.clone());
        assert!(!memory.not_done(Action::Create, at(0)), "{open:?}");
    }
}

#[test]
fn a_person_is_told_of_what_does_not_pass_by_itself() {
    let message = || "m".to_owned();
    for (fault, stalled) in [
        (
            Fault::Forbidden {
                status: 403,
                message: message(),
            },
            Some(Reason::Forbidden),
        ),
        (
            Fault::Rejected {
                status: 422,
                message: message(),
            },
            Some(Reason::Refused),
        ),
        (
            Fault::TooLarge { message: message() },
            Some(Reason::AnswerTooLarge),
        ),
        (
            Fault::Undecodable {
                path: message(),
                message: message(),
            },
            None,
        ),
        (
            Fault::Server {
                status: 500,
                message: message(),
            },
            None,
        ),
        (Fault::Transport { message: message() }, None),
        (
            Fault::Throttled {
                status: 429,
                retry_after: None,
            },
            None,
        ),
        (Fault::Unauthorized { message: message() }, None),
    ] {
        let reason = match of_fault(&fault) {
            Health::Stalled(reason, _) => Some(reason),
            _ => None,
        };
        assert_eq!(reason, stalled, "{fault:?}");
    }
}

#[test]
fn other_credentials_are_tried_at_once_and_outcomes_stay_known() {
    let mut memory = Memory::default();
    memory.recorded(Action::Create, at(0));
    memory.failed(Action::Create, rejected(), 1, at(0));
    memory.credentials_changed();
    assert_eq!(memory.backoff(Action::Create, 1, at(1)), None);
    assert!(memory.not_done(Action::Create, at(0)));
    memory.failed(Action::Create, rejected(), 1, at(1));
    assert_eq!(
        memory.backoff(Action::Create, 1, at(2)).unwrap().until,
        at(31)
    );
}

#[test]
fn what_is_not_a_refusal_is_tried_again_within_a_minute() {
    let mut memory = Memory::default();
    let fault = || {
        ActionProblem::Platform(Fault::Server {
            status: 500,
            message: "broken".into(),
        })
    };
    let mut now = at(0);
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        memory.failed(Action::Delete, fault(), 1, now);
        let until = memory.backoff(Action::Delete, 1, now).unwrap().until;
        assert_eq!(until, later(now, Duration::from_secs(pause)));
        now = until;
    }
    memory.succeeded(Action::Delete);
    assert_eq!(memory.backoff(Action::Delete, 1, now), None);
}

#[test]
fn an_operation_is_remembered_until_the_status_shows_it() {
    let operation = |id: &str| LastOperation {
        id: id.into(),
        action: "restart".into(),
        status: "running".into(),
        failures: None,
        error: None,
    };
    let mut memory = Memory {
        last_operation: Some(operation("ours")),
        ..Memory::default()
    };
    memory.operation_shown(None);
    memory.operation_shown(Some(&operation("another")));
    assert_eq!(memory.last_operation, Some(operation("ours")));
    memory.operation_shown(Some(&operation("ours")));
    assert_eq!(memory.last_operation, None);
}

#[test]
fn the_operation_to_show_is_the_one_that_failed_or_else_the_one_that_was_seen_last() {
    let operation = |id: &str, failures| LastOperation {
        id: id.into(),
        action: "start_compute".into(),
        status: "running".into(),
        failures,
        error: None,
    };
    let [first, second, failed] = [
        operation("first", None),
        operation("second", None),
        operation("failed", Some(1)),
    ];
    let shown = |memory: &Memory| {
        memory
            .last_operation
            .as_ref()
            .map(|operation| operation.id.clone())
            .unwrap()
    };
    let mut memory = Memory::default();
    memory.operations_started(&[]);
    assert_eq!(
        memory,
        Memory::default(),
        "an answer without any says nothing"
    );
    memory.operations_started(&[first.clone(), second.clone()]);
    assert_eq!(shown(&memory), "first");
    memory.operations_started(&[first.clone(), failed.clone()]);
    assert_eq!(shown(&memory), "failed");
    memory.operations_listed(&[second.clone(), failed], at(10));
    assert_eq!(shown(&memory), "failed");
    memory.operations_listed(&[second, first], at(10));
    assert_eq!(shown(&memory), "second");
    memory.operations_listed(&[], at(10));
    assert_eq!(shown(&memory), "second");
}
