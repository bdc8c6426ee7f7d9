//! A create that was carried out twice: a proxy has repeated the request, and both computes have the resource's own mark. The resource is
//! bound to one of them. The other one is named in the status, and is deleted once nothing speaks against that.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::super::identity::{Binding, CreateIntent, Origin};
use super::super::{Action, Brake, Decision, Reason, Report, Sync, WATCHED, later};
use super::delete::DELETE_AGAIN;
use super::stray::none_of;
use super::{Case, Choice, ComputeStep, Snapshot, await_person, is_orphaned, is_settled};
use crate::api::Management;
use crate::domain::Compute;

/// How long the status names such a compute before it is deleted: somebody may have begun to use it.
const NAMED: Duration = WATCHED;

/// Records since when computes are named, and that one is deleted: as the platform has answered, and as this list shows, which was begun
/// after that. A list alone shows nothing.
pub(super) fn recorded(case: &Case, snapshot: &Snapshot, twins: &[&Compute]) -> Option<ComputeStep> {
    if case.spec.management == Management::Observe {
        return None;
    }
    let known = &case.identity.twins;
    let is_over = |id: &String| match snapshot.find(id) {
        None => case.observed.memory.twins_deleted.contains_key(id),
        // Somebody has taken it meanwhile, or says that it is somebody else's.
        Some(shown) => twins.iter().all(|twin| twin.id != shown.id),
    };
    let kept = known.iter().filter(|(id, _)| !is_over(id)).map(|(id, since)| (id.clone(), *since));
    let new = twins.iter().filter(|twin| !known.contains_key(&twin.id)).map(|twin| (twin.id.clone(), case.now));
    let recorded: BTreeMap<String, Timestamp> = kept.chain(new).collect();
    (recorded != *known).then_some(ComputeStep::RecordTwins { twins: recorded })
}

/// Deletes one of them, if that may be done now; otherwise says this of them.
pub(super) fn delete(case: &Case, own: &Compute, twins: &[&Compute], (report, said): (Report, &str)) -> Choice {
    let told = |said: String| report.clone().with_sync(Sync::OutOfSync(Reason::StrayCompute, said));
    let is_due = |twin: &&&Compute| kept_because(case, own, twin).is_none() && case.now >= named_until(case, twin);
    let due = twins.iter().find(is_due).filter(|_| case.observed.meta.brake == Brake::Free);
    let report = told(said.to_owned());
    let Some(twin) = due else { return await_person(case, report) };
    let memory = &case.observed.memory;
    let again = memory.twins_deleted.get(&twin.id).map(|at| later(*at, DELETE_AGAIN));
    if let Some(again) = again.filter(|again| case.now < *again) {
        return Decision::wait(report, again);
    }
    match memory.backoff(Action::Delete, case.generation(), case.now) {
        Some(backoff) => {
            let failed = Report::of(backoff.health);
            Decision::wait(told(format!("{said} {}", failed.headline().1)), backoff.until)
        }
        None => Decision::act(ComputeStep::DeleteTwin { id: twin.id.clone() }, report),
    }
}

fn named_until(case: &Case, twin: &Compute) -> Timestamp {
    later(case.identity.twins.get(&twin.id).copied().unwrap_or(case.now), NAMED)
}

/// Why dbplane does not delete it while the resource lives.
fn kept_because(case: &Case, own: &Compute, twin: &Compute) -> Option<&'static str> {
    let claims = &case.observed.claims;
    let id = &twin.id;
    let is_claimed = claims.bound.contains_key(id) || claims.outside.contains_key(id) || claims.declared.contains(id);
    let is_theirs = twin.name.as_ref().is_some_and(|name| claims.marks.contains_key(name));
    let (spec, binding) = (case.spec, case.identity.binding.as_ref());
    match () {
        () if spec.management == Management::Observe => Some("spec.management is Observe"),
        () if is_orphaned(spec) => Some("spec.deletion is Orphan"),
        () if spec.deletion_protection => Some("spec.deletionProtection is set"),
        () if is_claimed || is_theirs => Some("another resource names it or may have it"),
        () if claims.incomplete => Some("a resource that cannot be read may have it"),
        () if !binding.is_some_and(|binding| is_answered(case, binding, twin)) => {
            Some("no answer of the platform has told the two apart")
        }
        () if own.last_active.is_none() => Some("the platform does not show when computes were active"),
        () if twin.last_active.is_some() => Some("it was active"),
        () if !is_settled(twin) || twin.role != case.role() => Some("it is changing, or of another type"),
        () => None,
    }
}

/// Whether the resource is bound by the answer to the create with this mark, which named its compute and not this one.
fn is_answered(case: &Case, binding: &Binding, twin: &Compute) -> bool {
    let is_its = |create: &CreateIntent| create.mark.is_some() && create.mark == twin.name && create.at == binding.at;
    binding.origin == Origin::Created && case.identity.made.iter().any(is_its)
}

/// What people are told of them.
pub(super) fn advice(case: &Case, own: &Compute, twins: &[&Compute]) -> String {
    let ids: Vec<String> = twins.iter().map(|twin| twin.id.clone()).collect();
    let outlook = |twin: &&Compute| match kept_because(case, own, twin) {
        Some(_) if is_orphaned(case.spec) => format!("dbplane does not delete {}.", twin.id),
        Some(why) => format!("dbplane deletes {} with this resource, and not before: {why}.", twin.id),
        None => {
            format!("dbplane deletes {} after {}, unless it is active until then.", twin.id, named_until(case, twin))
        }
    };
    let outlook: Vec<String> = twins.iter().map(outlook).collect();
    format!(
        "A create of this resource was carried out more than once. Beside its compute {} it has created {}, which is billed, and which this \
         resource does not use. {} To keep it, import it: create another Compute with spec.computeID. If this resource has not created it: {}",
        own.id,
        ids.join(", "),
        outlook.join(" "),
        none_of(case, &ids),
    )
}
