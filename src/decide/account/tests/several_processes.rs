//! Tests of overlapping processes that report about one account.

use super::*;

/// The status that one of two overlapping processes writes. `own` is the count it found, and the
/// second of its check.
fn written(own: (usize, i64), by_another: Option<&AccountStatus>) -> AccountStatus {
    let (count, second) = own;
    let projects = (0..count).map(|number| format!("p-{number}").into());
    let observed = but(|it| {
        it.keys = Some(Dated {
            what: count,
            at: at(second),
        });
        it.check = check(Verdict::Projects(projects.collect())).map(|check| AccountCheck {
            at: at(second),
            ..check
        });
        it.reported = by_another.cloned();
    });
    let report = decide(&observed, at(20)).report.unwrap();
    status(
        &report,
        &observed,
        &by_another.cloned().unwrap_or_default(),
        at(20),
    )
}

#[test]
fn what_another_process_has_found_out_later_stands() {
    let first = written((5, 10), None);
    assert_eq!(
        (
            first.organization_keys,
            first.project_count,
            first.checked_at
        ),
        (Some(5), Some(5), Some(at(10)))
    );
    let ready = |status: &AccountStatus| status.conditions[0].message.clone();
    for ((count, second), stands) in [
        ((6, 9), true),
        ((6, 10), true),
        ((6, 11), false),
        ((5, 11), true),
    ] {
        let next = written((count, second), Some(&first));
        assert_eq!(next == first, stands, "{count} {second}");
        assert_eq!(ready(&next) == ready(&first), stands, "{}", ready(&next));
        assert_eq!(
            written((5, 10), Some(&next)),
            next,
            "the first one leaves it alone"
        );
    }
}

#[test]
fn a_later_check_that_finds_the_same_is_no_news_whatever_the_status_is_about() {
    let mut first = written((5, 10), None);
    for (value, message) in [
        ("True", "Paused."),
        (
            "False",
            "Waiting for the resources that use the account: Compute a.",
        ),
    ] {
        let condition = &mut first.conditions[0];
        (condition.status, condition.message) = (value.to_owned(), message.to_owned());
        let stands = value == "False";
        assert_eq!(
            written((5, 11), Some(&first)).checked_at,
            Some(at(if stands { 10 } else { 11 })),
            "{message}"
        );
    }
}

#[test]
fn a_check_that_is_to_be_made_anew_has_no_time_to_report() {
    let wanted = |it: &mut AccountObserved| {
        it.check = check(Verdict::Projects(vec!["a".into()])).map(|check| AccountCheck {
            at: AccountCheck::WANTED,
            keys: Some(5),
            ..check
        });
    };
    let status = status(
        &Report::ready("a"),
        &but(wanted),
        &AccountStatus::default(),
        at(1),
    );
    assert_eq!(
        (
            status.project_count,
            status.checked_at,
            status.organization_keys_at
        ),
        (Some(1), None, None)
    );
}

#[test]
fn who_has_released_a_shared_account_says_nothing_of_the_others() {
    let released = |shared| {
        but(|seen| {
            (seen.shared, seen.meta.deleting, seen.meta.has_finalizer) = (shared, true, false);
            seen.blocking.clear();
        })
    };
    assert_eq!(decide(&released(true), at(1)), Decision::silent());
    assert!(decide(&released(false), at(1)).report.is_some());
}
