//! The task of one list: wait until a read is due, read, publish the snapshot, trigger the
//! subscribers that it concerns.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, warn};

use super::listing::Listing;
use super::state::{Begun, WatchState};
use super::{Hub, Interest, Latest, ListName, Source, Subscriber, Tick};
use crate::domain::{Fault, Listed, Unreadable};
use crate::platform::{Party, Priority, RateLimited};
use crate::spans;

struct DueRead {
    platform: Arc<RateLimited>,
    generation: u64,
    priority: Priority,
    party: Party,
}

pub(super) struct ListWatch<S, L: Listing> {
    account: String,
    of: L::Of,
    hub: Arc<Hub<S>>,
    state: Mutex<WatchState<S, L>>,
    /// The next read may be due sooner. Only the task waits for this.
    wake: Notify,
    /// An attempt has ended.
    ended: Notify,
    stop: CancellationToken,
}

impl<S: Subscriber, L: Listing> ListWatch<S, L> {
    pub fn new(source: &Source<L::Of>, hub: Arc<Hub<S>>) -> Self {
        Self {
            account: source.account.clone(),
            of: source.of.clone(),
            state: Mutex::new(WatchState::new(source, (hub.jitter)())),
            hub,
            wake: Notify::new(),
            ended: Notify::new(),
            stop: CancellationToken::new(),
        }
    }

    pub fn is_of(&self, source: &Source<L::Of>) -> bool {
        self.account == source.account && self.of == source.of
    }

    /// The account, and the project or organization of the list.
    pub fn place(&self) -> ListName<L> {
        (self.account.clone(), self.of.clone())
    }

    pub fn subscribe(
        &self,
        source: &Source<L::Of>,
        subscriber: &S,
        interest: Interest<L>,
    ) -> Latest<L> {
        let mut state = self.state();
        let sooner = state.adopt(source) | state.subscribe(subscriber, interest);
        if sooner {
            self.wake.notify_one();
        }
        state.view.clone()
    }

    /// Ends a subscription. Returns true if no subscriber remains.
    pub fn unsubscribe(&self, subscriber: &S) -> bool {
        self.state().unsubscribe(subscriber)
    }

    /// The latest state.
    pub fn view(&self) -> Latest<L> {
        self.state().view.clone()
    }

