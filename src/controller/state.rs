//! What one process remembers between passes. It changes by the transitions that are named here, and by nothing else.
//! Losing all of it costs time, and a key that is not in its Secret yet; never a second object.

mod account;
mod children;
mod compute;
mod errors;
mod key;
mod resources;
mod turns;
mod versions;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

pub use self::account::{AccountEntry, Connection, SharedConnection};
use self::children::Children;
pub use self::children::Done;
pub use self::compute::Reservation;
pub use self::key::{KeyState, UnsavedKey};
pub use self::resources::Resources;
use self::versions::LostRecord;
use super::object::AccountName;
use crate::decide::brake::{Asked, Refusal, Rules, Window};
use crate::decide::key::Probe;
use crate::decide::memory::Problem;
use crate::decide::repairs::{Repair, Repairs};
use crate::decide::{Action, Memory, Reason, Report};
use crate::domain::Compute;
use crate::platform::Tick;

/// What one process remembers; `P` is its client of the platform.
#[derive(Debug)]
pub struct ProcessState<P>(Mutex<Contents<P>>);

/// The same as plain data.
#[derive(Clone, Debug)]
pub struct Contents<P> {
    pub resources: Resources,
    /// The accounts that were looked at.
    pub accounts: BTreeMap<AccountName, AccountEntry<P>>,
    /// Clients of theirs with an earlier key or address, which somebody may still call the platform through.
    pub former: BTreeMap<AccountName, Vec<P>>,
    /// The deletions of the last minute.
    pub deletions: Window,
    /// From when on the next key of a namespace may be asked through an account.
    pub turns: BTreeMap<(AccountName, String), Timestamp>,
    /// What was written again within the last minute.
    pub repairs: Repairs,
    /// How many connections were ever made: each has a number of its own.
    pub connections: u64,
}

/// What is remembered of one resource.
#[derive(Clone, Debug, Default)]
pub struct ResourceState {
    pub memory: Memory,
    pub wrote: Option<Wrote>,
    /// The version that our last write left behind, or that a list lacks; older ones are not decided on.
    pub version: Option<u64>,
    /// The version that a patch of its finalizers was made on that was not answered: a later one may have it.
    pub unanswered: Option<u64>,
    /// The version that a write was refused onto, because the object has another one.
    pub conflict: Option<u64>,
    /// The newest record, where a list lacks it.
    pub lost: Option<Box<LostRecord>>,
    /// The number of the connection that it was decided on with last; another one has other credentials.
    pub connection: Option<u64>,
    /// The platform is expected to change something soon that the resource waits for.
    pub awaiting: bool,
    /// How many passes in a row ended with an error.
    pub errors: u32,
    /// When people were last told of what the API server refuses.
    pub told: Option<Timestamp>,
    /// A step is being performed.
    pub in_step: bool,
    /// The resource is gone, and its last step is not over.
    deleted: bool,
    /// Its kind, and what it waits for although nothing is wrong with it.
    pub waits: Option<(String, Reason)>,
    /// The resource in the way, as it was logged last.
    pub holder: Option<String>,
    /// What was reported last on an object that other operators report on too.
    pub reported: Option<Box<(Option<i64>, Report)>>,
    pub reserved: Option<Reservation>,
    /// The last request to look at the platform anew.
    pub reconcile: Option<String>,
    /// It has a place in the budget for its create since then.
    pub place: Option<Timestamp>,
    pub key: KeyState,
    /// What was done to objects that it owns, and that the watch does not show yet.
    pub children: Children,
}

/// Our last change on the platform, or another reason why only a snapshot that begins after it is decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrote {
    pub ended: Tick,
    /// What the platform has answered, until a snapshot shows it.
    pub answer: Option<Box<Answer>>,
}

/// A compute as the answer to its create showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Before the call.
    pub at: Timestamp,
    pub compute: Compute,
}

impl From<Tick> for Wrote {
    fn from(ended: Tick) -> Self {
        Self { ended, answer: None }
    }
}

impl ResourceState {
    /// A snapshot has to have begun after this to be decided on.
    pub fn wrote_at(&self) -> Option<Tick> {
        self.wrote.as_ref().map(|wrote| wrote.ended)
    }

    /// Whether an answer shows what no snapshot has shown.
    pub fn is_answered(&self) -> bool {
        self.wrote.as_ref().is_some_and(|wrote| wrote.answer.is_some())
    }
}

