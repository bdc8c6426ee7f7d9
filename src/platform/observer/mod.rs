//! Observing the platform: what a reflector does for Kubernetes, this does for the platform.
//!
//! One task for each (account, project) with subscribers lists the project's computes, publishes a snapshot with the moment at
//! which the read began, and triggers the subscribers whose compute changed. A reconcile never waits here: it takes the latest
//! snapshot, requests what it needs, and is triggered when that is available.
//!
//! Guarantees:
//! - A subscriber that saw a [`LatestSnapshot`] is triggered when a later one differs for it, so nothing is missed between two reads.
//! - A snapshot that satisfies `after` began later than that tick: a read that was in progress does not count.
//! - At most one request is in progress for a project, and any number of subscribers costs no more requests than one.
//! - A failed read never looks like an empty project: a fault keeps the last snapshot and is published with it.

mod change;
mod pace;
mod state;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;

use self::watch::Watch;
use super::{Jitter, RateLimited};
use crate::domain::{Compute, ComputeId, Fault};

/// A moment of the observers' own logical clock. It orders "this read began" and "that write ended" without comparing wall
/// clocks. It is not valid in another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// A moment of another clock of this kind, such as a model's.
    pub const fn at(number: u64) -> Self {
        Self(number)
    }
}

/// The computes of one project as one list call showed them.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When the read began; it shows every change that was made before.
    pub began: Tick,
    /// The same by the wall clock, for people.
    pub at: Timestamp,
    /// Sorted by id.
    pub computes: Vec<Compute>,
}

impl Snapshot {
    /// The compute with this id.
    pub fn compute(&self, id: &str) -> Option<&Compute> {
        let index = self.computes.binary_search_by(|compute| compute.id.as_str().cmp(id));
        index.ok().map(|index| &self.computes[index])
    }

    /// The computes of a branch.
    pub fn on_branch(&self, branch: &str) -> impl Iterator<Item = &Compute> {
        self.computes.iter().filter(move |compute| compute.branch_id == branch)
    }
}

/// What is known of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatestSnapshot {
    /// The newest read that succeeded, if any did.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Why the newest attempt failed; `None` where it succeeded, and before there was any.
    pub fault: Option<Fault>,
}

impl LatestSnapshot {
    /// The snapshot, if it began later than `after`.
    pub fn since(&self, after: Option<Tick>) -> Option<&Arc<Snapshot>> {
        let snapshot = self.snapshot.as_ref()?;
        after.is_none_or(|after| snapshot.began > after).then_some(snapshot)
    }
}

/// What triggers a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Any change of a compute on these branches.
    pub branches: Vec<String>,
    /// Any change of these computes, wherever they are.
    pub computes: Vec<ComputeId>,
    /// A change is expected soon: dbplane reads often.
    pub pending: bool,
    /// A snapshot that began later than this is needed; if there is none, it is read at once.
    pub after: Option<Tick>,
}

/// Which project to read, and how.
#[derive(Clone, Debug)]
pub struct Source {
    /// The account's identity; with `project` it names the task.
    pub account: String,
    pub project: String,
    /// If it differs from the one before, because of another key or address, the old snapshot is dropped and the project is read
    /// at once.
    pub platform: Arc<RateLimited>,
    /// The time between two reads while nothing changes; at least 1 s.
    pub poll_interval: Duration,
}

type Project = (String, String);

/// The observers of all projects. `S` is a subscriber's identity. Clones are the same observers.
pub struct Observers<S> {
    hub: Arc<Hub<S>>,
    registry: Arc<Mutex<Registry<S>>>,
    tasks: TaskTracker,
}

/// What all tasks share.
struct Hub<S> {
    trigger: UnboundedSender<S>,
    ticks: AtomicU64,
    clock: fn() -> Timestamp,
    jitter: Jitter,
}

impl<S> Hub<S> {
    fn tick(&self) -> Tick {
        Tick(self.ticks.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

struct Registry<S> {
    watches: HashMap<Project, Arc<Watch<S>>>,
    /// The project of each subscriber; each has one.
    places: HashMap<S, Project>,
    closed: bool,
}

impl<S> Clone for Observers<S> {
    fn clone(&self) -> Self {
        Self { hub: Arc::clone(&self.hub), registry: Arc::clone(&self.registry), tasks: self.tasks.clone() }
    }
}

impl<S> fmt::Debug for Observers<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl<S: Clone + Eq + Hash + Send + Sync + 'static> Observers<S> {
    /// No observer yet. Subscribers are sent to `trigger`; `clock` dates the snapshots; `jitter` spreads the reads.
    pub fn new(trigger: UnboundedSender<S>, clock: fn() -> Timestamp, jitter: Jitter) -> Self {
        let registry = Registry { watches: HashMap::new(), places: HashMap::new(), closed: false };
        Self {
            hub: Arc::new(Hub { trigger, ticks: AtomicU64::new(0), clock, jitter }),
            registry: Arc::new(Mutex::new(registry)),
            tasks: TaskTracker::new(),
        }
    }

    /// The present moment. Taken after a write has ended, it is what [`Interest::after`] wants.
    pub fn tick(&self) -> Tick {
        self.hub.tick()
    }

    /// What is known of the project now. The subscription of `subscriber` is made or replaced, also where it was to another
    /// project, and the project's task is started where there is none: call it within a tokio runtime. Does not wait.
    ///
    /// The subscriber is triggered when a compute that it is interested in appears, disappears or changes in more than its
    /// times of activity; when the kind of fault changes, which includes the first read and recovery; and when the first
    /// attempt that began later than `after` has ended, with or without success.
    pub fn read(&self, source: &Source, subscriber: &S, interest: Interest) -> LatestSnapshot {
        let project = (source.account.clone(), source.project.clone());
        let mut registry = self.registry();
        if registry.closed {
            return LatestSnapshot::default();
        }
        if registry.places.get(subscriber).is_some_and(|place| *place != project) {
            registry.remove(subscriber);
        }
        registry.places.insert(subscriber.clone(), project.clone());
        let watch = match registry.watches.entry(project) {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => {
                let watch = Arc::new(Watch::new(source, Arc::clone(&self.hub)));
                self.tasks.spawn(Arc::clone(&watch).run());
                Arc::clone(entry.insert(watch))
            }
        };
        watch.subscribe(source, subscriber, interest)
    }

    /// Ends the subscription. The task of a project without subscribers ends.
    pub fn forget(&self, subscriber: &S) {
        self.registry().remove(subscriber);
    }

    /// The number of projects that are being read.
    pub fn projects(&self) -> usize {
        self.registry().watches.len()
    }

    /// Ends all tasks and waits until they have. Later reads answer that nothing is known.
    pub async fn shutdown(&self) {
        let watches = {
            let mut registry = self.registry();
            registry.closed = true;
            registry.places.clear();
            std::mem::take(&mut registry.watches)
        };
        for watch in watches.values() {
            watch.stop();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn registry(&self) -> MutexGuard<'_, Registry<S>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Clone + Eq + Hash + Send + Sync + 'static> Registry<S> {
    fn remove(&mut self, subscriber: &S) {
        let Some(project) = self.places.remove(subscriber) else {
            return;
        };
        if let Some(watch) = self.watches.get(&project)
            && watch.unsubscribe(subscriber)
        {
            watch.stop();
            self.watches.remove(&project);
        }
    }
}
