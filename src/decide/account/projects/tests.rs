use super::*;
use crate::decide::Wake;
use crate::decide::account::tests::{at, in_use};
use crate::decide::account::{AccountStep, Verdict, decide};
use crate::domain::OrganizationId;

const SETTLE: u64 = 60;

fn of(secret: &str, projects: &[&str]) -> SeenProjects {
    let (uid, version) = secret.split_once('/').unwrap();
    SeenProjects {
        base_url: "https://platform.example/api/v2".to_owned(),
        organization_id: Some("org-1".into()),
        secret_uid: uid.to_owned(),
        secret_version: version.to_owned(),
        projects: projects.iter().map(|project| (*project).into()).collect(),
    }
}

/// A resource in project p is in deletion since second 0. The status lists p as seen, and two
/// checks found it absent.
fn observed(change: impl FnOnce(&mut AccountObserved)) -> AccountObserved {
    let mut observed = in_use();
    observed.projects = ProjectsObserved {
        named: ["kept", "p", "typo"].map(ProjectId::from).into(),
        leaving: [("p".into(), at(0))].into(),
        seen: Some(of("uid/1", &[])),
        reported: Some(of("uid/1", &["p"])),
        settle: Duration::from_secs(SETTLE),
    };
    observed.facts.check = observed.facts.check.map(|check| AccountCheck {
        began: at(160),
        at: at(161),
        verdict: Verdict::Projects(vec!["kept".into()]),
        absent: ["p", "typo"]
            .map(|project| (project.into(), absence(100, 160)))
            .into(),
        ..check
    });
    change(&mut observed);
    observed
}

fn absence(since: i64, again: i64) -> Absence {
    Absence {
        since: at(since),
        again: at(again),
    }
}

fn finds(since: i64, again: i64) -> impl FnOnce(&mut AccountObserved) {
    move |seen| {
        let check = seen.check.as_mut().unwrap();
        (check.began, check.absent) = (at(again), [("p".into(), absence(since, again))].into());
    }
}

/// Resources in projects that somebody invented take no place of those in projects that were
/// seen.
#[test]
fn the_platform_is_asked_about_seen_projects_that_its_list_lacks() {
    let invented = (0..MOST_ASKED).map(|number| (format!("invented-{number}").into(), at(0)));
    let leaving = invented
        .chain(["kept", "p"].map(|project| (project.into(), at(0))))
        .collect();
    let seen = ["kept", "p"].map(ProjectId::from);
    assert!(to_ask(&leaving, &seen, &seen[..1]).eq(&seen[1..]));
    assert_eq!(to_ask(&leaving, &seen, &[]).count(), 0);
    let all: Vec<ProjectId> = leaving.keys().cloned().collect();
    assert_eq!(
        to_ask(&leaving, &all, &["other".into()]).count(),
        MOST_ASKED
    );
}

/// Returns true if project p is gone after this change of the evidence.
fn is_gone(change: impl FnOnce(&mut AccountObserved)) -> bool {
    let found = gone(&observed(change));
    assert!(found.is_empty() || found == ["p".into()].into());
    !found.is_empty()
}

#[test]
fn a_project_is_gone_where_no_piece_of_the_evidence_is_missing() {
    assert!(is_gone(|_| {}));
    assert!(!is_gone(|it| it.projects.seen = None), "no credentials");
    assert!(!is_gone(|it| it.check = None), "no check");
    assert!(!is_gone(finds(100, 100)), "one list");
    assert!(!is_gone(finds(100, 159)), "lists too close together");
    let listed = |it: &mut AccountObserved| it.check.as_mut().unwrap().absent.clear();
    assert!(!is_gone(listed), "listed, or known to the platform");
    let nothing_leaves = |it: &mut AccountObserved| it.projects.leaving.clear();
    assert!(!is_gone(nothing_leaves), "nothing in it is being deleted");
    let leaves_later = |it: &mut AccountObserved| {
        it.projects.leaving.insert("p".into(), at(101));
    };
    assert!(!is_gone(leaves_later), "found before that was deleted");
}

