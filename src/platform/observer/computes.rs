//! Observes the computes of a project.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::time::Duration;

use super::listing::{Listing, id_weight, text_weight};
use super::{Interest, Latest, Reading};
use crate::domain::{BranchId, Compute, ComputeId, ComputeState, Fault, Listed, ProjectId, Shown};
use crate::platform::Admitted;

/// The list of a project's computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectComputes;

/// The computes of one project as one list call showed them.
pub type Snapshot = Reading<ProjectComputes>;

/// The latest known state of a project's computes.
pub type LatestSnapshot = Latest<ProjectComputes>;

/// The changes that enqueue a Compute.
pub type ComputeInterest = Interest<ProjectComputes>;

/// The computes that concern a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputeFilter {
    /// Any change of a compute on these branches.
    pub branches: Vec<BranchId>,
    /// Any change of these computes, on any branch.
    pub computes: Vec<ComputeId>,
    /// Any change of computes with these names.
    pub names: Vec<String>,
}

/// The changed computes, and their branches before and after the change.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedComputes {
    computes: HashSet<ComputeId>,
    branches: HashSet<BranchId>,
    names: HashSet<String>,
}

impl Listing for ProjectComputes {
    type Of = ProjectId;
    type Item = Compute;
    /// The positions of computes with a name, ordered by name.
    type Index = Vec<usize>;
    type Filter = ComputeFilter;
    type Changed = ChangedComputes;

    const OF: &'static str = "project";
    const SPACING: Duration = Duration::from_millis(100);

    async fn read(platform: Admitted, of: &ProjectId) -> Result<Listed<Compute>, Fault> {
        platform.list_computes(of).await
    }

    fn order(one: &Compute, other: &Compute) -> Ordering {
        one.id.cmp(&other.id)
    }

    fn index(computes: &[Compute]) -> Vec<usize> {
        let mut named: Vec<usize> = (0..computes.len())
            .filter(|position| computes[*position].name.is_some())
            .collect();
        named.sort_by(|one, other| computes[*one].name.cmp(&computes[*other].name));
        named
    }

    fn weight(compute: &Compute) -> usize {
        let texts = [
            compute.region.as_ref(),
            compute.host.as_ref(),
            compute.pooled_host.as_ref(),
            compute.name.as_ref(),
        ];
        let mut weight = size_of::<Compute>() + size_of::<usize>();
        weight +=
            id_weight(&compute.id) + id_weight(&compute.project_id) + id_weight(&compute.branch_id);
        weight += texts.into_iter().map(text_weight).sum::<usize>();
        for state in [Some(&compute.current_state), compute.pending_state.as_ref()] {
            if let Some(ComputeState::Other(word)) = state {
                weight += text_weight(Some(word));
            }
        }
        for (name, value) in &compute.settings.postgres.0 {
            // The size of a map entry, including its share of the nodes.
            weight += 96 + name.capacity() + value.capacity();
        }
        weight
    }

    /// Two times change although nothing has happened. The platform's own maintenance touches
    /// `updated_at`, and every query touches `last_active` while the compute is active. All other
    /// changes count. `last_active` of an inactive compute counts too, because it shows that the
    /// activity has ended.
    fn is_significant(before: &Compute, after: &Compute) -> bool {
        before != after && without_activity(before) != without_activity(after)
    }

    fn record(changed: &mut ChangedComputes, compute: &Compute) {
        changed.computes.insert(compute.id.clone());
        changed.branches.insert(compute.branch_id.clone());
        changed.names.extend(compute.name.clone());
    }

    fn concerns(changed: &ChangedComputes, filter: &ComputeFilter) -> bool {
        filter
            .computes
            .iter()
            .any(|id| changed.computes.contains(id))
            || filter
                .branches
                .iter()
                .any(|branch| changed.branches.contains(branch))
            || filter.names.iter().any(|name| changed.names.contains(name))
    }
}

impl Snapshot {
    /// The compute with this ID, as the list shows it.
    pub fn compute(&self, id: &ComputeId) -> Shown<'_, Compute> {
        let index = self.items.binary_search_by(|compute| compute.id.cmp(id));
        match (index, self.unreadable.hiding(Some(id))) {
            (Ok(index), _) => Shown::Entry(&self.items[index]),
            (Err(_), Some(entry)) => Shown::Unclear(entry),
            (Err(_), None) => Shown::Absent,
        }
    }

    /// The computes with this name.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Compute> {
        let first = self
            .index
            .partition_point(|position| self.items[*position].name.as_deref() < Some(name));
        self.index[first..]
            .iter()
            .map(|position| &self.items[*position])
            .take_while(move |compute| compute.name.as_deref() == Some(name))
    }

    /// The computes of a branch.
    pub fn on_branch(&self, branch: &BranchId) -> impl Iterator<Item = &Compute> {
        self.items
            .iter()
            .filter(move |compute| compute.branch_id == *branch)
    }
}

/// The compute without the times that say nothing about a change.
fn without_activity(compute: &Compute) -> Compute {
    let mut compute = Compute {
        updated_at: None,
        ..compute.clone()
    };
    if compute.current_state == ComputeState::Active {
        compute.last_active = None;
    }
    compute
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::fake::compute;
    use crate::platform::observer::listing::changes;

    #[test]
    fn the_rule() {
        type Edit = fn(&mut Compute);
        let cases: [(ComputeState, Edit, bool); 8] = [
            (ComputeState::Active, |_| {}, false),
            (
                ComputeState::Active,
                |c| c.last_active = "2025-01-01T00:00:00Z".parse().ok(),
                false,
            ),
            (
                ComputeState::Idle,
                |c| c.last_active = "2025-01-01T00:00:00Z".parse().ok(),
                true,
            ),
            (
                ComputeState::Idle,
                |c| c.updated_at = "2025-01-01T00:00:00Z".parse().ok(),
                false,
            ),
            (
                ComputeState::Idle,
                |c| c.current_state = ComputeState::Active,
                true,
            ),
            (
                ComputeState::Idle,
                |c| c.pending_state = Some(ComputeState::Active),
                true,
            ),
            (
                ComputeState::Idle,
                |c| c.settings.disabled = Some(true),
                true,
            ),
            (
                ComputeState::Idle,
                |c| c.host = Some("elsewhere".to_owned()),
                true,
            ),
        ];
        for (index, (state, edit, significant)) in cases.into_iter().enumerate() {
            let before = Compute {
                current_state: state,
                ..compute("ep-a", "br-a")
            };
            let mut after = before.clone();
            edit(&mut after);
            assert_eq!(
                ProjectComputes::is_significant(&before, &after),
                significant,
                "case {index}"
            );
        }
    }

    #[test]
    fn coming_going_and_moving() {
        let before = [
            compute("ep-a", "br-a"),
            compute("ep-b", "br-b"),
            compute("ep-d", "br-d"),
        ];
        let after = [
            compute("ep-b", "br-x"),
            compute("ep-c", "br-c"),
            compute("ep-d", "br-d"),
        ];
        let expected = ChangedComputes {
            computes: ["ep-a", "ep-b", "ep-c"].map(ComputeId::from).into(),
            branches: ["br-a", "br-b", "br-x", "br-c"].map(BranchId::from).into(),
            names: HashSet::new(),
        };
        assert_eq!(changes::<ProjectComputes>(&before, &after), Some(expected));
        assert_eq!(changes::<ProjectComputes>(&after, &after), None);
    }
}
