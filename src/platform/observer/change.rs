//! Which differences between two snapshots trigger a subscriber.

use std::collections::HashSet;

use crate::domain::{Compute, ComputeState};

/// What is different: the computes, and the branches that they are or were on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes<'a> {
    pub computes: HashSet<&'a str>,
    pub branches: HashSet<&'a str>,
}

impl<'a> Changes<'a> {
    /// Both lists are sorted by id.
    pub fn between(before: &'a [Compute], after: &'a [Compute]) -> Self {
        let mut changes = Self::default();
        let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let (gone, come) = match (old.peek(), new.peek()) {
                (None, None) => return changes,
                (Some(_), None) => (old.next(), None),
                (None, Some(_)) => (None, new.next()),
                (Some(a), Some(b)) if a.id < b.id => (old.next(), None),
                (Some(a), Some(b)) if a.id > b.id => (None, new.next()),
                _ => (old.next(), new.next()),
            };
            let same = matches!((gone, come), (Some(a), Some(b)) if !is_significant(a, b));
            if !same {
                changes.add(gone);
                changes.add(come);
            }
        }
    }

    fn add(&mut self, compute: Option<&'a Compute>) {
        if let Some(compute) = compute {
            self.computes.insert(&compute.id);
            self.branches.insert(&compute.branch_id);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.computes.is_empty()
    }
}

/// Whether two observations of one compute differ in something that can change a decision or the status.
///
/// Two times move without anything having happened: `updated_at`, which the platform's own upkeep touches, and
/// `last_active` while the compute is active, which every query touches. Everything else counts, also `last_active` of a
/// compute that is not active: then its activity has ended.
pub(super) fn is_significant(before: &Compute, after: &Compute) -> bool {
    if before == after {
        return false;
    }
    let settled = |compute: &Compute| Compute {
        updated_at: None,
        last_active: compute.last_active.filter(|_| compute.current_state != ComputeState::Active),
        ..compute.clone()
    };
    settled(before) != settled(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::fake::compute;

    #[test]
    fn the_rule() {
        type Edit = fn(&mut Compute);
        let cases: [(ComputeState, Edit, bool); 8] = [
            (ComputeState::Active, |_| {}, false),
            (ComputeState::Active, |c| c.last_active = "2025-01-01T00:00:00Z".parse().ok(), false),
            (ComputeState::Idle, |c| c.last_active = "2025-01-01T00:00:00Z".parse().ok(), true),
            (ComputeState::Idle, |c| c.updated_at = "2025-01-01T00:00:00Z".parse().ok(), false),
            (ComputeState::Idle, |c| c.current_state = ComputeState::Active, true),
            (ComputeState::Idle, |c| c.pending_state = Some(ComputeState::Active), true),
            (ComputeState::Idle, |c| c.settings.disabled = Some(true), true),
            (ComputeState::Idle, |c| c.host = Some("elsewhere".to_owned()), true),
        ];
        for (index, (state, edit, significant)) in cases.into_iter().enumerate() {
            let before = Compute { current_state: state, ..compute("ep-a", "br-a") };
            let mut after = before.clone();
            edit(&mut after);
            assert_eq!(is_significant(&before, &after), significant, "case {index}");
        }
    }

    #[test]
    fn coming_going_and_moving() {
        let before = [compute("ep-a", "br-a"), compute("ep-b", "br-b"), compute("ep-d", "br-d")];
        let after = [compute("ep-b", "br-x"), compute("ep-c", "br-c"), compute("ep-d", "br-d")];
        let changes = Changes::between(&before, &after);
        assert_eq!(changes.computes, HashSet::from(["ep-a", "ep-b", "ep-c"]));
        assert_eq!(changes.branches, HashSet::from(["br-a", "br-b", "br-x", "br-c"]));
        assert!(Changes::between(&after, &after).is_empty());
    }
}
