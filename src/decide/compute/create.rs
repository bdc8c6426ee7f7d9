//! A Compute without a compute: adopts one, creates one, or finds the outcome of an earlier create.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::claims::{Holder, RivalCreate};
use super::conflict::{claimed, wrong_role};
use super::evidence::{CreateResult, evidence, matching, on_branch};
use super::snapshot::unclear;
use super::{ComputeCase, ComputeDecision, ComputeSnapshot, ComputeStep, await_person, stray};
use crate::api::{ComputeSpec, ComputeType, Existing, Management};
use crate::decide::identity::{
    Binding, ComputeIdentity, CreateIntent, Evidence, Origin, RestartRecord,
};
use crate::decide::{Action, Decision, Reason, Report, drift, later, names};
use crate::domain::{
    BranchId, Compute, ComputeId, NameSupport, NewCompute, Role, Shown, UnreadableEntry,
};

/// Without a binding and an intent, no create is open.
pub(super) fn adopt_or_create(case: &ComputeCase, snapshot: &ComputeSnapshot) -> ComputeDecision {
    if let Some(id) = &case.spec.compute_id {
        return import(case, snapshot, id);
    }
    if let Some(choice) = late_result(case, snapshot) {
        return choice;
    }
    match case.role() {
        Role::Primary => adopt_or_create_primary(case, snapshot),
        Role::Replica => create(case, snapshot),
    }
}

/// An unanswered create, already given up, may still have made a compute.
fn late_result(case: &ComputeCase, snapshot: &ComputeSnapshot) -> Option<ComputeDecision> {
    match stray::late(case, snapshot)? {
        CreateResult::Created(found) => Some(bind(case, snapshot, found, Origin::Created)),
        CreateResult::Behind(other) => Some(await_turn(
            case,
            Reason::ConfirmingCreate,
            other,
            &case.spec.branch_id,
        )),
        CreateResult::Ambiguous(candidates) => {
            Some(await_person(case, ambiguous(case, &candidates)))
        }
        CreateResult::Unclear(entry) => Some(Decision::rest(unresolved(case, entry))),
        CreateResult::NotCreated | CreateResult::NotKnownYet(_) => None,
    }
}

fn adopt_or_create_primary(case: &ComputeCase, snapshot: &ComputeSnapshot) -> ComputeDecision {
    let branch = &case.spec.branch_id;
    if let Some(other) = &case.observed.claims.primary {
        let what = format!("the primary compute of branch {branch}");
        return await_person(case, claimed(case, &what, other));
    }
    match snapshot.primary(branch) {
        Shown::Entry(found) => existing_primary(case, snapshot, found),
        // If adopting is not allowed, a hidden primary needs no check: the platform refuses a
        // second one.
        Shown::Unclear(entry) if !refuses_existing(case.spec) => {
            let question = format!("whether branch {branch} has a primary compute");
            Decision::rest(unclear(case, entry, &question))
        }
        Shown::Unclear(_) | Shown::Absent => match case.spec.management {
            Management::Observe => Decision::rest(Report::stalled(
                Reason::ComputeNotFound,
                format!("Branch {branch} has no primary compute to observe."),
            )),
            Management::Full => create(case, snapshot),
        },
    }
}

fn refuses_existing(spec: &ComputeSpec) -> bool {
    spec.management == Management::Full && spec.existing == Existing::Refuse
}

/// The branch has a primary. Binds to it, unless another resource has or may have it.
fn existing_primary(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot,
    found: &Compute,
) -> ComputeDecision {
    let branch = &case.spec.branch_id;
    let claims = &case.observed.claims;
    if let Some(claim) = claims.bound.get(&found.id) {
        let what = format!("compute {}, the primary of branch {branch}", found.id);
        return await_person(case, claimed(case, &what, &claim.by));
    }
    // Another resource may have created the primary and not be bound yet. An unanswered create with
    // a mark does not count: the primary would have its name, which `bind` checks.
    let unanswered = claims
        .unanswered
        .as_ref()
        .filter(|rival| rival.evidence == Evidence::ByBaseline);
    if let Some(rival) = claims.creating.as_ref().or(unanswered) {
        return await_turn(case, Reason::Creating, &rival.by, branch);
    }
    match (case.spec.management, case.spec.existing) {
        (Management::Observe, _) => bind(case, snapshot, found, Origin::Observed),
        (Management::Full, Existing::Adopt) => bind(case, snapshot, found, Origin::Adopted),
        (Management::Full, Existing::Refuse) => Decision::rest(Report::stalled(
            Reason::PrimaryExists,
            format!(
                "Branch {branch} already has the primary compute {}. Set spec.existing to Adopt to adopt it, or choose another branch.",
                found.id
            ),
        )),
    }
}

