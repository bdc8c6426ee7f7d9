//! What to report where two things contradict each other.

use super::super::{Reason, Report};
use super::Case;
use crate::domain::{Compute, Role};

pub(super) fn claimed(what: &str, other: &str) -> Report {
    Report::stalled(Reason::ClaimedByAnother, format!("{other} already has {what}. Delete one of the two resources."))
}

pub(super) fn wrong_role(case: &Case, found: &Compute) -> Report {
    let (is, declared) = match case.role() {
        Role::Primary => ("a read replica", "ReadWrite"),
        Role::Replica => ("the branch's primary", "ReadOnly"),
    };
    Report::stalled(Reason::BindingConflict, format!("Compute {} is {is}, and spec.type is {declared}.", found.id))
}
