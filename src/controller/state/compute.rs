//! The memory of a Compute: its last calls and its reservation.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Answer, ProcessState, ResourceState, Wrote};
use crate::api::{LastOperation, Uid};
use crate::decide::Action;
use crate::decide::compute::{Holder, ReservedPlace};
use crate::decide::identity::Evidence;
use crate::decide::memory::ExistenceAnswer;
use crate::domain::{ComputeChange, ComputeId, Fault};
use crate::platform::Tick;

/// The reservation of a Compute, until its status shows what it claims.
#[derive(Clone, Debug)]
pub struct Reservation {
    pub place: ReservedPlace,
    pub by: Holder,
    pub evidence: Evidence,
    pub running: bool,
    /// The version to which the claim was written without a known outcome.
    pub recording: Option<u64>,
}

impl Reservation {
    /// True if the object may have the claim although this version lacks it. This holds however far
    /// the cache lags: a write that succeeded makes another version, and so does the next attempt
    /// after one that did not.
    fn may_be_recorded(&self, version: Option<u64>) -> bool {
        self.recording.is_some() && version <= self.recording
    }

    /// True if this version of the object, which shows the outcome, ends the reservation.
    fn is_over(&self, version: Option<u64>) -> bool {
        !self.running && !self.may_be_recorded(version)
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
    /// The resource is about to be observed through this connection. With other credentials, what
    /// the old ones could not see or do counts no longer.
    pub fn looking(&self, uid: &Uid, connection: u64) -> ResourceState {
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

    /// From now on only snapshots that begin after `tick` count: a baseline must not be old.
    pub fn list_wanted(&self, uid: &Uid, tick: Tick) -> Wrote {
        self.update(uid, |resource| resource.wrote.insert(tick.into()).clone())
    }

    /// Sets whether a change on the platform is expected soon. Returns whether that is new.
    pub fn awaiting(&self, uid: &Uid, awaiting: bool) -> bool {
        self.update(uid, |resource| {
            std::mem::replace(&mut resource.awaiting, awaiting) != awaiting
        })
    }

    /// Reserves a place. Returns whether it was free, already the resource's own, or can be shared.
    /// The place is held while the step runs, and until the status shows the outcome.
    pub fn reserve(&self, uid: &Uid, place: ReservedPlace, by: Holder, evidence: Evidence) -> bool {
        self.with(|contents| {
            let is_in_the_way = |(other, theirs): (&Uid, &Reservation)| {
                other != uid && !evidence.goes_with(theirs.evidence)
            };
            if contents.resources.reserved(&place).any(is_in_the_way) {
                return false;
            }
            contents.resources.change(uid, |resource| {
                // An earlier claim may still be written, although this version of the object lacks
                // it.
                let before = resource
                    .reserved
                    .take()
                    .filter(|before| before.place == place);
                let recording = before.and_then(|before| before.recording);
                resource.reserved = Some(Reservation {
                    place,
                    by,
                    evidence,
                    running: true,
                    recording,
                });
            });
            true
        })
    }

    /// The other holders of a place, and how the results of their creates are recognized.
    pub fn reserved_by_others(&self, uid: &Uid, place: &ReservedPlace) -> Vec<(Holder, Evidence)> {
        self.with(|contents| {
            let others = contents
                .resources
                .reserved(place)
                .filter(|(other, _)| *other != uid);
            others
                .map(|(_, theirs)| (theirs.by.clone(), theirs.evidence))
                .collect()
        })
    }

    /// Keeps the place in the budget that the create waited for. The baseline has to be read again.
    pub fn keep_place(&self, uid: &Uid, now: Timestamp, tick: Tick) {
        self.update(uid, |resource| {
            (resource.place, resource.wrote) = (Some(now), Some(tick.into()))
        });
    }

    /// Gives the kept place away. Returns since when it was kept.
    pub fn take_place(&self, uid: &Uid) -> Option<Timestamp> {
        self.update(uid, |resource| resource.place.take())
    }

    /// The claim is about to be written to this version of the object. Returns whether no earlier
    /// write of it may have succeeded.
    pub fn recording(&self, uid: &Uid, version: Option<u64>) -> bool {
        self.update(uid, |resource| {
            let Some(reserved) = &mut resource.reserved else {
                return true;
            };
            std::mem::replace(&mut reserved.recording, version).is_none()
        })
    }

    /// The claim is not written for now. If an earlier write may have succeeded, the place is kept.
    pub fn gave_up(&self, uid: &Uid) {
        self.update(uid, |resource| {
            resource
                .reserved
                .take_if(|reserved| reserved.recording.is_none())
        });
    }

    /// The API server has refused to write the claim: nothing was begun, and the place is free.
    pub fn not_recorded(&self, uid: &Uid) {
        self.update(uid, |resource| resource.reserved = None);
    }

    pub fn recorded(&self, uid: &Uid) {
        self.update(uid, |resource| {
            if let Some(reserved) = &mut resource.reserved {
                reserved.recording = None;
            }
        });
    }

    /// This version of the object shows the outcome, so the place is freed and returned. It is not
    /// freed while the step runs, nor while the claim may be written but is not visible yet.
    pub fn resolved(&self, uid: &Uid, version: Option<u64>) -> Option<Reservation> {
        self.with(|contents| {
            let freed = contents.resources.change_known(uid, |resource| {
                resource
                    .reserved
                    .take_if(|reserved| reserved.is_over(version))
            });
            freed.flatten()
        })
    }

    /// The evidence of the reservation that `resolved` would end.
    pub fn ending_reservation(&self, uid: &Uid, version: Option<u64>) -> Option<Evidence> {
        self.with(|contents| {
            let reserved = contents.resources.get(uid)?.reserved.as_ref()?;
            reserved.is_over(version).then_some(reserved.evidence)
        })
    }

    /// A call that changes something on the platform ended at `tick`.
    pub fn platform_written(&self, uid: &Uid, tick: Tick) {
        self.update(uid, |resource| resource.wrote = Some(tick.into()));
    }

    /// Records the outcome of a call that changes a compute.
    pub fn compute_changed(&self, uid: &Uid, action: Action, failed: Option<&Fault>) {
        self.update(uid, |resource| {
            resource.memory.changing |= failed.is_none_or(Fault::may_have_happened);
            if failed.is_none() {
                resource.memory.succeeded(action);
            }
        });
    }

    /// A create was answered, but the resource is not bound to the compute yet. The create is our
    /// last change.
    pub fn compute_created(&self, uid: &Uid, answer: Answer) {
        self.update(uid, |resource| {
            resource.memory.created = Some(answer.compute.id.clone());
            if let Some(wrote) = &mut resource.wrote {
                wrote.answer = Some(Box::new(answer));
            }
        });
    }

    /// A snapshot shows the answered create or a later state.
    pub fn answer_outdated(&self, uid: &Uid) {
        self.update(uid, ResourceState::forget_answer);
    }

    pub fn compute_bound(&self, uid: &Uid) {
        self.update(uid, |resource| resource.memory.created = None);
    }

    /// Records the platform's answer about one compute.
    pub fn compute_asked(&self, uid: &Uid, asked: ExistenceAnswer) {
        self.update(uid, |resource| {
            resource.memory.succeeded(Action::Ask);
            resource.memory.asked = Some(asked);
        });
    }

    /// The platform has confirmed the delete.
    pub fn compute_deleted(&self, uid: &Uid, id: &ComputeId, at: Timestamp) {
        self.update(uid, |resource| {
            resource.memory.deleted = Some((id.clone(), at))
        });
    }

    /// A change was sent. `parts` are the fields that it corrects.
    pub fn change_sent(&self, uid: &Uid, parts: &BTreeMap<String, ComputeChange>, now: Timestamp) {
        self.update(uid, |resource| resource.memory.sent(parts, now));
    }

    /// Our last change has started these operations.
    pub fn operations_started(&self, uid: &Uid, started: &[LastOperation]) {
        self.update(uid, |resource| resource.memory.operations_started(started));
    }

    /// Records the listed operations of a compute; `None` if the platform does not list any.
    pub fn operations_asked(&self, uid: &Uid, listed: Option<&[LastOperation]>, now: Timestamp) {
        self.update(uid, |resource| match listed {
            Some(listed) => resource.memory.operations_listed(listed, now),
            None => resource.memory.operations_not_listed(),
        });
    }
}
