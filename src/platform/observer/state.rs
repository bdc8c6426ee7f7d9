//! The state of one list's task. It decides when to read next, and which subscribers to trigger.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::listing::{Listing, changes, unreadable_weight};
use super::pace::Pace;
use super::{Interest, Latest, Reading, Source, Subscriber, Tick};
use crate::domain::{Fault, Listed};
use crate::platform::room::RoomShare;
use crate::platform::{Party, Priority, RateLimited};

const SHORTEST_POLL: Duration = Duration::from_secs(1);

pub(super) struct WatchState<S, L: Listing> {
    pub platform: Arc<RateLimited>,
    /// Counts changes of the platform client, so that a read with an old client is not published.
    pub generation: u64,
    poll_interval: Duration,
    subscribers: HashMap<S, Subscription<L>>,
    /// The namespaces of all subscribers since the last read ended.
    namespaces: BTreeSet<Arc<str>>,
    /// When the newest pending subscriber became pending; may be outdated until the next read.
    pending_since: Option<Instant>,
    /// Subscribers need a snapshot that began later than this.
    after: Option<Tick>,
    pub view: Latest<L>,
    /// The memory of the current reading.
    share: RoomShare,
    newest: Option<Attempt>,
    failures: u32,
    /// Spreads the next wait; drawn again for each wait.
    pub jitter: f64,
}

struct Subscription<L: Listing> {
    interest: Interest<L>,
    pending_since: Option<Instant>,
}

/// The newest read that has ended, successful or not.
#[derive(Clone, Copy)]
struct Attempt {
    began: Tick,
    started: Instant,
    ended: Instant,
}

/// The start of a read.
pub(super) struct Begun {
    pub generation: u64,
    pub tick: Tick,
    pub started: Instant,
    pub at: Timestamp,
}

impl<S: Subscriber, L: Listing> WatchState<S, L> {
    pub fn new(source: &Source<L::Of>, jitter: f64) -> Self {
        Self {
            platform: Arc::clone(&source.platform),
            generation: 0,
            poll_interval: source.poll_interval.max(SHORTEST_POLL),
            subscribers: HashMap::new(),
            namespaces: BTreeSet::new(),
            pending_since: None,
            after: None,
            view: Latest::default(),
            share: RoomShare::of(Arc::clone(&source.room)),
            newest: None,
            failures: 0,
            jitter,
        }
    }

    /// Applies the source. Returns true if a read may be due sooner because of it.
    pub fn adopt(&mut self, source: &Source<L::Of>) -> bool {
        let poll_interval = source.poll_interval.max(SHORTEST_POLL);
        let sooner = poll_interval < self.poll_interval;
        self.poll_interval = poll_interval;
        if self.platform.is_same(&source.platform) {
            return sooner;
        }
        self.platform = Arc::clone(&source.platform);
        self.generation += 1;
        // It may be a different platform, so the old snapshot proves nothing.
        self.view = Latest::default();
        self.share.resize(0);
        self.newest = None;
        self.failures = 0;
        true
    }

    /// Applies the interest. Returns true if a read may be due sooner because of it.
    pub fn subscribe(&mut self, subscriber: &S, interest: Interest<L>) -> bool {
        let now = Instant::now();
        let before = self.subscribers.remove(subscriber);
        // A new write restarts the pending time.
        let continued = before
            .filter(|before| before.interest.pending && interest.after <= before.interest.after);
        let newly_pending = interest.pending && continued.is_none();
        if newly_pending {
            self.pending_since = Some(now);
        }
        let pending_since = if interest.pending {
            let since = continued.and_then(|before| before.pending_since);
            Some(since.unwrap_or(now))
        } else {
            None
        };
        self.after = self.after.max(interest.after);
        let subscription = Subscription {
            interest,
            pending_since,
        };
        self.subscribers.insert(subscriber.clone(), subscription);
        let joined = !self.namespaces.contains(subscriber.namespace());
        if joined {
            self.namespaces.insert(Arc::from(subscriber.namespace()));
        }
        newly_pending || joined || self.is_awaited()
    }

    /// The namespaces that the next read is made for.
    pub fn party(&self) -> Party {
        self.namespaces.iter().cloned().collect()
    }

    /// True if other namespaces have joined these.
    pub fn has_more_than(&self, party: &Party) -> bool {
        self.namespaces.len() > party.len()
    }

    /// Ends a subscription. Returns true if no subscriber remains.
    pub fn unsubscribe(&mut self, subscriber: &S) -> bool {
        self.subscribers.remove(subscriber);
        self.subscribers.is_empty()
    }

    /// True if a subscriber needs a snapshot later than the newest attempt. A failed attempt
    /// counts, because the backoff must prevent immediate retries.
    pub fn is_awaited(&self) -> bool {
        self.newest
            .is_none_or(|attempt| self.after.is_some_and(|after| after >= attempt.began))
    }

    pub fn priority(&self) -> Priority {
        if self.is_awaited() {
            Priority::FreshRead
        } else if self.is_suspended() || self.regular() <= Instant::now() {
            // When the key may be accepted again, all subscribers wait for the read.
            Priority::Poll
        } else {
            Priority::EarlyPoll
        }
    }

