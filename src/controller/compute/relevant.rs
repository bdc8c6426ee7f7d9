//! Extracts from a project's snapshot what concerns one Compute.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::{Compute, ComputeType, Known};
use crate::controller::state::{Answer, ResourceState, Wrote};
use crate::decide::compute::{SnapshotState, is_settled};
use crate::decide::identity::{ComputeIdentity, CreateIntent};
use crate::domain::{
    self, BranchId, ComputeId, Fault, Listed, NameSupport, PostgresSettings, Shown, Support,
};
use crate::platform::{ComputeFilter, ComputeInterest, LatestSnapshot, Snapshot};

/// How many computes of a project are examined for how the platform returns database settings. A
/// spec may have 128 settings, and a project thousands of computes.
const MOST_EXAMPLES: usize = 100;

/// The part of a snapshot that concerns one resource.
#[derive(Debug)]
pub struct RelevantComputes {
    pub snapshot: SnapshotState,
    pub name_support: NameSupport,
    /// The database settings of unresolved creates that some compute of the project shows
    /// unchanged.
    pub returned: Vec<PostgresSettings>,
    /// Until when the snapshot is used while newer ones fail.
    pub stale_from: Option<Timestamp>,
}

impl Default for RelevantComputes {
    fn default() -> Self {
        Self {
            snapshot: SnapshotState::Pending,
            name_support: NameSupport::Unseen,
            returned: Vec::new(),
            stale_from: None,
        }
    }
}

impl RelevantComputes {
    /// The part of the newest snapshot, if that began after the last write. Before that, the answer
    /// to the write. If newer snapshots fail, it is used until a time that is counted from its
    /// start.
    pub fn of(
        latest: &LatestSnapshot,
        filter: &Filter,
        wrote: Option<&Wrote>,
        now: Timestamp,
        reliable_until: impl Fn(Timestamp) -> Timestamp,
    ) -> Self {
        let listed = latest.since(wrote.map(|wrote| wrote.ended));
        let shown = listed.map(|snapshot| (snapshot.at, filter.relevant(snapshot)));
        let shown = shown.or_else(|| {
            filter
                .answered(wrote)
                .map(|answer| (answer.at, Self::answered(answer)))
        });
        match (shown, &latest.fault) {
            (
                _,
                Some(
                    fault @ (Fault::Unauthorized { .. }
                    | Fault::Forbidden { .. }
                    | Fault::NotFound { .. }),
                ),
            ) => Self::failed(fault),
            (Some((at, relevant)), Some(_)) if now < reliable_until(at) => Self {
                stale_from: Some(reliable_until(at)),
                ..relevant
            },
            (_, Some(fault)) => Self::failed(fault),
            (Some((_, relevant)), None) => relevant,
            (None, None) => Self::default(),
        }
    }

    fn taken(at: Timestamp, computes: Listed<domain::Compute>) -> Self {
        Self {
            snapshot: SnapshotState::Taken { at, computes },
            ..Self::default()
        }
    }

    fn answered(Answer { at, compute }: &Answer) -> Self {
        Self::taken(*at, vec![compute.clone()].into())
    }

    fn failed(fault: &Fault) -> Self {
        Self {
            snapshot: SnapshotState::Failed(fault.clone()),
            ..Self::default()
        }
    }
}

/// The branches and computes that concern a resource.
#[derive(Debug)]
pub struct Filter {
    branches: Vec<BranchId>,
    computes: BTreeSet<ComputeId>,
    /// Computes that a create made in addition to the bound one.
    twins: BTreeSet<ComputeId>,
    /// A compute with one of these names is the resource's, on any branch.
    marks: BTreeSet<String>,
    /// The database settings that creates have asked for.
    asked: Vec<PostgresSettings>,
    replica: bool,
    bound: bool,
    intended: bool,
    /// The result of an unanswered create may still appear.
    unanswered: bool,
    /// An answered create may have been repeated, and that result may still appear.
    repeated: bool,
    deleting: bool,
}

