//! What a list of computes shows of a create that was not answered.

use jiff::Timestamp;

use super::super::drift;
use super::super::identity::CreateIntent;
use super::{Case, Snapshot};
use crate::domain::{Compute, NameSupport, Role, Settings};

/// What became of a create that was intended.
pub(super) enum CreateOutcome<'a> {
    Created(&'a Compute),
    NotCreated,
    NotKnownYet(Timestamp),
    /// Another resource's create on the same branch is resolved first.
    Behind(&'a str),
    Unclear(Vec<&'a Compute>),
}

/// What may be the evidence of a create.
pub(super) struct CreateEvidence<'a> {
    /// The computes that carry its mark: they are its, whatever else there is.
    pub marked: Vec<&'a Compute>,
    /// Those that nobody has and that were not there before, where no mark has to tell.
    pub new: Vec<&'a Compute>,
}

pub(super) fn evidence<'a>(case: &Case, intent: &CreateIntent, snapshot: &Snapshot<'a>) -> CreateEvidence<'a> {
    let is_marked = |compute: &&Compute| intent.mark.is_some() && compute.name == intent.mark;
    let is_theirs =
        |compute: &Compute| compute.name.as_ref().is_some_and(|name| case.observed.claims.marks.contains(name));
    let told_by_mark = intent.mark.is_some() && case.observed.name_support == NameSupport::Kept;
    let is_new = |compute: &&Compute| {
        !told_by_mark
            && on_branch(compute, &intent.branch, case.role())
            && !intent.baseline.contains(&compute.id)
            && !case.is_taken(compute)
            && !is_theirs(compute)
    };
    CreateEvidence {
        marked: snapshot.computes.iter().filter(is_marked).collect(),
        new: snapshot.computes.iter().filter(is_new).collect(),
    }
}

/// Whether the compute can be what was asked for without a mark that it keeps. What the platform does not report tells nothing.
pub(super) fn matches(case: &Case, intent: &CreateIntent, compute: &Compute) -> bool {
    // Intents of earlier versions do not tell; the size may have been declared anew since.
    let declared = || Settings { min: None, max: None, ..drift::declared(case.spec) };
    let asked = intent.asked.clone().unwrap_or_else(declared);
    compute.name.is_none() && drift::unmet(&asked, &compute.settings).iter().all(|difference| !difference.reported)
}

pub(super) fn on_branch(compute: &Compute, branch: &str, role: Role) -> bool {
    compute.branch_id == branch && compute.role == role
}
