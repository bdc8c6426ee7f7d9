//! Table tests of accounts.

mod advice;
mod several_processes;
mod status;

use super::check::tests::check as checked;
use super::*;
use crate::decide::{AccountView, Limits, Memory, Meta};
use crate::domain::UnreadableEntry;

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn protected() -> Option<SecretProtection> {
    Some(SecretProtection {
        protected: true,
        ..SecretProtection::default()
    })
}

fn check(verdict: Verdict) -> Option<AccountCheck> {
    Some(checked(0, verdict).after(None))
}

fn in_doubt() -> Option<Fault> {
    Some(Fault::KeyInDoubt {
        message: "supplied credentials do not pass authentication".to_owned(),
    })
}

/// The state after these checks, the last of which was refused.
fn after(checks: &[AccountCheck]) -> AccountObserved {
    let last = checks
        .iter()
        .fold(None, |before: Option<AccountCheck>, check| {
            Some(check.clone().after(before.as_ref()))
        });
    let is_refused = last.as_ref().is_some_and(AccountCheck::is_refused);
    but(|seen| {
        (seen.suspended, seen.check) = (
            if is_refused {
                Some(unauthorized())
            } else {
                in_doubt()
            },
            last,
        )
    })
}

fn unauthorized() -> Fault {
    Fault::Unauthorized {
        message: "supplied credentials do not pass authentication".to_owned(),
    }
}

/// An account in use, checked at second 0.
pub(super) fn in_use() -> AccountObserved {
    AccountObserved {
        meta: Meta {
            generation: 1,
            has_finalizer: true,
            ..Meta::default()
        },
        uid: "uid-1".into(),
        account: AccountView::NotNeeded,
        memory: Memory::default(),
        limits: Limits::default(),
        cluster: "c1u57e".parse().unwrap(),
        random: 7,
        facts: AccountFacts {
            shared: false,
            subject: AccountSubject {
                address: "platform.example:443".to_owned(),
                organization: Some("org-1".into()),
                entry: "entry api-key of Secret shop/platform-key".to_owned(),
                key_mistake: None,
            },
            credential: Credential::Usable,
            check: check(Verdict::Projects(vec!["a".into(), "b".into()])),
            suspended: None,
            users: names(&["Compute shop/orders"]),
            blocking: names(&["Compute shop/orders"]),
            in_use: true,
            blocking_deleted: false,
            projects: ProjectsObserved::default(),
            keys: None,
            too_large: None,
            unreadable: Vec::new(),
            reported: None,
            secret: protected(),
        },
    }
}

#[test]
fn lists_that_are_too_large_are_told_and_looked_at_again() {
    let observed = but(|it| it.too_large = Some("the list of project p is not kept".to_owned()));
    let decision = decide(&observed, at(1));
    let (reason, message) = &decision.report.unwrap().notices[0];
    assert_eq!(*reason, Reason::ListsTooLarge);
    assert!(message.contains("project p"), "{message}");
    assert_eq!(decision.wake, Wake::At(later(at(1), PROBE_EVERY)));
    assert_eq!(decide(&in_use(), at(1)).report.unwrap().notices, []);
    // The account itself works.
    assert_eq!(availability(&observed), Availability::Usable);
}

#[test]
fn entries_that_cannot_be_read_are_told_and_looked_at_again() {
    let odd = UnreadableEntry {
        id: Some("p-odd".into()),
        field: "org_id".to_owned(),
    };
    let of = |lists: &[&str], projects: Vec<UnreadableEntry>| {
        but(|it| {
            it.unreadable = names(lists);
            it.check = it.check.take().map(|check| AccountCheck {
                unreadable: projects.into(),
                ..check
            });
        })
    };
    for (observed, words) in [
        (
            of(&["of project p: ep-a (branch_id)"], Vec::new()),
            vec!["of project p: ep-a (branch_id)."],
        ),
        (
            of(&[], vec![odd.clone()]),
            vec!["of the projects: p-odd (org_id)."],
        ),
        (
            of(&["a", "b", "c"], vec![odd]),
            vec!["p-odd", "; a; b.", "1 more lists"],
        ),
    ] {
        let decision = decide(&observed, at(1));
        assert_eq!(decision.wake, Wake::At(later(at(1), PROBE_EVERY)));
        let notices = decision.report.unwrap().notices;
        assert_eq!(
            (notices.len(), notices[0].0),
            (1, Reason::UnreadableEntries)
        );
        assert!(
            words.iter().all(|word| notices[0].1.contains(word)),
            "{notices:?}"
        );
        assert_eq!(availability(&observed), Availability::Usable);
    }
}

