//! Tests of the status of an account.

use super::*;
use crate::api::AccountCapabilities;

#[test]
fn the_status_shows_what_the_credentials_see() {
    let report = Report::ready("a");
    let many = (0..150).map(|number| format!("p-{number:03}").into());
    let given = but(|seen| seen.check = check(Verdict::Projects(many.collect())));
    let seen = status(&report, &given, &AccountStatus::default(), at(1));
    assert_eq!((seen.project_count, seen.projects.len()), (Some(150), 100));
    assert_eq!(
        (&seen.conditions, seen.observed_generation),
        (&report.conditions(&[], 1, at(1)), Some(1))
    );
    // A failed check keeps the known projects.
    let failed = but(|seen| {
        seen.check = check(Verdict::Failed(Fault::Server {
            status: 502,
            message: String::new(),
        }))
    });
    let kept = status(&report, &failed, &seen, at(2));
    assert_eq!(
        (kept.project_count, kept.projects),
        (seen.project_count, seen.projects.clone())
    );
    let restricted = but(|seen| seen.check = check(Verdict::Restricted(String::new())));
    assert_eq!(
        status(&report, &restricted, &seen, at(2)).project_count,
        None
    );
    let one = but(|seen| seen.check = check(Verdict::Projects(vec!["a".into()])));
    assert!(
        matches!(reported(&one).0, Health::Ready(_, text) if text.ends_with("can list 1 project."))
    );
}

#[test]
fn credentials_are_checked_when_people_ask_for_it() {
    let asked = |time| {
        but(|seen| {
            seen.meta.reconcile = Some("two".to_owned());
            seen.check = check(Verdict::Projects(vec!["a".into()]))
                .map(|check| AccountCheck { at: time, ..check });
        })
    };
    let old = AccountStatus {
        last_handled_reconcile_at: Some("one".to_owned()),
        ..AccountStatus::default()
    };
    let handled = |given: &AccountObserved| {
        status(&Report::ready("a"), given, &old, at(1))
            .last_handled_reconcile_at
            .unwrap()
    };
    let wanted = asked(AccountCheck::WANTED);
    assert_eq!(decide(&wanted, at(1)).step, Some(AccountStep::Check));
    // The previous check counts meanwhile.
    assert_eq!(
        (availability(&wanted), handled(&wanted).as_str()),
        (Availability::Usable, "one")
    );
    let checked = asked(at(1));
    assert_eq!(
        (decide(&checked, at(1)).step, handled(&checked).as_str()),
        (None, "two")
    );
    assert_eq!(handled(&but(|seen| seen.check = None)), "one");
}

#[test]
fn capabilities_that_computes_showed_stay() {
    let report = Report::ready("a");
    let all = AccountCapabilities {
        key_listing: true,
        compute_names: true,
        scale_to_zero: true,
    };
    let nothing = but(|seen| seen.check = check(Verdict::Projects(vec!["a".into()])));
    let known = AccountStatus {
        capabilities: Some(all),
        ..AccountStatus::default()
    };
    let mut knowing = nothing.clone();
    knowing.reported = Some(known);
    let capabilities = |seen| status(&report, seen, &AccountStatus::default(), at(1)).capabilities;
    assert_eq!(
        capabilities(&knowing),
        Some(AccountCapabilities {
            key_listing: false,
            ..all
        })
    );
    // Another spec may name another platform.
    assert_eq!(capabilities(&nothing), Some(AccountCapabilities::default()));
}

#[test]
fn many_keys_are_reported_before_there_are_too_many() {
    for (checked, seen, known, many) in [
        (None, None, None, false),
        (Some(8_999), None, Some(8_999), false),
        (Some(9_000), None, Some(9_000), true),
        // The count of the resources is newer than the last check.
        (Some(9_000), Some(8_999), Some(8_999), false),
        (None, Some(12_000), Some(12_000), true),
    ] {
        let observed = but(|it| {
            it.keys = seen.map(|what| Dated { what, at: at(1) });
            it.check = it.check.take().map(|check| AccountCheck {
                keys: checked,
                ..check
            });
        });
        let report = decide(&observed, at(1)).report.unwrap();
        let status = status(&report, &observed, &AccountStatus::default(), at(1));
        let condition = status
            .conditions
            .iter()
            .find(|condition| condition.type_ == "ManyKeys");
        assert_eq!(
            (status.organization_keys, condition.is_some()),
            (known, many),
            "{checked:?} {seen:?}"
        );
        assert!(
            condition.is_none_or(|it| it.message.contains(&format!("{} API keys", known.unwrap())))
        );
        assert_eq!(
            availability(&observed),
            Availability::Usable,
            "it can be used all the same"
        );
    }
}

#[test]
fn an_account_is_in_use_as_long_as_one_of_its_operators_says_so() {
    let shown = |in_use, shared, before| {
        let given = but(|seen| (seen.in_use, seen.shared) = (in_use, shared));
        let old = AccountStatus {
            in_use: before,
            ..AccountStatus::default()
        };
        status(&Report::ready("a"), &given, &old, at(1)).in_use
    };
    assert!(shown(true, false, false));
    assert!(!shown(false, false, true));
    assert!(shown(false, true, true));
    assert!(!shown(false, true, false));
}
