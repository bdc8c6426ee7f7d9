//! Detects projects that were deleted elsewhere. A list without the project is no proof, and
//! neither is a 404: the credentials may have lost access to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{Absence, AccountCheck, AccountObserved};
use crate::api::SeenProjects;
use crate::decide::later;
use crate::domain::ProjectId;

/// At most this many projects are remembered.
const MOST_SEEN: usize = 200;

/// At most this many projects are asked about in one check.
const MOST_ASKED: usize = 10;

/// The observed projects of an account's resources.
#[derive(Clone, Debug, Default)]
pub struct ProjectsObserved {
    /// The projects that resources name and may use the account for.
    pub named: BTreeSet<ProjectId>,
    /// The projects of resources in deletion, and when the newest of those deletions began.
    pub leaving: BTreeMap<ProjectId, Timestamp>,
    /// The projects that this process saw listed with the credentials, and the identity of the
    /// credentials. `None` without credentials.
    pub seen: Option<SeenProjects>,
    /// The seen projects in the status.
    pub reported: Option<SeenProjects>,
    /// The settle time.
    pub settle: Duration,
}

/// The named projects that were listed with these credentials, by this process or an earlier one.
/// Projects seen with another key or organization do not count.
pub fn seen(observed: &AccountObserved) -> Option<SeenProjects> {
    let ProjectsObserved {
        named,
        seen,
        reported,
        ..
    } = &observed.projects;
    let seen = seen.as_ref()?;
    let is_of_the_same = |other: &&SeenProjects| {
        SeenProjects {
            projects: seen.projects.clone(),
            ..(*other).clone()
        } == *seen
    };
    let listed = observed
        .check
        .as_ref()
        .map(AccountCheck::listed)
        .unwrap_or_default();
    let before = reported
        .as_ref()
        .filter(is_of_the_same)
        .into_iter()
        .flat_map(|reported| &reported.projects);
    let known: BTreeSet<&ProjectId> = listed.iter().chain(&seen.projects).chain(before).collect();
    let projects = named
        .iter()
        .filter(|project| known.contains(project))
        .take(MOST_SEEN)
        .cloned()
        .collect();
    Some(SeenProjects {
        projects,
        ..seen.clone()
    })
}

/// The seen projects for the status. Without credentials, the status keeps its value.
pub(super) fn reported(observed: &AccountObserved) -> Option<SeenProjects> {
    match seen(observed) {
        Some(seen) => Some(seen).filter(|seen| !seen.projects.is_empty()),
        None => observed.projects.reported.clone(),
    }
}

/// The projects of resources in deletion that count as gone. They were seen with these credentials,
/// and checks at least the settle time apart found them absent. The newest check began after all of
/// these resources had waited.
pub fn gone(observed: &AccountObserved) -> BTreeSet<ProjectId> {
    let (Some(check), Some(seen)) = (&observed.check, seen(observed)) else {
        return BTreeSet::new();
    };
    let is_gone = |(project, since): &(&ProjectId, &Timestamp)| {
        let shows_it =
            |it: &Absence| it.again >= again(observed, it) && it.again >= hangs(observed, **since);
        check.absent.get(*project).is_some_and(shows_it) && seen.projects.contains(*project)
    };
    observed
        .projects
        .leaving
        .iter()
        .filter(is_gone)
        .map(|(project, _)| project.clone())
        .collect()
}

/// The projects of resources in deletion to ask the platform about, because its list lacks them. One
/// that was never seen cannot count as gone. An empty list is no evidence.
pub fn to_ask<'a>(
    leaving: &'a BTreeMap<ProjectId, Timestamp>,
    seen: &[ProjectId],
    listed: &[ProjectId],
) -> impl Iterator<Item = &'a ProjectId> {
    let is_missing = |project: &&ProjectId| {
        !listed.is_empty() && !listed.contains(project) && seen.contains(project)
    };
    leaving.keys().filter(is_missing).take(MOST_ASKED)
}

/// When to list the projects for resources whose deletion takes long. An absent project needs a
/// second check.
pub(super) fn due(observed: &AccountObserved, check: &AccountCheck) -> Option<Timestamp> {
    if check.listed().is_empty() {
        return None;
    }
    let seen = seen(observed)?;
    let leaving = observed
        .projects
        .leaving
        .iter()
        .filter(|(project, _)| seen.projects.contains(project));
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

/// When a deletion that began at `since` counts as slow.
fn hangs(observed: &AccountObserved, since: Timestamp) -> Timestamp {
    later(since, observed.projects.settle)
}

#[cfg(test)]
mod tests;