/// With an intent and no binding, the create may have been carried out.
pub(super) fn recover(
    case: &ComputeCase,
    intent: &CreateIntent,
    snapshot: &ComputeSnapshot,
) -> ComputeDecision {
    if let Some(id) = &case.spec.compute_id {
        return import(case, snapshot, id);
    }
    match create_outcome(case, intent, snapshot) {
        CreateResult::Created(found) => bind(case, snapshot, found, Origin::Created),
        CreateResult::NotCreated => Decision::act(
            ComputeStep::DropIntent {
                unanswered: stray::unanswered(case, intent),
            },
            Report::progressing(
                Reason::Creating,
                "An earlier create was not carried out. dbplane tries it again.",
            ),
        ),
        CreateResult::NotKnownYet(until) => Decision::wait(
            Report::progressing(Reason::ConfirmingCreate, confirming(case, intent)),
            until,
        ),
        CreateResult::Behind(other) => {
            await_turn(case, Reason::ConfirmingCreate, other, &intent.branch)
        }
        CreateResult::Ambiguous(candidates) => await_person(case, ambiguous(case, &candidates)),
        CreateResult::Unclear(entry) => Decision::rest(unresolved(case, entry)),
    }
}

/// The report while the result of an unanswered create is not known.
pub(super) fn unresolved(case: &ComputeCase, entry: &UnreadableEntry) -> Report {
    unclear(case, entry, "what a create that was not answered has made")
}

fn confirming(case: &ComputeCase, intent: &CreateIntent) -> String {
    match case.observed.memory.open_answer(Action::Create, intent.at) {
        Some(answer) => {
            format!("A create was sent. {answer} dbplane checks whether it was carried out.")
        }
        None => "A create was sent and not answered. dbplane checks whether it was carried out."
            .to_owned(),
    }
}

/// The outcome of a create. The evidence is the answer if this process has it, the mark if the
/// platform keeps names, and otherwise the baseline.
pub(super) fn create_outcome<'a>(
    case: &ComputeCase<'a>,
    intent: &CreateIntent,
    snapshot: &ComputeSnapshot<'a>,
) -> CreateResult<'a> {
    if let Some(id) = &case.observed.memory.created {
        match snapshot.find(id) {
            Shown::Entry(created) => return CreateResult::Created(created),
            Shown::Unclear(entry) if entry.id.is_some() => return CreateResult::Unclear(entry),
            Shown::Unclear(_) | Shown::Absent => {}
        }
    }
    let found = evidence(case, intent, snapshot);
    let ours = found
        .marked
        .iter()
        .find(|compute| !case.is_taken(&compute.id))
        .or(found.marked.first());
    if let Some(ours) = ours {
        return CreateResult::Created(ours);
    }
    if case.observed.memory.not_done(Action::Create, intent.at) {
        return CreateResult::NotCreated;
    }
    if let Some(outcome) = stray::late(case, snapshot) {
        return outcome;
    }
    let settled = case
        .observed
        .memory
        .settles_at(intent.at, case.observed.limits.settle);
    let candidates = found.candidates();
    // The list may still lack the result, or at least the compute with the resource's own mark.
    if snapshot.at < settled && (candidates.is_empty() || intent.mark.is_some()) {
        return CreateResult::NotKnownYet(settled);
    }
    let hidden = snapshot.hiding(case, intent);
    if candidates.is_empty() {
        return hidden.map_or(CreateResult::NotCreated, CreateResult::Unclear);
    }
    let is_match = matching(case, intent);
    let is_likely = found.doubtful.is_empty() && candidates.iter().all(|one| is_match(one));
    CreateResult::among(case, candidates, is_likely, hidden)
}