fn but(change: impl FnOnce(&mut AccountObserved)) -> AccountObserved {
    let mut observed = in_use();
    change(&mut observed);
    observed
}

fn step(observed: &AccountObserved, second: i64) -> Option<AccountStep> {
    let decision = decide(observed, at(second));
    if let Wake::At(time) = decision.wake {
        assert!(time > at(second), "{decision:?}");
    }
    decision.step
}

fn reported(observed: &AccountObserved) -> (Health, Wake) {
    let decision = decide(observed, at(1));
    assert_eq!(decision.step, None);
    (decision.report.unwrap().health, decision.wake)
}

fn protect(account: bool, secret: bool) -> Option<AccountStep> {
    Some(AccountStep::Protect { account, secret })
}

fn unprotect(account: bool, secret: bool) -> Option<AccountStep> {
    Some(AccountStep::Unprotect { account, secret })
}

#[test]
fn the_account_and_its_secret_are_protected_exactly_while_used() {
    let unused =
        |seen: &mut AccountObserved| (seen.users, seen.blocking) = (Vec::new(), Vec::new());
    let unprotected = Some(SecretProtection::default());
    assert_eq!(step(&in_use(), 1), None);
    assert_eq!(
        step(&but(|seen| seen.meta.has_finalizer = false), 1),
        protect(true, false)
    );
    assert_eq!(
        step(&but(|seen| seen.secret = unprotected), 1),
        protect(false, true)
    );
    let new = but(|seen| (seen.meta.has_finalizer, seen.secret) = (false, unprotected));
    assert_eq!(step(&new, 1), protect(true, true));
    assert_eq!(step(&but(unused), 1), unprotect(true, true));
    let without_secret = but(|seen| {
        unused(seen);
        seen.secret = None;
    });
    assert_eq!(step(&without_secret, 1), unprotect(true, false));
    let free = but(|seen| {
        unused(seen);
        (seen.meta.has_finalizer, seen.secret) = (false, unprotected);
    });
    assert_eq!(step(&free, 1), None);
    // Without a Secret there is nothing left to protect.
    let missing =
        but(|seen| (seen.secret, seen.credential) = (None, Credential::Missing("none".to_owned())));
    assert_eq!(step(&missing, 1), None);
}

#[test]
fn a_deleted_secret_is_unprotected_unless_its_users_are_deleted_too() {
    let going = |namespace_deleting| {
        Some(SecretProtection {
            protected: true,
            deleting: Some(at(0)),
            namespace_deleting,
        })
    };
    let alone = but(|seen| seen.secret = going(false));
    let waiting = decide(&alone, at(9));
    assert_eq!((waiting.step, waiting.wake), (None, Wake::At(at(10))));
    assert_eq!(step(&alone, 10), Some(AccountStep::UnprotectSecret));
    let with = |change: fn(&mut AccountObserved)| {
        but(|seen| {
            change(seen);
            seen.secret = going(false);
        })
    };
    for needed in [
        but(|seen| seen.secret = going(true)),
        with(|seen| seen.blocking_deleted = true),
        with(|seen| seen.meta.deleting = true),
    ] {
        assert_eq!(step(&needed, 99), None);
    }
    // The API server accepts no new finalizer on an object in deletion: no step, and no loop.
    let gone = Some(SecretProtection {
        protected: false,
        deleting: Some(at(0)),
        namespace_deleting: false,
    });
    assert_eq!(step(&but(|seen| seen.secret = gone), 99), None);
}

