//! Twins: computes that a create made in addition to the bound one, because a proxy repeated the
//! request. The status names them. dbplane deletes a twin with the resource's own mark once nothing
//! speaks against it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::delete::delete_again;
use super::stray::{self, Strays, none_of};
use super::{
    ComputeCase, ComputeDecision, ComputeSnapshot, ComputeStep, await_person, is_orphaned,
    is_settled,
};
use crate::api::Management;
use crate::decide::identity::{Binding, ComputeIdentity, CreateIntent, Evidence, Origin};
use crate::decide::memory::Memory;
use crate::decide::{
    AccountView, Action, Brake, Decision, Health, Meta, Reason, Report, Sync, WATCHED, Wake, later,
};
use crate::domain::{Compute, Shown};

/// How long the status names a twin before it is deleted: somebody may have begun to use it.
const NAMED: Duration = WATCHED;
/// How long a process watches a recorded twin before it deletes it. The record may be from a backup,
/// and the resources that use the twin may be restored later.
const WATCHED_FOR: Duration = Duration::from_secs(15 * 60);

/// The status names no more twins than this. A request that is repeated on the way makes one or two.
const MOST: usize = 20;

/// Notes since when this process has watched the recorded twins.
pub fn watch_twins(
    memory: &mut Memory,
    known: &ComputeIdentity,
    meta: &Meta,
    account: &AccountView,
    now: Timestamp,
) {
    let watches =
        !known.twins.is_empty() && !meta.paused && matches!(account, AccountView::Usable { .. });
    memory.twins_watched = watches.then(|| memory.twins_watched.unwrap_or(now));
}

/// Records when each twin was first named. A twin that a list lacks is dropped if all creates have
/// marks: its mark identifies it if it appears again. Without a mark, only the record identifies
/// it.
pub(super) fn recorded(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot,
    strays: &Strays,
) -> Option<ComputeStep> {
    if case.spec.management == Management::Observe {
        return None;
    }
    let known = &case.identity.twins;
    let named = || strays.twins.iter().chain(&strays.besides);
    let all_marked = case
        .identity
        .made
        .iter()
        .all(|create| create.evidence() == Evidence::ByMark);
    let is_over = |id: &String| match snapshot.find(id) {
        Shown::Entry(_) => named().all(|twin| twin.id != *id),
        Shown::Unclear(_) => false,
        Shown::Absent => all_marked,
    };
    let kept = known
        .iter()
        .filter(|(id, _)| !is_over(id))
        .map(|(id, since)| (id.clone(), *since));
    let new = named()
        .filter(|twin| !known.contains_key(&twin.id))
        .map(|twin| (twin.id.clone(), case.now));
    let twins: BTreeMap<String, Timestamp> = kept.chain(new).take(MOST).collect();
    (twins != *known).then_some(ComputeStep::RecordTwins { twins })
}

/// Deletes a marked twin if that is allowed now. Otherwise reports all twins and other strays.
pub(super) fn delete_or_report(
    case: &ComputeCase,
    own: &Compute,
    snapshot: &ComputeSnapshot,
    strays: &Strays,
    report: Report,
) -> ComputeDecision {
    let kept = |twin: &Compute| kept_because(case, own, snapshot, twin);
    let said = advice(case, own, strays, kept);
    let told = |said: String| beside(report.clone(), said);
    let is_due = |twin: &&&Compute| kept(twin).is_none() && named_until(case, twin) <= case.now;
    let due = strays.twins.iter().find(is_due);
    let twin = match (&case.observed.meta.brake, due) {
        (Brake::Free, Some(twin)) => twin,
        (Brake::Slowed(_, until), Some(_)) => {
            return await_person(case, told(said)).no_later(Wake::At(*until));
        }
        _ => return await_person(case, told(said)),
    };
    let backoff = case
        .observed
        .memory
        .backoff(Action::Delete, case.generation(), case.now);
    match (delete_again(case, &twin.id), backoff) {
        (Some(again), _) if case.now < again => Decision::wait(told(said), again),
        (_, Some(backoff)) => {
            let failed = Report::of(backoff.health);
            Decision::wait(
                told(format!("{said} {}", failed.headline().1)),
                backoff.until,
            )
        }
        (_, None) => Decision::act(
            ComputeStep::DeleteTwin {
                id: twin.id.clone(),
            },
            told(said),
        ),
    }
}

