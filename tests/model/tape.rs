//! The tape of a pass: what the clock said, what was answered, and what the pass has looked at.

use std::cell::RefCell;
use std::fmt::Debug;
use std::hash::Hash;
use std::task::Poll;

use futures::future::poll_fn;
use jiff::Timestamp;

use super::bound::Statuses;
use super::effects::silence;
use super::flight::{Answer, Effect, Entry, Resolved};
use super::in_memory::{Cluster, Print, Request, Resource, Response, hash};
use super::mutation::Mutation;
use super::state::ReadKeys;

/// The tape of the pass that is being run, and what it may look at without anybody noticing.
pub struct Tape {
    pub resource: Resource,
    pub entries: Vec<Entry>,
    pub position: usize,
    pub now: Timestamp,
    /// `None` where it cannot be reached.
    pub cluster: Option<Cluster>,
    pub pending: Option<Effect>,
    pub wrote_at: Option<usize>,
    pub keys: Option<Print<ReadKeys>>,
    pub keys_changed: bool,
    /// A hash of what the last decision rested on, where the status is written.
    pub observed: Option<u64>,
    pub statuses: Statuses,
    pub resolved: Option<Resolved>,
    pub mutation: Option<Mutation>,
}

thread_local! {
    pub static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

pub fn with_tape<T>(run: impl FnOnce(&mut Tape) -> T) -> T {
    TAPE.with(|tape| run(tape.borrow_mut().as_mut().expect("a pass is being run")))
}

/// Whose pass it is.
pub fn resource() -> Resource {
    with_tape(|tape| tape.resource.clone())
}

/// The rule that is broken on purpose in this run.
pub fn mutation() -> Option<Mutation> {
    with_tape(|tape| tape.mutation)
}

/// The pass decides on this.
pub fn decides_on(observed: &impl Debug, now: Timestamp) {
    with_tape(|tape| {
        let matters = tape.statuses == Statuses::Whole;
        tape.observed = matters.then(|| hash(&format!("{observed:?} {now}")));
    });
}

/// The pass is resolved to do this with its object. Whatever it does next rests on that, on what it remembers of the object,
/// and on what it looks at from now on; where the status is written, also on what the decision rested on.
pub fn resolves(what: &impl Debug) {
    with_tape(|tape| {
        let rests_on = hash(&(&tape.resource, format!("{what:?}"), tape.observed, tape.is_untouched()));
        tape.resolved = Some(Resolved { rests_on, position: tape.position });
    });
}

/// The pass is resolved to write this status, and the copy of its record where that is lost.
pub fn resolves_to_report(status: &impl Debug, record: (Option<&str>, impl Debug)) {
    match with_tape(|tape| tape.statuses) {
        Statuses::Whole => resolves(&(status, record)),
        Statuses::Record => resolves(&record),
    }
}

/// The pass looks at this.
pub fn looks_at(what: &impl Hash) {
    with_tape(|tape| {
        if let Some(resolved) = &mut tape.resolved {
            resolved.rests_on = hash(&(resolved.rests_on, what));
        }
    });
}

impl Tape {
    fn next(&mut self) -> Option<Answer> {
        let Some(Entry::Answer(answer)) = self.entries.get(self.position) else { return None };
        self.position += 1;
        Some(answer.clone())
    }

    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.position += 1;
    }

    pub fn has_ticked(&self) -> bool {
        self.entries[..self.position].iter().any(|entry| matches!(entry, Entry::Tick))
    }

    /// Nothing that the pass did so far can be seen by others.
    fn is_untouched(&self) -> bool {
        let writes = |entry: &Entry| matches!(entry, Entry::Answer(answer) if !matches!(answer, Answer::Cluster(Ok(Response::Secret(_) | Response::Terminating(_)))));
        !self.entries[..self.position].iter().any(writes)
    }
}

/// The answer to an effect, once there is one. What only looks, before the pass has done anything, is answered at once: it is
/// the same as if the pass had begun then.
pub async fn effect(effect: Effect) -> Answer {
    poll_fn(|_| {
        with_tape(|tape| {
            if let Some(answer) = tape.next() {
                return Poll::Ready(answer);
            }
            if let Effect::Cluster(request) = &effect
                && (is_read(request) && tape.is_untouched() || is_dry_run(request))
            {
                let answer = match &tape.cluster {
                    Some(cluster) => Answer::Cluster(cluster.clone().handle(request)),
                    None => silence(&effect),
                };
                tape.push(Entry::Answer(answer.clone()));
                return Poll::Ready(answer);
            }
            tape.pending = Some(effect.clone());
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

/// What was last read of the organization's keys through a connection.
pub fn known_keys(connection: u64) -> ReadKeys {
    let read = with_tape(|tape| tape.keys.clone());
    looks_at(&read);
    let read = read.filter(|read| read.connection == connection).map(|read| read.clone_inner());
    read.unwrap_or_else(|| ReadKeys { connection, ..ReadKeys::default() })
}
