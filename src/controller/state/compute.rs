//! What is remembered of a Compute: its last calls, and what it has reserved.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Answer, ProcessState, ResourceState, Wrote};
use crate::api::LastOperation;
use crate::decide::Action;
use crate::decide::compute::{Holder, ReservedPlace};
use crate::decide::identity::Told;
use crate::decide::memory::Asked;
use crate::domain::{ComputeChange, Fault};
use crate::platform::Tick;

/// What a Compute has reserved, until its status shows what it claims.
#[derive(Clone, Debug)]
pub struct Reservation {
    pub place: ReservedPlace,
    pub by: Holder,
    pub told: Told,
    pub running: bool,
    /// The claim was written to the object of this version, and whether the API server did so is not known.
    pub recording: Option<u64>,
}

impl Reservation {
    /// Whether the claim may be in the object although this version of it does not have it. However long a cache lags: what was written
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

    /// Reserves a place; whether it was free, or the resource's own, or can be shared. It is held until the resource's status shows what came
    /// of it, and for as long as the step runs.
    pub fn reserve(&self, uid: &str, place: ReservedPlace, by: Holder, told: Told) -> bool {
        self.with(|contents| {
            let is_in_the_way = |(other, theirs): (&str, &Reservation)| other != uid && !told.goes_with(theirs.told);
            if contents.resources.reserved(&place).any(is_in_the_way) {
                return false;
            }
            contents.resources.change(uid, |resource| {
                // The claim of before may be written still, although this version of the object does not show it.
                let before = resource.reserved.take().filter(|before| before.place == place);
                let recording = before.and_then(|before| before.recording);
                resource.reserved = Some(Reservation { place, by, told, running: true, recording });
            });
            true
        })
    }

    /// Who else has reserved a place, and how their creates are told.
    pub fn reserved_by_others(&self, uid: &str, place: &ReservedPlace) -> Vec<(Holder, Told)> {
        self.with(|contents| {
            let others = contents.resources.reserved(place).filter(|(other, _)| *other != uid);
            others.map(|(_, theirs)| (theirs.by.clone(), theirs.told)).collect()
        })
    }

    /// A place in the budget was waited for. It is kept, and what was there before the create is read anew.
    pub fn keep_place(&self, uid: &str, now: Timestamp, tick: Tick) {
        self.update(uid, |resource| (resource.place, resource.wrote) = (Some(now), Some(tick.into())));
    }

    /// The place that is kept, given away: since when.
    pub fn take_place(&self, uid: &str) -> Option<Timestamp> {
        self.update(uid, |resource| resource.place.take())
    }

    /// The claim is about to be written to the object of this version; whether none was before that may be in it.
    pub fn recording(&self, uid: &str, version: Option<u64>) -> bool {
        self.update(uid, |resource| {
            let Some(reserved) = &mut resource.reserved else { return true };
            std::mem::replace(&mut reserved.recording, version).is_none()
        })
    }

    /// The claim is not going to be written for now. One that may have been written before keeps its place.
    pub fn gave_up(&self, uid: &str) {
        self.update(uid, |resource| resource.reserved.take_if(|reserved| reserved.recording.is_none()));
    }

    /// The API server has refused to write the claim: nothing was begun, and the place is free.
    pub fn not_recorded(&self, uid: &str) {
        self.update(uid, |resource| resource.reserved = None);
    }

    /// The API server has written the claim.
    pub fn recorded(&self, uid: &str) {
        self.update(uid, |resource| {
            if let Some(reserved) = &mut resource.reserved {
                reserved.recording = None;
            }
        });
    }

    /// This version of the object shows what came of what was reserved, which is free from now on. It does not while the step runs, nor while
    /// the claim may be written and not be seen yet.
    pub fn resolved(&self, uid: &str, version: Option<u64>) -> Option<Reservation> {
        self.with(|contents| {
            let over = |reserved: &mut Reservation| !reserved.running && !reserved.may_be_recorded(version);
            contents.resources.change_known(uid, |resource| resource.reserved.take_if(over)).flatten()
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
    pub fn compute_deleted(&self, uid: &str, id: &str, at: Timestamp) {
        self.update(uid, |resource| resource.memory.deleted = Some((id.to_owned(), at)));
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
