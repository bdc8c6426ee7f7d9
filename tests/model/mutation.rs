//! Rules broken on purpose, to show that the checker notices.

use dbplane::decide::compute::{ComputeObserved, SnapshotState};
use dbplane::decide::identity::LostKey;
use dbplane::decide::key::{KeyListing, KeyObserved, KeyStep};
use jiff::Timestamp;

/// One rule, broken where the shipped code meets its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// What was there before a create is not remembered.
    IgnoreBaseline,
    /// A call that was not answered counts as not made.
    UnknownIsNotDone,
    /// The absence of a compute or key proves at once that it was not created.
    SkipSettling,
    /// A reading counts as begun when it is looked at, and may be older than our last write.
    TrustOldReadings,
    /// Patches are applied to whatever version there is.
    SkipVersion,
    /// What other resources claim is not looked at.
    IgnoreClaims,
    /// Intents are not written.
    SkipIntent,
    /// A call is made however long ago it was recorded.
    NeverTooLate,
    /// Creates on one branch are not made one after the other.
    SkipSerialization,
    /// Any compute that is new is taken for ours.
    IgnoreSettings,
    /// A list that failed counts as empty.
    FailedListIsEmpty,
    /// A resource is released although a create of it is not resolved.
    ReleaseUnresolved,
    /// Keys are revoked whatever they are called.
    RevokeByIdAlone,
    /// A key that was lost is not written down.
    ForgetLostKeys,
    /// A key whose secret never arrived is revoked before it is recorded as lost.
    RevokeUnrecorded,
    /// What was deleted is not waited for.
    ReleaseAtOnce,
}

impl Mutation {
    pub fn observing_compute(self, observed: &mut ComputeObserved, now: Timestamp) {
        match self {
            Self::SkipSettling => observed.limits.settle = std::time::Duration::ZERO,
            Self::IgnoreClaims => observed.claims = Default::default(),
            Self::SkipSerialization => observed.claims.creating = None,
            Self::IgnoreBaseline => {
                if let Ok(identity) = &mut observed.identity
                    && let Some(intent) = &mut identity.intent
                {
                    intent.baseline.clear();
                }
            }
            Self::ReleaseUnresolved if observed.meta.deleting => {
                if let Ok(identity) = &mut observed.identity {
                    identity.intent = None;
                }
            }
            Self::ReleaseAtOnce if observed.meta.deleting && observed.memory.deleted.is_none() => {
                if let Ok(identity) = &mut observed.identity {
                    identity.binding = None;
                }
            }
            Self::TrustOldReadings => {
                if let SnapshotState::Taken { at, .. } = &mut observed.snapshot {
                    *at = now;
                }
            }
            Self::IgnoreSettings => {
                if let SnapshotState::Taken { computes, .. } = &mut observed.snapshot {
                    computes.iter_mut().for_each(|compute| compute.settings.passwordless_access = Some(true));
                }
            }
            Self::FailedListIsEmpty => {
                if let SnapshotState::Failed(_) = &observed.snapshot {
                    observed.snapshot = SnapshotState::Taken { at: now, computes: Vec::new() };
                }
            }
            _ => {}
        }
    }

    pub fn observing_key(self, observed: &mut KeyObserved) {
        match self {
            Self::SkipSettling => observed.limits.settle = std::time::Duration::ZERO,
            Self::RevokeByIdAlone => {
                let recorded = observed.identity.as_ref().ok().and_then(|identity| identity.names().last());
                if let (KeyListing::Read { keys, .. }, Some(name)) = (&mut observed.listing, recorded) {
                    keys.iter_mut().for_each(|key| name.clone_into(&mut key.name));
                }
            }
            Self::ReleaseUnresolved if observed.meta.deleting => {
                if let Ok(identity) = &mut observed.identity {
                    identity.intent = None;
                }
            }
            _ => {}
        }
    }

    pub fn choosing_key(self, step: &mut KeyStep) {
        let KeyStep::Record { records, .. } = step else { return };
        match (self, records.lost.last()) {
            (Self::ForgetLostKeys, _) => records.lost.clear(),
            (Self::RevokeUnrecorded, Some(LostKey { id: Some(id), name, .. })) => {
                let (id, name) = (*id, name.clone());
                records.lost.pop();
                *step = KeyStep::Revoke { id, name, records: records.clone() };
            }
            _ => {}
        }
    }
}
