//! Counts the deletions of the last minute, and queues those beyond the limit of an account.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::DeletionRefusal;
use crate::api::MassDeletionPolicy;
use crate::decide::later;

const WINDOW: Duration = Duration::from_secs(60);
/// The limit of an account for all namespaces is this multiple of the limit for one.
pub const PER_ACCOUNT: usize = 4;
/// The time between two deletions beyond the limit of an account.
pub const SPACING: Duration = Duration::from_secs(2);
/// A waiting deletion asks again after this time at the latest, because others may give up their
/// turns.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A deletion that does not ask within this time after its turn has lost it.
const GRACE: Duration = Duration::from_secs(10);

/// A request for a deletion.
#[derive(Clone, Copy, Debug)]
pub struct DeletionRequest<'a> {
    pub account: &'a str,
    pub namespace: &'a str,
    /// The object on the platform.
    pub target: &'a str,
    pub uid: &'a str,
}

/// The rules for a deletion.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Deletions within a minute for each account and namespace.
    pub limit: u32,
    /// The behaviour beyond the limit of the account.
    pub policy: MassDeletionPolicy,
    /// Other deletions of the account and namespace are paused.
    pub others_wait: bool,
}

/// The deletions of the last minute, by account, namespace and target. A retried deletion counts
/// once.
#[derive(Clone, Debug, Default)]
pub struct DeletionWindow {
    made: VecDeque<MadeDeletion>,
    queues: BTreeMap<String, Queue>,
}

#[derive(Clone, Debug)]
struct MadeDeletion {
    at: Timestamp,
    account: String,
    namespace: String,
    target: String,
}

impl DeletionWindow {
    /// Admits and counts a deletion.
    ///
    /// # Errors
    /// If it has to wait, with the reason.
    pub fn admit(
        &mut self,
        asked: &DeletionRequest,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<(), DeletionRefusal> {
        // Concurrent passes may arrive in another order than they began. An entry further in the
        // future is from before the clock was set back.
        self.made
            .retain(|made| made.at < later(now, WINDOW) && now < later(made.at, WINDOW));
        let of_account = || {
            self.made
                .iter()
                .filter(|made| made.account == asked.account)
        };
        let own = || of_account().filter(|made| made.namespace == asked.namespace);
        if own().any(|made| made.target == asked.target) {
            return Ok(());
        }
        let (all, own) = (of_account().count(), own().count());
        self.queues.retain(|_, queue| {
            queue.drop_overdue(now);
            !queue.waiting.is_empty() || queue.next(now) > now
        });
        let limit = usize::try_from(rules.limit).unwrap_or(usize::MAX);
        let queue = self.queues.get(asked.account);
        let own = own + queue.map_or(0, |queue| queue.waiting_before(asked));
        let is_full = all >= limit.saturating_mul(PER_ACCOUNT);
        let refusal = match rules.policy {
            _ if rules.others_wait => Some(DeletionRefusal::OthersWait),
            _ if own >= limit => Some(DeletionRefusal::Full(own)),
            MassDeletionPolicy::Pause if is_full => Some(DeletionRefusal::AccountFull(all)),
            MassDeletionPolicy::Slow
                if is_full || queue.is_some_and(|queue| !queue.waiting.is_empty()) =>
            {
                self.queues
                    .entry(asked.account.to_owned())
                    .or_insert_with(|| Queue::from(now))
                    .ask(asked, now)
                    .err()
            }
            MassDeletionPolicy::Slow | MassDeletionPolicy::Pause => None,
        };
        if !matches!(refusal, Some(DeletionRefusal::Slowed { .. })) {
            self.leave(asked.uid);
        }
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        self.made.push_back(MadeDeletion {
            at: now,
            account: asked.account.to_owned(),
            namespace: asked.namespace.to_owned(),
            target: asked.target.to_owned(),
        });
        Ok(())
    }

    /// Removes the resource from the queues.
    pub fn leave(&mut self, uid: &str) {
        for queue in self.queues.values_mut() {
            queue.retain(|waiting| waiting.uid != uid);
        }
    }
}

/// The deletions of one account beyond its limit. Namespaces take turns, in the order of their
/// names. Within a namespace the order is first come, first served.
#[derive(Clone, Debug)]
struct Queue {
    waiting: BTreeMap<String, VecDeque<QueuedDeletion>>,
    /// The namespace that had the last turn.
    last: String,
    /// When the next turn begins.
    next: Timestamp,
}

#[derive(Clone, Debug)]
struct QueuedDeletion {
    uid: String,
    /// When it is to ask again.
    ask: Timestamp,
}

impl Queue {
    /// A queue that begins now.
    fn from(now: Timestamp) -> Self {
        Self {
            waiting: BTreeMap::new(),
            last: String::new(),
            next: later(now, SPACING),
        }
    }

