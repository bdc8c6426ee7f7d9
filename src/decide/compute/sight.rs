//! The platform's latest view of the bound compute.

use super::{ComputeCase, ComputeSnapshot, SnapshotState, keep, record};
use crate::domain::{Compute, Shown};

/// The bound compute in the latest list. Only `Found` and `Gone` are evidence about the present.
pub(super) enum Sight<'a> {
    Unbound,
    Found(&'a Compute),
    /// The platform has answered that the compute does not exist.
    Gone,
    /// The next list will show it.
    Pending,
    /// The platform could not be read, the entry is unreadable, or the list lacks the compute. The
    /// last alone proves nothing.
    Unseen,
}

pub(super) fn sight<'a>(case: &ComputeCase<'a>) -> Sight<'a> {
    let Some(binding) = &case.identity.binding else {
        return Sight::Unbound;
    };
    let snapshot = match &case.observed.snapshot {
        SnapshotState::Taken { at, computes } => ComputeSnapshot::new(*at, computes),
        SnapshotState::Pending if case.observed.account.obstacle().is_none() => {
            return Sight::Pending;
        }
        SnapshotState::Pending | SnapshotState::Failed(_) => return Sight::Unseen,
    };
    if record::elsewhere(case).is_some() {
        return Sight::Unseen;
    }
    match snapshot.find(&binding.id) {
        Shown::Entry(compute) => Sight::Found(compute),
        Shown::Absent if keep::is_gone(case, binding) => Sight::Gone,
        Shown::Absent | Shown::Unclear(_) => Sight::Unseen,
    }
}
