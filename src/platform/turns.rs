//! A fair queue that admits one request at a time: namespaces take turns, and within one it is
//! first come, first served.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The namespaces of a request: one, all that share the list, or none for a request of the account
/// itself.
pub type Party = Arc<[Arc<str>]>;

tokio::task_local! {
    /// The namespaces of the running call. Its further requests, such as pages, count for the same
    /// ones.
    pub static FOR: Party;
}

#[derive(Debug, Default)]
pub struct Turns(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    taken: bool,
    /// The namespace that had the last turn.
    last: Arc<str>,
    /// The numbers of each namespace's requests, in the order of arrival.
    queues: BTreeMap<Arc<str>, VecDeque<u64>>,
    waiting: BTreeMap<u64, QueueEntry>,
    arrived: u64,
}

#[derive(Debug)]
struct QueueEntry {
    party: Party,
    wake: oneshot::Sender<()>,
}

/// A turn. Dropping it gives the turn to the next request.
#[derive(Debug)]
pub struct TurnGuard<'a>(&'a Turns);

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.state().pass_on();
    }
}

/// A waiting request. Dropping it removes it from the queue.
struct QueuedTurn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for QueuedTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        // A request that was woken but stops waiting passes its turn on.
        if !state.remove(self.number) {
            state.pass_on();
        }
    }
}

impl Turns {
    /// Waits for a turn. A request of several namespaces gets it as soon as one of them has its
    /// turn.
    pub async fn take(&self, party: &Party) -> TurnGuard<'_> {
        let (number, mut woken) = {
            let mut state = self.state();
            if !state.taken {
                state.taken = true;
                state.last = party.first().cloned().unwrap_or_default();
                return TurnGuard(self);
            }
            state.enqueue(party)
        };
        // Dropped before `woken`, so that a request in the queue can always be woken.
        let waits = QueuedTurn {
            turns: self,
            number,
        };
        // The sender stays in the queue until it is used.
        let _ = (&mut woken).await;
        std::mem::forget(waits);
        TurnGuard(self)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn enqueue(&mut self, party: &Party) -> (u64, oneshot::Receiver<()>) {
        self.arrived += 1;
        let (wake, woken) = oneshot::channel();
        let party = if party.is_empty() {
            Arc::from([Arc::default()])
        } else {
            Arc::clone(party)
        };
        for namespace in party.iter() {
            self.queues
                .entry(Arc::clone(namespace))
                .or_default()
                .push_back(self.arrived);
        }
        self.waiting
            .insert(self.arrived, QueueEntry { party, wake });
        (self.arrived, woken)
    }

    fn pass_on(&mut self) {
        let next = (Bound::Excluded(Arc::clone(&self.last)), Bound::Unbounded);
        let Some((namespace, queue)) = self
            .queues
            .range(next)
            .next()
            .or_else(|| self.queues.iter().next())
        else {
            self.taken = false;
            return;
        };
        self.last = Arc::clone(namespace);
        if let Some(number) = queue.front().copied()
            && let Some(wake) = self.take_out(number)
        {
            let _ = wake.send(());
        }
    }

    /// True if it was still waiting.
    fn remove(&mut self, number: u64) -> bool {
        self.take_out(number).is_some()
    }

    fn take_out(&mut self, number: u64) -> Option<oneshot::Sender<()>> {
        let QueueEntry { party, wake } = self.waiting.remove(&number)?;
        for namespace in party.iter() {
            if let Some(queue) = self.queues.get_mut(namespace) {
                queue.retain(|waiting| *waiting != number);
                if queue.is_empty() {
                    self.queues.remove(namespace);
                }
            }
        }
        Some(wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(namespaces: &[&str]) -> Party {
        namespaces
            .iter()
            .map(|namespace| Arc::from(*namespace))
            .collect()
    }

    /// The order in which requests get their turns after one that has it now.
    async fn order(requests: &[(&'static str, &[&str])]) -> Vec<&'static str> {
        let turns = Arc::new(Turns::default());
        let first = turns.take(&party(&["first"])).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (name, namespaces) in requests {
            let (turns, order, party) = (Arc::clone(&turns), Arc::clone(&order), party(namespaces));
            let name = *name;
            tasks.push(tokio::spawn(async move {
                let _turn = turns.take(&party).await;
                order.lock().unwrap().push(name);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        let state = turns.state();
        assert!(
            state.queues.is_empty() && state.waiting.is_empty() && !state.taken,
            "{state:?}"
        );
        Arc::try_unwrap(order).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn namespaces_take_turns() {
        let of_a: Vec<(&str, &[&str])> = vec![("a", &["a"]); 1000];
        let requests = [
            &of_a[..],
            &[
                ("b", &["b"]),
                ("c1", &["c"]),
                ("c2", &["c"]),
                ("account", &[]),
            ],
        ]
        .concat();
        let order = order(&requests).await;
        assert_eq!(order[..8], ["account", "a", "b", "c1", "a", "c2", "a", "a"]);
    }

    #[tokio::test]
    async fn who_shares_a_request_does_not_wait_behind_what_the_other_waits_for() {
        let of_a: Vec<(&str, &[&str])> = vec![("a", &["a"]); 1000];
        let requests = [&of_a[..], &[("shared", &["a", "b"]), ("c", &["c"])]].concat();
        assert_eq!(order(&requests).await[..4], ["a", "shared", "c", "a"]);
    }

    #[tokio::test]
    async fn who_gives_up_delays_nobody() {
        let turns = Turns::default();
        let first = turns.take(&party(&["a"])).await;
        let (a, b, c) = (party(&["a"]), party(&["b"]), party(&["c"]));
        let mut given_up = Box::pin(turns.take(&a));
        let mut woken_too_late = Box::pin(turns.take(&b));
        let mut last = Box::pin(turns.take(&c));
        assert!(futures::poll!(&mut given_up).is_pending());
        assert!(
            futures::poll!(&mut woken_too_late).is_pending()
                && futures::poll!(&mut last).is_pending()
        );
        drop(given_up);
        drop(first);
        assert!(futures::poll!(&mut last).is_pending(), "b has the turn");
        drop(woken_too_late);
        assert!(futures::poll!(&mut last).is_ready());
    }
}
