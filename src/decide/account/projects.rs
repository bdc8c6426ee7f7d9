//! Projects that were deleted elsewhere, and what shows that. Neither a list that lacks a project nor a 404 does by itself: the credentials
//! may reach it no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::super::later;
use super::{Absence, AccountObserved, Check};
use crate::api::SeenProjects;

/// So many projects are remembered.
const MOST_SEEN: usize = 200;

/// What is known of the projects that an account's resources name.
#[derive(Clone, Debug, Default)]
pub struct ProjectsObserved {
    /// Those that they name and may use the account for.
    pub named: BTreeSet<String>,
    /// Those of resources that are being deleted, and since when the newest of these is.
    pub leaving: BTreeMap<String, Timestamp>,
    /// Those that this process has seen listed with the credentials, and whose these are; `None` where there are no credentials.
    pub seen: Option<SeenProjects>,
    /// The same as the status has it.
    pub reported: Option<SeenProjects>,
    /// The settle time.
    pub settle: Duration,
}

/// The named projects that were listed with these credentials, by this process or before it. Others may have been in reach of another key,
/// or of another organization.
pub fn seen(observed: &AccountObserved) -> Option<SeenProjects> {
    let ProjectsObserved { named, seen, reported, .. } = &observed.projects;
    let seen = seen.as_ref()?;
    let is_of_the_same =
        |other: &&SeenProjects| SeenProjects { projects: seen.projects.clone(), ..(*other).clone() } == *seen;
    let listed = observed.check.as_ref().map(Check::listed).unwrap_or_default();
    let before = reported.as_ref().filter(is_of_the_same).into_iter().flat_map(|reported| &reported.projects);
    let known: BTreeSet<&String> = listed.iter().chain(&seen.projects).chain(before).collect();
    let projects = named.iter().filter(|project| known.contains(project)).take(MOST_SEEN).cloned().collect();
    Some(SeenProjects { projects, ..seen.clone() })
}

/// What the status says of them. Without credentials it stays.
pub(super) fn reported(observed: &AccountObserved) -> Option<SeenProjects> {
    match seen(observed) {
        Some(seen) => Some(seen).filter(|seen| !seen.projects.is_empty()),
        None => observed.projects.reported.clone(),
    }
}

/// The projects of resources that are being deleted that do not exist any more, as far as anybody can tell: they were seen with these
/// credentials, and checks that were made the settle time apart have found them absent, the newest since all of these resources wait.
pub fn gone(observed: &AccountObserved) -> BTreeSet<String> {
    let (Some(check), Some(seen)) = (&observed.check, seen(observed)) else { return BTreeSet::new() };
    let is_gone = |(project, since): &(&String, &Timestamp)| {
        let shows_it = |it: &Absence| it.again >= again(observed, it) && it.again >= hangs(observed, **since);
        check.absent.get(*project).is_some_and(shows_it) && seen.projects.contains(*project)
    };
    observed.projects.leaving.iter().filter(is_gone).map(|(project, _)| project.clone()).collect()
}

/// When the projects are listed for the sake of resources that are being deleted for long, and once more if one of their projects is absent.
pub(super) fn due(observed: &AccountObserved, check: &Check) -> Option<Timestamp> {
    if check.listed().is_empty() {
        return None;
    }
    let seen = seen(observed)?;
    let leaving = observed.projects.leaving.iter().filter(|(project, _)| seen.projects.contains(project));
    let due = leaving.filter_map(|(project, since)| match check.absent.get(project) {
        Some(absence) if absence.again < again(observed, absence) => Some(again(observed, absence)),
        _ => Some(hangs(observed, *since)).filter(|hangs| check.began < *hangs),
    });
    due.min()
}

/// When the second of two checks may begin.
fn again(observed: &AccountObserved, absence: &Absence) -> Timestamp {
    later(absence.since, observed.projects.settle)
}