/// The report with strays. If something else keeps a usable compute out of sync, that stays the
/// reason, and a notice names the strays.
fn beside(report: Report, said: String) -> Report {
    if !matches!(report.health, Health::Ready(..)) || report.sync == Sync::InSync {
        return report.with_sync(Sync::OutOfSync(Reason::StrayCompute, said));
    }
    let notices = report
        .notices
        .into_iter()
        .chain([(Reason::StrayCompute, said)])
        .collect();
    Report { notices, ..report }
}

fn named_until(case: &ComputeCase, twin: &Compute) -> Timestamp {
    let named = later(
        case.identity
            .twins
            .get(&twin.id)
            .copied()
            .unwrap_or(case.now),
        NAMED,
    );
    named.max(later(
        case.observed.memory.twins_watched.unwrap_or(case.now),
        WATCHED_FOR,
    ))
}

/// The reason to keep a twin while the resource exists; `None` if it may be deleted.
fn kept_because(
    case: &ComputeCase,
    own: &Compute,
    snapshot: &ComputeSnapshot,
    twin: &Compute,
) -> Option<&'static str> {
    let claims = &case.observed.claims;
    let id = &twin.id;
    let is_claimed = claims.bound.contains_key(id)
        || claims.outside.contains_key(id)
        || claims.declared.contains(id);
    let is_theirs = twin
        .name
        .as_ref()
        .is_some_and(|name| claims.marks.contains_key(name));
    let (spec, binding) = (case.spec, case.identity.binding.as_ref());
    if spec.management == Management::Observe {
        return Some("spec.management is Observe");
    }
    if is_orphaned(spec) {
        return Some("spec.deletion is Orphan");
    }
    if spec.deletion_protection {
        return Some("spec.deletionProtection is set");
    }
    if is_claimed || is_theirs {
        return Some("another resource names it or may have it");
    }
    if claims.incomplete {
        return Some("a resource that cannot be read may have it");
    }
    if !snapshot.unreadable().is_empty() {
        return Some("the list of computes cannot be read whole");
    }
    if !binding.is_some_and(|binding| is_answered(case, binding, twin)) {
        return Some("no answer of the platform has told the two apart");
    }
    if !case.identity.twins.contains_key(id) {
        return Some("the status names the others first");
    }
    if twin.last_active.is_some() {
        return Some("it was active");
    }
    // If the platform shows no activity of the bound compute, a missing activity proves
    // nothing.
    if own.last_active.is_none() {
        return Some("the platform shows no activity of this resource's compute either");
    }
    if !is_settled(twin) || twin.role != case.role() {
        return Some("it is changing, or of another type");
    }
    None
}

/// True if the resource was bound by the answer to the create with this mark. The answer named the
/// bound compute, so it did not name the twin.
fn is_answered(case: &ComputeCase, binding: &Binding, twin: &Compute) -> bool {
    let is_its = |create: &CreateIntent| {
        create.mark.is_some() && create.mark == twin.name && create.at == binding.at
    };
    binding.origin == Origin::Created && case.identity.made.iter().any(is_its)
}

/// The message about all twins and other strays.
fn advice(
    case: &ComputeCase,
    own: &Compute,
    strays: &Strays,
    kept: impl Fn(&Compute) -> Option<&'static str>,
) -> String {
    let ids: Vec<String> = strays.twins.iter().map(|twin| twin.id.clone()).collect();
    let others: Vec<String> = strays
        .ids()
        .into_iter()
        .filter(|id| !ids.contains(id))
        .collect();
    let of_others = (!others.is_empty()).then(|| stray::advice(case, &others));
    let outlook = strays.twins.iter().map(|twin| match kept(twin) {
        Some(_) if is_orphaned(case.spec) => format!("dbplane does not delete {}.", twin.id),
        Some(why) => format!(
            "dbplane deletes {} with this resource, and not before: {why}.",
            twin.id
        ),
        None => {
            format!(
                "dbplane deletes {} after {}, unless it is active until then.",
                twin.id,
                named_until(case, twin)
            )
        }
    });
    let of_twins = (!ids.is_empty()).then(|| {
        format!(
            "A create of this resource was carried out more than once. Beside its compute {} it has created {}, which is billed, and which \
             this resource does not use. {} To keep it, import it: create another Compute with spec.computeID. If this resource has not \
             created it: {}",
            own.id,
            ids.join(", "),
            outlook.collect::<Vec<_>>().join(" "),
            none_of(case, &ids),
        )
    });
    of_twins
        .into_iter()
        .chain(of_others)
        .collect::<Vec<_>>()
        .join(" ")
}