    /// When the next read would be due if no subscriber needed it and no change were pending.
    pub fn regular(&self) -> Instant {
        self.newest.map_or_else(Instant::now, |newest| {
            newest.ended + self.pace(None).delay(self.jitter)
        })
    }

    fn pace(&self, pending_for: Option<Duration>) -> Pace {
        Pace {
            poll_interval: self.poll_interval,
            pending_for,
            failures: self.failures,
            retry_after: self.view.fault.as_ref().and_then(Fault::retry_after),
            suspended: self.is_suspended(),
            not_offered: self.view.fault.as_ref().and_then(L::not_offered),
        }
    }

    /// True if no requests are sent with the key.
    fn is_suspended(&self) -> bool {
        self.view
            .fault
            .as_ref()
            .is_some_and(Fault::is_about_the_key)
    }

    /// When the next read is due. `gate` is the reason why the gate is closed.
    pub fn due(&self, gate: Option<&Fault>) -> Instant {
        let Some(newest) = self.newest else {
            return Instant::now();
        };
        let known = self
            .view
            .fault
            .as_ref()
            .filter(|fault| fault.is_about_the_key());
        if gate.map(Fault::kind) != known.map(Fault::kind) {
            // If the gate has closed, this read costs no request. If it has opened, a read is due.
            return newest.ended;
        }
        if self.is_awaited() {
            return newest.started + L::SPACING;
        }
        newest.ended
            + self
                .pace(self.pending_since.map(|since| since.elapsed()))
                .delay(self.jitter)
    }

    /// True if the list may be read at all. Each list counts, even if it is small.
    pub fn has_room(&mut self) -> bool {
        self.share.is_counted() || self.share.resize(0)
    }

    /// The fault of a list that exceeds the memory limit.
    pub fn no_room(&self, of: &str) -> Fault {
        let (list, mib) = (L::OF, self.share.room().limit() >> 20);
        let message = format!(
            "the lists that the Accounts of this namespace have dbplane keep would take more than {mib} MiB of its memory together, so the \
             list of {list} {of} is not kept. Use fewer or smaller projects, or have the administrator raise --list-memory"
        );
        Fault::TooLarge { message }
    }

    /// The entries, if there is memory for them.
    pub fn within_limit(
        &mut self,
        of: &str,
        listed: Listed<L::Item>,
    ) -> Result<Listed<L::Item>, Fault> {
        let weight = listed.shown().iter().map(L::weight).sum::<usize>()
            + unreadable_weight(listed.unreadable());
        if self.share.resize(weight) {
            Ok(listed)
        } else {
            Err(self.no_room(of))
        }
    }

    /// Applies the result of a read. Returns the subscribers to trigger.
    pub fn publish(
        &mut self,
        begun: &Begun,
        outcome: Result<(Listed<L::Item>, Timestamp), Fault>,
    ) -> Vec<S> {
        let attempt = Attempt {
            began: begun.tick,
            started: begun.started,
            ended: Instant::now(),
        };
        let before = self.newest.replace(attempt).map(|attempt| attempt.began);
        self.view.attempted = Some(begun.tick);
        self.pending_since = self
            .subscribers
            .values()
            .filter_map(|s| s.pending_since)
            .max();
        self.namespaces.retain(|namespace| {
            self.subscribers
                .keys()
                .any(|it| it.namespace() == &**namespace)
        });
        match outcome {
            Ok((listed, ended)) => {
                self.publish_snapshot(Reading::new(begun.tick, begun.at, ended, listed))
            }
            Err(fault) => self.publish_fault(fault, before, begun.tick),
        }
    }

    fn publish_snapshot(&mut self, snapshot: Reading<L>) -> Vec<S> {
        let snapshot = Arc::new(snapshot);
        self.failures = 0;
        let before = self.view.snapshot.replace(Arc::clone(&snapshot));
        let recovered = self.view.fault.take().is_some();
        let Some(before) = before else {
            return self.all_subscribers();
        };
        // An unreadable entry may concern any subscriber.
        if recovered || before.unreadable != snapshot.unreadable {
            return self.all_subscribers();
        }
        let changed = changes::<L>(&before.items, &snapshot.items);
        self.triggered(|interest| {
            let awaited = interest
                .after
                .is_some_and(|after| before.began <= after && after < snapshot.began);
            let affected = changed
                .as_ref()
                .is_some_and(|changed| L::concerns(changed, &interest.filter));
            awaited || affected
        })
    }

    fn publish_fault(&mut self, fault: Fault, before: Option<Tick>, began: Tick) -> Vec<S> {
        self.failures = self.failures.saturating_add(1);
        let kind = fault.kind();
        let known = self.view.fault.replace(fault).map(|fault| fault.kind());
        if known != Some(kind) {
            return self.all_subscribers();
        }
        self.triggered(|interest| {
            interest
                .after
                .is_some_and(|after| after < began && before.is_none_or(|before| before <= after))
        })
    }

    fn all_subscribers(&self) -> Vec<S> {
        self.subscribers.keys().cloned().collect()
    }

    fn triggered(&self, concerned: impl Fn(&Interest<L>) -> bool) -> Vec<S> {
        let subscribers = self.subscribers.iter();
        let concerned = subscribers.filter(|(_, subscription)| concerned(&subscription.interest));
        concerned
            .map(|(subscriber, _)| subscriber.clone())
            .collect()
    }
}
