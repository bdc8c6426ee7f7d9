//! The replay log of a pass: clock readings, answers, and what the pass has read.

use std::cell::RefCell;
use std::fmt::Debug;
use std::hash::Hash;
use std::task::Poll;

use futures::future::poll_fn;
use jiff::Timestamp;

use super::bound::Statuses;
use super::effects::silence;
use super::in_memory::{Cluster, Print, Request, Resource, Response, hash};
use super::mutation::Mutation;
use super::pending_pass::{Answer, Effect, Entry, Resolved};
use super::state::ReadKeys;

/// The log of the running pass, and inputs that it can read without an effect.
pub struct ReplayLog {
    pub resource: Resource,
    pub entries: Vec<Entry>,
    pub position: usize,
    pub now: Timestamp,
    /// `None` if it is unreachable.
    pub cluster: Option<Cluster>,
    pub pending: Option<Effect>,
    pub wrote_at: Option<usize>,
    pub keys: Option<Print<ReadKeys>>,
    pub keys_changed: bool,
    /// A hash of the last decision's observations, if statuses are stored.
    pub observed: Option<u64>,
    pub statuses: Statuses,
    pub resolved: Option<Resolved>,
    pub mutation: Option<Mutation>,
}

thread_local! {
    pub static REPLAY_LOG: RefCell<Option<ReplayLog>> = const { RefCell::new(None) };
}

pub fn with_log<T>(run: impl FnOnce(&mut ReplayLog) -> T) -> T {
    REPLAY_LOG.with(|log| run(log.borrow_mut().as_mut().expect("a pass is being run")))
}

/// The resource of the pass.
pub fn resource() -> Resource {
    with_log(|log| log.resource.clone())
}

/// The mutation of this run.
pub fn mutation() -> Option<Mutation> {
    with_log(|log| log.mutation)
}

/// Called before a decision, with its observations.
pub fn decides_on(observed: &impl Debug, now: Timestamp) {
    with_log(|log| {
        let filter = log.statuses == Statuses::Whole;
        log.observed = filter.then(|| hash(&format!("{observed:?} {now}")));
    });
}

/// Called after a decision. Everything later depends on the decision, the memory of the object, and
/// later reads. If statuses are stored, it also depends on the decision's observations.
pub fn resolves(what: &impl Debug) {
    with_log(|log| {
        let rests_on = hash(&(
            &log.resource,
            format!("{what:?}"),
            log.observed,
            log.is_untouched(),
        ));
        log.resolved = Some(Resolved {
            rests_on,
            position: log.position,
        });
    });
}

/// Called when the pass decides to write this status, and the copy of its record if that is lost.
pub fn resolves_to_report(status: &impl Debug, record: (Option<&str>, impl Debug)) {
    match with_log(|log| log.statuses) {
        Statuses::Whole => resolves(&(status, record)),
        Statuses::Record => resolves(&record),
    }
}

/// Called when the pass reads this.
pub fn depends_on(what: &impl Hash) {
    with_log(|log| {
        if let Some(resolved) = &mut log.resolved {
            resolved.rests_on = hash(&(resolved.rests_on, what));
        }
    });
}

impl ReplayLog {
    fn next(&mut self) -> Option<Answer> {
        let Some(Entry::Answer(answer)) = self.entries.get(self.position) else {
            return None;
        };
        self.position += 1;
        Some(answer.clone())
    }

    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.position += 1;
    }

    pub fn has_ticked(&self) -> bool {
        self.entries[..self.position]
            .iter()
            .any(|entry| matches!(entry, Entry::Tick))
    }

    /// True if no action of the pass so far is visible to others.
    fn is_untouched(&self) -> bool {
        let writes = |entry: &Entry| matches!(entry, Entry::Answer(answer) if !matches!(answer, Answer::Cluster(Ok(Response::Secret(_) | Response::Terminating(_)))));
        !self.entries[..self.position].iter().any(writes)
    }
}

/// The answer to an effect, once it exists. Reads before the first visible action are answered at
/// once: the pass could as well have begun then.
pub async fn effect(effect: Effect) -> Answer {
    poll_fn(|_| {
        with_log(|log| {
            if let Some(answer) = log.next() {
                return Poll::Ready(answer);
            }
            if let Effect::Cluster(request) = &effect
                && (is_read(request) && log.is_untouched() || is_dry_run(request))
            {
                let answer = match &log.cluster {
                    Some(cluster) => Answer::Cluster(cluster.clone().handle(request)),
                    None => silence(&effect),
                };
                log.push(Entry::Answer(answer.clone()));
                return Poll::Ready(answer);
            }
            log.pending = Some(effect.clone());
            Poll::Pending
        })
    })
    .await
}

fn is_read(request: &Request) -> bool {
    !request.writes() && !matches!(request, Request::Event { .. })
}

fn is_dry_run(request: &Request) -> bool {
    matches!(request, Request::ApplySecret { dry_run: true, .. })
}

/// The organization's keys as last read through a connection.
pub fn known_keys(connection: u64) -> ReadKeys {
    let read = with_log(|log| log.keys.clone());
    depends_on(&read);
    let read = read
        .filter(|read| read.connection == connection)
        .map(|read| read.clone_inner());
    read.unwrap_or_else(|| ReadKeys {
        connection,
        ..ReadKeys::default()
    })
}