impl Filter {
    /// `repeated` is set if other computes on the branch may result from an answered create.
    pub fn of(object: &Known<Compute>, known: &ComputeIdentity, repeated: bool) -> Self {
        let answered: &[CreateIntent] = if repeated { &known.made } else { &[] };
        let creates = || known.intent.iter().chain(&known.unanswered).chain(answered);
        let branches = creates()
            .map(|create| create.branch.clone())
            .chain([object.spec.branch_id.clone()]);
        let computes = [
            known.binding.as_ref().map(|binding| binding.id.clone()),
            object.spec.compute_id.clone(),
        ];
        Self {
            branches: branches.collect(),
            computes: computes.into_iter().flatten().collect(),
            twins: known.twins.keys().cloned().collect(),
            marks: known.marks().cloned().collect(),
            asked: creates().map(|create| asked(create, object)).collect(),
            replica: object.spec.type_ == ComputeType::ReadOnly,
            bound: known.binding.is_some(),
            intended: known.intent.is_some(),
            unanswered: !known.unanswered.is_empty(),
            repeated,
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }

    /// A resource that has found its compute searches no branch, so that a pass costs the same in a
    /// project of any size.
    fn relevant(&self, snapshot: &Snapshot) -> RelevantComputes {
        let entry = |id: &ComputeId| {
            if let Shown::Entry(compute) = snapshot.compute(id) {
                Some(compute)
            } else {
                None
            }
        };
        let named: Vec<_> = self.computes.iter().filter_map(entry).collect();
        if self.has_found() && named.len() == self.computes.len() {
            let marked = self.marks.iter().flat_map(|mark| snapshot.named(mark));
            let besides = marked.chain(self.twins.iter().filter_map(entry));
            let found: BTreeMap<_, _> = named
                .into_iter()
                .chain(besides)
                .map(|it| (&it.id, it))
                .collect();
            let found = found.into_values().cloned().collect();
            return RelevantComputes::taken(
                snapshot.at,
                Listed::new(found, snapshot.unreadable.clone()),
            );
        }
        let filter = |compute: &&domain::Compute| {
            self.branches.contains(&compute.branch_id)
                || self.computes.contains(&compute.id)
                || self.twins.contains(&compute.id)
                || compute
                    .name
                    .as_ref()
                    .is_some_and(|name| self.marks.contains(name))
        };
        let found = snapshot.items.iter().filter(filter).cloned().collect();
        RelevantComputes {
            name_support: Support::among(&snapshot.items).names,
            returned: self.returned(&snapshot.items),
            ..RelevantComputes::taken(snapshot.at, Listed::new(found, snapshot.unreadable.clone()))
        }
    }

    /// The requested settings that some compute shows.
    fn returned(&self, computes: &[domain::Compute]) -> Vec<PostgresSettings> {
        // If nothing was requested, no compute is examined.
        let asked = self.asked.iter().filter(|asked| !asked.is_empty());
        let with_settings = || {
            computes
                .iter()
                .map(|compute| &compute.settings.postgres)
                .filter(|it| !it.is_empty())
        };
        let is_shown = |(name, value): &(&String, &String)| {
            with_settings()
                .take(MOST_EXAMPLES)
                .any(|shown| shown.0.get(*name) == Some(*value))
        };
        let shown = |asked: &PostgresSettings| {
            let shown = asked
                .0
                .iter()
                .filter(is_shown)
                .map(|(name, value)| (name.clone(), value.clone()));
            PostgresSettings(shown.collect())
        };
        asked.map(shown).filter(|shown| !shown.is_empty()).collect()
    }

    fn has_found(&self) -> bool {
        self.bound && !self.unanswered && !self.repeated
    }

    /// The answer to the create of the compute, while it shows only that the compute is not ready
    /// yet. Changes are based on lists.
    fn answered<'a>(&self, wrote: Option<&'a Wrote>) -> Option<&'a Answer> {
        let answer = wrote?.answer.as_ref()?;
        let is_it = self.bound && !self.unanswered && self.computes.iter().eq([&answer.compute.id]);
        (is_it && !is_settled(&answer.compute) && !self.deleting).then_some(answer)
    }

    /// The changes that wake the resource. `pending` if it waits for one.
    pub fn interest(&self, remembered: &ResourceState, pending: bool) -> ComputeInterest {
        // Other computes on the branch matter only to a resource that has not found its compute. It
        // looks for the result of its create, or is a primary, of which a branch has only one.
        let settled = self.has_found() && remembered.memory.missing_since.is_none();
        let waits = self.replica && !(self.bound || self.intended || self.unanswered);
        let filter = ComputeFilter {
            branches: if settled || waits {
                Vec::new()
            } else {
                self.branches.clone()
            },
            computes: self.computes.union(&self.twins).cloned().collect(),
            names: if self.has_found() {
                self.marks.iter().cloned().collect()
            } else {
                Vec::new()
            },
        };
        let demanded = self.answered(remembered.wrote.as_ref()).is_none();
        ComputeInterest {
            filter,
            pending,
            after: if demanded {
                remembered.wrote_at()
            } else {
                None
            },
        }
    }
}

/// The settings that a create has requested. Intents of earlier versions do not record them.
fn asked(create: &CreateIntent, object: &Known<Compute>) -> PostgresSettings {
    let declared = || PostgresSettings(object.spec.postgres_settings.clone());
    create
        .asked
        .as_ref()
        .map_or_else(declared, |asked| asked.postgres.clone())
}

#[cfg(test)]
mod tests;
