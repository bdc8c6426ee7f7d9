//! Computes that an unanswered create creates after the settle time, or a create creates besides: a resource without a compute binds to
//! such a compute, one that is bound already reports it.

use std::collections::BTreeSet;

use super::super::identity::{ComputeIdentity, CreateIntent};
use super::super::names::NOT_CREATED;
use super::super::seal::ObjectKey;
use super::super::{Decision, WATCHED, Wake, later};
use super::evidence::{CreateOutcome, evidence, is_void, matches};
use super::{Case, Choice, ComputeStep, Snapshot, twin};
use crate::api::Management;
use crate::domain::Compute;

/// The unanswered creates once this one is no longer waited for.
pub(super) fn unanswered(case: &Case, intent: &CreateIntent) -> Vec<CreateIntent> {
    let before = &case.identity.unanswered;
    match is_void(case, intent) {
        true => before.clone(),
        false => intent.noted_in(before),
    }
}

/// The same once the resource is bound to `found`. Which of several creates created it is not known, so the computes of the
/// others may still appear; nor has an open create created what was there before it, or on another branch.
pub(super) fn unanswered_beside(case: &Case, found: &Compute, snapshot: &Snapshot) -> Vec<CreateIntent> {
    let before = &case.identity.unanswered;
    let Some(intent) = &case.identity.intent else { return before.clone() };
    if case.observed.memory.created.as_ref() == Some(&found.id) {
        return before.clone();
    }
    let shown = evidence(case, intent, snapshot);
    let may_be_it = shown.marked.iter().chain(&shown.candidates()).any(|compute| compute.id == found.id);
    if may_be_it && before.is_empty() { Vec::new() } else { unanswered(case, intent) }
}

/// The creates that have made computes once the resource is bound to `found`. One that was begun for this very resource has made it where
/// it has its mark.
pub(super) fn made(case: &Case, found: &Compute) -> Vec<CreateIntent> {
    let made = &case.identity.made;
    let create = case.identity.creates().find(|create| create.mark.is_some() && create.mark == found.name);
    create.map_or_else(|| made.clone(), |create| create.made_in(made, found))
}

/// Unbound computes that unanswered creates may have created, or other ones besides.
#[derive(Default)]
pub(super) struct Strays<'a> {
    /// Those with the resource's own mark.
    pub marked: Vec<&'a Compute>,
    /// Those of them that a create has made which another compute of the resource is from.
    pub twins: Vec<&'a Compute>,
    /// Those that are new and match the request.
    pub likely: Vec<&'a Compute>,
    /// Those of which times say that they are older.
    pub doubtful: Vec<&'a Compute>,
}

impl Strays<'_> {
    pub fn ids(&self) -> Vec<String> {
        self.marked.iter().chain(&self.likely).chain(&self.doubtful).map(|compute| compute.id.clone()).collect()
    }
}

pub(super) fn strays<'a>(case: &Case, snapshot: &Snapshot<'a>) -> Strays<'a> {
    strays_of(case, snapshot, |_| true)
}

fn strays_of<'a>(case: &Case, snapshot: &Snapshot<'a>, wanted: impl Fn(&CreateIntent) -> bool) -> Strays<'a> {
    let mut strays = Strays::default();
    let free = |found: Vec<&'a Compute>| found.into_iter().filter(move |compute| !case.is_taken(compute));
    for record in case.identity.unanswered.iter().filter(|record| wanted(record)) {
        let found = evidence(case, record, snapshot);
        strays.marked.extend(free(found.marked));
        strays.likely.extend(found.new.into_iter().filter(|compute| matches(case, record, compute)));
        strays.doubtful.extend(found.doubtful);
    }
    let made = case.identity.made.iter().flat_map(|record| free(evidence(case, record, snapshot).marked));
    strays.twins.extend(made);
    strays.marked.extend(&strays.twins);
    for found in [&mut strays.marked, &mut strays.twins, &mut strays.likely, &mut strays.doubtful] {
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
    }
    // What one record shows to be older may be new to another one.
    strays.doubtful.retain(|compute| strays.likely.iter().all(|likely| likely.id != compute.id));
    strays
}

