//! Strays: computes that an unanswered create makes after the settle time, or that a create makes
//! in addition. A resource without a compute binds to a stray; a bound resource reports it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::evidence::{CreateResult, evidence, is_void, matching};
use super::{ComputeCase, ComputeSnapshot};
use crate::api::Management;
use crate::decide::identity::{ComputeIdentity, CreateIntent, Evidence};
use crate::decide::names::NOT_CREATED;
use crate::decide::seal::ObjectKey;
use crate::decide::{WATCHED, later};
use crate::domain::{Compute, ComputeId, UnreadableEntry};
use crate::text::quoted;

/// The unanswered creates once dbplane no longer waits for this one.
pub(super) fn unanswered(case: &ComputeCase, intent: &CreateIntent) -> Vec<CreateIntent> {
    let before = &case.identity.unanswered;
    if is_void(case, intent) {
        before.clone()
    } else {
        intent.noted_in(before)
    }
}

/// The unanswered creates once the resource is bound to `found`. If several creates may have made
/// it, the computes of the others may still appear. An open create also stays if it cannot have
/// made `found`: a compute from before it, or on another branch.
pub(super) fn unanswered_beside(
    case: &ComputeCase,
    found: &Compute,
    snapshot: &ComputeSnapshot,
) -> Vec<CreateIntent> {
    let before = &case.identity.unanswered;
    let Some(intent) = &case.identity.intent else {
        return before.clone();
    };
    if case.observed.memory.created.as_ref() == Some(&found.id) {
        return before.clone();
    }
    let shown = evidence(case, intent, snapshot);
    let may_be_it = shown
        .marked
        .iter()
        .chain(&shown.candidates())
        .any(|compute| compute.id == found.id);
    // If an unreadable entry may be the result, only the mark proves that `found` is.
    let is_marked = shown.marked.iter().any(|compute| compute.id == found.id);
    let is_it = may_be_it && (is_marked || snapshot.hiding(case, intent).is_none());
    if is_it && before.is_empty() {
        Vec::new()
    } else {
        unanswered(case, intent)
    }
}

/// The creates that have made computes, including the one that made `found` according to its mark
/// or answer.
pub(super) fn made(case: &ComputeCase, found: &Compute) -> Vec<CreateIntent> {
    let made = &case.identity.made;
    let is_answer =
        case.identity.binding.is_none() && case.observed.memory.created.as_ref() == Some(&found.id);
    let marked = case
        .identity
        .creates()
        .find(|create| create.mark.is_some() && create.mark == found.name);
    let create = match marked {
        None if is_answer => case.identity.open_create(),
        marked => marked,
    };
    match create {
        Some(create) => create.made_in(made, found),
        None => made.clone(),
    }
}

/// True while dbplane looks for unmarked computes that an answered create made in addition. They
/// appear soon. Later they cannot be distinguished from the computes of others.
pub fn looks_besides(identity: &ComputeIdentity, settle: Duration, now: Timestamp) -> bool {
    unmarked(identity).any(|create| is_recent(create, settle, now))
}

fn is_recent(create: &CreateIntent, settle: Duration, now: Timestamp) -> bool {
    now < later(later(create.at, settle), LOOKED_FOR)
}

/// The search continues for this time after the settle time: a few polls.
const LOOKED_FOR: Duration = Duration::from_secs(120);

fn unmarked(identity: &ComputeIdentity) -> impl Iterator<Item = &CreateIntent> {
    identity
        .made
        .iter()
        .filter(|create| create.evidence() == Evidence::ByBaseline)
}

/// Unbound computes that may be the resource's own.
#[derive(Default)]
pub(super) struct Strays<'a> {
    /// Computes with the resource's own mark.
    pub marked: Vec<&'a Compute>,
    /// Marked computes that a create made in addition to another compute of the resource.
    pub twins: Vec<&'a Compute>,
    /// Unmarked computes that an answered create may have made in addition.
    pub besides: Vec<&'a Compute>,
    /// Computes that are new since an unanswered create, and match the request.
    pub likely: Vec<&'a Compute>,
    /// Matching computes that the platform dates before the newest compute of the baseline.
    pub doubtful: Vec<&'a Compute>,
}

impl Strays<'_> {
    pub fn ids(&self) -> Vec<ComputeId> {
        let all = [&self.marked, &self.besides, &self.likely, &self.doubtful];
        let ids: BTreeSet<&ComputeId> = all
            .into_iter()
            .flatten()
            .map(|compute| &compute.id)
            .collect();
        ids.into_iter().cloned().collect()
    }
}

