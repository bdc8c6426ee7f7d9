//! The memory of one process between passes; only the transitions named here change it. Losing all
//! of it costs time, and a key that is not in its Secret yet. It never leads to a second object.

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

pub use self::account::{AccountConnection, AccountEntry, SharedConnection};
use self::children::Children;
pub use self::children::Done;
pub use self::compute::Reservation;
pub use self::key::{KeyState, UnsavedKey};
pub use self::resources::{Resources, Wait};
use self::versions::LostRecord;
use super::object::AccountName;
use crate::api::Uid;
use crate::decide::brake::{DeletionRefusal, DeletionRequest, DeletionWindow, Rules};
use crate::decide::identity::RestartAnswer;
use crate::decide::key::Probe;
use crate::decide::write_contention::{Repair, WriteContention};
use crate::decide::{Action, Memory, Report};
use crate::domain::Compute;
use crate::platform::Tick;

/// The memory of one process; `P` is its client of the platform.
#[derive(Debug)]
pub struct ProcessState<P>(Mutex<Contents<P>>);

/// The memory as plain data.
#[derive(Clone, Debug)]
pub struct Contents<P> {
    pub resources: Resources,
    pub accounts: BTreeMap<AccountName, AccountEntry<P>>,
    /// Their clients with an earlier key or address, which may still be in use.
    pub former: BTreeMap<AccountName, Vec<P>>,
    /// The deletions of the last minute.
    pub deletions: DeletionWindow,
    /// From when on the next key of a namespace may be probed through an account.
    pub turns: BTreeMap<(AccountName, String), Timestamp>,
    /// The repairs of the last minute.
    pub repairs: WriteContention,
    /// How many connections were made so far. It gives each one a unique number.
    pub connections: u64,
}

#[derive(Clone, Debug, Default)]
pub struct ResourceState {
    pub memory: Memory,
    pub wrote: Option<Wrote>,
    /// The version that our last write produced, or that a list lacks. Older versions are not
    /// decided on.
    pub version: Option<u64>,
    /// The version on which an unanswered patch of the finalizers was based. A later version may
    /// have the patch.
    pub unanswered: Option<u64>,
    /// The version on which a write failed with a conflict.
    pub conflict: Option<u64>,
    /// The newest record, if a list lacks it.
    pub lost: Option<Box<LostRecord>>,
    /// The number of the connection of the last decision. Another number means other credentials.
    pub connection: Option<u64>,
    /// The resource waits for a change on the platform that is expected soon.
    pub awaiting: bool,
    /// How many passes in a row ended with an error.
    pub errors: u32,
    /// When a refusal by the API server was last reported.
    pub told: Option<Timestamp>,
    pub in_step: bool,
    /// Its record had something on the platform when it was last decided on.
    pub held: bool,
    /// The resource is gone, but its last step is still running.
    deleted: bool,
    /// Why it waits although nothing is wrong.
    pub waits: Option<Wait>,
    /// The resource in the way, as last logged.
    pub holder: Option<String>,
    /// The last report on an object that other operators report on too.
    pub reported: Option<Box<(Option<i64>, Report)>>,
    pub reserved: Option<Reservation>,
    /// The last request to read the platform again.
    pub reconcile: Option<String>,
    /// Since when it has a place in the budget for its create.
    pub place: Option<Timestamp>,
    pub key: KeyState,
    /// Writes to objects that it owns, until the watch shows them.
    pub children: Children,
}

/// Our last change on the platform, or another reason to ignore snapshots that began before.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrote {
    pub ended: Tick,
    /// The platform's answer, until a snapshot shows it.
    pub answer: Option<Box<Answer>>,
}

/// A compute as the answer to its create showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The time before the call.
    pub at: Timestamp,
    pub compute: Compute,
}

impl From<Tick> for Wrote {
    fn from(ended: Tick) -> Self {
        Self {
            ended,
            answer: None,
        }
    }
}

impl ResourceState {
    /// A snapshot counts only if it began after this.
    pub fn wrote_at(&self) -> Option<Tick> {
        self.wrote.as_ref().map(|wrote| wrote.ended)
    }

