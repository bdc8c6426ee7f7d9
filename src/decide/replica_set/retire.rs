//! Selects the replica to delete first if there are too many.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::member::Replica;

/// The lowest rank goes first: the replica whose loss costs least.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RetirementRank {
    /// Its deletion would wait for a user.
    protected: bool,
    /// It serves clients, or may serve them.
    serves: bool,
    /// False while it has no compute.
    has_compute: bool,
    /// While a compute is active, the time of its last activity is only precise to the hour.
    active: bool,
    /// Absent if it was never active.
    last_active: Option<Timestamp>,
    /// Among equal replicas, the one with the highest number goes first.
    number: Reverse<(usize, String)>,
}

impl RetirementRank {
    fn of(replica: &Replica) -> Self {
        let status = replica.compute.status.as_ref();
        Self {
            protected: replica.compute.spec.deletion_protection,
            serves: !replica.serves_nobody(),
            has_compute: status.is_some_and(|status| status.compute_id.is_some()),
            active: replica.is_active(),
            last_active: status.and_then(|status| status.last_active),
            number: Reverse((replica.name().len(), replica.name())),
        }
    }
}

pub(super) fn first<'a>(replicas: impl IntoIterator<Item = &'a Replica>) -> Option<&'a Replica> {
    replicas
        .into_iter()
        .min_by_key(|replica| RetirementRank::of(replica))
}
