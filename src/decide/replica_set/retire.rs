//! Which replica goes first where there are too many.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::member::Replica;

/// Whoever is missed least goes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Its deletion would wait for a person.
    protected: bool,
    /// It serves clients, or may do so.
    serves: bool,
    /// It has no compute yet.
    has_compute: bool,
    /// While a compute is active, the time of its last activity is known to the hour alone.
    active: bool,
    /// One that was never active has no such time.
    last_active: Option<Timestamp>,
    /// Of those that are alike, the one with the highest number goes.
    number: Reverse<(usize, String)>,
}

impl Rank {
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

/// The one that goes first.
pub(super) fn first<'a>(replicas: impl IntoIterator<Item = &'a Replica>) -> Option<&'a Replica> {
    replicas.into_iter().min_by_key(|replica| Rank::of(replica))
}