    /// True if there is an answer that no snapshot has shown yet.
    pub fn is_answered(&self) -> bool {
        self.wrote
            .as_ref()
            .is_some_and(|wrote| wrote.answer.is_some())
    }
}

impl<P> Default for Contents<P> {
    fn default() -> Self {
        Self {
            resources: Resources::default(),
            accounts: BTreeMap::new(),
            former: BTreeMap::new(),
            deletions: DeletionWindow::default(),
            turns: BTreeMap::new(),
            repairs: WriteContention::default(),
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

/// Marks a running step; dropping it ends the mark.
#[derive(Debug)]
pub struct StepGuard<'a, P> {
    state: &'a ProcessState<P>,
    uid: Uid,
}

impl<P> ProcessState<P> {
    pub fn resource(&self, uid: &Uid) -> ResourceState {
        self.with(|contents| contents.resources.get(uid).cloned().unwrap_or_default())
    }

    pub fn contents(&self) -> Contents<P>
    where
        P: Clone,
    {
        self.with(|contents| contents.clone())
    }

    /// The finalizer was removed by a decision on this version. Everything is forgotten, except
    /// that this and older versions are not decided on. (When the last finalizer of a deleted
    /// object is removed, the API server answers with the previous version.) An unsaved key is lost
    /// and logged.
    pub fn released(&self, uid: &Uid, version: Option<u64>) {
        self.with(|contents| contents.deletions.leave(uid.as_str()));
        self.update(uid, |resource| {
            if let Some(key) = resource.key.unsaved.take() {
                key.log_loss(WITHOUT_OWNER);
            }
            let ResourceState {
                version: wrote,
                in_step,
                deleted,
                ..
            } = std::mem::take(resource);
            let version = wrote.max(version.map(|version| version + 1));
            *resource = ResourceState {
                version,
                in_step,
                deleted,
                ..ResourceState::default()
            };
        });
    }

    /// The resource is gone. An unsaved key is lost and logged.
    pub fn forget(&self, uid: &Uid) {
        self.with(|contents| {
            contents.repairs.forget(uid.as_str());
            contents.deletions.leave(uid.as_str());
            let Some(mut resource) = contents.resources.remove(uid) else {
                return;
            };
            if let Some(key) = resource.key.unsaved.take() {
                key.log_loss(WITHOUT_OWNER);
            }
            if !resource.in_step {
                return;
            }
            // A running step keeps its reservation and still needs its account.
            let left = ResourceState {
                in_step: true,
                deleted: true,
                reserved: resource.reserved,
                ..ResourceState::default()
            };
            contents.resources.change(uid, |resource| *resource = left);
        });
    }

    /// Notes a request to read the platform again. Returns whether it is new.
    pub fn reconcile_requested(&self, uid: &Uid, requested: &str) -> bool {
        self.update(uid, |resource| {
            let before = resource.reconcile.replace(requested.to_owned());
            before.as_deref() != Some(requested)
        })
    }

    pub fn memory(&self, uid: &Uid) -> Memory {
        self.with(|contents| {
            let resource = contents.resources.get(uid);
            resource
                .map(|resource| resource.memory.clone())
                .unwrap_or_default()
        })
    }

    /// Replaces the memory of a resource by what an observation has made of it.
    pub fn remember(&self, uid: &Uid, memory: Memory) {
        self.update(uid, |resource| resource.memory = memory);
    }

    /// From now on only snapshots that begin after `tick` count, and failed actions are retried.
    pub fn invalidate(&self, uid: &Uid, tick: Tick) {
        self.update(uid, |resource| {
            resource.memory.retry();
            resource.wrote = Some(tick.into());
            (resource.key.not_offered, resource.key.anew) = (None, Some(tick));
            resource.key.probe = Some(Probe::WANTED);
        });
    }

    /// Remembers the resource in the way, if there is one. Returns whether it changed.
    pub fn waits_for_holder(&self, uid: &Uid, holder: Option<&String>) -> bool {
        let known = self.with(|contents| {
            contents
                .resources
                .get(uid)
                .and_then(|resource| resource.holder.clone())
        });
        known.as_ref() != holder && {
            self.update(uid, |resource| resource.holder = holder.cloned());
            true
        }
    }

    /// Remembers the last report, with its generation, on an object that other operators report on
    /// too.
    pub fn reported(&self, uid: &Uid, reported: (Option<i64>, Report)) {
        self.update(uid, |resource| resource.reported = Some(Box::new(reported)));
    }

    /// True if this equals the last report.
    pub fn was_reported(&self, uid: &Uid, report: &(Option<i64>, Report)) -> bool {
        self.with(|contents| {
            contents
                .resources
                .get(uid)?
                .reported
                .as_deref()
                .map(|known| known == report)
        }) == Some(true)
    }

    /// Marks that a step is running. A resource has one at a time.
    pub fn begin_step(&self, uid: &Uid) -> StepGuard<'_, P> {
        self.update(uid, |resource| resource.in_step = true);
        StepGuard {
            state: self,
            uid: uid.clone(),
        }
    }

    /// Changes the memory of a resource, and returns it.
    pub fn change_memory(&self, uid: &Uid, change: impl FnOnce(&mut Memory)) -> Memory {
        self.update(uid, |resource| {
            change(&mut resource.memory);
            resource.memory.clone()
        })
    }

    /// Forgets the failures of an action that has succeeded.
    pub fn action_succeeded(&self, uid: &Uid, action: Action) {
        self.update(uid, |resource| resource.memory.succeeded(action));
    }

    pub fn restart_answered(&self, uid: &Uid, at: Timestamp, answered: RestartAnswer) {
        self.update(uid, |resource| {
            resource.memory.restart_answered = Some((at, answered))
        });
    }

    /// Notes that a call is recorded in the resource and about to be sent.
    pub fn call_recorded(&self, uid: &Uid, action: Action, at: Timestamp) {
        self.update(uid, |resource| resource.memory.recorded(action, at));
    }

    /// Admits and counts a deletion on the platform, or returns why it has to wait. It counts on
    /// admission, so that concurrent passes do not share one place.
    pub fn admit_deletion(
        &self,
        asked: &DeletionRequest,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<(), DeletionRefusal> {
        self.with(|contents| contents.deletions.admit(asked, rules, now))
    }

    /// Counts a repair.
    pub fn repaired(&self, uid: &Uid, repair: Repair, now: Timestamp) {
        self.with(|contents| contents.repairs.made(uid.as_str(), repair, now));
    }

    /// When the repair may be made again, if something else undoes it too often.
    pub fn repair_waits_until(
        &self,
        uid: &Uid,
        repair: &Repair,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.with(|contents| contents.repairs.waits_until(uid.as_str(), repair, now))
    }

    /// Remembers the message that reports the undone repair.
    pub fn contention_reported(&self, uid: &Uid, message: String) {
        self.with(|contents| contents.repairs.keep_message(uid.as_str(), message));
    }

    /// The message about the undone repair, and until when it is true at least.
    pub fn reported_contention(&self, uid: &Uid, now: Timestamp) -> Option<(String, Timestamp)> {
        self.with(|contents| contents.repairs.reported(uid.as_str(), now))
    }

    /// Sets why a resource waits.
    pub fn waits(&self, uid: &Uid, now: Option<Wait>) {
        self.with(|contents| {
            let known = contents
                .resources
                .get(uid)
                .and_then(|resource| resource.waits.as_ref());
            if known != now.as_ref() {
                contents
                    .resources
                    .change(uid, |resource| resource.waits = now);
            }
        });
    }

    /// How many resources wait, and why.
    pub fn waiting(&self) -> BTreeMap<Wait, usize> {
        self.with(|contents| contents.resources.waiting().clone())
    }

    fn update<T>(&self, uid: &Uid, change: impl FnOnce(&mut ResourceState) -> T) -> T {
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

/// Why the secret of a key cannot be saved once its ProjectKey is gone, and what to do.
const WITHOUT_OWNER: &str = "its ProjectKey is gone; revoke it in the platform's console";

#[cfg(test)]
mod tests;
