//! The task of one project: wait until a read is due, read, publish the snapshot, trigger the subscribers that it concerns.

use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::state::{Begun, State};
use super::{Hub, Interest, LatestSnapshot, Source};
use crate::domain::{Compute, Fault};
use crate::platform::{Priority, RateLimited};

pub(super) struct Watch<S> {
    account: String,
    project: String,
    hub: Arc<Hub<S>>,
    state: Mutex<State<S>>,
    /// Something happened that may make the next read due sooner. Only the task waits for it.
    wake: Notify,
    stop: CancellationToken,
}

impl<S: Clone + Eq + Hash + Send + Sync + 'static> Watch<S> {
    pub fn new(source: &Source, hub: Arc<Hub<S>>) -> Self {
        Self {
            account: source.account.clone(),
            project: source.project.clone(),
            state: Mutex::new(State::new(source, (hub.jitter)())),
            hub,
            wake: Notify::new(),
            stop: CancellationToken::new(),
        }
    }

    pub fn subscribe(&self, source: &Source, subscriber: &S, interest: Interest) -> LatestSnapshot {
        let mut state = self.state();
        let sooner = state.adopt(source) | state.subscribe(subscriber, interest);
        if sooner {
            self.wake.notify_one();
        }
        state.view.clone()
    }

    /// Ends a subscription; returns whether no subscriber remains.
    pub fn unsubscribe(&self, subscriber: &S) -> bool {
        self.state().unsubscribe(subscriber)
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Reads until it is stopped. A panic counts as a failed read: otherwise observation would end unnoticed.
    pub async fn run(self: Arc<Self>) {
        let reads = async {
            loop {
                if AssertUnwindSafe(self.round()).catch_unwind().await.is_err() {
                    error!(account = self.account, project = self.project, "the observer of a project panicked");
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

    /// One read, or none if something more urgent came first.
    async fn round(&self) {
        let (platform, generation, priority) = self.until_due().await;
        let admitted = tokio::select! {
            admitted = platform.admit(priority) => admitted,
            () = self.until_overtaken(generation, priority) => return,
        };
        let begun = self.begin();
        let outcome = tokio::select! {
            outcome = admitted.list_computes(&self.project) => outcome,
            () = self.until_overtaken(generation, Priority::FreshRead) => return,
        };
        self.publish(Begun { generation, ..begun }, outcome);
    }

    fn begin(&self) -> Begun {
        Begun {
            generation: self.state().generation,
            tick: self.hub.tick(),
            started: Instant::now(),
            at: (self.hub.clock)(),
        }
    }

    async fn until_due(&self) -> (Arc<RateLimited>, u64, Priority) {
        loop {
            let platform = Arc::clone(&self.state().platform);
            // Subscribed to before the gate is checked, so that no change of it is missed.
            let mut gate = platform.watch_gate();
            let due = {
                let state = self.state();
                let due = state.due(gate.borrow().is_some());
                if due <= Instant::now() {
                    return (Arc::clone(&state.platform), state.generation, state.priority());
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

    /// Waits until the platform was replaced or, for a poll, until a subscriber needs a fresh snapshot.
    async fn until_overtaken(&self, generation: u64, priority: Priority) {
        loop {
            {
                let state = self.state();
                if state.generation != generation || (priority == Priority::Poll && state.is_awaited()) {
                    return;
                }
            }
            self.wake.notified().await;
        }
    }

    fn publish(&self, begun: Begun, outcome: Result<Vec<Compute>, Fault>) {
        let mut state = self.state();
        if state.generation != begun.generation {
            return;
        }
        self.log(state.view.fault.as_ref(), outcome.as_ref().err());
        let triggered = state.publish(&begun, outcome);
        state.jitter = (self.hub.jitter)();
        for subscriber in triggered {
            // The receiver is closed only when the program ends.
            let _ = self.hub.trigger.send(subscriber);
        }
    }

    fn log(&self, before: Option<&Fault>, now: Option<&Fault>) {
        let (account, project) = (&self.account, &self.project);
        match (before, now) {
            (before, Some(fault)) if before.map(Fault::kind) != Some(fault.kind()) => {
                warn!(account, project, kind = fault.kind(), "the project cannot be read: {fault}");
            }
            (Some(_), None) => info!(account, project, "the project can be read again"),
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
