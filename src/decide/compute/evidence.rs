//! The evidence in a snapshot about the result of an unanswered create.

use std::borrow::Cow;

use jiff::Timestamp;

use super::claims::Holder;
use super::{ComputeCase, ComputeSnapshot};
use crate::decide::identity::{CreateIntent, Evidence};
use crate::decide::{Action, drift};
use crate::domain::{
    BranchId, Compute, Fault, NameSupport, PostgresSettings, Role, Settings, UnreadableEntry,
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

impl<'a> CreateResult<'a> {
    /// The result if marks do not show it. A single candidate is the result if it `is_likely` and
    /// no unreadable entry may be it.
    pub fn among(
        case: &ComputeCase<'a>,
        candidates: Vec<&'a Compute>,
        is_likely: bool,
        hidden: Option<&'a UnreadableEntry>,
    ) -> Self {
        if let Some(other) = &case.observed.claims.creating {
            return Self::Behind(&other.by);
        }
        match candidates.as_slice() {
            [one] if is_likely => hidden.map_or(Self::Created(one), Self::Unclear),
            _ => Self::Ambiguous(candidates),
        }
    }
}

/// Computes that a create may have created.
#[derive(Default)]
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
        [&self.new[..], &self.doubtful].concat()
    }
}

pub(super) fn evidence<'a>(
    case: &ComputeCase,
    intent: &CreateIntent,
    snapshot: &ComputeSnapshot<'a>,
) -> CreateEvidence<'a> {
    let is_match = matching(case, intent);
    let names_decide = intent.mark.is_some() && case.observed.name_support == NameSupport::Kept;
    let mut found = CreateEvidence::default();
    for compute in snapshot.shown() {
        // The user's annotation overrides the evidence.
        if case.observed.not_created.contains(&compute.id) {
            continue;
        }
        if intent.mark.is_some() && compute.name == intent.mark {
            found.marked.push(compute);
        }
        if names_decide || !is_new(case, intent, compute) {
            continue;
        }
        // Compares only times of the platform.
        match (compute.created_at, intent.newest) {
            (Some(made), Some(newest)) if made < newest => {
                if is_match(compute) {
                    found.doubtful.push(compute);
                }
            }
            _ => found.new.push(compute),
        }
    }
    found
}

/// True if the compute is unbound and new on the branch since the create began.
fn is_new(case: &ComputeCase, intent: &CreateIntent, compute: &Compute) -> bool {
    let marks = &case.observed.claims.marks;
    on_branch(compute, &intent.branch, case.role())
        && !intent.is_in_baseline(&compute.id)
        && !case.is_taken(&compute.id)
        && !compute
            .name
            .as_ref()
            .is_some_and(|name| marks.contains_key(name))
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
    let asked = match &intent.asked {
        Some(asked) => Cow::Borrowed(asked),
        // Intents of earlier versions lack the requested settings. The declared size may have
        // changed since.
        None => Cow::Owned(Settings {
            min: None,
            max: None,
            ..drift::declared(case.spec)
        }),
    };
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

pub(super) fn on_branch(compute: &Compute, branch: &BranchId, role: Role) -> bool {
    compute.branch_id == *branch && compute.role == role
}
