//! The evidence in a snapshot about the result of an unanswered create.

use std::borrow::Cow;

use jiff::Timestamp;

use super::claims::Holder;
use super::{ComputeCase, ComputeSnapshot};
use crate::decide::identity::{CreateIntent, Evidence};
use crate::decide::{Action, drift};
use crate::domain::{
    Compute, Fault, NameSupport, PostgresSettings, Role, Settings, UnreadableEntry,
};

/// The outcome of a create.
pub(super) enum CreateResult<'a> {
    Created(&'a Compute),
    NotCreated,
    NotKnownYet(Timestamp),
    /// Another resource's create on the same branch is resolved first.
    Behind(&'a Holder),
    Ambiguous(Vec<&'a Compute>),
    /// An unreadable entry may be the result.
    Unclear(&'a UnreadableEntry),
}

/// Computes that a create may have created.
pub(super) struct CreateEvidence<'a> {
    /// Computes with its mark: they are certainly its own.
    pub marked: Vec<&'a Compute>,
    /// Unbound computes that are new since the baseline, if marks do not decide.
    pub new: Vec<&'a Compute>,
    /// Matching unbound computes that the platform dates before the newest compute of the baseline.
    /// Such a compute is not taken as the result, nor as proof that there is none. Two machines of
    /// the platform may differ by an hour, and the list of the baseline may have lacked older
    /// computes.
    pub doubtful: Vec<&'a Compute>,
}

impl<'a> CreateEvidence<'a> {
    /// All computes that may be the result if no mark shows it.
    pub fn candidates(&self) -> Vec<&'a Compute> {
        self.new.iter().chain(&self.doubtful).copied().collect()
    }
}

pub(super) fn evidence<'a>(
    case: &ComputeCase,
    intent: &CreateIntent,
    snapshot: &ComputeSnapshot<'a>,
) -> CreateEvidence<'a> {
    // The user's annotation overrides the evidence.
    let is_excluded = |compute: &Compute| case.observed.not_created.contains(&compute.id);
    let is_marked = |compute: &&Compute| {
        intent.mark.is_some() && compute.name == intent.mark && !is_excluded(compute)
    };
    let is_theirs = |compute: &Compute| {
        compute
            .name
            .as_ref()
            .is_some_and(|name| case.observed.claims.marks.contains_key(name))
    };
    let names_decide = intent.mark.is_some() && case.observed.name_support == NameSupport::Kept;
    // Compares only times of the platform.
    let is_older = |compute: &&Compute| {
        compute
            .created_at
            .zip(intent.newest)
            .is_some_and(|(made, newest)| made < newest)
    };
    let is_new = |compute: &&Compute| {
        !names_decide
            && on_branch(compute, &intent.branch, case.role())
            && !intent
                .baseline
                .as_ref()
                .is_some_and(|baseline| baseline.contains(&compute.id))
            && !case.is_taken(&compute.id)
            && !is_theirs(compute)
            && !is_excluded(compute)
    };
    let (older, new): (Vec<_>, Vec<_>) = snapshot.shown().iter().filter(is_new).partition(is_older);
    let is_match = matching(case, intent);
    CreateEvidence {
        marked: snapshot.shown().iter().filter(is_marked).collect(),
        new,
        doubtful: older
            .into_iter()
            .filter(|compute| is_match(compute))
            .collect(),
    }
}

/// True if this process knows that a create was not carried out. For a create with a mark, a
/// conflict does not prove that. A proxy may have sent it twice, and the answer is for the second
/// request.
pub(super) fn is_void(case: &ComputeCase, intent: &CreateIntent) -> bool {
    let memory = &case.observed.memory;
    let repeated = intent.mark.is_some()
        && matches!(memory.fault(Action::Create), Some(Fault::Conflict { .. }));
    memory.not_done(Action::Create, intent.at) && !repeated
}

/// True if an unnamed compute can be the result of the create; never if the mark alone identifies
/// the result. Ignores fields that the platform does not report.
pub(super) fn matching<'a>(
    case: &ComputeCase<'a>,
    intent: &'a CreateIntent,
) -> impl Fn(&Compute) -> bool {
    // Intents of earlier versions lack the requested settings. The declared size may have changed
    // since.
    let declared = || Settings {
        min: None,
        max: None,
        ..drift::declared(case.spec)
    };
    let asked = intent
        .asked
        .as_ref()
        .map_or_else(|| Cow::Owned(declared()), Cow::Borrowed);
    let is_by_baseline = intent.evidence() == Evidence::ByBaseline;
    move |compute| {
        is_by_baseline
            && compute.name.is_none()
            && !drift::contradicts(&asked, &compute.settings)
            && may_have(case, &asked.postgres, compute)
    }
}

/// True if a compute may have been created with these database settings. A platform may rewrite a
/// value ("64MB" as "65536kB"). A different value counts only if the platform was seen to return
/// this one unchanged.
fn may_have(case: &ComputeCase, asked: &PostgresSettings, compute: &Compute) -> bool {
    asked.0.iter().all(|(name, value)| {
        let mut shown = compute
            .settings
            .postgres
            .0
            .iter()
            .filter(|(shown, _)| shown.eq_ignore_ascii_case(name));
        match shown.next() {
            Some((_, shown)) => shown == value || !case.is_returned(name, value),
            None => !compute.support.settings,
        }
    })
}

pub(super) fn on_branch(compute: &Compute, branch: &str, role: Role) -> bool {
    compute.branch_id == branch && compute.role == role
}
