//! The messages of an account about a mistake in its spec or its Secret.

use super::*;
use crate::domain::Form;

/// The health after checks at these seconds that failed like this.
fn health_after(seconds: &[i64], fault: &Fault, change: fn(&mut AccountObserved)) -> Health {
    let failed = |second: &i64| checked(*second, Verdict::Failed(fault.clone()));
    let last = seconds
        .iter()
        .map(failed)
        .fold(None, |before: Option<AccountCheck>, check| {
            Some(check.after(before.as_ref()))
        });
    let observed = but(|seen| {
        seen.check = last;
        seen.in_use = false;
        change(seen);
    });
    decide(&observed, at(seconds[seconds.len() - 1]))
        .report
        .unwrap()
        .health
}

fn unchanged(_: &mut AccountObserved) {}

fn without_organization(seen: &mut AccountObserved) {
    seen.subject.organization = None;
}

fn no_host() -> Fault {
    Fault::Transport {
        message: "dns error, at platform.example:443".to_owned(),
    }
}

#[test]
fn a_platform_that_never_answered_is_a_mistake_after_five_minutes() {
    let html = Fault::Gateway {
        status: 404,
        form: Form::Foreign,
        message: "an HTML page".to_owned(),
    };
    for fault in [no_host(), html] {
        let Health::Unknown(Reason::PlatformUnreachable, message) =
            health_after(&[0, 299], &fault, unchanged)
        else {
            panic!("too early: {fault:?}")
        };
        assert!(
            message.contains("platform.example:443") && message.contains("is spec.baseURL right?"),
            "{message}"
        );
        let late = health_after(&[0, 299, 300], &fault, unchanged);
        assert_eq!(late, Health::Stalled(Reason::PlatformUnreachable, message));
    }
}

#[test]
fn a_platform_that_worked_before_is_waited_for() {
    let known = |seen: &mut AccountObserved| {
        seen.reported = Some(AccountStatus {
            checked_at: Some(at(-1000)),
            ..AccountStatus::default()
        });
    };
    for known in [known, |seen: &mut AccountObserved| seen.in_use = true] {
        let Health::Unknown(Reason::PlatformUnreachable, message) =
            health_after(&[0, 9000], &no_host(), known)
        else {
            panic!("it worked before")
        };
        assert!(
            message.starts_with("The platform at platform.example:443 does not answer.")
                && !message.contains("baseURL"),
            "{message}"
        );
    }
}

#[test]
fn a_platform_that_never_answered_stalls_no_resource_by_itself() {
    let observed = but(|seen| {
        let first = checked(0, Verdict::Failed(no_host())).after(None);
        seen.check = Some(checked(300, Verdict::Failed(no_host())).after(Some(&first)));
        seen.in_use = false;
    });
    assert_eq!(availability(&observed), Availability::Usable);
}

#[test]
fn the_field_in_question_and_its_value_come_first_and_the_request_last() {
    let message = || "organization not found (request req-7)".to_owned();
    for (fault, change, words) in [
        (
            Fault::NotFound { message: message() },
            unchanged as fn(&mut AccountObserved),
            "Organization org-1 cannot be seen",
        ),
        (
            Fault::Rejected {
                status: 400,
                message: message(),
            },
            without_organization,
            "The platform asks for an organization: set spec.organizationID.",
        ),
        (
            Fault::NotFound { message: message() },
            without_organization,
            "The answer of platform.example:443 does not look like the platform's API",
        ),
        (
            Fault::NotFound {
                message: "no reason given (request req-7)".to_owned(),
            },
            unchanged,
            "The answer of platform.example:443 does not look like the platform's API",
        ),
    ] {
        let Health::Stalled(Reason::Refused, message) = health_after(&[0], &fault, change) else {
            panic!("{fault:?}")
        };
        assert!(message.starts_with(words), "{message}");
        assert!(message.ends_with("(request req-7)"), "{message}");
    }
}

#[test]
fn a_key_with_a_mistake_is_told_by_its_form() {
    let mistake = "It holds quotation marks: remove them.";
    let observed = but(|seen| {
        seen.subject.key_mistake = Some(mistake);
        seen.suspended = Some(unauthorized());
    });
    let report = decide(&observed, at(1)).report.unwrap();
    let (reason, message) = report.headline();
    assert_eq!(reason, Reason::Unauthorized);
    assert!(message.contains(mistake), "{message}");
}

#[test]
fn an_empty_list_of_projects_says_what_to_check() {
    for (change, words) in [
        (
            unchanged as fn(&mut AccountObserved),
            [
                "no project of organization org-1",
                "correct spec.organizationID",
            ],
        ),
        (
            without_organization,
            ["no project", "need spec.organizationID"],
        ),
    ] {
        let observed = but(|seen| {
            seen.check = check(Verdict::Projects(Vec::new()));
            change(seen);
        });
        let report = decide(&observed, at(1)).report.unwrap();
        let (_, message) = report.headline();
        for word in words {
            assert!(message.contains(word), "{message}");
        }
    }
}