    /// Waits for the end of an attempt that began after `after`. The result is empty if the task
    /// ends first.
    pub async fn attempted_after(&self, after: Tick) -> Latest<L> {
        loop {
            let mut ended = pin!(self.ended.notified());
            // Enabled before the check, so that no notification is missed.
            ended.as_mut().enable();
            let view = self.view();
            if view.attempted.is_some_and(|attempted| attempted > after) {
                return view;
            }
            tokio::select! {
                () = ended => {}
                () = self.stop.cancelled() => return Latest::default(),
            }
        }
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Reads until it is stopped. A panic counts as a failed read; otherwise observation would end
    /// unnoticed.
    pub async fn run(self: Arc<Self>) {
        let reads = async {
            loop {
                if AssertUnwindSafe(self.round()).catch_unwind().await.is_err() {
                    error!(
                        account = self.account,
                        list = L::OF,
                        id = &*self.of,
                        "the observer of a list panicked"
                    );
                    let message = "an internal error ended the read".to_owned();
                    self.publish(self.begin(), Err(Fault::Unknown { message }));
                }
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = reads => {}
        }
    }

    /// One read, or none if a more urgent one replaces it.
    async fn round(&self) {
        let due = self.until_due().await;
        self.read(due)
            .instrument(spans::observe(L::OF, &self.of))
            .await;
    }

    async fn read(
        &self,
        DueRead {
            platform,
            generation,
            priority,
            party,
        }: DueRead,
    ) {
        let begun = self.begin();
        if let Some(fault) = self.no_room() {
            return self.publish(
                Begun {
                    generation,
                    ..begun
                },
                Err(fault),
            );
        }
        let admitted = tokio::select! {
            admitted = platform.admit(priority, &party) => admitted,
            () = self.until_overtaken(generation, priority, Some(&party)) => return,
        };
        let begun = self.begin();
        let outcome = tokio::select! {
            outcome = L::read(admitted, &self.of) => outcome,
            () = self.until_overtaken(generation, Priority::FreshRead, None) => return,
        };
        self.publish(
            Begun {
                generation,
                ..begun
            },
            outcome,
        );
    }

    fn no_room(&self) -> Option<Fault> {
        let mut state = self.state();
        let has_room = state.has_room();
        (!has_room).then(|| state.no_room(&self.of))
    }

    fn begin(&self) -> Begun {
        Begun {
            generation: self.state().generation,
            tick: self.hub.ticks.now(),
            started: Instant::now(),
            at: (self.hub.clock)(),
        }
    }

    async fn until_due(&self) -> DueRead {
        loop {
            let platform = Arc::clone(&self.state().platform);
            // Subscribed before the gate is checked, so that no change of it is missed.
            let mut gate = platform.watch_gate();
            let due = {
                let state = self.state();
                let due = state.due(gate.borrow().as_ref());
                if due <= Instant::now() {
                    return DueRead {
                        platform: Arc::clone(&state.platform),
                        generation: state.generation,
                        priority: state.priority(),
                        party: state.party(),
                    };
                }
                due
            };
            tokio::select! {
                () = sleep_until(due) => {}
                () = self.wake.notified() => {}
                Ok(()) = gate.changed() => {}
            }
        }
    }

    /// Waits until the read has to start over: the platform client was replaced, the read has
    /// become more urgent, or namespaces outside `party` need it. A read becomes more urgent when a
    /// subscriber needs it, or when the regular time of an early poll has come.
    async fn until_overtaken(&self, generation: u64, priority: Priority, party: Option<&Party>) {
        loop {
            let regular = {
                let state = self.state();
                let joined = party.is_some_and(|party| state.has_more_than(party));
                if state.generation != generation || state.priority() < priority || joined {
                    return;
                }
                state.regular()
            };
            let more_urgent_by_itself = async {
                match priority {
                    Priority::EarlyPoll => sleep_until(regular).await,
                    Priority::Change | Priority::FreshRead | Priority::Poll => {
                        std::future::pending().await
                    }
                }
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = more_urgent_by_itself => {}
            }
        }
    }

    fn publish(&self, begun: Begun, outcome: Result<Listed<L::Item>, Fault>) {
        let mut state = self.state();
        if state.generation != begun.generation {
            return;
        }
        let outcome = outcome.and_then(|listed| state.within_limit(&self.of, listed));
        self.log(state.view.fault.as_ref(), outcome.as_ref().err());
        if let Ok(listed) = &outcome {
            self.log_unreadable(
                state
                    .view
                    .snapshot
                    .as_ref()
                    .map(|before| &before.unreadable),
                listed.unreadable(),
            );
        }
        let triggered = state.publish(&begun, outcome.map(|listed| (listed, (self.hub.clock)())));
        state.jitter = (self.hub.jitter)();
        self.ended.notify_waiters();
        for subscriber in triggered {
            // The receiver closes only when the program ends.
            let _ = self.hub.trigger.send(subscriber);
        }
    }

    fn log(&self, before: Option<&Fault>, now: Option<&Fault>) {
        let (account, id, list) = (&self.account, &*self.of, L::OF);
        match (before, now) {
            (before, Some(fault)) if before.map(Fault::kind) != Some(fault.kind()) => {
                warn!(account, list, id, reason = fault.kind(), error = %fault, "a list cannot be read");
            }
            (Some(_), None) => info!(account, list, id, "a list can be read again"),
            _ => {}
        }
    }

    fn log_unreadable(&self, before: Option<&Unreadable>, now: &Unreadable) {
        let (account, id, list) = (&self.account, &*self.of, L::OF);
        if before.cloned().unwrap_or_default() == *now {
            return;
        }
        if now.is_empty() {
            info!(account, list, id, "every entry of a list can be read again");
        } else {
            warn!(account, list, id, entries = %now, "entries of a list cannot be read");
        }
    }

    fn state(&self) -> MutexGuard<'_, WatchState<S, L>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