    /// When the next turn begins. After the clock was set back, a turn may look far away, so it
    /// begins now.
    fn next(&self, now: Timestamp) -> Timestamp {
        if self.next <= later(now, SPACING) {
            self.next.max(now)
        } else {
            now
        }
    }

    /// Admits a deletion in its turn.
    fn ask(&mut self, asked: &DeletionRequest, now: Timestamp) -> Result<(), DeletionRefusal> {
        let next = self.next(now);
        let own = self.waiting.entry(asked.namespace.to_owned()).or_default();
        let place = own
            .iter()
            .position(|waiting| waiting.uid == asked.uid)
            .unwrap_or_else(|| {
                own.push_back(QueuedDeletion {
                    uid: asked.uid.to_owned(),
                    ask: now,
                });
                own.len() - 1
            });
        let before = self.before(asked.namespace, place);
        // A deletion that is not to ask yet does not block a free turn.
        if next <= now && !before.iter().any(|waiting| waiting.ask <= now) {
            self.retain(|waiting| waiting.uid != asked.uid);
            asked.namespace.clone_into(&mut self.last);
            self.next = later(now, SPACING);
            return Ok(());
        }
        let turn = later(
            next,
            SPACING.saturating_mul(u32::try_from(before.len()).unwrap_or(u32::MAX)),
        );
        let ask = turn.min(later(now, LONGEST_WAIT));
        if let Some(waiting) = self
            .waiting
            .get_mut(asked.namespace)
            .and_then(|own| own.get_mut(place))
        {
            waiting.ask = ask;
        }
        Err(DeletionRefusal::Slowed { turn, ask })
    }

    /// The deletions with an earlier turn than the one at `place` in the queue of `namespace`.
    fn before(&self, namespace: &str, place: usize) -> Vec<&QueuedDeletion> {
        // The order of namespaces is cyclic: it continues after the one that had the last turn.
        let rank = |namespace: &str| (*namespace <= *self.last, namespace.to_owned());
        let own = rank(namespace);
        let of = |(other, waiting): (&'_ String, &'_ VecDeque<QueuedDeletion>)| {
            (if rank(other) < own { place + 1 } else { place }).min(waiting.len())
        };
        self.waiting
            .iter()
            .flat_map(|entry| entry.1.iter().take(of(entry)))
            .collect()
    }

    /// The number of deletions ahead in the same namespace.
    fn waiting_before(&self, asked: &DeletionRequest) -> usize {
        let own = self
            .waiting
            .get(asked.namespace)
            .map(VecDeque::iter)
            .unwrap_or_default();
        own.take_while(|waiting| waiting.uid != asked.uid).count()
    }

    fn drop_overdue(&mut self, now: Timestamp) {
        // An entry further in the future is from before the clock was set back.
        self.retain(|waiting| {
            now <= later(waiting.ask, GRACE) && waiting.ask <= later(now, LONGEST_WAIT)
        });
    }

    fn retain(&mut self, keep: impl Fn(&QueuedDeletion) -> bool) {
        self.waiting.retain(|_, of_namespace| {
            of_namespace.retain(&keep);
            !of_namespace.is_empty()
        });
    }
}

#[cfg(test)]
mod tests;
