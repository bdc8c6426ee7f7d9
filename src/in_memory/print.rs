//! Shared values that are compared by a hash of their debug output.

use std::fmt::{self, Debug};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A shared value, compared by the hash of its debug output.
pub struct Print<T: ?Sized>(Arc<(u64, T)>);

impl<T: ?Sized> Clone for Print<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Debug> Print<T> {
    pub fn of(value: T) -> Self {
        Self(Arc::new((hash(&format!("{value:?}")), value)))
    }

    /// Returns `before` if it is equal, to share its memory.
    pub fn unless_same(before: Option<&Self>, value: T) -> Self {
        let now = Self::of(value);
        before
            .filter(|before| **before == now)
            .cloned()
            .unwrap_or(now)
    }
}

impl<T> Print<T> {
    /// A value with a known hash.
    pub fn hashed(hash: u64, value: T) -> Self {
        Self(Arc::new((hash, value)))
    }
}

impl<T: Clone> Print<T> {
    pub fn clone_inner(&self) -> T {
        self.0.1.clone()
    }
}

impl<T> Deref for Print<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.1
    }
}

impl<T> Hash for Print<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.0.hash(hasher);
    }
}

impl<T> PartialEq for Print<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl<T> Eq for Print<T> {}

impl<T> Debug for Print<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0.0)
    }
}

pub fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
