//! Detects that the API server's storage was restored to an earlier state while this process runs.
//! Object versions then go backwards: stored objects are older than the process knows. Without
//! detection, nothing would be decided until the versions catch up.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a watch may lag before storage is read. Also the pause between two such reads, for any
/// number of objects.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long the cache may lack a version that storage has. Then the watch counts as broken.
const LONGEST_LAG: Duration = Duration::from_secs(60);

/// Why the cache may differ from storage for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The cache shows an older version than this one, which this process has written or seen.
    Behind(u64),
    /// The cache shows this version, and a write onto it was refused because the object has another
    /// version.
    Conflict(u64),
}

/// The stored version of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Storage could not be read.
    NotRead,
    Gone,
    Version(u64),
}

/// The action on a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The watch lags, or the state is unknown.
    Wait,
    /// The cache is from before the restore: list the objects again.
    ListAgain,
    /// Storage was restored: all known versions are void.
    PutBack,
}

impl Doubt {
    /// Versions of an object only increase, so an older stored version proves a restore. A missing
    /// object proves nothing, because it may have been deleted. After `lasted`, a watch that does not
    /// show what storage has is ahead of storage, and silent.
    pub fn settled(self, stored: Stored, lasted: Duration) -> Verdict {
        match (self, stored) {
            (Self::Behind(known), Stored::Version(stored))
                if stored >= known && lasted >= LONGEST_LAG =>
            {
                Verdict::ListAgain
            }
            (Self::Behind(known), Stored::Version(stored)) if stored < known => Verdict::PutBack,
            (Self::Conflict(shown), Stored::Version(stored)) if stored < shown => {
                Verdict::ListAgain
            }
            (_, Stored::NotRead | Stored::Gone | Stored::Version(_)) => Verdict::Wait,
        }
    }
}

/// Doubts that persist over two looks.
#[derive(Debug, Default)]
pub struct Lasting {
    /// The doubts at the last look, and at how many looks before it, by the UID of the object.
    before: BTreeMap<String, (Doubt, u32)>,
    /// The object that was read last.
    asked: Option<String>,
}

impl Lasting {
    /// The next object to read, given the present doubts, and how long its doubt has lasted: one with
    /// the same doubt at the last look. Objects take turns, because a lagging watch on one says
    /// nothing about the others.
    pub fn next(&mut self, doubts: BTreeMap<String, Doubt>) -> Option<(String, Duration)> {
        let looks = |uid: &String, doubt: Doubt| {
            let before = self.before.get(uid).filter(|(before, _)| *before == doubt);
            before.map_or(0, |(_, looks)| looks.saturating_add(1))
        };
        let doubts: BTreeMap<_, _> = doubts
            .into_iter()
            .map(|(uid, doubt)| {
                let looks = looks(&uid, doubt);
                (uid, (doubt, looks))
            })
            .collect();
        let lasting = doubts
            .iter()
            .filter(|(_, (_, looks))| *looks > 0)
            .map(|(uid, (_, looks))| (uid, PATIENCE * *looks));
        let follows =
            |(uid, _): &(&String, Duration)| self.asked.as_ref().is_none_or(|asked| *uid > asked);
        let next = lasting.clone().find(follows).or_else(|| lasting.min());
        let next = next.map(|(uid, lasted)| (uid.clone(), lasted));
        if let Some((uid, _)) = &next {
            self.asked = Some(uid.clone());
        }
        self.before = doubts;
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
            assert_eq!(
                doubt.settled(stored, Duration::from_secs(59)),
                verdict,
                "{doubt:?}, {stored:?}"
            );
        }
        for stored in [9, 10] {
            assert_eq!(
                Behind(9).settled(Version(stored), LONGEST_LAG),
                Verdict::ListAgain,
                "{stored}"
            );
        }
        assert_eq!(Behind(9).settled(Gone, LONGEST_LAG), Verdict::Wait);
    }

    #[test]
    fn a_doubt_that_lasts_is_settled_and_the_objects_take_turns() {
        let mut lasting = Lasting::default();
        let mut next = |doubts: &[(&str, u64)]| {
            let doubts = doubts
                .iter()
                .map(|(uid, known)| ((*uid).to_owned(), Doubt::Behind(*known)));
            lasting
                .next(doubts.collect())
                .map(|(uid, lasted)| (uid, lasted.as_secs()))
        };
        let is = |uid: &str, lasted: u64| Some((uid.to_owned(), lasted));
        assert_eq!(next(&[("a", 7), ("b", 7)]), None, "they may be late");
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("a", 5));
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("b", 5));
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("c", 10));
        assert_eq!(next(&[("a", 7), ("b", 8), ("c", 1)]), is("a", 20));
        assert_eq!(next(&[("a", 9)]), None, "it is written and shown meanwhile");
        assert_eq!(next(&[("a", 9)]), is("a", 5));
        assert_eq!(next(&[]), None);
    }
}
