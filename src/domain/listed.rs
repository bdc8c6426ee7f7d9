//! A list of the platform, some of whose entries may be unreadable.

use std::fmt;
use std::sync::Arc;

/// Number of unreadable entries that a message names.
const NAMED: usize = 5;

/// An unreadable entry. It exists, but may have any branch, type and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnreadableEntry {
    /// Its identifier, if it is readable.
    pub id: Option<String>,
    /// The unreadable field, such as branch_id.
    pub field: String,
}

impl fmt::Display for UnreadableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{id} ({})", self.field),
            None => write!(f, "one whose identifier cannot be read ({})", self.field),
        }
    }
}

/// The unreadable entries of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable(Arc<[UnreadableEntry]>);

impl Unreadable {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &UnreadableEntry> {
        self.0.iter()
    }

    /// The readable identifiers among them.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter_map(|entry| entry.id.as_ref())
    }

    /// An unreadable entry that may have this identifier. An object that is known only by other
    /// properties, such as its name, may be any of them.
    pub fn hiding(&self, id: Option<&str>) -> Option<&UnreadableEntry> {
        self.0.iter().find(|entry| {
            entry
                .id
                .as_deref()
                .zip(id)
                .is_none_or(|(one, other)| one == other)
        })
    }
}

impl From<Vec<UnreadableEntry>> for Unreadable {
    /// Sorted, so that the same entries compare equal in any order of the list.
    fn from(mut entries: Vec<UnreadableEntry>) -> Self {
        entries.sort();
        Self(entries.into())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = self.0.iter().take(NAMED).map(ToString::to_string).collect();
        f.write_str(&named.join(", "))?;
        match self.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The entries of a list, and what it cannot prove. That an entry is not among those shown proves
/// nothing by itself: use [`Listed::find`] or [`Unreadable::hiding`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    shown: Vec<T>,
    unreadable: Unreadable,
}

/// The result of looking for one object in a list.
#[derive(Debug)]
pub enum Shown<'a, T> {
    Entry(&'a T),
    /// An unreadable entry is the object, or may be it.
    Unclear(&'a UnreadableEntry),
    /// The list does not contain it.
    Absent,
}

impl<T> Listed<T> {
    pub fn new(shown: Vec<T>, unreadable: Unreadable) -> Self {
        Self { shown, unreadable }
    }

    /// The readable entries.
    pub fn shown(&self) -> &[T] {
        &self.shown
    }

    pub fn shown_mut(&mut self) -> &mut Vec<T> {
        &mut self.shown
    }

    pub fn into_parts(self) -> (Vec<T>, Unreadable) {
        (self.shown, self.unreadable)
    }

    /// The unreadable entries.
    pub fn unreadable(&self) -> &Unreadable {
        &self.unreadable
    }

    pub fn count(&self) -> usize {
        self.shown.len() + self.unreadable.len()
    }

    /// Looks for the object that `is_it` recognizes, with this identifier if one is known.
    pub fn find(&self, id: Option<&str>, is_it: impl Fn(&T) -> bool) -> Shown<'_, T> {
        match (
            self.shown.iter().find(|entry| is_it(entry)),
            self.unreadable.hiding(id),
        ) {
            (Some(found), _) => Shown::Entry(found),
            (None, Some(entry)) => Shown::Unclear(entry),
            (None, None) => Shown::Absent,
        }
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

/// A list without unreadable entries.
impl<T> From<Vec<T>> for Listed<T> {
    fn from(shown: Vec<T>) -> Self {
        Self {
            shown,
            unreadable: Unreadable::default(),
        }
    }
}

impl<T> FromIterator<T> for Listed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(shown: I) -> Self {
        shown.into_iter().collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests;
