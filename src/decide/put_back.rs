//! Detects that the API server's storage was restored to an earlier state while this process runs.
//! Object versions then go backwards: stored objects are older than the process knows. Without
//! detection, nothing would be decided until the versions catch up.

use crate::api::Uid;
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
pub enum StoredVersion {
    /// Storage could not be read.
    NotRead,
    Gone,
    Version(u64),
}

/// The action on a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreVerdict {
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
    pub fn settled(self, stored: StoredVersion, lasted: Duration) -> RestoreVerdict {
        match (self, stored) {
            (Self::Behind(known), StoredVersion::Version(stored))
                if stored >= known && lasted >= LONGEST_LAG =>
            {
                RestoreVerdict::ListAgain
            }
            (Self::Behind(known), StoredVersion::Version(stored)) if stored < known => {
                RestoreVerdict::PutBack
            }
            (Self::Conflict(shown), StoredVersion::Version(stored)) if stored < shown => {
                RestoreVerdict::ListAgain
            }
            (_, StoredVersion::NotRead | StoredVersion::Gone | StoredVersion::Version(_)) => {
                RestoreVerdict::Wait
            }
        }
    }
}

/// Doubts that persist over two looks.
#[derive(Debug, Default)]
pub struct Lasting {
    /// The doubts at the last look, and at how many looks before it, by the UID of the object.
    before: BTreeMap<Uid, (Doubt, u32)>,
    /// The object that was read last.
    asked: Option<Uid>,
}

impl Lasting {
    /// The next object to read, given the present doubts, and how long its doubt has lasted: one with
    /// the same doubt at the last look. Objects take turns, because a lagging watch on one says
    /// nothing about the others.
    pub fn next(&mut self, doubts: BTreeMap<Uid, Doubt>) -> Option<(Uid, Duration)> {
        let looks = |uid: &Uid, doubt: Doubt| {
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
            |(uid, _): &(&Uid, Duration)| self.asked.as_ref().is_none_or(|asked| *uid > asked);
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
mod tests;
