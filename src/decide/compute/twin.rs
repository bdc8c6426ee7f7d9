//! The strays of a bound resource, which its status names. Twins are those that a create made in
//! addition to the bound compute, because a proxy repeated the request. dbplane deletes a twin with
//! the resource's own mark once nothing speaks against it.

use std::time::Duration;

use jiff::Timestamp;

use super::stray::{self, Strays, hidden, is_watched, none_of, strays};
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
use crate::domain::{Compute, ComputeId, Shown};

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
    let named: Vec<&Compute> = [&strays.twins[..], &strays.besides].concat();
    let all_marked = case
        .identity
        .made
        .iter()
        .all(|create| create.evidence() == Evidence::ByMark);
    let mut twins = case.identity.twins.clone();
    twins.retain(|id, _| match snapshot.find(id) {
        Shown::Entry(_) => named.iter().any(|twin| twin.id == *id),
        Shown::Unclear(_) => true,
        Shown::Absent => !all_marked,
    });
    for twin in named {
        if twins.len() < MOST {
            twins.entry(twin.id.clone()).or_insert(case.now);
        }
    }
    (twins != case.identity.twins).then_some(ComputeStep::RecordTwins { twins })
}

/// Adds other computes that may be the resource's own to its decision: a step for them, or a
/// report. While there is something to report, no record is dropped.
pub(super) fn report_strays(
    case: &ComputeCase,
    own: &Compute,
    snapshot: &ComputeSnapshot,
    choice: ComputeDecision,
) -> ComputeDecision {
    let ComputeIdentity {
        unanswered: records,
        made,
        twins,
        ..
    } = case.identity;
    if records.is_empty() && made.is_empty() {
        return choice;
    }
    let mut strays = strays(case, snapshot);
    if case.observed.claims.creating.is_some() {
        // The other resource's create may have made them.
        (strays.likely, strays.doubtful) = (Vec::new(), Vec::new());
        strays
            .besides
            .retain(|compute| twins.contains_key(&compute.id));
    }
    let Some(report) = choice.report.clone() else {
        return choice;
    };
    // Recorded first: the search may be over when later lists arrive.
    if let Some(step) = recorded(case, snapshot, &strays) {
        return Decision::act(step, report);
    }
    if choice.step.is_some() {
        return choice;
    }
    if !strays.ids().is_empty() {
        return delete_or_report(case, own, snapshot, &strays, report).no_later(choice.wake);
    }
    if records.is_empty() || hidden(case, snapshot, |_| true).is_some() {
        return choice;
    }
    let watched: Vec<CreateIntent> = records
        .iter()
        .filter(|record| is_watched(case, record))
        .cloned()
        .collect();
    match watched.iter().map(|record| later(record.at, WATCHED)).min() {
        Some(until) if watched.len() == records.len() => choice.no_later(Wake::At(until)),
        _ => Decision::act(
            ComputeStep::RecordUnanswered {
                unanswered: watched,
            },
            report,
        ),
    }
}

/// A twin, and the reason to keep it while the resource exists; `None` if it may be deleted.
struct KnownTwin<'a> {
    compute: &'a Compute,
    kept_because: Option<&'static str>,
}

/// Deletes a marked twin if that is allowed now. Otherwise reports all twins and other strays.
pub(super) fn delete_or_report(
    case: &ComputeCase,
    own: &Compute,
    snapshot: &ComputeSnapshot,
    strays: &Strays,
    report: Report,
) -> ComputeDecision {
    let twins: Vec<KnownTwin> = strays
        .twins
        .iter()
        .map(|compute| KnownTwin {
            compute,
            kept_because: kept_because(case, own, snapshot, compute),
        })
        .collect();
    let said = advice(case, own, strays, &twins);
    let due = twins
        .iter()
        .find(|twin| twin.kept_because.is_none() && named_until(case, twin.compute) <= case.now);
    let twin = match (&case.observed.meta.brake, due) {
        (Brake::Free, Some(twin)) => twin.compute,
        (Brake::Slowed(_, until), Some(_)) => {
            return await_person(case, beside(report, said)).no_later(Wake::At(*until));
        }
        _ => return await_person(case, beside(report, said)),
    };
    if let Some(again) = case.observed.memory.deletes_again(&twin.id)
        && case.now < again
    {
        return Decision::wait(beside(report, said), again);
    }
    let backoff = case
        .observed
        .memory
        .backoff(Action::Delete, case.generation(), case.now);
    if let Some(backoff) = backoff {
        let failed = Report::of(backoff.health);
        let said = format!("{said} {}", failed.headline().1);
        return Decision::wait(beside(report, said), backoff.until);
    }
    let id = twin.id.clone();
    Decision::act(ComputeStep::DeleteTwin { id }, beside(report, said))
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
    binding.origin == Origin::Created
        && case.identity.made.iter().any(|create| {
            create.mark.is_some() && create.mark == twin.name && create.at == binding.at
        })
}

/// The message about all twins and other strays.
fn advice(case: &ComputeCase, own: &Compute, strays: &Strays, twins: &[KnownTwin]) -> String {
    let ids: Vec<ComputeId> = twins.iter().map(|twin| twin.compute.id.clone()).collect();
    let mut others = strays.ids();
    others.retain(|id| !ids.contains(id));
    let mut texts = Vec::new();
    if !ids.is_empty() {
        let outlooks: Vec<String> = twins.iter().map(|twin| outlook(case, twin)).collect();
        texts.push(format!(
            "A create of this resource was carried out more than once. Beside its compute {} it has created {}, which is billed, and which \
             this resource does not use. {} To keep it, import it: create another Compute with spec.computeID. If this resource has not \
             created it: {}",
            own.id,
            ids.join(", "),
            outlooks.join(" "),
            none_of(case, &ids),
        ));
    }
    if !others.is_empty() {
        texts.push(stray::advice(case, &others));
    }
    texts.join(" ")
}

fn outlook(case: &ComputeCase, twin: &KnownTwin) -> String {
    let id = &twin.compute.id;
    match twin.kept_because {
        Some(_) if is_orphaned(case.spec) => format!("dbplane does not delete {id}."),
        Some(why) => format!("dbplane deletes {id} with this resource, and not before: {why}."),
        None => format!(
            "dbplane deletes {id} after {}, unless it is active until then.",
            named_until(case, twin.compute)
        ),
    }
}