impl<P> Default for Contents<P> {
    fn default() -> Self {
        Self {
            resources: Resources::default(),
            accounts: BTreeMap::new(),
            former: BTreeMap::new(),
            deletions: Window::default(),
            turns: BTreeMap::new(),
            repairs: Repairs::default(),
            connections: 0,
        }
    }
}

impl<P> Default for ProcessState<P> {
    fn default() -> Self {
        Self::from(Contents::default())
    }
}

impl<P> From<Contents<P>> for ProcessState<P> {
    fn from(contents: Contents<P>) -> Self {
        Self(Mutex::new(contents))
    }
}

/// A step that is being performed; it is over when this is dropped.
#[derive(Debug)]
pub struct StepGuard<'a, P> {
    state: &'a ProcessState<P>,
    uid: String,
}

impl<P> ProcessState<P> {
    /// What is remembered of a resource.
    pub fn resource(&self, uid: &str) -> ResourceState {
        self.with(|contents| contents.resources.get(uid).cloned().unwrap_or_default())
    }

    /// Everything.
    pub fn contents(&self) -> Contents<P>
    where
        P: Clone,
    {
        self.with(|contents| contents.clone())
    }

    /// Its finalizer is removed, by a decision on this version: nothing is remembered, but that neither it nor an older one is decided on. (Of
    /// an object that goes with its last finalizer the API server answers with the version from before.) A key that is not saved yet is
    /// lost, and reported.
    pub fn released(&self, uid: &str, version: Option<u64>) {
        self.with(|contents| contents.deletions.leave(uid));
        self.update(uid, |resource| {
            if let Some(key) = resource.key.unsaved.take() {
                key.log_loss(WITHOUT_OWNER);
            }
            let ResourceState { version: wrote, in_step, deleted, .. } = std::mem::take(resource);
            let version = wrote.max(version.map(|version| version + 1));
            *resource = ResourceState { version, in_step, deleted, ..ResourceState::default() };
        });
    }

    /// The resource is gone. A key that is not saved yet is lost with it, and reported.
    pub fn forget(&self, uid: &str) {
        self.with(|contents| {
            contents.repairs.forget(uid);
            contents.deletions.leave(uid);
            let Some(mut resource) = contents.resources.remove(uid) else { return };
            if let Some(key) = resource.key.unsaved.take() {
                key.log_loss(WITHOUT_OWNER);
            }
            if !resource.in_step {
                return;
            }
            // A step that is not over still has what it reserved, and its account is still needed.
            let left =
                ResourceState { in_step: true, deleted: true, reserved: resource.reserved, ..ResourceState::default() };
            contents.resources.change(uid, |resource| *resource = left);
        });
    }

    /// People ask that the platform is looked at anew; whether that is news.
    pub fn reconcile_requested(&self, uid: &str, requested: &str) -> bool {
        self.update(uid, |resource| {
            let before = resource.reconcile.replace(requested.to_owned());
            before.as_deref() != Some(requested)
        })
    }

    /// What was seen of a resource is remembered; what is remembered of it now.
    pub fn learned(&self, uid: &str, learn: impl FnOnce(&mut Memory)) -> Memory {
        self.update(uid, |resource| {
            learn(&mut resource.memory);
            resource.memory.clone()
        })
    }

    /// Only what the platform shows from now on counts, and what failed is tried again.
    pub fn look_again(&self, uid: &str, tick: Tick) {
        self.update(uid, |resource| {
            resource.memory.retry();
            resource.wrote = Some(tick.into());
            (resource.key.not_offered, resource.key.anew) = (None, Some(tick));
            resource.key.probe = Some(Probe::WANTED);
        });
    }

    /// Remembers the resource in the way, if there is one. Returns whether it is another one than before.
    pub fn waits_for_holder(&self, uid: &str, holder: Option<&String>) -> bool {
        let known = self.with(|contents| contents.resources.get(uid).and_then(|resource| resource.holder.clone()));
        known.as_ref() != holder && {
            self.update(uid, |resource| resource.holder = holder.cloned());
            true
        }
    }

    /// This was reported on an object that other operators report on too, for this generation.
    pub fn reported(&self, uid: &str, reported: (Option<i64>, Report)) {
        self.update(uid, |resource| resource.reported = Some(Box::new(reported)));
    }

