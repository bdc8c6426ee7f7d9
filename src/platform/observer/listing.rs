//! What can be observed: a list of the platform, and whom a difference between two readings of it concerns.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use crate::domain::{Fault, Listed, Unreadable, UnreadableEntry};
use crate::platform::Admitted;

/// A list of the platform that many resources share.
pub trait Listing: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// An entry.
    type Item: Clone + fmt::Debug + PartialEq + Send + Sync;
    /// By what entries are found besides their order.
    type Index: Clone + fmt::Debug + PartialEq + Send + Sync;
    /// What a subscriber is about.
    type Matters: Clone + fmt::Debug + Default + PartialEq + Send + Sync;
    /// What has changed between two readings.
    type Changed: Default + Send;

    /// Whose list it is, for people.
    const OF: &'static str;
    /// Requested reads begin at least this far apart, so that one read serves many.
    const SPACING: Duration;

    /// One reading.
    fn read(platform: Admitted, of: &str) -> impl Future<Output = Result<Listed<Self::Item>, Fault>> + Send;

    /// The order of the entries; those of two readings that are equal in it are the same one.
    fn order(one: &Self::Item, other: &Self::Item) -> Ordering;

    /// Of entries in that order.
    fn index(items: &[Self::Item]) -> Self::Index;

    /// How many bytes it takes in memory, about.
    fn weight(item: &Self::Item) -> usize;

    /// Whether two readings of one entry differ in something that can change a decision or the status.
    fn is_significant(before: &Self::Item, after: &Self::Item) -> bool;

    /// The entry has come, gone or changed.
    fn note(changed: &mut Self::Changed, item: &Self::Item);

    /// Whether what has changed concerns a subscriber.
    fn concerns(changed: &Self::Changed, matters: &Self::Matters) -> bool;

    /// How long to believe a fault that says that the platform does not offer the list; `None` for any other.
    fn not_offered(_fault: &Fault) -> Option<Duration> {
        None
    }
}

/// What a text takes besides its own place, about: the heap rounds up.
pub(super) fn text_weight(text: Option<&String>) -> usize {
    text.map_or(0, |text| text.capacity() + 16)
}

/// What the entries take that cannot be read.
pub(super) fn unreadable_weight(unreadable: &Unreadable) -> usize {
    let weight = |entry: &UnreadableEntry| {
        size_of::<UnreadableEntry>() + text_weight(entry.id.as_ref()) + text_weight(Some(&entry.field))
    };
    unreadable.iter().map(weight).sum()
}

/// What is different between two readings, both in their order; `None` where nothing is.
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
            gone.into_iter().chain(come).for_each(|item| L::note(changed, item));
        }
    }
}