/// Creates a compute. The intent shows any later process that the create may have been carried out.
pub(super) fn create(case: &ComputeCase, snapshot: &ComputeSnapshot) -> ComputeDecision {
    // The backoff comes first: reporting the turn instead would rewrite the status at each turn.
    if let Some(pause) = case.pause(Action::Create) {
        return pause;
    }
    let claims = &case.observed.claims;
    if let Some(rival) = claims.creating.as_ref().or(claims.unanswered.as_ref()) {
        return await_rival(case, rival);
    }
    let evidence = Evidence::now(case.observed.name_support);
    // Without a mark, the baseline identifies the result. An unreadable entry could be missing from
    // the baseline.
    if evidence == Evidence::ByBaseline
        && let Some(entry) = snapshot.unreadable().hiding(None)
    {
        let question = format!(
            "which compute a create on branch {} would have made",
            case.spec.branch_id
        );
        return Decision::rest(unclear(case, entry, &question));
    }
    let intent = new_intent(case, snapshot, evidence);
    let new = NewCompute {
        branch_id: case.spec.branch_id.clone(),
        role: case.role(),
        name: intent.mark.clone(),
        settings: drift::declared(case.spec),
    };
    let step = ComputeStep::Create {
        intent,
        new: Box::new(new),
        restart: case.restart_asked(case.identity.restart.as_ref()),
        seen: snapshot.at,
    };
    Decision::act(step, creating())
}

/// With many waiting on a branch, naming the other resource at once would rewrite all their
/// statuses at each turn.
fn await_rival(case: &ComputeCase, rival: &RivalCreate) -> ComputeDecision {
    let branch = &case.spec.branch_id;
    let is_long = rival
        .since
        .is_some_and(|since| later(since, LONG_TURN) <= case.now);
    if is_long {
        await_turn(case, Reason::Creating, &rival.by, branch)
    } else {
        await_turn_of(case, Reason::Creating, "another Compute", branch)
    }
}

fn new_intent(case: &ComputeCase, snapshot: &ComputeSnapshot, evidence: Evidence) -> CreateIntent {
    let existing: Vec<&Compute> = snapshot
        .shown()
        .iter()
        .filter(|compute| on_branch(compute, &case.spec.branch_id, case.role()))
        .collect();
    let baseline = match evidence {
        Evidence::ByBaseline => Some(existing.iter().map(|compute| compute.id.clone()).collect()),
        Evidence::ByMark => None,
    };
    CreateIntent {
        at: case.now,
        branch: case.spec.branch_id.clone(),
        platform: case.observed.platform.clone(),
        baseline,
        newest: existing
            .iter()
            .filter_map(|compute| compute.created_at)
            .max(),
        mark: mark(case),
        asked: Some(drift::declared(case.spec)),
    }
}

/// The report while a create is in progress.
pub fn creating() -> Report {
    Report::progressing(Reason::Creating, "The compute is being created.")
}

/// True if a create may rely on a list that began at `seen`. While the create waits for its place
/// in the budget, others may create computes. This does not matter if the mark alone identifies the
/// result. `place` is the time when a kept place was granted.
pub fn is_current(
    intent: &CreateIntent,
    seen: Timestamp,
    place: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    match place {
        _ if intent.baseline.is_none() => true,
        None => now < later(seen, BEFORE_PLACE),
        Some(since) => since <= seen && now < later(seen, AFTER_PLACE),
    }
}

/// True if a new resource may be decided on with a list that began before its first pass. The only
/// possible step must be a create that its mark alone identifies. If the list lacks an existing
/// primary, the platform refuses a second one.
pub fn may_rest_on_older_list(
    spec: &ComputeSpec,
    identity: &ComputeIdentity,
    computes: &[Compute],
    names: NameSupport,
) -> bool {
    let is_new = *identity == ComputeIdentity::default() && spec.compute_id.is_none();
    if !is_new || names != NameSupport::Kept || spec.management != Management::Full {
        return false;
    }
    match spec.type_ {
        ComputeType::ReadOnly => true,
        ComputeType::ReadWrite => {
            let has_primary = computes
                .iter()
                .any(|compute| on_branch(compute, &spec.branch_id, Role::Primary));
            spec.existing == Existing::Refuse && !has_primary
        }
    }
}

/// The maximum age of a list that began before the place in the budget was granted.
const BEFORE_PLACE: Duration = Duration::from_secs(10);
/// The maximum age of a list that began after that, for this create. Reading it may take long.
const AFTER_PLACE: Duration = Duration::from_secs(60);

/// The unique name of a create, if the platform supports names. After an unanswered create the
/// resource uses the same name again. A platform that allows a name only once then carries out only
/// one of the two.
fn mark(case: &ComputeCase) -> Option<String> {
    let observed = case.observed;
    if observed.name_support == NameSupport::Unseen {
        return None;
    }
    let before = case
        .identity
        .unanswered
        .iter()
        .rev()
        .find_map(|record| record.mark.clone());
    Some(before.unwrap_or_else(|| {
        names::unique(
            &observed.meta.name,
            &observed.cluster,
            observed.meta.object_key(),
            observed.random,
        )
    }))
}

