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

/// The filter of a resource that is bound to `ep-a`.
fn bound() -> Filter {
    Filter {
        branches: vec!["br-main".into()],
        computes: BTreeSet::from(["ep-a".into()]),
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
    RelevantComputes::of(latest, &bound(), None, NOW, |at| later(at, GRACE))
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

/// A compute that starts, as the answer to its create shows it.
fn starting() -> domain::Compute {
    domain::Compute {
        current_state: ComputeState::Init,
        ..compute("ep-a", "br-main")
    }
}

fn answered(compute: domain::Compute) -> Wrote {
    Wrote {
        ended: Tick::at(5),
        answer: Some(Box::new(Answer { at: NOW, compute })),
    }
}

/// The view of a resource that wrote something.
fn seen_after(latest: &LatestSnapshot, filter: &Filter, wrote: &Wrote) -> SnapshotState {
    RelevantComputes::of(latest, filter, Some(wrote), NOW, |at| later(at, GRACE)).snapshot
}

#[test]
fn an_answer_shows_what_no_list_shows_yet() {
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
    assert_eq!(seen_after(&none, &bound(), &answered(starting())), shown);
    assert!(!demands(&bound(), &answered(starting())));
    for (filter, wrote) in [
        (bound(), Tick::at(5).into()),
        // Changes are based on a list.
        (bound(), answered(compute("ep-a", "br-main"))),
        (
            bound(),
            answered(domain::Compute {
                id: "ep-b".into(),
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
            seen_after(&none, &filter, &wrote),
            SnapshotState::Pending,
            "{wrote:?}"
        );
        assert!(demands(&filter, &wrote), "{wrote:?}");
    }
}

#[test]
fn a_list_that_began_after_the_answer_replaces_it() {
    let shown = SnapshotState::Taken {
        at: NOW,
        computes: vec![starting()].into(),
    };
    let listed = |began| {
        let snapshot = Snapshot::new(Tick::at(began), NOW, NOW, vec![compute("ep-a", "br-main")]);
        LatestSnapshot {
            snapshot: Some(Arc::new(snapshot)),
            ..LatestSnapshot::default()
        }
    };
    assert_eq!(
        seen_after(&listed(5), &bound(), &answered(starting())),
        shown,
        "it began before the answer"
    );
    let shown = SnapshotState::Taken {
        at: NOW,
        computes: vec![compute("ep-a", "br-main")].into(),
    };
    assert_eq!(
        seen_after(&listed(6), &bound(), &answered(starting())),
        shown
    );
    let refused = LatestSnapshot {
        fault: Some(Fault::Unauthorized {
            message: "no".to_owned(),
        }),
        ..LatestSnapshot::default()
    };
    assert!(matches!(
        seen_after(&refused, &bound(), &answered(starting())),
        SnapshotState::Failed(_)
    ));
}
