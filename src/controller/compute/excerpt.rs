//! What a project's snapshot shows that concerns one Compute.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::super::state::ResourceState;
use crate::api::Compute;
use crate::decide::compute::SnapshotState;
use crate::decide::identity::ComputeIdentity;
use crate::domain::{self, Fault, NameSupport, Support};
use crate::platform::{ComputeInterest, ComputeMatters, LatestSnapshot, Snapshot, Tick};

/// What a snapshot shows that concerns one resource.
#[derive(Debug)]
pub struct Excerpt {
    pub snapshot: SnapshotState,
    pub name_support: NameSupport,
    /// Until when it is relied upon where newer ones fail.
    pub stale_from: Option<Timestamp>,
}

impl Default for Excerpt {
    fn default() -> Self {
        Self { snapshot: SnapshotState::Pending, name_support: NameSupport::Unseen, stale_from: None }
    }
}

impl Excerpt {
    /// Of the newest snapshot, where it began after the last write at `wrote`. Where newer ones fail, it is relied upon
    /// until a time that is counted from its beginning.
    pub fn of(
        latest: &LatestSnapshot,
        matters: &Matters,
        (wrote, now): (Option<Tick>, Timestamp),
        reliable_until: impl Fn(Timestamp) -> Timestamp,
    ) -> Self {
        match (latest.since(wrote), &latest.fault) {
            (_, Some(fault @ (Fault::Unauthorized { .. } | Fault::Forbidden { .. } | Fault::NotFound { .. }))) => {
                Self::failed(fault)
            }
            (Some(snapshot), Some(_)) if now < reliable_until(snapshot.at) => {
                Self { stale_from: Some(reliable_until(snapshot.at)), ..matters.excerpt(snapshot) }
            }
            (_, Some(fault)) => Self::failed(fault),
            (Some(snapshot), None) => matters.excerpt(snapshot),
            (None, None) => Self::default(),
        }
    }

    fn failed(fault: &Fault) -> Self {
        Self { snapshot: SnapshotState::Failed(fault.clone()), ..Self::default() }
    }
}

/// The branches and computes that a resource is about.
#[derive(Debug)]
pub struct Matters {
    branches: Vec<String>,
    computes: BTreeSet<String>,
    /// What carries one of these is the resource's, wherever it is.
    marks: BTreeSet<String>,
    bound: bool,
    /// Something may come late of an unanswered create.
    unanswered: bool,
}

impl Matters {
    pub fn of(object: &Compute, known: &ComputeIdentity) -> Self {
        let creates = || known.intent.iter().chain(&known.unanswered);
        let branches = creates().map(|create| create.branch.clone()).chain([object.spec.branch_id.clone()]);
        let computes = [known.binding.as_ref().map(|binding| binding.id.clone()), object.spec.compute_id.clone()];
        Self {
            branches: branches.collect(),
            computes: computes.into_iter().flatten().collect(),
            marks: creates().filter_map(|create| create.mark.clone()).collect(),
            bound: known.binding.is_some(),
            unanswered: !known.unanswered.is_empty(),
        }
    }

    /// Who has found its compute has nothing to look for on the branch, so that a pass costs the same in a project of any size.
    fn excerpt(&self, snapshot: &Snapshot) -> Excerpt {
        let taken = |computes, name_support| Excerpt {
            snapshot: SnapshotState::Taken { at: snapshot.at, computes },
            name_support,
            stale_from: None,
        };
        let named: Vec<_> = self.computes.iter().filter_map(|id| snapshot.compute(id)).cloned().collect();
        if self.bound && !self.unanswered && !named.is_empty() {
            return taken(named, NameSupport::Unseen);
        }
        let matters = |compute: &&domain::Compute| {
            self.branches.contains(&compute.branch_id)
                || self.computes.contains(&compute.id)
                || compute.name.as_ref().is_some_and(|name| self.marks.contains(name))
        };
        taken(snapshot.items.iter().filter(matters).cloned().collect(), Support::among(&snapshot.items).names)
    }

    /// What the resource wants to be woken for; `pending` where it waits for a change.
    pub fn interest(&self, remembered: &ResourceState, pending: bool) -> ComputeInterest {
        // Others on the branch concern only who has no compute there.
        let settled = self.bound && !self.unanswered && remembered.memory.missing_since.is_none();
        let matters = ComputeMatters {
            branches: if settled { Vec::new() } else { self.branches.clone() },
            computes: self.computes.iter().cloned().collect(),
        };
        ComputeInterest { matters, pending, after: remembered.wrote }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::decide::later;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
    const GRACE: Duration = Duration::from_secs(90);

    /// An empty project as it was read that many seconds ago; newer attempts failed.
    fn unread(ago: u64, fault: &Fault) -> LatestSnapshot {
        let at = NOW - Duration::from_secs(ago);
        let snapshot = Snapshot::new(Tick::at(1), (at, at), Vec::new());
        let attempted = Some(Tick::at(2));
        LatestSnapshot { snapshot: Some(Arc::new(snapshot)), fault: Some(fault.clone()), attempted }
    }

    fn excerpt(latest: &LatestSnapshot) -> Excerpt {
        let matters = Matters {
            branches: vec!["br-main".to_owned()],
            computes: BTreeSet::new(),
            marks: BTreeSet::new(),
            bound: true,
            unanswered: false,
        };
        Excerpt::of(latest, &matters, (None, NOW), |at| later(at, GRACE))
    }

    #[test]
    fn what_the_credential_may_not_see_is_no_empty_project() {
        let message = || "not allowed".to_owned();
        for fault in [
            Fault::Unauthorized { message: message() },
            Fault::Forbidden { status: 403, message: message() },
            Fault::Forbidden { status: 404, message: message() },
            Fault::NotFound { message: message() },
        ] {
            assert_eq!(excerpt(&unread(1, &fault)).snapshot, SnapshotState::Failed(fault));
        }
    }

    #[test]
    fn an_unreachable_platform_is_what_it_was_for_a_while() {
        for fault in [
            Fault::Transport { message: "refused".to_owned() },
            Fault::Server { status: 502, message: "bad gateway".to_owned() },
            Fault::Throttled { status: 429, retry_after: None },
        ] {
            let young = excerpt(&unread(1, &fault));
            assert_eq!(young.stale_from, Some(NOW + Duration::from_secs(89)));
            // Nothing is concluded from its age: the time that it was begun goes with it.
            assert_eq!(young.snapshot, SnapshotState::Taken { at: NOW - Duration::from_secs(1), computes: Vec::new() });
            assert_eq!(excerpt(&unread(90, &fault)).snapshot, SnapshotState::Failed(fault));
        }
    }
}