/// The outcome of earlier creates, where a snapshot shows it now.
pub(super) fn late<'a>(case: &Case<'a>, snapshot: &Snapshot<'a>) -> Option<CreateOutcome<'a>> {
    if case.spec.management == Management::Observe {
        return None;
    }
    let strays = strays_of(case, snapshot, |record| is_watched(case, record));
    let candidates: Vec<_> = strays.likely.iter().chain(&strays.doubtful).copied().collect();
    match (strays.marked.first(), candidates.as_slice(), &case.observed.claims.creating) {
        (Some(ours), _, _) => Some(CreateOutcome::Created(ours)),
        (None, [], _) => None,
        (None, _, Some(other)) => Some(CreateOutcome::Behind(&other.by)),
        (None, [one], None) if strays.doubtful.is_empty() => Some(CreateOutcome::Created(one)),
        (None, several, None) => Some(CreateOutcome::Ambiguous(several.to_vec())),
    }
}

fn is_watched(case: &Case, record: &CreateIntent) -> bool {
    case.now < later(record.at, WATCHED)
}

/// Adds to the decision of a bound resource what is to be done about other computes that may be its own, or a report of them. While there
/// is something to report, no record is dropped.
pub(super) fn report_strays(case: &Case, own: &Compute, snapshot: &Snapshot, choice: Choice) -> Choice {
    let ComputeIdentity { unanswered: records, made, twins, .. } = case.identity;
    if records.is_empty() && made.is_empty() && twins.is_empty() || choice.step.is_some() {
        return choice;
    }
    let mut strays = strays(case, snapshot);
    if case.observed.claims.creating.is_some() {
        // The other create may have created it.
        (strays.likely, strays.doubtful) = (Vec::new(), Vec::new());
    }
    let Some(report) = choice.report.clone() else { return choice };
    if let Some(step) = twin::recorded(case, snapshot, &strays.twins) {
        return Decision::act(step, report);
    }
    if !strays.ids().is_empty() {
        let told = advice(case, own, &strays);
        return twin::delete(case, own, &strays.twins, (report, &told)).no_later(choice.wake);
    }
    let watched: Vec<CreateIntent> = records.iter().filter(|record| is_watched(case, record)).cloned().collect();
    match watched.iter().map(|record| later(record.at, WATCHED)).min() {
        _ if records.is_empty() => choice,
        Some(until) if watched.len() == records.len() => choice.no_later(Wake::At(until)),
        _ => Decision::act(ComputeStep::RecordUnanswered { unanswered: watched }, report),
    }
}

fn advice(case: &Case, own: &Compute, strays: &Strays) -> String {
    let is_twin = |id: &String| strays.twins.iter().any(|twin| twin.id == *id);
    let others: Vec<String> = strays.ids().into_iter().filter(|id| !is_twin(id)).collect();
    let of_twins = (!strays.twins.is_empty()).then(|| twin::advice(case, own, &strays.twins));
    let of_others = (!others.is_empty()).then(|| {
        format!("{} Or, if somebody else created it: {}", advice_on_deletion(&others), none_of(case, &others))
    });
    of_twins.into_iter().chain(of_others).collect::<Vec<_>>().join(" ")
}

/// How a person says that no create of the resource has created these computes.
pub(super) fn none_of(case: &Case, ids: &[String]) -> String {
    let ObjectKey { namespace, name } = case.observed.meta.object_key();
    let known = case.observed.not_created.iter().map(String::as_str);
    let all: BTreeSet<&str> = known.chain(ids.iter().map(String::as_str)).collect();
    let all: Vec<&str> = all.into_iter().collect();
    format!("kubectl -n {namespace} annotate --overwrite compute {name} {NOT_CREATED}={}", all.join(","))
}

/// The same where the resource, and with it the record of its creates, goes.
pub(super) fn advice_on_deletion(ids: &[String]) -> String {
    format!(
        "A create of this resource that was never answered may have created {}. What it created is billed, this resource does not \
         use it, and dbplane does not change it. Delete it in the platform's console. Or import it: create another Compute with \
         spec.computeID.",
        ids.join(", "),
    )
}
