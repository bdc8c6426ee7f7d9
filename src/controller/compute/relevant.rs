//! Extracts from a project's snapshot what concerns one Compute.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::super::state::{Answer, ResourceState, Wrote};
use crate::api::{Compute, ComputeType};
use crate::decide::compute::{SnapshotState, is_settled};
use crate::decide::identity::{ComputeIdentity, CreateIntent};
use crate::domain::{self, Fault, Listed, NameSupport, PostgresSettings, Shown, Support};
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
        (wrote, now): (Option<&Wrote>, Timestamp),
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
    branches: Vec<String>,
    computes: BTreeSet<String>,
    /// Computes that a create made in addition to the bound one.
    twins: BTreeSet<String>,
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
    pub fn of(object: &Compute, known: &ComputeIdentity, repeated: bool) -> Self {
        let answered = known.made.iter().filter(|_| repeated);
        let creates = || {
            known
                .intent
                .iter()
                .chain(&known.unanswered)
                .chain(answered.clone())
        };
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
        let entry = |id: &String| {
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
            after: remembered.wrote_at().filter(|_| demanded),
        }
    }
}

/// The settings that a create has requested. Intents of earlier versions do not record them.
fn asked(create: &CreateIntent, object: &Compute) -> PostgresSettings {
    let declared = || PostgresSettings(object.spec.postgres_settings.clone());
    create
        .asked
        .as_ref()
        .map_or_else(declared, |asked| asked.postgres.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::decide::later;
    use crate::domain::ComputeState;
    use crate::platform::Tick;
    use crate::platform::fake::compute;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
    const GRACE: Duration = Duration::from_secs(90);

    /// An empty project that was read `ago` seconds ago; newer attempts failed.
    fn unread(ago: u64, fault: &Fault) -> LatestSnapshot {
        let at = NOW - Duration::from_secs(ago);
        let snapshot = Snapshot::new(Tick::at(1), at, at, Vec::new());
        let attempted = Some(Tick::at(2));
        LatestSnapshot {
            snapshot: Some(Arc::new(snapshot)),
            fault: Some(fault.clone()),
            attempted,
        }
    }

    /// The matters of a resource that is bound to `ep-a`.
    fn bound() -> Filter {
        Filter {
            branches: vec!["br-main".to_owned()],
            computes: BTreeSet::from(["ep-a".to_owned()]),
            twins: BTreeSet::new(),
            marks: BTreeSet::new(),
            asked: Vec::new(),
            replica: false,
            bound: true,
            intended: false,
            unanswered: false,
            repeated: false,
            deleting: false,
        }
    }

    fn relevant(latest: &LatestSnapshot) -> RelevantComputes {
        RelevantComputes::of(latest, &bound(), (None, NOW), |at| later(at, GRACE))
    }

    #[test]
    fn others_on_the_branch_concern_who_looks_for_a_compute_there() {
        let branches = |filter: &Filter| {
            filter
                .interest(&ResourceState::default(), false)
                .filter
                .branches
                .len()
        };
        let unbound = || Filter {
            bound: false,
            computes: BTreeSet::new(),
            ..bound()
        };
        for (what, filter, expected) in [
            ("who has found its own", bound(), 0),
            ("a primary that is to be created", unbound(), 1),
            (
                "a replica that is to be created",
                Filter {
                    replica: true,
                    ..unbound()
                },
                0,
            ),
            (
                "a replica that may be created",
                Filter {
                    replica: true,
                    intended: true,
                    ..unbound()
                },
                1,
            ),
            (
                "a replica that may come late",
                Filter {
                    replica: true,
                    unanswered: true,
                    ..unbound()
                },
                1,
            ),
            (
                "whose create may have been repeated",
                Filter {
                    repeated: true,
                    ..bound()
                },
                1,
            ),
        ] {
            assert_eq!(branches(&filter), expected, "{what}");
        }
    }

    #[test]
    fn who_has_found_its_compute_sees_others_with_its_marks() {
        let named = |id: &str, name: &str| domain::Compute {
            name: Some(name.to_owned()),
            ..compute(id, "br-main")
        };
        let computes = vec![
            named("ep-a", "m-2"),
            named("ep-b", "m-1"),
            named("ep-c", "m-2"),
            named("ep-d", "m-3"),
            compute("ep-e", "br-main"),
        ];
        let snapshot = Snapshot::new(Tick::at(1), NOW, NOW, computes);
        let filter = Filter {
            marks: BTreeSet::from(["m-0".to_owned(), "m-2".to_owned()]),
            ..bound()
        };
        let SnapshotState::Taken { computes, .. } = filter.relevant(&snapshot).snapshot else {
            panic!("none")
        };
        assert_eq!(
            computes
                .shown()
                .iter()
                .map(|compute| compute.id.as_str())
                .collect::<Vec<_>>(),
            ["ep-a", "ep-c"]
        );
        assert_eq!(
            filter
                .interest(&ResourceState::default(), false)
                .filter
                .names,
            ["m-0", "m-2"]
        );
    }

    #[test]
    fn what_a_project_returns_is_looked_for_in_a_bounded_part_of_it() {
        let asked = PostgresSettings([("work_mem".to_owned(), "64MB".to_owned())].into());
        let shows = |value: &str| {
            let mut compute = crate::platform::fake::compute("ep-a", "br-main");
            compute.settings.postgres =
                PostgresSettings([("work_mem".to_owned(), value.to_owned())].into());
            compute
        };
        let filter = Filter {
            asked: vec![asked.clone()],
            ..bound()
        };
        let mut computes = vec![shows("65536kB"); MOST_EXAMPLES];
        *computes.last_mut().unwrap() = shows("64MB");
        assert_eq!(filter.returned(&computes), [asked]);
        computes.insert(0, shows("65536kB"));
        assert_eq!(filter.returned(&computes), []);
    }

    #[test]
    fn what_the_credential_may_not_see_is_no_empty_project() {
        let message = || "not allowed".to_owned();
        for fault in [
            Fault::Unauthorized { message: message() },
            Fault::Forbidden {
                status: 403,
                message: message(),
            },
            Fault::Forbidden {
                status: 404,
                message: message(),
            },
            Fault::NotFound { message: message() },
        ] {
            assert_eq!(
                relevant(&unread(1, &fault)).snapshot,
                SnapshotState::Failed(fault)
            );
        }
    }

    #[test]
    fn an_unreachable_platform_is_what_it_was_for_a_while() {
        for fault in [
            Fault::Transport {
                message: "refused".to_owned(),
            },
            Fault::Server {
                status: 502,
                message: "bad gateway".to_owned(),
            },
            Fault::Throttled {
                status: 429,
                retry_after: None,
            },
        ] {
            let young = relevant(&unread(1, &fault));
            assert_eq!(young.stale_from, Some(NOW + Duration::from_secs(89)));
            // The snapshot keeps its start time, so nothing wrong is concluded from its age.
            assert_eq!(
                young.snapshot,
                SnapshotState::Taken {
                    at: NOW - Duration::from_secs(1),
                    computes: Listed::default()
                }
            );
            assert_eq!(
                relevant(&unread(90, &fault)).snapshot,
                SnapshotState::Failed(fault)
            );
        }
    }

    #[test]
    fn an_answer_shows_what_no_list_shows_yet() {
        let starting = || domain::Compute {
            current_state: ComputeState::Init,
            ..compute("ep-a", "br-main")
        };
        let answered = |compute| Wrote {
            ended: Tick::at(5),
            answer: Some(Box::new(Answer { at: NOW, compute })),
        };
        let of = |latest: &LatestSnapshot, filter: &Filter, wrote: &Wrote| {
            RelevantComputes::of(latest, filter, (Some(wrote), NOW), |at| later(at, GRACE)).snapshot
        };
        let demands = |filter: &Filter, wrote: &Wrote| {
            let mut remembered = ResourceState::default();
            remembered.wrote = Some(wrote.clone());
            filter.interest(&remembered, false).after.is_some()
        };
        let none = LatestSnapshot::default();
        let shown = SnapshotState::Taken {
            at: NOW,
            computes: vec![starting()].into(),
        };
        assert_eq!(of(&none, &bound(), &answered(starting())), shown);
        assert!(!demands(&bound(), &answered(starting())));
        for (filter, wrote) in [
            (bound(), Tick::at(5).into()),
            // Changes are based on a list.
            (bound(), answered(compute("ep-a", "br-main"))),
            (
                bound(),
                answered(domain::Compute {
                    id: "ep-b".to_owned(),
                    ..starting()
                }),
            ),
            (
                Filter {
                    bound: false,
                    ..bound()
                },
                answered(starting()),
            ),
            (
                Filter {
                    unanswered: true,
                    ..bound()
                },
                answered(starting()),
            ),
            (
                Filter {
                    deleting: true,
                    ..bound()
                },
                answered(starting()),
            ),
        ] {
            assert_eq!(
                of(&none, &filter, &wrote),
                SnapshotState::Pending,
                "{wrote:?}"
            );
            assert!(demands(&filter, &wrote), "{wrote:?}");
        }
        let listed = |began| {
            let snapshot =
                Snapshot::new(Tick::at(began), NOW, NOW, vec![compute("ep-a", "br-main")]);
            LatestSnapshot {
                snapshot: Some(Arc::new(snapshot)),
                ..LatestSnapshot::default()
            }
        };
        assert_eq!(
            of(&listed(5), &bound(), &answered(starting())),
            shown,
            "it began before the answer"
        );
        let shown = SnapshotState::Taken {
            at: NOW,
            computes: vec![compute("ep-a", "br-main")].into(),
        };
        assert_eq!(of(&listed(6), &bound(), &answered(starting())), shown);
        let refused = LatestSnapshot {
            fault: Some(Fault::Unauthorized {
                message: "no".to_owned(),
            }),
            ..none
        };
        assert!(matches!(
            of(&refused, &bound(), &answered(starting())),
            SnapshotState::Failed(_)
        ));
    }
}
