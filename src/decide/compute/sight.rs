//! The platform's latest view of the bound compute.

use jiff::Timestamp;

use super::{ComputeCase, ComputeSnapshot, SnapshotState, record};
use crate::decide::identity::Binding;
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
        Shown::Absent if is_gone(case, binding) => Sight::Gone,
        Shown::Absent | Shown::Unclear(_) => Sight::Unseen,
    }
}

/// A compute that was missing before the binding was a different one.
pub(super) fn missing_since(case: &ComputeCase, binding: &Binding) -> Timestamp {
    case.observed
        .memory
        .missing_since
        .unwrap_or(case.now)
        .max(binding.at)
}

/// True if the platform has answered, since its list lacks the compute, that it does not exist.
fn is_gone(case: &ComputeCase, binding: &Binding) -> bool {
    let asked = case
        .observed
        .memory
        .asked
        .filter(|asked| asked.at >= missing_since(case, binding));
    asked.is_some_and(|asked| !asked.exists)
}
