//! Whether the API server's storage was put back to an earlier state while this process runs. Versions of objects then go backwards: what is
//! stored is older than what the process knows, and nothing would be decided on it until the versions reach those of before again.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a watch may be late before storage is asked, and the pause between two questions, whatever the number of objects.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Why the cache may not show what is stored of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It shows an older version than this one, which this process has written or seen.
    Behind(u64),
    /// It shows this version, and a write onto it was refused because the object has another one.
    Conflict(u64),
}

/// What storage has of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It could not be asked.
    NotRead,
    Gone,
    Version(u64),
}

/// What is to be done about a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The watch is late, or nobody knows.
    Wait,
    /// The cache is from before storage was put back: what is stored has to be listed.
    ListAgain,
    /// Storage was put back: no version that is known says anything any more.
    PutBack,
}

impl Doubt {
    /// No version of an object is older than one before it, so an older one shows that storage was put back. An object that is gone does not:
    /// it may have been deleted.
    pub fn settled(self, stored: Stored) -> Verdict {
        match (self, stored) {
            (Self::Behind(known), Stored::Version(stored)) if stored < known => Verdict::PutBack,
            (Self::Conflict(shown), Stored::Version(stored)) if stored < shown => Verdict::ListAgain,
            (_, Stored::NotRead | Stored::Gone | Stored::Version(_)) => Verdict::Wait,
        }
    }
}

/// Which doubts last.
#[derive(Debug, Default)]
pub struct Lasting {
    /// Those at the last look, by the UID of the object.
    before: BTreeMap<String, Doubt>,
    /// The object that was asked about last.
    asked: Option<String>,
}

impl Lasting {
    /// The next object to ask about, given the doubts of now: one that was in the same doubt at the last look. They take turns, since a watch
    /// that is late for one says nothing of the others.
    pub fn next(&mut self, doubts: BTreeMap<String, Doubt>) -> Option<String> {
        let lasting = doubts.iter().filter(|(uid, doubt)| self.before.get(*uid) == Some(doubt)).map(|(uid, _)| uid);
        let follows = |uid: &&String| self.asked.as_ref().is_none_or(|asked| *uid > asked);
        let next = lasting.clone().find(follows).or_else(|| lasting.min()).cloned();
        self.before = doubts;
        if next.is_some() {
            self.asked.clone_from(&next);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_older_version_in_storage_shows_that_it_was_put_back() {
        use Doubt::{Behind, Conflict};
        use Stored::{Gone, NotRead, Version};
        for (doubt, stored, verdict) in [
            (Behind(9), Version(8), Verdict::PutBack),
            (Behind(9), Version(9), Verdict::Wait),
            (Behind(9), Version(10), Verdict::Wait),
            (Behind(9), Gone, Verdict::Wait),
            (Behind(9), NotRead, Verdict::Wait),
            (Conflict(9), Version(8), Verdict::ListAgain),
            (Conflict(9), Version(9), Verdict::Wait),
            (Conflict(9), Version(10), Verdict::Wait),
            (Conflict(9), Gone, Verdict::Wait),
            (Conflict(9), NotRead, Verdict::Wait),
        ] {
            assert_eq!(doubt.settled(stored), verdict, "{doubt:?}, {stored:?}");
        }
    }

    #[test]
    fn a_doubt_that_lasts_is_settled_and_the_objects_take_turns() {
        let mut lasting = Lasting::default();
        let mut next = |doubts: &[(&str, u64)]| {
            lasting.next(doubts.iter().map(|(uid, known)| ((*uid).to_owned(), Doubt::Behind(*known))).collect())
        };
        assert_eq!(next(&[("a", 7), ("b", 7)]), None, "they may be late");
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]).as_deref(), Some("a"));
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]).as_deref(), Some("b"));
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]).as_deref(), Some("c"));
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]).as_deref(), Some("a"));
        assert_eq!(next(&[("a", 9)]), None, "it is written and shown meanwhile");
        assert_eq!(next(&[("a", 9)]).as_deref(), Some("a"));
        assert_eq!(next(&[]), None);
    }
}
