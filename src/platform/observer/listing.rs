//! The interface of a list that can be observed, and the comparison of two readings.

use std::cmp::Ordering;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::time::Duration;

use crate::domain::{Fault, Listed, Unreadable, UnreadableEntry};
use crate::platform::Admitted;

/// A list of the platform that many resources share.
pub trait Listing: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Identifies the owner of the list.
    type Of: Clone + Eq + Hash + fmt::Display + Deref<Target = str> + Send + Sync + 'static;
    type Item: Clone + fmt::Debug + PartialEq + Send + Sync;
    /// An index for finding entries other than by their order.
    type Index: Clone + fmt::Debug + PartialEq + Send + Sync;
    /// The entries that a subscriber depends on.
    type Filter: Clone + fmt::Debug + Default + PartialEq + Send + Sync;
    /// The changes between two readings.
    type Changed: Default + Send;

    /// The owner of the list, for messages.
    const OF: &'static str;
    /// Requested reads begin at least this far apart, so that one read serves many.
    const SPACING: Duration;

    /// Reads the list once.
    fn read(
        platform: Admitted,
        of: &Self::Of,
    ) -> impl Future<Output = Result<Listed<Self::Item>, Fault>> + Send;

    /// The order of entries. Entries of two readings that compare equal are the same entry.
    fn order(one: &Self::Item, other: &Self::Item) -> Ordering;

    /// Builds the index of entries in that order.
    fn index(items: &[Self::Item]) -> Self::Index;

    /// The approximate size in memory, in bytes.
    fn weight(item: &Self::Item) -> usize;

    /// True if two readings of an entry differ in a way that can change a decision or the status.
    fn is_significant(before: &Self::Item, after: &Self::Item) -> bool;

    /// Records an added, removed or changed entry.
    fn record(changed: &mut Self::Changed, item: &Self::Item);

    /// True if the changes concern a subscriber.
    fn concerns(changed: &Self::Changed, filter: &Self::Filter) -> bool;

    /// For a fault that says that the platform does not offer the list: how long to believe it.
    fn not_offered(_fault: &Fault) -> Option<Duration> {
        None
    }
}

/// The approximate size of a text on the heap, which rounds up.
pub(super) fn text_weight(text: Option<&String>) -> usize {
    text.map_or(0, |text| text.capacity() + 16)
}

/// The same for an identifier.
pub(super) fn id_weight(id: &str) -> usize {
    id.len() + 16
}

/// The size of the unreadable entries.
pub(super) fn unreadable_weight(unreadable: &Unreadable) -> usize {
    let mut weight = 0;
    for entry in unreadable.iter() {
        weight += size_of::<UnreadableEntry>();
        weight += text_weight(entry.id.as_ref()) + text_weight(Some(&entry.field));
    }
    weight
}

/// The changes between two ordered readings, or `None` if there are none.
pub(super) fn changes<L: Listing>(before: &[L::Item], after: &[L::Item]) -> Option<L::Changed> {
    let mut changed: Option<L::Changed> = None;
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let (gone, come) = match (old.peek(), new.peek()) {
            (None, None) => return changed,
            (Some(_), None) => (old.next(), None),
            (None, Some(_)) => (None, new.next()),
            (Some(a), Some(b)) => match L::order(a, b) {
                Ordering::Less => (old.next(), None),
                Ordering::Greater => (None, new.next()),
                Ordering::Equal => (old.next(), new.next()),
            },
        };
        let same = matches!((gone, come), (Some(a), Some(b)) if !L::is_significant(a, b));
        if !same {
            let changed = changed.get_or_insert_default();
            for item in gone.into_iter().chain(come) {
                L::record(changed, item);
            }
        }
    }
}