/// From when on a deletion that was begun at that time takes long.
fn hangs(observed: &AccountObserved, since: Timestamp) -> Timestamp {
    later(since, observed.projects.settle)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, in_use};
    use super::super::{AccountStep, Verdict, decide};
    use super::*;
    use crate::decide::Wake;

    const SETTLE: u64 = 60;

    fn of(secret: &str, projects: &[&str]) -> SeenProjects {
        let (uid, version) = secret.split_once('/').unwrap();
        SeenProjects {
            organization_id: Some("org-1".to_owned()),
            secret_uid: uid.to_owned(),
            secret_version: version.to_owned(),
            projects: projects.iter().map(|project| (*project).to_owned()).collect(),
        }
    }

    /// A resource in project p is being deleted since second 0. The status has p as seen, and two checks have not found it.
    fn observed(change: impl FnOnce(&mut AccountObserved)) -> AccountObserved {
        let mut observed = in_use();
        observed.projects = ProjectsObserved {
            named: ["kept", "p", "typo"].map(str::to_owned).into(),
            leaving: [("p".to_owned(), at(0))].into(),
            seen: Some(of("uid/1", &[])),
            reported: Some(of("uid/1", &["p"])),
            settle: Duration::from_secs(SETTLE),
        };
        observed.check = observed.check.map(|check| Check {
            began: at(160),
            at: at(161),
            verdict: Verdict::Projects(vec!["kept".to_owned()]),
            absent: ["p", "typo"].map(|project| (project.to_owned(), absence(100, 160))).into(),
            ..check
        });
        change(&mut observed);
        observed
    }

    fn absence(since: i64, again: i64) -> Absence {
        Absence { since: at(since), again: at(again) }
    }

    fn finds(since: i64, again: i64) -> impl FnOnce(&mut AccountObserved) {
        move |seen| {
            let check = seen.check.as_mut().unwrap();
            (check.began, check.absent) = (at(again), [("p".to_owned(), absence(since, again))].into());
        }
    }

    #[test]
    fn a_project_is_gone_where_no_piece_of_the_evidence_is_missing() {
        type Change = Box<dyn FnOnce(&mut AccountObserved)>;
        let reports = |secret: &'static str, organization: Option<&'static str>| -> Change {
            let organization_id = organization.map(str::to_owned);
            Box::new(move |it| it.projects.reported = Some(SeenProjects { organization_id, ..of(secret, &["p"]) }))
        };
        let cases: [(&str, Change, bool); 14] = [
            ("all there is", Box::new(|_| {}), true),
            (
                "this process has seen it",
                Box::new(|it| {
                    (it.projects.seen, it.projects.reported) = (Some(of("uid/2", &["p"])), None);
                }),
                true,
            ),
            ("nobody has seen it", Box::new(|it| it.projects.reported = None), false),
            ("seen through another Secret", reports("other/1", Some("org-1")), false),
            ("seen through another version", reports("uid/2", Some("org-1")), false),
            ("seen in another organization", reports("uid/1", Some("org-2")), false),
            ("seen in no organization", reports("uid/1", None), false),
            ("no credentials", Box::new(|it| it.projects.seen = None), false),
            ("no check", Box::new(|it| it.check = None), false),
            ("nothing in it is being deleted", Box::new(|it| it.projects.leaving.clear()), false),
            (
                "found before that was deleted",
                Box::new(|it| {
                    it.projects.leaving.insert("p".to_owned(), at(101));
                }),
                false,
            ),
            ("one list", Box::new(finds(100, 100)), false),
            ("lists too close together", Box::new(finds(100, 159)), false),
            ("listed, or known to the platform", Box::new(|it| it.check.as_mut().unwrap().absent.clear()), false),
        ];
        for (what, change, expected) in cases {
            let found = gone(&observed(change));
            let expected: BTreeSet<String> = expected.then(|| "p".to_owned()).into_iter().collect();
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn what_resources_name_is_remembered_once_it_was_listed() {
        let projects = |change: fn(&mut AccountObserved)| seen(&observed(change)).unwrap().projects;
        assert_eq!(projects(|_| {}), ["kept", "p"]);
        assert_eq!(projects(|it| it.projects.named.clear()), [""; 0], "nobody names it any more");
        assert_eq!(projects(|it| it.projects.reported = None), ["kept"]);
        let many = observed(|it| {
            it.projects.named = (0..300).map(|number| format!("p-{number:03}")).collect();
            it.check.as_mut().unwrap().verdict = Verdict::Projects(it.projects.named.iter().cloned().collect());
        });
        assert_eq!(seen(&many).unwrap().projects.len(), MOST_SEEN);
        let without = observed(|it| it.projects.seen = None);
        assert_eq!(reported(&without), Some(of("uid/1", &["p"])), "what is recorded stays");
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
            ("the last list is from before it hung", Some(60), observed(begun(59))),
            ("it was looked for since", None, observed(begun(60))),
            ("it was found absent once", Some(160), observed(finds(100, 100))),
            ("it was found absent twice", None, observed(finds(100, 160))),
            ("nothing is being deleted", None, observed(|it| it.projects.leaving.clear())),
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
}
