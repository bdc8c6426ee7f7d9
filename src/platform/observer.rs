//! Observes the platform, as a reflector observes Kubernetes.
//!
//! Each list with subscribers has one task: an account's computes of a project, or its keys of an
//! organization. The task reads the list, publishes the reading with its start, and triggers the
//! subscribers whose entries changed. A reconcile does not wait here. It takes the latest reading,
//! requests a newer one if it needs that, and is triggered when it is available. Only a step may
//! wait for a reading.
//!
//! Guarantees:
//! - A subscriber that saw a [`Latest`] is triggered when a later reading differs for it, so it
//!   misses no change.
//! - A reading that satisfies `after` began later than that tick. A read that was already in
//!   progress does not count.
//! - At most one request per list is in progress, and its number of subscribers does not add
//!   requests.
//! - A failed read never looks like an empty list: the last reading is kept and published with the
//!   fault.
//! - An unreadable entry never looks as if it were gone: the reading contains it, and each change
//!   of the unreadable entries triggers all subscribers.

mod computes;
mod keys;
mod listing;
mod pace;
mod state;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::task::TaskTracker;

pub use self::computes::{
    ComputeFilter, ComputeInterest, LatestSnapshot, ProjectComputes, Snapshot,
};
pub use self::keys::{KeyFilter, KeyInterest, KeyList, Keys, LatestKeys};
pub use self::listing::Listing;
use self::watch::ListWatch;
use super::{Jitter, RateLimited, Room};
use crate::domain::{Fault, Listed, Unreadable};

/// A moment of the observers' logical clock. It orders "this read began" and "that write ended"
/// without comparing wall clocks. It is not valid in another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// A moment of another such clock, for instance a model's.
    pub const fn at(number: u64) -> Self {
        Self(number)
    }
}

/// The logical clock. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Ticks(Arc<AtomicU64>);

impl Ticks {
    /// The current moment. After a write has ended, use it as [`Interest::after`].
    pub fn now(&self) -> Tick {
        Tick(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// A list as one call returned it, with all its pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<L: Listing> {
    /// The start of the read. The reading shows every earlier change.
    pub began: Tick,
    /// The same by the wall clock, for display.
    pub at: Timestamp,
    /// The end of the read.
    pub ended: Timestamp,
    /// The readable entries, in the order of [`Listing::order`].
    pub items: Vec<L::Item>,
    /// The unreadable entries.
    pub unreadable: Unreadable,
    index: L::Index,
}

impl<L: Listing> Reading<L> {
    /// A reading with this start and end.
    pub fn new(
        began: Tick,
        at: Timestamp,
        ended: Timestamp,
        listed: impl Into<Listed<L::Item>>,
    ) -> Self {
        let (mut items, unreadable) = listed.into().into_parts();
        items.sort_unstable_by(L::order);
        items.shrink_to_fit();
        Self {
            began,
            at,
            ended,
            index: L::index(&items),
            items,
            unreadable,
        }
    }

    pub fn count(&self) -> usize {
        self.items.len() + self.unreadable.len()
    }
}

/// The latest known state of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest<L: Listing> {
    /// The newest successful reading, if there is one.
    pub snapshot: Option<Arc<Reading<L>>>,
    /// The fault of the newest attempt; `None` if it succeeded, or if there was none yet.
    pub fault: Option<Fault>,
    /// The start of the newest attempt, if there is one.
    pub attempted: Option<Tick>,
}

impl<L: Listing> Default for Latest<L> {
    fn default() -> Self {
        Self {
            snapshot: None,
            fault: None,
            attempted: None,
        }
    }
}

impl<L: Listing> Latest<L> {
    /// The reading, if it began later than `after`.
    pub fn since(&self, after: Option<Tick>) -> Option<&Arc<Reading<L>>> {
        let snapshot = self.snapshot.as_ref()?;
        after
            .is_none_or(|after| snapshot.began > after)
            .then_some(snapshot)
    }
}

/// The changes that trigger a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest<L: Listing> {
    /// The entries whose changes trigger it.
    pub filter: L::Filter,
    /// A change is expected soon, so dbplane reads often.
    pub pending: bool,
    /// A reading that began later than this is needed. If there is none, the list is read at once.
    pub after: Option<Tick>,
}

