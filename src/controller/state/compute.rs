//! What is remembered of a Compute: its last calls, and whose turn it is to create on a branch.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Answer, ProcessState, ResourceState, Wrote};
use crate::api::{ComputeType, LastOperation};
use crate::decide::Action;
use crate::decide::identity::Told;
use crate::decide::memory::Asked;
use crate::domain::{ComputeChange, Fault};
use crate::platform::Tick;

/// What creates take turns for, through whatever account: one platform has many spellings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    pub project: String,
    pub branch: String,
    pub type_: ComputeType,
}

/// A create that was begun and is not resolved. Others on its branch wait, before the caches show its intent.
#[derive(Clone, Debug)]
pub struct Create {
    pub turn: Turn,
    pub told: Told,
    pub running: bool,
    /// Its intent was written to the object of this version, and whether the API server did so is not known.
    pub recording: Option<u64>,
}

impl Create {
    /// Whether the intent may be in the object although this version of it has none. However long a cache lags: what was written
    /// makes another version, and so does the next try if it was not.
    fn may_be_recorded(&self, version: Option<u64>) -> bool {
        self.recording.is_some() && version <= self.recording
    }
}

impl ResourceState {
    fn forget_answer(&mut self) {
        if let Some(wrote) = &mut self.wrote {
            wrote.answer = None;
        }
    }
}

impl<P> ProcessState<P> {
    /// The resource is about to be looked at through this connection. What the old credentials could not see or do says
    /// nothing of the new ones.
    pub fn looking(&self, uid: &str, connection: u64) -> ResourceState {
        self.update(uid, |resource| {
            if resource.connection != Some(connection) {
                resource.memory.credentials_changed();
                resource.connection = Some(connection);
                resource.place = None;
                resource.forget_answer();
            }
            resource.clone()
        })
    }

    /// The resource is decided on a snapshot that begins from now on: a baseline must not be old.
    pub fn list_wanted(&self, uid: &str, tick: Tick) -> Wrote {
        self.update(uid, |resource| resource.wrote.insert(tick.into()).clone())
    }

    /// Whether the platform is expected to change something soon; whether that is news.
    pub fn awaiting(&self, uid: &str, awaiting: bool) -> bool {
        self.update(uid, |resource| std::mem::replace(&mut resource.awaiting, awaiting) != awaiting)
    }

    /// Takes the turn to create a compute of a type on a branch; whether it was free, or the resource's own, or can be shared. It is held
    /// until the create is resolved, and for as long as the step runs.
    pub fn begin_create(&self, uid: &str, turn: Turn, told: Told) -> bool {
        self.with(|contents| {
            if contents.resources.creating(&turn).any(|(other, theirs)| other != uid && !told.goes_with(theirs)) {
                return false;
            }
            contents.resources.change(uid, |resource| {
                // An intent of before may be written still, although this version of the object does not show it.
                let before = resource.create.take().filter(|create| create.turn == turn);
                let recording = before.and_then(|create| create.recording);
                resource.create = Some(Create { turn, told, running: true, recording });
            });
            true
        })
    }

    /// Whether it is this resource's turn.
    pub fn has_turn(&self, uid: &str, turn: &Turn) -> bool {
        self.with(|contents| contents.resources.creating(turn).any(|(creating, _)| creating == uid))
    }

    /// A place in the budget was waited for. It is kept, and what was there before the create is read anew.
    pub fn keep_place(&self, uid: &str, now: Timestamp, tick: Tick) {
        self.update(uid, |resource| (resource.place, resource.wrote) = (Some(now), Some(tick.into())));
    }

    /// The place that is kept, given away: since when.
    pub fn take_place(&self, uid: &str) -> Option<Timestamp> {
        self.update(uid, |resource| resource.place.take())
    }

    /// How the create is told that a resource has begun and that is not resolved.
    pub fn creates(&self, uid: &str) -> Option<Told> {
        self.with(|contents| Some(contents.resources.get(uid)?.create.as_ref()?.told))
    }

    /// The intent of a create is about to be written to the object of this version; whether none was before that may be in it.
    pub fn recording_create(&self, uid: &str, version: Option<u64>) -> bool {
        self.update(uid, |resource| {
            let Some(create) = &mut resource.create else { return true };
            std::mem::replace(&mut create.recording, version).is_none()
        })
    }

    /// The API server has refused to write the intent: nothing was begun, and it is anybody's turn.
    pub fn create_refused(&self, uid: &str) {
        self.update(uid, |resource| resource.create = None);
    }

    /// The API server has written the intent.
    pub fn create_recorded(&self, uid: &str) {
        self.update(uid, |resource| {
            if let Some(create) = &mut resource.create {
                create.recording = None;
            }
        });
    }

    /// This version of the object shows the create resolved, or never recorded; how it was told where that is news. It is neither while
    /// the create is running, nor while its intent may be written and not be seen yet.
    pub fn create_resolved(&self, uid: &str, version: Option<u64>) -> Option<Told> {
        self.with(|contents| {
            let over = |create: &mut Create| !create.running && !create.may_be_recorded(version);
            let ended = contents.resources.change_known(uid, |resource| resource.create.take_if(over));
            ended.flatten().map(|create| create.told)
        })
    }

    /// A call that changes something ended at `tick`.
    pub fn platform_written(&self, uid: &str, tick: Tick) {
        self.update(uid, |resource| resource.wrote = Some(tick.into()));
    }

    /// What came of a call that changes a compute.
    pub fn compute_changed(&self, uid: &str, action: Action, failed: Option<&Fault>) {
        self.update(uid, |resource| {
            resource.memory.changing |= failed.is_none_or(Fault::may_have_happened);
            if failed.is_none() {
                resource.memory.succeeded(action);
            }
        });
    }

    /// A create was answered, which is our last change; the resource is not bound to the compute yet.
    pub fn compute_created(&self, uid: &str, answer: Answer) {
        self.update(uid, |resource| {
            resource.memory.created = Some(answer.compute.id.clone());
            if let Some(wrote) = &mut resource.wrote {
                wrote.answer = Some(Box::new(answer));
            }
        });
    }

    /// A snapshot shows what the answer did, or more.
    pub fn answer_outdated(&self, uid: &str) {
        self.update(uid, ResourceState::forget_answer);
    }

    /// The resource is bound to its compute.
    pub fn compute_bound(&self, uid: &str) {
        self.update(uid, |resource| resource.memory.created = None);
    }

    /// The platform was asked for a compute.
    pub fn compute_asked(&self, uid: &str, asked: Asked) {
        self.update(uid, |resource| {
            resource.memory.succeeded(Action::Ask);
            resource.memory.asked = Some(asked);
        });
    }

    /// The platform confirmed the delete.
    pub fn compute_deleted(&self, uid: &str, at: Timestamp) {
        self.update(uid, |resource| resource.memory.deleted = Some(at));
    }

    /// A change was sent, by the fields that it corrects.
    pub fn change_sent(&self, uid: &str, parts: &BTreeMap<String, ComputeChange>, now: Timestamp) {
        self.update(uid, |resource| resource.memory.sent(parts, now));
    }

    /// Our last change started these operations.
    pub fn operations_started(&self, uid: &str, started: &[LastOperation]) {
        self.update(uid, |resource| resource.memory.operations_started(started));
    }

    /// The platform was asked for the operations of a compute; `None` where it does not list any.
    pub fn operations_asked(&self, uid: &str, listed: Option<&[LastOperation]>, now: Timestamp) {
        self.update(uid, |resource| match listed {
            Some(listed) => resource.memory.operations_listed(listed, now),
            None => resource.memory.operations_not_listed(),
        });
    }
}
