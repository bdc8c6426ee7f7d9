//! Which compute has something due, and when: what makes looking at an undisturbed world of thousands of computes cheap.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::ComputeKey;

/// The next event of every compute, in order of time. Computes that changed wait to be planned anew.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// Nothing is planned yet: the world was just made or read.
    blank: bool,
    stale: BTreeSet<ComputeKey>,
    due: BTreeMap<ComputeKey, Timestamp>,
    order: BTreeSet<(Timestamp, ComputeKey)>,
}

impl Default for Agenda {
    fn default() -> Self {
        Self { blank: true, stale: BTreeSet::new(), due: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl Agenda {
    /// Whether every compute is still to be planned; asked once.
    pub fn take_blank(&mut self) -> bool {
        std::mem::take(&mut self.blank)
    }

    /// The compute changed: what was planned for it no longer counts.
    pub fn stale(&mut self, key: &ComputeKey) {
        self.stale.insert(key.clone());
    }

    /// The computes to be planned anew.
    pub fn take_stale(&mut self) -> BTreeSet<ComputeKey> {
        std::mem::take(&mut self.stale)
    }

    /// Plans the compute's next event, or none.
    pub fn plan(&mut self, key: ComputeKey, at: Option<Timestamp>) {
        if let Some(old) = self.due.remove(&key) {
            self.order.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.due.insert(key.clone(), at);
            self.order.insert((at, key));
        }
    }

    /// A compute that has something due by now.
    pub fn next_due(&self, now: Timestamp) -> Option<ComputeKey> {
        self.order.first().filter(|(at, _)| *at <= now).map(|(_, key)| key.clone())
    }
}
