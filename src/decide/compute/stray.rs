//! Computes that an unanswered create creates after the settle time, or a create creates besides: a resource without a compute binds to
//! such a compute, one that is bound already reports it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::super::identity::{ComputeIdentity, CreateIntent, Origin, Told};
use super::super::names::NOT_CREATED;
use super::super::seal::ObjectKey;
use super::super::{Decision, Memory, WATCHED, Wake, later};
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
/// it has its mark, or, without marks, where it was not there before.
pub(super) fn made(case: &Case, found: &Compute, origin: Origin) -> Vec<CreateIntent> {
    let made = &case.identity.made;
    let has_made = |create: &&CreateIntent| {
        create.mark.is_some() && create.mark == found.name || origin == Origin::Created && may_be_new(create, found)
    };
    let create = case.identity.creates().find(has_made);
    create.map_or_else(|| made.clone(), |create| create.made_in(made, found))
}

fn may_be_new(create: &CreateIntent, found: &Compute) -> bool {
    found.name.is_none() && create.baseline.as_ref().is_some_and(|baseline| !baseline.contains(&found.id))
}

/// Whether others on the branch may be what creates without marks have made besides. What a list has shown of that stays recorded.
pub fn looks_besides(identity: &ComputeIdentity, memory: &Memory, times: (Duration, Timestamp)) -> bool {
    unmarked(identity).next().is_some() && (!identity.twins.is_empty() || is_looking(identity, memory, times))
}

/// Until a list that begins after the settle time has shown it, and not long after it.
fn is_looking(identity: &ComputeIdentity, memory: &Memory, (settle, now): (Duration, Timestamp)) -> bool {
    let last = unmarked(identity).map(|create| create.at).max();
    let looked = memory.looked_besides.map(|(_, of)| of);
    last.is_some_and(|last| looked != Some(last) && now < later(later(last, settle), LOOKED_FOR))
}

/// Remembers the first list that shows everything that creates without marks have made besides.
pub fn remember_looked(memory: &mut Memory, identity: &ComputeIdentity, (settle, begun): (Duration, Timestamp)) {
    let Some(last) = unmarked(identity).map(|create| create.at).max() else { return };
    if begun >= memory.settles_at(last, settle) && memory.looked_besides.is_none_or(|(_, of)| of != last) {
        memory.looked_besides = Some((begun, last));
    }
}

fn unmarked(identity: &ComputeIdentity) -> impl Iterator<Item = &CreateIntent> {
    identity.made.iter().filter(|create| create.told() == Told::ByBaseline)
}

/// How long after the settle time a process that has not looked yet looks: what others create meanwhile looks the same.
const LOOKED_FOR: Duration = Duration::from_secs(3600);

/// Computes without a name that creates may have made besides.
fn besides<'a>(case: &Case, snapshot: &Snapshot<'a>) -> Vec<&'a Compute> {
    let memory = &case.observed.memory;
    let is_first = memory.looked_besides.is_some_and(|(begun, _)| begun == snapshot.at);
    let looks = is_first || is_looking(case.identity, memory, (case.observed.limits.settle, case.now));
    let is_new = |compute: &Compute| looks || case.identity.twins.contains_key(&compute.id);
    let of = |create: &CreateIntent| {
        let found = evidence(case, create, snapshot);
        found.candidates().into_iter().filter(|compute| matches(case, create, compute)).collect::<Vec<_>>()
    };
    let mut found: Vec<_> = unmarked(case.identity).flat_map(of).filter(|compute| is_new(compute)).collect();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found.dedup_by(|one, other| one.id == other.id);
    found
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
    let mut strays = strays_of(case, snapshot, |_| true);
    strays.likely.extend(besides(case, snapshot));
    strays.likely.sort_by(|one, other| one.id.cmp(&other.id));
    strays.likely.dedup_by(|one, other| one.id == other.id);
    strays.doubtful.retain(|compute| strays.likely.iter().all(|likely| likely.id != compute.id));
    strays
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
    if records.is_empty() && made.is_empty() && twins.is_empty() {
        return choice;
    }
    let mut strays = strays(case, snapshot);
    let mut besides = besides(case, snapshot);
    if case.observed.claims.creating.is_some() {
        // The other create may have created it.
        (strays.likely, strays.doubtful) = (Vec::new(), Vec::new());
        besides.clear();
    }
    let Some(report) = choice.report.clone() else { return choice };
    // The list that shows it may be the only one that is looked at for it.
    let named: Vec<&Compute> = strays.twins.iter().copied().chain(besides).collect();
    if let Some(step) = twin::recorded(case, snapshot, &named) {
        return Decision::act(step, report);
    }
    if choice.step.is_some() {
        return choice;
    }
    if !strays.ids().is_empty() {
        let told = advice(case, own, &strays);
        return twin::delete(case, own, &strays.twins, (report, &told)).no_later(choice.wake);
    }
    let watched: Vec<CreateIntent> = records.iter().filter(|record| is_watched(case, record)).cloned().collect();
    match watched.iter().map(|record| later(record.at, WATCHED)).min() {
        _ if records.is_empty() => still_looking(case, choice),
        Some(until) if watched.len() == records.len() => choice.no_later(Wake::At(until)),
        _ => Decision::act(ComputeStep::RecordUnanswered { unanswered: watched }, report),
    }
}

/// A list that begins after the settle time is to show what creates without marks have made besides.
fn still_looking(case: &Case, choice: Choice) -> Choice {
    let settle = case.observed.limits.settle;
    let last = unmarked(case.identity).map(|create| create.at).max();
    match last.map(|last| later(last, settle)) {
        Some(settled) if case.now < settled => choice.no_later(Wake::At(settled)),
        Some(_) if is_looking(case.identity, &case.observed.memory, (settle, case.now)) => {
            choice.no_later(Wake::At(later(case.now, LOOK_AGAIN)))
        }
        _ => choice,
    }
}

/// How soon a list is looked at that has begun late enough.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

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
        "A create of this resource that was never answered, or was repeated on the way, may have created {}. What it created is billed, this resource does not \
         use it, and dbplane does not change it. Delete it in the platform's console. Or import it: create another Compute with \
         spec.computeID.",
        ids.join(", "),
    )
}