    /// Whether this is what was reported last.
    pub fn was_reported(&self, uid: &str, report: &(Option<i64>, Report)) -> bool {
        self.with(|contents| contents.resources.get(uid)?.reported.as_deref().map(|known| known == report))
            == Some(true)
    }

    /// A step begins. A resource has one at a time.
    pub fn begin_step(&self, uid: &str) -> StepGuard<'_, P> {
        self.update(uid, |resource| resource.in_step = true);
        StepGuard { state: self, uid: uid.to_owned() }
    }

    /// A step failed; what is remembered of the resource now.
    pub fn step_failed(
        &self,
        uid: &str,
        (action, problem): (Action, Problem),
        generation: i64,
        now: Timestamp,
    ) -> Memory {
        self.update(uid, |resource| {
            resource.memory.failed(action, problem, generation, now);
            resource.memory.clone()
        })
    }

    /// An action has succeeded; its failures are forgotten.
    pub fn action_succeeded(&self, uid: &str, action: Action) {
        self.update(uid, |resource| resource.memory.succeeded(action));
    }

    /// A call is recorded in the resource, and about to be made.
    pub fn call_recorded(&self, uid: &str, action: Action, at: Timestamp) {
        self.update(uid, |resource| resource.memory.recorded(action, at));
    }

    /// Admits and counts a deletion on the platform, or says why it has to wait. Counted as it is admitted, so that passes
    /// that run at the same time do not share one place.
    pub fn admit_deletion(&self, asked: &Asked, rules: &Rules, now: Timestamp) -> Result<(), Refusal> {
        self.with(|contents| contents.deletions.admit(asked, rules, now))
    }

    /// What is as it was before is written again.
    pub fn repaired(&self, uid: &str, repair: Repair, now: Timestamp) {
        self.with(|contents| contents.repairs.made(uid, repair, now));
    }

    /// From when on that may be done again, where something else has undone it too often.
    pub fn repair_waits_until(&self, uid: &str, repair: &Repair, now: Timestamp) -> Option<Timestamp> {
        self.with(|contents| contents.repairs.waits_until(uid, repair, now))
    }

    /// People are told that something else undoes it.
    pub fn told_of_undone(&self, uid: &str, message: String) {
        self.with(|contents| contents.repairs.tell(uid, message));
    }

    /// What they were told, and until when that is so at least.
    pub fn undone(&self, uid: &str, now: Timestamp) -> Option<(String, Timestamp)> {
        self.with(|contents| contents.repairs.undone(uid, now))
    }

    /// What a resource of `kind` waits for now.
    pub fn waits(&self, uid: &str, kind: &str, now: Option<Reason>) {
        self.with(|contents| {
            let known = contents.resources.get(uid).and_then(|resource| resource.waits.as_ref());
            if known.map(|(_, reason)| *reason) != now {
                contents.resources.change(uid, |resource| resource.waits = now.map(|reason| (kind.to_owned(), reason)));
            }
        });
    }

    /// How many resources of `kind` wait, by what they wait for.
    pub fn waiting(&self, kind: &str) -> BTreeMap<Reason, usize> {
        self.with(|contents| contents.resources.waiting(kind))
    }

    fn update<T>(&self, uid: &str, change: impl FnOnce(&mut ResourceState) -> T) -> T {
        self.with(|contents| contents.resources.change(uid, change))
    }

    fn with<T>(&self, run: impl FnOnce(&mut Contents<P>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<P> Drop for StepGuard<'_, P> {
    fn drop(&mut self) {
        self.state.with(|contents| {
            let ended = contents.resources.change_known(&self.uid, |resource| {
                resource.in_step = false;
                if let Some(reserved) = &mut resource.reserved {
                    reserved.running = false;
                }
                resource.deleted
            });
            if ended != Some(true) {
                return;
            }
            let removed = contents.resources.remove(&self.uid);
            if let Some(key) = removed.and_then(|resource| resource.key.unsaved) {
                key.log_loss(WITHOUT_OWNER);
            }
        });
    }
}

/// Why the secret of a key whose ProjectKey is gone cannot be saved, and what to do.
const WITHOUT_OWNER: &str = "its ProjectKey is gone; revoke it in the platform's console";

#[cfg(test)]
mod tests;
