//! What an unanswered create brings forth after the settle time: a resource without a compute takes it, one that has its
//! compute tells of it.

use std::time::Duration;

use super::super::identity::{CreateIntent, Origin};
use super::super::{Action, Decision, Reason, Sync, Wake, later, names};
use super::evidence::{CreateOutcome, evidence, matches};
use super::{Case, Choice, ComputeStep, Snapshot, undecided};
use crate::api::Management;
use crate::domain::Compute;

/// How long what an unanswered create may bring forth is looked for.
const WATCHED: Duration = Duration::from_secs(24 * 3600);

/// The creates that are left unanswered once this one is waited for no longer.
pub(super) fn unanswered(case: &Case, intent: &CreateIntent) -> Vec<CreateIntent> {
    let before = &case.identity.unanswered;
    match case.observed.memory.not_done(Action::Create, intent.at) {
        true => before.clone(),
        false => intent.noted_in(before),
    }
}

/// The same once the resource is bound to `found`: which of several creates brought that forth cannot be told, so that the
/// others' may still come.
pub(super) fn unanswered_beside(case: &Case, found: &Compute, origin: Origin) -> Vec<CreateIntent> {
    let before = &case.identity.unanswered;
    let answered = case.observed.memory.created.as_ref() == Some(&found.id);
    match &case.identity.intent {
        Some(intent) if origin == Origin::Created && !before.is_empty() && !answered => intent.noted_in(before),
        _ => before.clone(),
    }
}

/// Computes that nobody has and that unanswered creates may have brought forth.
pub(super) struct Strays<'a> {
    /// They carry the resource's own mark.
    pub marked: Vec<&'a Compute>,
    /// They were not there before and are what was asked for.
    pub likely: Vec<&'a Compute>,
}

impl Strays<'_> {
    pub fn ids(&self) -> Vec<String> {
        self.marked.iter().chain(&self.likely).map(|compute| compute.id.clone()).collect()
    }
}

pub(super) fn strays<'a>(case: &Case, snapshot: &Snapshot<'a>) -> Strays<'a> {
    strays_of(case, snapshot, |_| true)
}

fn strays_of<'a>(case: &Case, snapshot: &Snapshot<'a>, wanted: impl Fn(&CreateIntent) -> bool) -> Strays<'a> {
    let (mut marked, mut likely) = (Vec::new(), Vec::new());
    for record in case.identity.unanswered.iter().filter(|record| wanted(record)) {
        let found = evidence(case, record, snapshot);
        marked.extend(found.marked.into_iter().filter(|compute| !case.is_taken(compute)));
        likely.extend(found.new.into_iter().filter(|compute| matches(case, record, compute)));
    }
    for found in [&mut marked, &mut likely] {
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
    }
    Strays { marked, likely }
}

/// What became of earlier creates, where a snapshot shows it now.
pub(super) fn late<'a>(case: &Case<'a>, snapshot: &Snapshot<'a>) -> Option<CreateOutcome<'a>> {
    if case.spec.management == Management::Observe {
        return None;
    }
    let strays = strays_of(case, snapshot, |record| is_watched(case, record));
    match (strays.marked.first(), strays.likely.as_slice(), &case.observed.claims.creating) {
        (Some(ours), _, _) => Some(CreateOutcome::Created(ours)),
        (None, [], _) => None,
        (None, _, Some(other)) => Some(CreateOutcome::Behind(other)),
        (None, [one], None) => Some(CreateOutcome::Created(one)),
        (None, several, None) => Some(CreateOutcome::Unclear(several.to_vec())),
    }
}

fn is_watched(case: &Case, record: &CreateIntent) -> bool {
    case.now < later(record.at, WATCHED)
}

/// The choice of a resource that has its compute, with a word on others that may be its own. While there is something to
/// tell, nothing is forgotten.
pub(super) fn told(case: &Case, snapshot: &Snapshot, choice: Choice) -> Choice {
    let records = &case.identity.unanswered;
    if records.is_empty() || choice.step.is_some() {
        return choice;
    }
    let mut strays = strays(case, snapshot);
    if case.observed.claims.creating.is_some() {
        // It may be what the other create brings forth.
        strays.likely.clear();
    }
    let Some(report) = choice.report.clone() else { return choice };
    let ids = strays.ids();
    if !ids.is_empty() {
        let report = report.with_sync(Sync::OutOfSync(Reason::StrayCompute, advice(case, &ids)));
        return undecided(case, report).no_later(choice.wake);
    }
    let watched: Vec<CreateIntent> = records.iter().filter(|record| is_watched(case, record)).cloned().collect();
    match watched.iter().map(|record| later(record.at, WATCHED)).min() {
        Some(until) if watched.len() == records.len() => choice.no_later(Wake::At(until)),
        _ => Decision::act(ComputeStep::RecordUnanswered { unanswered: watched }, report),
    }
}

fn advice(case: &Case, ids: &[String]) -> String {
    let meta = &case.observed.meta;
    format!(
        "A create of this resource that was never answered may have brought forth {} late. It is billed, is not used by this \
         resource, and is left alone. Delete it in the platform's console; or manage it: create another Compute with \
         spec.computeID; or, where it is not this resource's: kubectl -n {} annotate compute {} {}-",
        ids.join(", "),
        meta.namespace,
        meta.name,
        names::UNANSWERED_CREATES,
    )
}
