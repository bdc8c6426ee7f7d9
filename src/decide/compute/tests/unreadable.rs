//! Lists with unreadable entries, which prove less.

use super::*;
use crate::decide::memory::ExistenceAnswer;
use crate::domain::UnreadableEntry;

const MARK: &str = "orders-c1u57e-3pk3zawwrdgc0-00000001";

/// The list has one more entry, of which only this identifier can be read.
fn hiding(mut given: GivenCompute, id: Option<&str>) -> GivenCompute {
    let entry = UnreadableEntry {
        id: id.map(str::to_owned),
        field: "branch_id".to_owned(),
    };
    if let SnapshotState::Taken { computes, .. } = &mut given.observed.snapshot {
        *computes = Listed::new(computes.shown().to_vec(), vec![entry].into());
    }
    given
}

/// The identifier of the unreadable entry: one of its own, or none.
fn odd() -> [Option<&'static str>; 2] {
    [Some("ep-odd"), None]
}

fn waits(given: &GivenCompute) {
    let reported = given.rest();
    reported.unknown(Reason::UnreadableEntries);
    let Health::Unknown(_, text) = reported.health else {
        unreachable!()
    };
    assert!(
        text.contains("branch_id") && text.contains("project p-1"),
        "{text}"
    );
}

fn keeping_names(given: GivenCompute) -> GivenCompute {
    given.observing(|seen| seen.name_support = NameSupport::Kept)
}

fn creates(given: &GivenCompute) -> CreateIntent {
    match given.step() {
        ComputeStep::Create { intent, .. } => intent,
        other => panic!("{other:?}"),
    }
}

fn finds(given: &GivenCompute, id: &str) {
    assert!(
        matches!(given.step(), ComputeStep::Bind { binding, .. } if binding.id == id),
        "{:?}",
        given.step()
    );
}

fn deleted(given: GivenCompute) -> GivenCompute {
    given.observing(|seen| (seen.meta.deleting, seen.meta.has_finalizer) = (true, true))
}

#[test]
fn others_that_can_be_read_are_kept_as_declared() {
    for id in odd() {
        hiding(GivenCompute::bound(), id).rest().in_sync();
        let changed = hiding(
            GivenCompute::bound().declaring(json!({"size": {"fixed": 2}})),
            id,
        );
        assert!(matches!(changed.step(), ComputeStep::Change { .. }));
    }
}

#[test]
fn a_bound_compute_that_may_be_the_entry_is_not_missing() {
    for id in [Some("ep-1"), None] {
        let given = hiding(GivenCompute::bound().seeing([compute("ep-0")]), id);
        // The platform's answer from before the entry became unreadable.
        let given = given.remembering(|memory| {
            (memory.missing_since, memory.asked) = (
                Some(at(-600)),
                Some(ExistenceAnswer {
                    at: at(-500),
                    exists: false,
                }),
            );
        });
        waits(&given);
        let (old, now) = (
            crate::api::ComputeStatus {
                host: Some("h".into()),
                ..Default::default()
            },
            given.now,
        );
        let shown = status(
            &Report::ready("fine"),
            &given.spec,
            &given.observed,
            &old,
            now,
        );
        assert_eq!(
            (shown.host.as_deref(), shown.unseen_since),
            (Some("h"), Some(NOW)),
            "{id:?}"
        );
    }
    let other = hiding(GivenCompute::bound().seeing([]), Some("ep-odd"));
    other.rest().unknown(Reason::ComputeNotFound);
}

#[test]
fn absence_is_not_counted_while_an_entry_may_be_the_compute() {
    let given = GivenCompute::bound();
    let mut memory = Memory::default();
    let entry = UnreadableEntry {
        id: None,
        field: "id".to_owned(),
    };
    let declared = version(&given.spec, GENERATION);
    for (shown, missing) in [
        (Shown::Absent, Some(at(0))),
        (Shown::Unclear(&entry), None),
        (Shown::Unclear(&entry), None),
        (Shown::Absent, Some(at(3))),
    ] {
        let second = missing.map_or(1, |at| at.as_second() - NOW.as_second());
        remember(&mut memory, declared, None, &shown, at(second));
        assert_eq!(memory.missing_since, missing);
    }
    let identity = given.observed.facts.identity.unwrap();
    assert!(
        !is_awaiting(&identity, false, &memory, Some(Shown::Unclear(&entry))),
        "when it can be read is not expected"
    );
}

