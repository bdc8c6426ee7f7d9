//! An index of computes by the time of their next event, so that advancing a world of thousands of
//! idle computes is cheap.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::world::ComputeKey;

/// The next event of each compute, in order of time. Changed computes are stale until they are
/// planned again.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// True for a new or restored world, in which nothing is planned yet.
    blank: bool,
    stale: BTreeSet<ComputeKey>,
    due: BTreeMap<ComputeKey, Timestamp>,
    order: BTreeSet<(Timestamp, ComputeKey)>,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            blank: true,
            stale: BTreeSet::new(),
            due: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl Agenda {
    /// True if every compute has to be planned. Only the first call returns true.
    pub fn take_blank(&mut self) -> bool {
        std::mem::take(&mut self.blank)
    }

    /// Marks a compute as changed: its planned event is outdated.
    pub fn stale(&mut self, key: &ComputeKey) {
        self.stale.insert(key.clone());
    }

    /// The computes to plan again.
    pub fn take_stale(&mut self) -> BTreeSet<ComputeKey> {
        std::mem::take(&mut self.stale)
    }

    /// Sets or removes the compute's next event.
    pub fn plan(&mut self, key: ComputeKey, at: Option<Timestamp>) {
        if let Some(old) = self.due.remove(&key) {
            self.order.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.due.insert(key.clone(), at);
            self.order.insert((at, key));
        }
    }

    /// A compute with an event that is due.
    pub fn next_due(&self, now: Timestamp) -> Option<ComputeKey> {
        self.order
            .first()
            .filter(|(at, _)| *at <= now)
            .map(|(_, key)| key.clone())
    }
}
