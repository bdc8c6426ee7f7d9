//! The part of a successful snapshot of the project that concerns one Compute.

use jiff::Timestamp;

use super::evidence::on_branch;
use super::{ComputeCase, ComputeDecision};
use crate::decide::identity::CreateIntent;
use crate::decide::{Decision, Reason, Report};
use crate::domain::{
    BranchId, Compute, ComputeId, Listed, Role, Shown, Unreadable, UnreadableEntry,
};

pub(super) struct ComputeSnapshot<'a> {
    /// The time when reading it began.
    pub at: Timestamp,
    listed: &'a Listed<Compute>,
}

impl<'a> ComputeSnapshot<'a> {
    pub fn new(at: Timestamp, listed: &'a Listed<Compute>) -> Self {
        Self { at, listed }
    }

    /// The readable computes. The absence of a compute here proves nothing.
    pub fn shown(&self) -> &'a [Compute] {
        self.listed.shown()
    }

    pub fn unreadable(&self) -> &'a Unreadable {
        self.listed.unreadable()
    }

    /// One compute in the snapshot.
    pub fn find(&self, id: &ComputeId) -> Shown<'a, Compute> {
        self.listed.find(Some(id), |compute| compute.id == *id)
    }

    /// The primary of a branch in the snapshot. An unreadable entry may be on any branch, and of
    /// any type.
    pub fn primary(&self, branch: &BranchId) -> Shown<'a, Compute> {
        self.listed
            .find(None, |compute| on_branch(compute, branch, Role::Primary))
    }

    /// The unreadable entry that may be the result of this create. An entry is excluded if its
    /// identifier is in the baseline, is bound by a resource, or is in the user's annotation.
    pub fn hiding(&self, case: &ComputeCase, intent: &CreateIntent) -> Option<&'a UnreadableEntry> {
        self.unreadable().iter().find(|entry| match &entry.id {
            Some(id) => {
                let id = &ComputeId::from(id.as_str());
                !intent.is_in_baseline(id)
                    && !case.is_taken(id)
                    && !case.observed.not_created.contains(id)
            }
            None => true,
        })
    }
}

/// The report while an unreadable entry leaves a question open.
pub(super) fn unclear(case: &ComputeCase, entry: &UnreadableEntry, question: &str) -> Report {
    Report::unknown(
        Reason::UnreadableEntries,
        format!(
            "The list of project {} has an entry that dbplane cannot read: {entry}. So it is not known {question}. dbplane waits until the \
             platform lists that entry otherwise, or not any more. Ask the platform about it.",
            case.spec.project_id
        ),
    )
}

/// The alternative that messages about a deletion offer.
pub(super) const OR_KEEP: &str = "set spec.deletion to Orphan to keep the compute on the platform";

/// Lets a deletion wait for a list that can be read, and offers the alternative.
pub(super) fn cannot_be_seen(report: Report) -> ComputeDecision {
    Decision::rest(Report::of(
        report.health.saying_also(&format!("Or {OR_KEEP}.")),
    ))
}
