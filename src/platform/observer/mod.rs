//! Observing the platform: what a reflector does for Kubernetes, this does for the platform.
//!
//! One task for each list that has subscribers (an account's computes of a project, or its keys of an organization) reads it, publishes
//! the reading with the moment at which it began, and triggers the subscribers whose entries changed. A reconcile does not wait
//! here: it takes the latest reading, requests what it needs, and is triggered when that is available. A step may wait for one.
//!
//! Guarantees:
//! - A subscriber that saw a [`Latest`] is triggered when a later reading differs for it, so nothing is missed between two reads.
//! - A reading that satisfies `after` began later than that tick: a read that was in progress does not count.
//! - At most one request is in progress for a list, and any number of subscribers costs no more requests than one.
//! - A failed read never looks like an empty list: a fault keeps the last reading and is published with it.
//! - Nor does an entry that cannot be read look as if it were gone: the reading has it, and another one triggers all subscribers.

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

pub use self::computes::{ComputeInterest, ComputeMatters, Computes, LatestSnapshot, Snapshot};
pub use self::keys::{KeyInterest, KeyList, KeyMatters, Keys, LatestKeys};
pub use self::listing::Listing;
use self::watch::Watch;
use super::{Jitter, RateLimited, Room};
use crate::domain::{Fault, Listed, Unreadable};

/// A moment of the observers' own logical clock. It orders "this read began" and "that write ended" without comparing wall
/// clocks. It is not valid in another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// A moment of another clock of this kind, such as a model's.
    pub const fn at(number: u64) -> Self {
        Self(number)
    }

    /// For people, who compare it with others of the same process.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The clock that such moments are of. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Ticks(Arc<AtomicU64>);

impl Ticks {
    /// The present moment. Taken after a write has ended, it is what [`Interest::after`] wants.
    pub fn now(&self) -> Tick {
        Tick(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// A list as one call showed it, all its pages together.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<L: Listing> {
    /// When the read began; it shows every change that was made before.
    pub began: Tick,
    /// The same by the wall clock, for people.
    pub at: Timestamp,
    /// When it had ended.
    pub ended: Timestamp,
    /// Those that can be read, in the order of [`Listing::order`].
    pub items: Vec<L::Item>,
    /// The others.
    pub unreadable: Unreadable,
    index: L::Index,
}

impl<L: Listing> Reading<L> {
    /// A reading that began and ended then.
    pub fn new(began: Tick, (at, ended): (Timestamp, Timestamp), listed: impl Into<Listed<L::Item>>) -> Self {
        let (mut items, unreadable) = listed.into().into_parts();
        items.sort_unstable_by(L::order);
        items.shrink_to_fit();
        Self { began, at, ended, index: L::index(&items), items, unreadable }
    }

    /// How many entries it has.
    pub fn count(&self) -> usize {
        self.items.len() + self.unreadable.len()
    }
}

/// What is known of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest<L: Listing> {
    /// The newest read that succeeded, if any did.
    pub snapshot: Option<Arc<Reading<L>>>,
    /// Why the newest attempt failed; `None` where it succeeded, and before there was any.
    pub fault: Option<Fault>,
    /// When the newest attempt began, if there was any.
    pub attempted: Option<Tick>,
}

impl<L: Listing> Default for Latest<L> {
    fn default() -> Self {
        Self { snapshot: None, fault: None, attempted: None }
    }
}

impl<L: Listing> Latest<L> {
    /// The reading, if it began later than `after`.
    pub fn since(&self, after: Option<Tick>) -> Option<&Arc<Reading<L>>> {
        let snapshot = self.snapshot.as_ref()?;
        after.is_none_or(|after| snapshot.began > after).then_some(snapshot)
    }
}

/// What triggers a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest<L: Listing> {
    /// Any change of this.
    pub matters: L::Matters,
    /// A change is expected soon: dbplane reads often.
    pub pending: bool,
    /// A reading that began later than this is needed; if there is none, it is made at once.
    pub after: Option<Tick>,
}

/// The identity of a subscriber.
pub trait Subscriber: Clone + Eq + Hash + Send + Sync + 'static {
    /// The namespace that it is in: reads are made for the namespaces of all subscribers.
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

/// Which list to read, and how.
#[derive(Clone, Debug)]
pub struct Source {
    /// The account's identity; with `of` it names the task.
    pub account: String,
    /// The project or the organization.
    pub of: String,
    /// If it differs from the one before, because of another key or address, the old reading is dropped and the list is read
    /// at once.
    pub platform: Arc<RateLimited>,
    /// The time between two reads while nothing changes; at least 1 s.
    pub poll_interval: Duration,
    /// What its list shares with others of one namespace.
    pub room: Arc<Room>,
}

/// The account, and what the list is of.
pub type Place = (String, String);

/// The task of a list, and what is known of it.
type Subscribed<S, L> = (Arc<Watch<S, L>>, Latest<L>);

/// The observers of all lists of one sort. `S` is a subscriber's identity. Clones are the same observers.
pub struct Observers<S, L: Listing> {
    hub: Arc<Hub<S>>,
    registry: Arc<Mutex<Registry<S, L>>>,
    tasks: TaskTracker,
}

/// What all tasks share.
struct Hub<S> {
    trigger: UnboundedSender<S>,
    ticks: Ticks,
    clock: fn() -> Timestamp,
    jitter: Jitter,
}