/// Creates on one branch are sent and resolved one after the other.
pub(super) fn await_turn(
    case: &ComputeCase,
    reason: Reason,
    by: &Holder,
    branch: &BranchId,
) -> ComputeDecision {
    let other = by.told_in(&case.observed.meta.namespace);
    let choice = await_turn_of(case, reason, &other, branch);
    Decision {
        report: choice.report.map(|report| report.held_by(by)),
        ..choice
    }
}

fn await_turn_of(
    case: &ComputeCase,
    reason: Reason,
    other: &str,
    branch: &BranchId,
) -> ComputeDecision {
    let report = Report::progressing(
        reason,
        format!("Waiting for {other}, whose create on branch {branch} comes first."),
    );
    Decision::wait(report, later(case.now, CREATE_TURN))
}

/// After this time the report names the resource whose create comes first.
const LONG_TURN: Duration = Duration::from_secs(10);
/// The interval of checks while another create on the branch comes first.
const CREATE_TURN: Duration = Duration::from_secs(5);

fn import(case: &ComputeCase, snapshot: &ComputeSnapshot, id: &ComputeId) -> ComputeDecision {
    match snapshot.find(id) {
        Shown::Unclear(entry) => {
            Decision::rest(unclear(case, entry, &format!("what compute {id} is")))
        }
        Shown::Absent => Decision::rest(Report::stalled(
            Reason::ComputeNotFound,
            format!(
                "Project {} has no compute {id}. Correct spec.computeID. Or, to have a compute created, remove it: {}",
                case.spec.project_id,
                case.observed
                    .meta
                    .correction("compute", &json!({"computeID": null}))
            ),
        )),
        Shown::Entry(found) if found.role != case.role() => Decision::rest(wrong_role(case, found)),
        Shown::Entry(found) if case.spec.management == Management::Observe => {
            bind(case, snapshot, found, Origin::Observed)
        }
        Shown::Entry(found) => bind(case, snapshot, found, Origin::Imported),
    }
}

/// Binds the resource to a compute, unless another resource claims it.
pub(super) fn bind(
    case: &ComputeCase,
    snapshot: &ComputeSnapshot,
    found: &Compute,
    origin: Origin,
) -> ComputeDecision {
    if let Some(claim) = case.observed.claims.bound.get(&found.id) {
        return await_person(
            case,
            claimed(case, &format!("compute {}", found.id), &claim.by),
        );
    }
    if let Some(by) = found
        .name
        .as_ref()
        .and_then(|name| case.observed.claims.marks.get(name))
    {
        return await_turn(case, Reason::ConfirmingCreate, by, &found.branch_id);
    }
    let binding = Binding {
        id: found.id.clone(),
        project: case.spec.project_id.clone(),
        platform: case.observed.platform.clone(),
        branch: Some(found.branch_id.clone()),
        origin,
        at: case.now,
    };
    let unanswered = stray::unanswered_beside(case, found, snapshot);
    let made = stray::made(case, found);
    // A created compute started with its create. Binding to an existing compute starts nothing.
    let created = if origin == Origin::Created {
        case.identity.creates().map(|create| create.at).min()
    } else {
        None
    };
    let restart = RestartRecord {
        at: created.unwrap_or(case.now),
        noted: created.is_none(),
        ..case.restart_asked(case.identity.restart.as_ref())
    };
    Decision::act(
        ComputeStep::Bind {
            binding,
            restart,
            unanswered,
            made,
            restored: false,
        },
        Report::progressing(
            Reason::Creating,
            format!("Compute {} is being bound.", found.id),
        ),
    )
}

fn ambiguous(case: &ComputeCase, candidates: &[&Compute]) -> Report {
    let ids: Vec<ComputeId> = candidates
        .iter()
        .map(|compute| compute.id.clone())
        .collect();
    let meta = &case.observed.meta;
    let first = ids.first().map_or("COMPUTE-ID", ComputeId::as_str);
    Report::stalled(
        Reason::AmbiguousCreate,
        format!(
            "A create was sent and not answered. dbplane cannot determine which of these computes it created: {}. To name the right \
             one: {}. If it is none of them: {}",
            ids.join(", "),
            meta.correction("compute", &json!({"computeID": first})),
            stray::none_of(case, &ids),
        ),
    )
}