/// The identity of a subscriber.
pub trait Subscriber: Clone + Eq + Hash + Send + Sync + 'static {
    /// The subscriber's namespace. A read is made for the namespaces of all subscribers.
    fn namespace(&self) -> &str;
}

impl<K: Resource<DynamicType = ()> + 'static> Subscriber for ObjectRef<K>
where
    Self: Send + Sync,
{
    fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// The list to read, and how to read it.
#[derive(Clone, Debug)]
pub struct Source<Of> {
    /// The account. Together with `of` it identifies the task.
    pub account: String,
    /// The project or the organization.
    pub of: Of,
    /// If it differs from the previous one (another key or address), the old reading is dropped and
    /// the list is read at once.
    pub platform: Arc<RateLimited>,
    /// The time between two reads while nothing changes; at least 1 s.
    pub poll_interval: Duration,
    /// The memory limit that all lists of the namespace share.
    pub room: Arc<Room>,
}

/// The account, and the project or organization.
pub type ListName<L> = (String, <L as Listing>::Of);

/// The task of a list, and its latest state.
type Subscribed<S, L> = (Arc<ListWatch<S, L>>, Latest<L>);

/// The observers of all lists of one kind. `S` identifies a subscriber. Clones share the observers.
pub struct Observers<S, L: Listing> {
    hub: Arc<Hub<S>>,
    registry: Arc<Mutex<Registry<S, L>>>,
    tasks: TaskTracker,
}

/// The parts that all tasks share.
struct Hub<S> {
    trigger: UnboundedSender<S>,
    ticks: Ticks,
    clock: fn() -> Timestamp,
    jitter: Jitter,
}

struct Registry<S, L: Listing> {
    watches: HashMap<ListName<L>, Arc<ListWatch<S, L>>>,
    /// The list of each subscriber.
    subscribed: HashMap<S, Arc<ListWatch<S, L>>>,
    closed: bool,
}

impl<S, L: Listing> Clone for Observers<S, L> {
    fn clone(&self) -> Self {
        Self {
            hub: Arc::clone(&self.hub),
            registry: Arc::clone(&self.registry),
            tasks: self.tasks.clone(),
        }
    }
}

impl<S, L: Listing> fmt::Debug for Observers<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers")
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl<S: Subscriber, L: Listing> Observers<S, L> {
    /// Starts without observers. `trigger` receives the subscribers, `clock` dates the readings,
    /// and `jitter` spreads them.
    pub fn new(
        ticks: Ticks,
        trigger: UnboundedSender<S>,
        clock: fn() -> Timestamp,
        jitter: Jitter,
    ) -> Self {
        let registry = Registry {
            watches: HashMap::new(),
            subscribed: HashMap::new(),
            closed: false,
        };
        Self {
            hub: Arc::new(Hub {
                trigger,
                ticks,
                clock,
                jitter,
            }),
            registry: Arc::new(Mutex::new(registry)),
            tasks: TaskTracker::new(),
        }
    }

    /// The latest state of the list. Subscribes `subscriber`, and replaces its earlier
    /// subscription, even to another list. Starts the list's task if necessary, so it must run
    /// within a tokio runtime. It does not wait.
    ///
    /// The subscriber is triggered when an entry that concerns it appears, disappears or changes
    /// significantly. It is also triggered when the kind of fault changes, which includes the first
    /// read and recovery. And it is triggered when the first attempt that began later than `after`
    /// has ended, successful or not.
    pub fn read(&self, source: &Source<L::Of>, subscriber: &S, interest: Interest<L>) -> Latest<L> {
        self.subscribe(source, subscriber, interest)
            .map(|(_, latest)| latest)
            .unwrap_or_default()
    }

    /// Like `read`, but waits for the end of an attempt that began after this call; callers share
    /// attempts. The result is empty if the observer ends first.
    pub async fn read_again(
        &self,
        source: &Source<L::Of>,
        subscriber: &S,
        interest: Interest<L>,
    ) -> Latest<L> {
        let after = self.hub.ticks.now();
        let interest = Interest {
            after: Some(after),
            ..interest
        };
        match self.subscribe(source, subscriber, interest) {
            Some((watch, _)) => watch.attempted_after(after).await,
            None => Latest::default(),
        }
    }

    /// The latest state of a list with subscribers.
    pub fn known(&self, account: &str, of: &L::Of) -> Latest<L> {
        let registry = self.registry();
        let watch = registry.watches.get(&(account.to_owned(), of.clone()));
        watch.map(|watch| watch.view()).unwrap_or_default()
    }

    /// The latest state of every list with subscribers, by account and list.
    fn all(&self) -> Vec<(ListName<L>, Latest<L>)> {
        self.registry()
            .watches
            .values()
            .map(|watch| (watch.place(), watch.view()))
            .collect()
    }

    /// The start of each account's oldest reading in use.
    pub fn oldest(&self) -> BTreeMap<String, Timestamp> {
        let mut oldest = BTreeMap::new();
        for ((account, _), latest) in self.all() {
            let Some(snapshot) = latest.snapshot else {
                continue;
            };
            oldest
                .entry(account)
                .and_modify(|at: &mut Timestamp| *at = snapshot.at.min(*at))
                .or_insert(snapshot.at);
        }
        oldest
    }

    /// The unreadable entries of the account's lists, by project or organization.
    pub fn unreadable(&self, account: &str) -> BTreeMap<String, Unreadable> {
        let registry = self.registry();
        let of_account = registry
            .watches
            .iter()
            .filter(|((name, _), _)| name == account);
        let unreadable = of_account.filter_map(|((_, of), watch)| {
            let unreadable = watch.view().snapshot?.unreadable.clone();
            (!unreadable.is_empty()).then(|| (of.to_string(), unreadable))
        });
        unreadable.collect()
    }

    /// The message of one of the account's lists that is too large to keep, if there is one.
    pub fn too_large(&self, account: &str) -> Option<String> {
        let registry = self.registry();
        let mut messages = registry
            .watches
            .iter()
            .filter(|((of, _), _)| of == account)
            .filter_map(|(_, watch)| {
                if let Some(Fault::TooLarge { message }) = watch.view().fault {
                    Some(message)
                } else {
                    None
                }
            });
        messages.next()
    }

    /// `None` after all observers have ended.
    fn subscribe(
        &self,
        source: &Source<L::Of>,
        subscriber: &S,
        interest: Interest<L>,
    ) -> Option<Subscribed<S, L>> {
        let place = (source.account.clone(), source.of.clone());
        let mut registry = self.registry();
        if registry.closed {
            return None;
        }
        if registry
            .subscribed
            .get(subscriber)
            .is_some_and(|known| !known.is_of(source))
        {
            registry.remove(subscriber);
        }
        let watch = match registry.watches.entry(place) {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => {
                let watch = Arc::new(ListWatch::new(source, Arc::clone(&self.hub)));
                self.tasks.spawn(Arc::clone(&watch).run());
                Arc::clone(entry.insert(watch))
            }
        };
        let latest = watch.subscribe(source, subscriber, interest);
        registry
            .subscribed
            .insert(subscriber.clone(), watch.clone());
        Some((watch, latest))
    }

    /// Ends the subscription. A task without subscribers ends.
    pub fn forget(&self, subscriber: &S) {
        self.registry().remove(subscriber);
    }

    /// The number of observed lists.
    pub fn lists(&self) -> usize {
        self.registry().watches.len()
    }

    /// Ends all tasks and waits for them. Later reads return an empty state.
    pub async fn shutdown(&self) {
        let watches = {
            let mut registry = self.registry();
            registry.closed = true;
            registry.subscribed.clear();
            std::mem::take(&mut registry.watches)
        };
        for watch in watches.values() {
            watch.stop();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn registry(&self) -> MutexGuard<'_, Registry<S, L>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber, L: Listing> Registry<S, L> {
    fn remove(&mut self, subscriber: &S) {
        if let Some(watch) = self.subscribed.remove(subscriber)
            && watch.unsubscribe(subscriber)
        {
            watch.stop();
            self.watches.remove(&watch.place());
        }
    }
}
