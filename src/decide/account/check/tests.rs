use super::*;

pub(in crate::decide::account) fn check(second: i64, verdict: Verdict) -> AccountCheck {
    let (capabilities, answers) = (AccountCapabilities::default(), Answers::default());
    let (at, unreadable) = (
        Timestamp::from_second(second).unwrap(),
        Unreadable::default(),
    );
    AccountCheck {
        began: at,
        at,
        verdict,
        capabilities,
        keys: None,
        unreadable,
        answers,
        absent: BTreeMap::new(),
    }
}

fn accepted(second: i64) -> AccountCheck {
    check(second, Verdict::Projects(Vec::new()))
}

fn refused(second: i64) -> AccountCheck {
    check(
        second,
        Verdict::Failed(Fault::Unauthorized {
            message: String::new(),
        }),
    )
}

fn silent(second: i64) -> AccountCheck {
    check(
        second,
        Verdict::Failed(Fault::Server {
            status: 502,
            message: String::new(),
        }),
    )
}

fn lists(second: i64, listed: &[&str], absent: &[&str]) -> AccountCheck {
    let at = Timestamp::from_second(second).unwrap();
    let found = |project: &&str| {
        (
            (*project).into(),
            Absence {
                since: at,
                again: at,
            },
        )
    };
    let listed = listed.iter().map(|project| (*project).into()).collect();
    AccountCheck {
        absent: absent.iter().map(found).collect(),
        ..check(second, Verdict::Projects(listed))
    }
}

#[test]
fn a_project_is_absent_since_the_first_of_the_checks_that_all_found_it_so() {
    let restricted = || check(50, Verdict::Restricted(String::new()));
    for (checks, expected) in [
        (vec![lists(0, &["kept"], &["p"])], Some((0, 0))),
        (
            vec![lists(0, &["kept"], &["p"]), lists(60, &["kept"], &["p"])],
            Some((0, 60)),
        ),
        // A check that could not look shows no absence.
        (vec![lists(0, &["kept"], &["p"]), silent(50)], Some((0, 0))),
        (
            vec![lists(0, &["kept"], &["p"]), restricted()],
            Some((0, 0)),
        ),
        (
            vec![lists(0, &["kept"], &["p"]), lists(50, &[], &[])],
            Some((0, 0)),
        ),
        (
            vec![
                lists(0, &["kept"], &["p"]),
                silent(50),
                lists(60, &["kept"], &["p"]),
            ],
            Some((0, 60)),
        ),
        // The project was listed meanwhile, or its computes did not return 404.
        (
            vec![lists(0, &["kept"], &["p"]), lists(50, &["kept", "p"], &[])],
            None,
        ),
        (
            vec![
                lists(0, &["kept"], &["p"]),
                lists(50, &["kept"], &[]),
                lists(60, &["kept"], &["p"]),
            ],
            Some((60, 60)),
        ),
    ] {
        let last = checks
            .iter()
            .fold(None, |before: Option<AccountCheck>, check| {
                Some(check.clone().after(before.as_ref()))
            });
        let absence = last.unwrap().absent.get("p").copied();
        let seconds = absence.map(|it| (it.since.as_second(), it.again.as_second()));
        assert_eq!(seconds, expected, "{checks:?}");
    }
}

#[test]
fn credentials_count_as_refused_after_refusals_alone_for_long_enough() {
    for (checks, expected) in [
        (vec![refused(0), refused(59)], false),
        (vec![refused(0), refused(60)], true),
        (vec![accepted(-9), refused(0), refused(19)], false),
        (vec![accepted(-9), refused(0), refused(20)], true),
        (vec![accepted(-9), refused(0), silent(25)], false),
        (
            vec![accepted(-9), refused(0), silent(25), refused(26)],
            true,
        ),
        (
            vec![accepted(-9), refused(0), accepted(10), refused(25)],
            false,
        ),
    ] {
        let last = checks
            .iter()
            .fold(None, |before: Option<AccountCheck>, check| {
                Some(check.clone().after(before.as_ref()))
            });
        assert_eq!(last.unwrap().is_refused(), expected, "{checks:?}");
    }
}