struct Registry<S, L: Listing> {
    watches: HashMap<Place, Arc<Watch<S, L>>>,
    /// What each subscriber subscribes to: one list.
    subscribed: HashMap<S, Arc<Watch<S, L>>>,
    closed: bool,
}

impl<S, L: Listing> Clone for Observers<S, L> {
    fn clone(&self) -> Self {
        Self { hub: Arc::clone(&self.hub), registry: Arc::clone(&self.registry), tasks: self.tasks.clone() }
    }
}

impl<S, L: Listing> fmt::Debug for Observers<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl<S: Subscriber, L: Listing> Observers<S, L> {
    /// No observer yet. Subscribers are sent to `trigger`; `clock` dates the readings; `jitter` spreads them.
    pub fn new(ticks: Ticks, trigger: UnboundedSender<S>, clock: fn() -> Timestamp, jitter: Jitter) -> Self {
        let registry = Registry { watches: HashMap::new(), subscribed: HashMap::new(), closed: false };
        Self {
            hub: Arc::new(Hub { trigger, ticks, clock, jitter }),
            registry: Arc::new(Mutex::new(registry)),
            tasks: TaskTracker::new(),
        }
    }

    /// What is known of the list now. The subscription of `subscriber` is made or replaced, also where it was to another
    /// list, and the list's task is started where there is none: call it within a tokio runtime. Does not wait.
    ///
    /// The subscriber is triggered when an entry that it is interested in appears, disappears or changes significantly; when the
    /// kind of fault changes, which includes the first read and recovery; and when the first attempt that began later than
    /// `after` has ended, with or without success.
    pub fn read(&self, source: &Source, subscriber: &S, interest: Interest<L>) -> Latest<L> {
        self.subscribe(source, subscriber, interest).map(|(_, latest)| latest).unwrap_or_default()
    }

    /// The same, once an attempt has ended that began after this call: one for all who ask meanwhile. Nothing is known where the
    /// observer ends before.
    pub async fn read_anew(&self, source: &Source, subscriber: &S, interest: Interest<L>) -> Latest<L> {
        let after = self.hub.ticks.now();
        let interest = Interest { after: Some(after), ..interest };
        match self.subscribe(source, subscriber, interest) {
            Some((watch, _)) => watch.attempted_after(after).await,
            None => Latest::default(),
        }
    }

    /// What is known of a list that somebody subscribes to.
    pub fn known(&self, account: &str, of: &str) -> Latest<L> {
        let registry = self.registry();
        let watch = registry.watches.get(&(account.to_owned(), of.to_owned()));
        watch.map(|watch| watch.view()).unwrap_or_default()
    }

    /// What is known of every list that somebody subscribes to, with its account and what it is of.
    pub fn all(&self) -> Vec<(Place, Latest<L>)> {
        self.registry().watches.values().map(|watch| (watch.place(), watch.view())).collect()
    }

    /// When the oldest reading of each account began that somebody works with.
    pub fn oldest(&self) -> BTreeMap<String, Timestamp> {
        let mut oldest = BTreeMap::new();
        for ((account, _), latest) in self.all() {
            let Some(snapshot) = latest.snapshot else { continue };
            oldest.entry(account).and_modify(|at: &mut Timestamp| *at = snapshot.at.min(*at)).or_insert(snapshot.at);
        }
        oldest
    }

    /// The entries of the account's lists that cannot be read, by what the lists are of.
    pub fn unreadable(&self, account: &str) -> BTreeMap<String, Unreadable> {
        let registry = self.registry();
        let of_account = registry.watches.iter().filter(|((name, _), _)| name == account);
        let unreadable = of_account.filter_map(|((_, of), watch)| {
            let unreadable = watch.view().snapshot?.unreadable.clone();
            (!unreadable.is_empty()).then(|| (of.clone(), unreadable))
        });
        unreadable.collect()
    }

    /// Why a list of the account is not kept, where there is one that is too large.
    pub fn too_large(&self, account: &str) -> Option<String> {
        let registry = self.registry();
        let mut messages = registry.watches.iter().filter(|((of, _), _)| of == account).filter_map(|(_, watch)| {
            if let Some(Fault::TooLarge { message }) = watch.view().fault { Some(message) } else { None }
        });
        messages.next()
    }

    /// `None` once all observers have ended.
    fn subscribe(&self, source: &Source, subscriber: &S, interest: Interest<L>) -> Option<Subscribed<S, L>> {
        let place = (source.account.clone(), source.of.clone());
        let mut registry = self.registry();
        if registry.closed {
            return None;
        }
        if registry.subscribed.get(subscriber).is_some_and(|known| !known.is_of(source)) {
            registry.remove(subscriber);
        }
        let watch = match registry.watches.entry(place) {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => {
                let watch = Arc::new(Watch::new(source, Arc::clone(&self.hub)));
                self.tasks.spawn(Arc::clone(&watch).run());
                Arc::clone(entry.insert(watch))
            }
        };
        let latest = watch.subscribe(source, subscriber, interest);
        registry.subscribed.insert(subscriber.clone(), watch.clone());
        Some((watch, latest))
    }

    /// Ends the subscription. The task of a list without subscribers ends.
    pub fn forget(&self, subscriber: &S) {
        self.registry().remove(subscriber);
    }

    /// The number of lists that are being read.
    pub fn lists(&self) -> usize {
        self.registry().watches.len()
    }

    /// Ends all tasks and waits until they have. Later reads answer that nothing is known.
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