#[test]
fn without_names_nothing_is_created_beside_an_entry_that_cannot_be_read() {
    for id in odd() {
        for declared in [
            json!({}),
            json!({"type": "ReadOnly"}),
            json!({"existing": "Adopt"}),
        ] {
            let given = GivenCompute::new().declaring(declared);
            waits(&hiding(given.clone(), id));
            // The create sends a name, but the platform may ignore it.
            let offered = given.observing(|seen| seen.name_support = NameSupport::Offered);
            waits(&hiding(offered, id));
        }
    }
}

#[test]
fn a_create_that_is_told_by_its_mark_is_made_and_the_absence_of_a_primary_is_not_known() {
    for id in odd() {
        for declared in [json!({}), json!({"type": "ReadOnly"})] {
            let intent = creates(&hiding(
                keeping_names(GivenCompute::new()).declaring(declared),
                id,
            ));
            assert!(intent.baseline.is_none() && intent.mark.is_some());
        }
        for declared in [
            json!({"existing": "Adopt"}),
            json!({"management": "Observe"}),
        ] {
            waits(&hiding(
                keeping_names(GivenCompute::new()).declaring(declared.clone()),
                id,
            ));
            finds(
                &hiding(
                    GivenCompute::new()
                        .declaring(declared)
                        .seeing([compute("ep-7")]),
                    id,
                ),
                "ep-7",
            );
        }
        let exists = hiding(GivenCompute::new().seeing([compute("ep-7")]), id);
        exists.rest().stalled(Reason::PrimaryExists, &["ep-7"]);
    }
}

#[test]
fn an_imported_compute_that_may_be_the_entry_is_waited_for() {
    let given = GivenCompute::new().declaring(json!({"computeID": "ep-9"}));
    for id in [Some("ep-9"), None] {
        waits(&hiding(given.clone(), id));
    }
    hiding(given.clone(), Some("ep-odd"))
        .rest()
        .stalled(Reason::ComputeNotFound, &["ep-9"]);
    finds(&hiding(given.seeing([compute("ep-9")]), None), "ep-9");
}

#[test]
fn what_a_create_has_made_is_not_concluded_beside_an_entry_that_may_be_it() {
    let marked = || {
        keeping_names(GivenCompute::intended())
            .intent(|intent| (intent.mark, intent.baseline) = (Some(MARK.into()), None))
    };
    let named = with(compute("ep-2"), |compute| compute.name = Some(MARK.into()));
    for id in odd() {
        for given in [GivenCompute::intended(), marked()] {
            // The result may still appear.
            hiding(given.clone(), id)
                .rest()
                .progressing(Reason::ConfirmingCreate);
            waits(&hiding(given.clone().after(50), id));
            assert!(matches!(
                given.after(50).step(),
                ComputeStep::DropIntent { .. }
            ));
        }
        // The matching compute may be somebody else's, and the unreadable entry may be the result.
        waits(&hiding(
            GivenCompute::intended().seeing([compute("ep-2")]),
            id,
        ));
        finds(&hiding(marked().seeing([named.clone()]), id), "ep-2");
        let answered = GivenCompute::intended()
            .seeing([compute("ep-2")])
            .remembering(|it| it.created = Some("ep-2".into()));
        finds(&hiding(answered, id), "ep-2");
        let refused = hiding(
            GivenCompute::intended().failed(crate::decide::Action::Create, super::refused()),
            id,
        );
        assert!(
            matches!(refused.step(), ComputeStep::DropIntent { .. }),
            "this process knows that nothing was made"
        );
    }
    // The platform's answer named the unreadable entry.
    waits(&hiding(
        GivenCompute::intended().remembering(|memory| memory.created = Some("ep-odd".into())),
        Some("ep-odd"),
    ));
}