#[test]
fn nothing_is_created_before_account_and_secret_are_protected() {
    assert!(super::is_protected(&in_use()));
    assert!(!super::is_protected(&but(
        |seen| seen.meta.has_finalizer = false
    )));
    assert!(!super::is_protected(&but(
        |seen| seen.secret = Some(SecretProtection::default())
    )));
}

#[test]
fn deletion_waits_for_blocking_resources_and_names_them() {
    let many = names(&["a", "b", "c", "d", "e", "f", "g"]);
    let deleting = but(|seen| (seen.meta.deleting, seen.blocking) = (true, many));
    let (health, _) = reported(&deleting);
    let Health::Progressing(Reason::InUse, message) = health else {
        panic!("{health:?}")
    };
    assert!(message.contains("a, b, c, d, e and 2 more"), "{message}");
    // Users without objects on the platform do not block it. Recreated credentials are needed until
    // the account's users are deleted.
    let put_back =
        but(|seen| (seen.meta.deleting, seen.secret) = (true, Some(SecretProtection::default())));
    assert_eq!(step(&put_back, 1), protect(false, true));
    let free = but(|seen| (seen.meta.deleting, seen.blocking) = (true, Vec::new()));
    assert_eq!(step(&free, 1), unprotect(true, true));
    let released = but(|seen| {
        (seen.meta.deleting, seen.blocking, seen.meta.has_finalizer) = (true, Vec::new(), false);
    });
    assert!(matches!(
        reported(&released).0,
        Health::Progressing(Reason::Deleting, _)
    ));
}

#[test]
fn new_credentials_are_checked_at_once_and_again_after_a_while() {
    assert_eq!(
        step(&but(|seen| seen.check = None), 0),
        Some(AccountStep::Check)
    );
    let cases = [
        (Verdict::Projects(Vec::new()), 3600),
        (Verdict::Restricted("not allowed".to_owned()), 3600),
        (
            Verdict::Failed(Fault::Forbidden {
                status: 403,
                message: String::new(),
            }),
            300,
        ),
        (
            Verdict::Failed(Fault::Server {
                status: 502,
                message: String::new(),
            }),
            15,
        ),
    ];
    for (verdict, period) in cases {
        let observed = but(|seen| seen.check = check(verdict));
        assert_eq!(decide(&observed, at(period - 1)).wake, Wake::At(at(period)));
        assert_eq!(step(&observed, period), Some(AccountStep::Check));
    }
}

#[test]
fn a_401_of_any_call_has_the_key_checked_at_once() {
    let suspended = |check: Option<AccountCheck>| {
        but(|seen| (seen.suspended, seen.check) = (in_doubt(), check))
    };
    assert_eq!(
        step(&suspended(in_use().facts.check), 0),
        Some(AccountStep::Check)
    );
    // A check without a result is not repeated at once.
    let failed = check(Verdict::Failed(Fault::Server {
        status: 502,
        message: String::new(),
    }));
    assert_eq!(decide(&suspended(failed), at(14)).wake, Wake::At(at(15)));
}

#[test]
fn a_refused_key_is_asked_again_until_it_counts_as_refused() {
    let refused = |second: &i64| checked(*second, Verdict::Failed(unauthorized()));
    let refusals = |seconds: &[i64]| seconds.iter().map(refused).collect::<Vec<_>>();
    let known = |seconds: &[i64]| {
        [
            vec![checked(-9, Verdict::Projects(Vec::new()))],
            refusals(seconds),
        ]
        .concat()
    };
    for (checks, due) in [
        (known(&[0]), 1),
        (known(&[0, 1]), 3),
        (known(&[0, 1, 3]), 8),
        (known(&[0, 1, 3, 8]), 23),
        (known(&[0, 1, 3, 8, 15]), 30),
        (refusals(&[0, 1, 3, 8, 23]), 38),
        (refusals(&[0, 1, 3, 8, 23, 38]), 53),
    ] {
        let observed = after(&checks);
        assert_eq!(
            decide(&observed, at(due - 1)).wake,
            Wake::At(at(due)),
            "{checks:?}"
        );
        assert_eq!(step(&observed, due), Some(AccountStep::Check), "{checks:?}");
        let health = decide(&observed, at(due - 1)).report.unwrap().health;
        assert!(
            matches!(health, Health::Unknown(Reason::Unauthorized, _)),
            "{health:?}"
        );
        assert_eq!(
            availability(&observed),
            Availability::Usable,
            "what serves stays Ready"
        );
    }
    for (checks, last) in [
        (known(&[0, 1, 3, 8, 23]), 23),
        (refusals(&[0, 1, 3, 8, 23, 38, 53, 68]), 68),
    ] {
        let observed = after(&checks);
        assert_eq!(
            decide(&observed, at(last + 299)).wake,
            Wake::At(at(last + 300))
        );
        let health = decide(&observed, at(last + 1)).report.unwrap().health;
        let Health::Stalled(Reason::Unauthorized, message) = health else {
            panic!("{health:?}")
        };
        assert!(
            message.contains("401")
                && message.starts_with(
                    "Put a valid API key into entry api-key of Secret shop/platform-key."
                ),
            "{message}"
        );
    }
}

