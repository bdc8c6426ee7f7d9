//! A successful snapshot of the project, as far as it concerns one Compute.

use jiff::Timestamp;

use super::super::identity::CreateIntent;
use super::super::{Reason, Report};
use super::Case;
use super::evidence::on_branch;
use crate::domain::{Compute, Listed, Role, Shown, Unreadable, UnreadableEntry};

pub(super) struct Snapshot<'a> {
    /// When it was begun.
    pub at: Timestamp,
    listed: &'a Listed<Compute>,
}

impl<'a> Snapshot<'a> {
    pub fn new(at: Timestamp, listed: &'a Listed<Compute>) -> Self {
        Self { at, listed }
    }

    /// The computes that can be read. That one is not among them proves nothing.
    pub fn shown(&self) -> &'a [Compute] {
        self.listed.shown()
    }

    pub fn unreadable(&self) -> &'a Unreadable {
        self.listed.unreadable()
    }

    /// What it shows of one compute.
    pub fn find(&self, id: &str) -> Shown<'a, Compute> {
        self.listed.find(Some(id), |compute| compute.id == id)
    }

    /// What it shows of the primary of a branch: an entry that cannot be read may be on any branch, of any type.
    pub fn primary(&self, branch: &str) -> Shown<'a, Compute> {
        self.listed.find(None, |compute| on_branch(compute, branch, Role::Primary))
    }

    /// The entry that cannot be read and may be what this create has made. It is not where its identifier was there before, where another
    /// resource is bound to it, or where people know that it is not.
    pub fn hiding(&self, case: &Case, intent: &CreateIntent) -> Option<&'a UnreadableEntry> {
        let was_there = |id: &String| intent.baseline.as_ref().is_some_and(|baseline| baseline.contains(id));
        let is_other = |id: &String| was_there(id) || case.is_taken(id) || case.observed.not_created.contains(id);
        self.unreadable().iter().find(|entry| !entry.id.as_ref().is_some_and(is_other))
    }
}

/// What to report while an entry cannot be read, and with it the answer to a question.
pub(super) fn unclear(case: &Case, entry: &UnreadableEntry, question: &str) -> Report {
    Report::unknown(
        Reason::UnreadableEntries,
        format!(
            "The list of project {} has an entry that dbplane cannot read: {entry}. So it is not known {question}. dbplane waits until the \
             platform lists that entry otherwise, or not any more. Ask the platform about it.",
            case.spec.project_id
        ),
    )
}