#[test]
fn a_project_is_gone_only_if_the_same_credentials_have_seen_it() {
    let reported = |secret: &'static str, organization: Option<&'static str>| {
        move |it: &mut AccountObserved| {
            it.projects.reported = Some(SeenProjects {
                organization_id: organization.map(OrganizationId::from),
                ..of(secret, &["p"])
            });
        }
    };
    let by_this_process = |it: &mut AccountObserved| {
        (it.projects.seen, it.projects.reported) = (Some(of("uid/2", &["p"])), None);
    };
    assert!(is_gone(by_this_process));
    assert!(!is_gone(|it| it.projects.reported = None), "nobody has");
    let on_another_platform = |it: &mut AccountObserved| {
        let reported = it.projects.reported.as_mut().unwrap();
        reported.base_url = "https://other.example/api/v2".to_owned();
    };
    assert!(!is_gone(on_another_platform), "another platform");
    for (secret, organization, what) in [
        ("other/1", Some("org-1"), "another Secret"),
        ("uid/2", Some("org-1"), "another version"),
        ("uid/1", Some("org-2"), "another organization"),
        ("uid/1", None, "no organization"),
    ] {
        assert!(!is_gone(reported(secret, organization)), "{what}");
    }
}

#[test]
fn what_resources_name_is_remembered_once_it_was_listed() {
    let projects = |change: fn(&mut AccountObserved)| seen(&observed(change)).unwrap().projects;
    assert_eq!(projects(|_| {}), ["kept", "p"]);
    assert_eq!(
        projects(|it| it.projects.named.clear()),
        [""; 0],
        "nobody names it any more"
    );
    assert_eq!(projects(|it| it.projects.reported = None), ["kept"]);
    let many = observed(|it| {
        it.projects.named = (0..300)
            .map(|number| format!("p-{number:03}").into())
            .collect();
        it.check.as_mut().unwrap().verdict =
            Verdict::Projects(it.projects.named.iter().cloned().collect());
    });
    assert_eq!(seen(&many).unwrap().projects.len(), MOST_SEEN);
    let without = observed(|it| it.projects.seen = None);
    assert_eq!(
        reported(&without),
        Some(of("uid/1", &["p"])),
        "what is recorded stays"
    );
}

#[test]
fn projects_are_listed_again_for_who_waits_long_to_be_deleted() {
    let due = |observed: &AccountObserved| super::due(observed, observed.check.as_ref().unwrap());
    let begun = |second: i64| {
        move |it: &mut AccountObserved| {
            let check = it.check.as_mut().unwrap();
            (check.began, check.absent) = (at(second), BTreeMap::new());
        }
    };
    for (what, expected, observed) in [
        (
            "the last list is from before it hung",
            Some(60),
            observed(begun(59)),
        ),
        ("it was looked for since", None, observed(begun(60))),
        (
            "it was found absent once",
            Some(160),
            observed(finds(100, 100)),
        ),
        ("it was found absent twice", None, observed(finds(100, 160))),
        (
            "nothing is being deleted",
            None,
            observed(|it| it.projects.leaving.clear()),
        ),
        (
            "it was never seen",
            None,
            observed(|it| {
                begun(59)(it);
                it.projects.reported = None;
            }),
        ),
        (
            "no list can be read",
            None,
            observed(|it| {
                begun(59)(it);
                it.check.as_mut().unwrap().verdict = Verdict::Restricted(String::new());
            }),
        ),
    ] {
        assert_eq!(due(&observed), expected.map(at), "{what}");
    }
    let once = observed(finds(100, 100));
    assert_eq!(decide(&once, at(159)).wake, Wake::At(at(160)));
    assert_eq!(decide(&once, at(160)).step, Some(AccountStep::Check));
}