pub(super) fn strays<'a>(case: &ComputeCase, snapshot: &ComputeSnapshot<'a>) -> Strays<'a> {
    let mut strays = strays_of(case, snapshot, |_| true);
    for create in unmarked(case.identity) {
        let looks = is_recent(create, case.observed.limits.settle, case.now);
        let is_match = matching(case, create);
        for compute in evidence(case, create, snapshot).candidates() {
            if is_match(compute) && (looks || case.identity.twins.contains_key(&compute.id)) {
                strays.besides.push(compute);
            }
        }
    }
    sort(&mut strays.besides);
    strays
}

fn strays_of<'a>(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot<'a>,
    wanted: impl Fn(&CreateIntent) -> bool,
) -> Strays<'a> {
    let mut strays = Strays::default();
    for create in &case.identity.made {
        strays.twins.extend(evidence(case, create, snapshot).marked);
    }
    strays.twins.retain(|compute| !case.is_taken(&compute.id));
    strays.marked.clone_from(&strays.twins);
    for record in case
        .identity
        .unanswered
        .iter()
        .filter(|record| wanted(record))
    {
        let found = evidence(case, record, snapshot);
        strays.marked.extend(found.marked);
        let is_match = matching(case, record);
        strays
            .likely
            .extend(found.new.into_iter().filter(|compute| is_match(compute)));
        strays.doubtful.extend(found.doubtful);
    }
    strays.marked.retain(|compute| !case.is_taken(&compute.id));
    sort(&mut strays.twins);
    sort(&mut strays.marked);
    sort(&mut strays.likely);
    sort(&mut strays.doubtful);
    // A compute that is older by one record may be new by another.
    strays
        .doubtful
        .retain(|compute| strays.likely.iter().all(|likely| likely.id != compute.id));
    strays
}

fn sort(found: &mut Vec<&Compute>) {
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found.dedup_by(|one, other| one.id == other.id);
}

/// The outcome of earlier creates, if a snapshot shows it now.
pub(super) fn late<'a>(
    case: &ComputeCase<'a>,
    snapshot: &ComputeSnapshot<'a>,
) -> Option<CreateResult<'a>> {
    if case.spec.management == Management::Observe {
        return None;
    }
    let strays = strays_of(case, snapshot, |record| is_watched(case, record));
    if let Some(ours) = strays.marked.first() {
        return Some(CreateResult::Created(ours));
    }
    let hidden = hidden(case, snapshot, |record| is_watched(case, record));
    let candidates = [&strays.likely[..], &strays.doubtful].concat();
    if candidates.is_empty() {
        return hidden.map(CreateResult::Unclear);
    }
    let is_likely = strays.doubtful.is_empty();
    Some(CreateResult::among(case, candidates, is_likely, hidden))
}

/// The unreadable entry that may be the result of one of these unanswered creates.
pub(super) fn hidden<'a>(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot<'a>,
    wanted: impl Fn(&CreateIntent) -> bool,
) -> Option<&'a UnreadableEntry> {
    case.identity
        .unanswered
        .iter()
        .filter(|record| wanted(record))
        .find_map(|record| snapshot.hiding(case, record))
}

pub(super) fn is_watched(case: &ComputeCase, record: &CreateIntent) -> bool {
    case.now < later(record.at, WATCHED)
}

/// The message about computes that may be the resource's.
pub(super) fn advice(case: &ComputeCase, ids: &[ComputeId]) -> String {
    format!(
        "{} Or, if somebody else created it: {}",
        advice_on_deletion(ids),
        none_of(case, ids)
    )
}

/// The command that says that no create of the resource made these computes.
pub(super) fn none_of(case: &ComputeCase, ids: &[ComputeId]) -> String {
    let ObjectKey { namespace, name } = case.observed.meta.object_key();
    let known = case.observed.not_created.iter();
    let all: BTreeSet<&ComputeId> = known.chain(ids).collect();
    let all: Vec<&str> = all.into_iter().map(ComputeId::as_str).collect();
    // The annotation, which names some of them, may have any text.
    let assigned = quoted(&format!("{NOT_CREATED}={}", all.join(",")));
    format!("kubectl -n {namespace} annotate --overwrite compute {name} {assigned}")
}

/// The message if the resource is deleted, and with it the record of its creates.
pub(super) fn advice_on_deletion(ids: &[ComputeId]) -> String {
    format!(
        "A create of this resource that was never answered, or was repeated on the way, may have created {}. What it created is billed, this \
         resource does not use it, and dbplane does not change it. Delete it in the platform's console. Or import it: create another Compute with \
         spec.computeID.",
        ids.join(", "),
    )
}