#[test]
fn an_entry_that_was_there_before_or_is_somebody_elses_is_not_what_a_create_has_made() {
    let over = |given: GivenCompute, id| hiding(given.after(50), Some(id));
    let gives_up = |given: GivenCompute| {
        assert!(
            matches!(given.step(), ComputeStep::DropIntent { .. }),
            "{:?}",
            given.decide()
        )
    };
    gives_up(over(GivenCompute::intended(), "ep-0"));
    gives_up(over(
        GivenCompute::intended().claimed("ep-odd", false),
        "ep-odd",
    ));
    gives_up(over(
        GivenCompute::intended().observing(|seen| seen.not_created = ["ep-odd".into()].into()),
        "ep-odd",
    ));
}

#[test]
fn late_creates_are_watched_for_beside_an_entry_that_may_be_their_result() {
    let record = || {
        GivenCompute::intended()
            .observed
            .facts
            .identity
            .unwrap()
            .intent
            .unwrap()
    };
    let recording =
        |given: GivenCompute| given.identity(|identity| identity.unanswered = vec![record()]);
    for id in odd() {
        let empty = keeping_names(recording(GivenCompute::new()))
            .observing(|seen| seen.meta.has_finalizer = true);
        waits(&hiding(empty.clone(), id));
        creates(&empty);
        // The record of a bound resource stays, and there is nothing to report.
        let bound = hiding(recording(GivenCompute::bound()).after(25 * 3600), id);
        bound.rest().in_sync();
    }
    let over = recording(GivenCompute::bound()).after(25 * 3600);
    assert!(
        matches!(over.step(), ComputeStep::RecordUnanswered { unanswered } if unanswered.is_empty())
    );
}

#[test]
fn a_deletion_is_sent_and_its_end_is_not_concluded() {
    let gone = |id| hiding(deleted(GivenCompute::bound().seeing([compute("ep-0")])), id);
    let was_deleted = |given: GivenCompute, second| {
        given.remembering(|memory| memory.deleted = Some(("ep-1".into(), at(second))))
    };
    for id in [Some("ep-1"), None] {
        assert_eq!(gone(id).step(), ComputeStep::Delete { id: "ep-1".into() });
        was_deleted(gone(id), -10)
            .rest()
            .progressing(Reason::Deleting);
    }
    assert_eq!(
        was_deleted(gone(Some("ep-1")), -60).step(),
        ComputeStep::Delete { id: "ep-1".into() },
        "it is listed"
    );
    let unclear = was_deleted(gone(None), -60);
    waits(&unclear);
    assert!(
        unclear
            .decide()
            .report
            .unwrap()
            .headline()
            .1
            .contains("spec.deletion to Orphan")
    );
    assert_eq!(
        was_deleted(gone(Some("ep-odd")), -60).step(),
        ComputeStep::RemoveFinalizer
    );
    for id in odd() {
        let begun = deleted(GivenCompute::intended());
        waits(&hiding(begun.clone().after(50), id));
        assert_eq!(begun.after(50).step(), ComputeStep::RemoveFinalizer);
        assert_eq!(
            hiding(deleted(GivenCompute::new()), id).step(),
            ComputeStep::RemoveFinalizer,
            "nothing was begun"
        );
    }
}

#[test]
fn what_a_backup_names_is_not_taken_for_gone() {
    let binding = GivenCompute::bound()
        .observed
        .facts
        .identity
        .unwrap()
        .binding;
    let intent = GivenCompute::intended()
        .observed
        .facts
        .identity
        .unwrap()
        .intent;
    let wishing =
        |wish: ComputeIdentity| GivenCompute::new().observing(|seen| seen.wish = Some(wish));
    let bound = || {
        wishing(ComputeIdentity {
            binding: binding.clone(),
            ..ComputeIdentity::default()
        })
    };
    let begun = || {
        wishing(ComputeIdentity {
            intent: intent.clone(),
            ..ComputeIdentity::default()
        })
    };
    for given in [bound(), begun(), deleted(bound()), deleted(begun())] {
        waits(&hiding(given, None));
    }
    waits(&hiding(bound(), Some("ep-1")));
    waits(&hiding(begun(), Some("ep-odd")));
    finds(&hiding(bound().seeing([compute("ep-1")]), None), "ep-1");
}