#[test]
fn without_credentials_nothing_is_checked() {
    for (credential, reason) in [
        (
            Credential::Missing("no Secret".to_owned()),
            Reason::CredentialsMissing,
        ),
        (
            Credential::InvalidBaseUrl("plain http".to_owned()),
            Reason::InvalidBaseUrl,
        ),
        (
            Credential::PlatformNotAllowed("a loopback address".to_owned()),
            Reason::PlatformNotAllowed,
        ),
    ] {
        let observed = but(|seen| (seen.credential, seen.check) = (credential, None));
        let (health, wake) = reported(&observed);
        assert!(matches!(health, Health::Stalled(found, _) if found == reason));
        assert_eq!(wake, Wake::OnChange);
    }
}

#[test]
fn the_resources_of_a_shared_account_report_only_its_reason() {
    let refused = |shared| {
        but(|seen| {
            seen.shared = shared;
            seen.suspended = Some(unauthorized());
        })
    };
    let secret = "Secret shop/platform-key";
    for (shared, words, names_the_secret) in [
        (false, "Put a valid API key into", true),
        (true, "its status has the reason Unauthorized", false),
    ] {
        let Availability::Unusable(message) = availability(&refused(shared)) else {
            panic!("usable: shared {shared}")
        };
        assert!(message.contains(words), "{message}");
        assert_eq!(message.contains(secret), names_the_secret, "{message}");
    }
}

#[test]
fn who_may_use_the_account() {
    let unusable =
        |observed: &AccountObserved| matches!(availability(observed), Availability::Unusable(_));
    let verdict = |verdict| but(|seen| seen.check = check(verdict));
    assert_eq!(availability(&in_use()), Availability::Usable);
    assert_eq!(
        availability(&verdict(Verdict::Restricted("not allowed".to_owned()))),
        Availability::Usable
    );
    // After a restart, or with a new key, the answer is not known yet, so that no status flickers.
    assert_eq!(
        availability(&but(|seen| seen.check = None)),
        Availability::Pending
    );
    // Each resource notices by its own calls that the platform cannot be reached.
    for fault in [
        Fault::Server {
            status: 502,
            message: String::new(),
        },
        Fault::Throttled {
            status: 429,
            retry_after: None,
        },
        Fault::Transport {
            message: String::new(),
        },
        Fault::Unknown {
            message: String::new(),
        },
    ] {
        assert_eq!(
            availability(&verdict(Verdict::Failed(fault))),
            Availability::Usable
        );
    }
    assert!(unusable(&verdict(Verdict::Failed(Fault::NotFound {
        message: "no such page".to_owned()
    }))));
    assert!(unusable(&but(|seen| seen.suspended = Some(unauthorized()))));
    assert!(unusable(&but(
        |seen| seen.credential = Credential::Missing("no Secret".to_owned())
    )));
    // Resources that have to be deleted first can still use an account in deletion.
    assert_eq!(
        availability(&but(|seen| seen.meta.deleting = true)),
        Availability::Usable
    );
}
