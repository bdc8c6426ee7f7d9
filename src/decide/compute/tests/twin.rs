//! Creates that a proxy repeated: two computes have the resource's own mark, and the resource is
//! bound to one.

mod without_marks;

use super::*;
use crate::decide::{Action, Brake};
use crate::domain::UnreadableEntry;

const MARK: &str = "orders-c1u57e-3pk3zawwrdgc0-00000001";
const DAY: i64 = 24 * 3600;

fn create(at_second: i64) -> CreateIntent {
    CreateIntent {
        at: at(at_second),
        platform: None,
        branch: BRANCH.into(),
        baseline: None,
        newest: None,
        mark: Some(MARK.into()),
        asked: None,
    }
}

fn named(id: &str) -> Compute {
    with(replica(id), |compute| compute.name = Some(MARK.into()))
}

/// The resource's own compute, which was used.
fn own() -> Compute {
    with(named("ep-1"), |compute| compute.last_active = Some(at(-60)))
}

/// A replica that is bound to ep-1 by the answer to its create. ep-9 has the same mark and has been
/// named for `seconds`.
fn named_for(seconds: i64) -> GivenCompute {
    let given = GivenCompute::bound()
        .declaring(json!({"type": "ReadOnly"}))
        .seeing([own(), named("ep-9")]);
    let given = given.remembering(|memory| memory.twins_watched = Some(at(-900)));
    given
        .observing(|observed| observed.name_support = NameSupport::Kept)
        .identity(|identity| {
            identity.made = vec![create(-3600)];
            identity.twins = [("ep-9".into(), at(-seconds))].into();
        })
}

fn delete() -> ComputeStep {
    ComputeStep::DeleteTwin { id: "ep-9".into() }
}

/// The list has one more entry, of which only the identifier can be read.
fn partial(mut given: GivenCompute) -> GivenCompute {
    let entry = UnreadableEntry {
        id: Some("ep-odd".into()),
        field: "branch_id".to_owned(),
    };
    if let SnapshotState::Taken { computes, .. } = &mut given.observed.snapshot {
        *computes = Listed::new(computes.shown().to_vec(), vec![entry].into());
    }
    given
}

#[test]
fn it_is_named_at_once_and_since_when_is_recorded() {
    let new = named_for(0).identity(|identity| identity.twins.clear());
    let twins = BTreeMap::from([("ep-9".into(), NOW)]);
    assert_eq!(new.step(), ComputeStep::RecordTwins { twins });
    let words = [
        "ep-9",
        "ep-1",
        "billed",
        "spec.computeID",
        "deletes ep-9 after 2027-01-16",
        "dbplane.dev/not-created=ep-9",
    ];
    let reported = named_for(0).rest();
    reported.ready();
    reported.out_of_sync(Reason::StrayCompute, &words);
    reported.until(at(30));
    let observed = new.declaring(json!({"management": "Observe"}));
    observed.rest().out_of_sync(Reason::StrayCompute, &["ep-9"]);
    let cleared = ComputeStep::RecordTwins {
        twins: BTreeMap::new(),
    };
    assert_eq!(named_for(0).seeing([own()]).step(), cleared);
    named_for(0)
        .identity(|identity| identity.twins.clear())
        .seeing([own()])
        .rest()
        .in_sync();
    let others = with(replica("ep-8"), |compute| {
        compute.name = Some("another".into())
    });
    named_for(0)
        .identity(|identity| identity.twins.clear())
        .seeing([own(), others, replica("ep-7")])
        .rest()
        .in_sync();
}

#[test]
fn a_refused_change_stays_the_reason_beside_it() {
    let resized = named_for(0).declaring(json!({"size": {"fixed": 4}}));
    let refused = resized.failed(Action::Change, refused());
    refused.rest().refused(Reason::Refused, &["422"]);
    let report = refused.decide().report.unwrap();
    let [(Reason::StrayCompute, message)] = report.notices.as_slice() else {
        panic!("{report:?}")
    };
    assert!(message.contains("ep-9"), "{message}");
}

#[test]
fn it_is_deleted_after_it_has_been_named_for_a_day() {
    named_for(DAY - 1)
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9"]);
    assert_eq!(named_for(DAY).step(), delete());
}

#[test]
fn the_status_names_twenty_and_the_others_are_kept_until_these_are_gone() {
    let many = (10..40).map(|number| named(&format!("ep-{number}")));
    let many = named_for(0).seeing([own()].into_iter().chain(many));
    let ComputeStep::RecordTwins { twins } = many.step() else {
        panic!()
    };
    assert_eq!(twins.len(), 20);
    let reported = many.identity(|identity| identity.twins = twins.clone());
    reported.rest().out_of_sync(
        Reason::StrayCompute,
        &["ep-39 with this resource, and not before"],
    );
}

/// The record may be from a backup, and the resource that uses the compute may be restored later.
#[test]
fn a_process_watches_it_before_it_deletes_it() {
    let since = |watched: Option<Timestamp>| {
        named_for(DAY).remembering(|memory| memory.twins_watched = watched)
    };
    for watched in [None, Some(at(-899))] {
        since(watched)
            .rest()
            .out_of_sync(Reason::StrayCompute, &["ep-9"]);
    }
    assert_eq!(since(Some(at(-900))).step(), delete());
    let mut memory = Memory::default();
    let known = ComputeIdentity {
        twins: [("ep-9".into(), NOW)].into(),
        ..ComputeIdentity::default()
    };
    let usable = AccountView::Usable { organization: None };
    let mut watch = |paused: bool, account: &AccountView, now: i64| {
        watch_twins(
            &mut memory,
            &known,
            &Meta {
                paused,
                ..Meta::default()
            },
            account,
            at(now),
        );
        memory.twins_watched
    };
    assert_eq!(watch(false, &usable, 1), Some(at(1)));
    assert_eq!(watch(false, &usable, 9), Some(at(1)));
    assert_eq!(watch(true, &usable, 10), None);
    assert_eq!(watch(false, &AccountView::Pending, 11), None);
    assert_eq!(watch(false, &usable, 12), Some(at(12)));
}

#[test]
fn whatever_speaks_against_it_keeps_it_and_is_told() {
    let spec = |more: Value| named_for(DAY).declaring(more);
    let seen = |edit: fn(&mut ComputeObserved)| named_for(DAY).observing(edit);
    let shows = |edit: fn(&mut Compute)| named_for(DAY).seeing([own(), with(named("ep-9"), edit)]);
    let bound = |edit: fn(&mut Binding)| named_for(DAY).binding(edit);
    for (given, why) in [
        (spec(json!({"deletion": "Orphan"})), "does not delete"),
        (spec(json!({"management": "Observe"})), "does not delete"),
        (
            spec(json!({"deletionProtection": true})),
            "deletionProtection",
        ),
        (
            seen(|seen| seen.claims.declared = ["ep-9".into()].into()),
            "another resource",
        ),
        (
            seen(|seen| seen.claims.outside = [("ep-9".into(), holder("outside"))].into()),
            "another resource",
        ),
        (
            seen(|seen| seen.claims.marks = [(MARK.to_owned(), holder("other"))].into()),
            "another resource",
        ),
        (seen(|seen| seen.claims.incomplete = true), "cannot be read"),
        (bound(|binding| binding.at = at(-10)), "no answer"),
        (
            bound(|binding| binding.origin = Origin::Imported),
            "no answer",
        ),
        (
            named_for(DAY).seeing([named("ep-1"), named("ep-9")]),
            "shows no activity",
        ),
        (partial(named_for(DAY)), "cannot be read whole"),
        (
            shows(|compute| compute.last_active = Some(at(-9))),
            "was active",
        ),
        (
            shows(|compute| compute.pending_state = Some(ComputeState::Idle)),
            "changing",
        ),
        (
            shows(|compute| compute.role = Role::Primary),
            "another type",
        ),
    ] {
        given
            .rest()
            .out_of_sync(Reason::StrayCompute, &["ep-9", why]);
    }
    let braked = named_for(DAY).observing(|seen| seen.meta.brake = Brake::Paused("wait".into()));
    braked.rest().out_of_sync(Reason::StrayCompute, &["ep-9"]);
    let slowed =
        named_for(DAY).observing(|seen| seen.meta.brake = Brake::Slowed("wait".into(), at(2)));
    slowed.rest().until(at(2));
    named_for(DAY)
        .observing(|seen| seen.meta.paused = true)
        .rest()
        .paused();
}

#[test]
fn what_the_status_does_not_say_deletes_nothing() {
    let unanswered = named_for(DAY).identity(|identity| {
        identity.made.clear();
        identity.twins.clear();
        identity.unanswered = vec![create(-3600)];
    });
    unanswered
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9"]);
    let nothing = named_for(DAY).identity(|identity| {
        identity.made.clear();
        identity.twins.clear();
    });
    nothing.rest().in_sync();
}

#[test]
fn what_others_have_taken_meanwhile_is_named_anew() {
    let cleared = ComputeStep::RecordTwins {
        twins: BTreeMap::new(),
    };
    assert_eq!(named_for(DAY).claimed("ep-9", false).step(), cleared);
    let excluded = named_for(DAY).observing(|seen| seen.not_created = ["ep-9".into()].into());
    assert_eq!(excluded.step(), cleared);
}

/// A twin that is named again is named for a whole day again.
#[test]
fn what_a_list_lacks_is_not_named_and_an_entry_that_cannot_be_read_ends_nothing() {
    assert_eq!(
        named_for(DAY).seeing([own()]).step(),
        ComputeStep::RecordTwins {
            twins: BTreeMap::new()
        }
    );
    for id in [Some("ep-9"), None] {
        let mut given = named_for(DAY).seeing([own()]);
        let entry = UnreadableEntry {
            id: id.map(str::to_owned),
            field: "name".to_owned(),
        };
        given.observed.snapshot = SnapshotState::Taken {
            at: NOW,
            computes: Listed::new(vec![own()], vec![entry].into()),
        };
        given.rest().in_sync();
    }
}

#[test]
fn a_delete_is_repeated_until_a_list_lacks_it() {
    let remembers = |memory: &mut Memory| memory.deleted = Some(("ep-9".into(), NOW));
    let deleted = named_for(DAY).remembering(remembers);
    let waits = deleted.rest();
    waits.out_of_sync(Reason::StrayCompute, &["ep-9"]);
    waits.until(at(60));
    assert_eq!(deleted.clone().after(60).step(), delete());
    assert_eq!(
        deleted.seeing([own()]).step(),
        ComputeStep::RecordTwins {
            twins: BTreeMap::new()
        }
    );
    let failed = named_for(DAY).failed(Action::Delete, refused());
    failed
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9", "not on this plan"]);
    assert_eq!(failed.after(60).step(), delete());
    // The twin's delete says nothing about the bound compute.
    let gone = named_for(DAY).remembering(remembers);
    let gone = gone.observing(|seen| seen.meta.deleting = true).seeing([]);
    assert_eq!(gone.step(), ComputeStep::Delete { id: "ep-1".into() });
}

#[test]
fn it_is_deleted_with_its_resource_unless_another_one_has_it() {
    let deleting = |given: GivenCompute| given.observing(|seen| seen.meta.deleting = true);
    assert_eq!(
        deleting(named_for(0)).step(),
        ComputeStep::Delete { id: "ep-1".into() }
    );
    let first = deleting(named_for(0))
        .remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)))
        .seeing([named("ep-9")]);
    let ComputeStep::Bind { binding, .. } = first.step() else {
        panic!("{:?}", first.step())
    };
    assert_eq!(binding.id, "ep-9");
    let unbound = first.clone().identity(|identity| identity.binding = None);
    let ComputeStep::Bind { binding, .. } = unbound.step() else {
        panic!("{:?}", unbound.step())
    };
    assert_eq!(binding.id, "ep-9");
    let declared = first
        .clone()
        .observing(|seen| seen.claims.declared = ["ep-9".into()].into());
    let ComputeStep::RemoveFinalizerReportingStrays { event } = declared.step() else {
        panic!("it is imported")
    };
    mentions(&event, &["ep-9"]);
    assert_eq!(
        first.claimed("ep-9", false).step(),
        ComputeStep::RemoveFinalizer
    );
    let others = deleting(named_for(0)).claimed("ep-1", true);
    let ComputeStep::Bind { binding, .. } = others.step() else {
        panic!("{:?}", others.step())
    };
    assert_eq!(
        binding.id, "ep-9",
        "its own one belongs to another resource"
    );
}

#[test]
fn a_resource_whose_compute_is_gone_takes_it() {
    let asked = crate::decide::memory::ExistenceAnswer {
        at: NOW,
        exists: false,
    };
    let given = named_for(0).seeing([named("ep-9")]).remembering(|memory| {
        (memory.missing_since, memory.asked) = (Some(at(-120)), Some(asked));
    });
    let ComputeStep::Bind { binding, made, .. } = given.step() else {
        panic!("{:?}", given.step())
    };
    assert_eq!((binding.id.as_str(), made), ("ep-9", vec![create(-3600)]));
}

/// The answer was lost as well: one compute is bound, and the other is named.
#[test]
fn a_create_that_is_found_by_its_mark_is_recorded() {
    let intent = CreateIntent {
        baseline: Some(BTreeSet::new()),
        asked: Some(Settings::default()),
        ..create(-10)
    };
    let given = GivenCompute::intended()
        .declaring(json!({"type": "ReadOnly"}))
        .intent(|stands| *stands = intent);
    let ComputeStep::Bind { binding, made, .. } =
        given.clone().seeing([named("ep-1"), named("ep-9")]).step()
    else {
        panic!("not bound")
    };
    assert_eq!((binding.id.as_str(), made), ("ep-1", vec![create(-10)]));
    let unnamed = given.seeing([replica("ep-1")]).after(60);
    let ComputeStep::Bind { made, .. } = unnamed.step() else {
        panic!("not bound")
    };
    assert_eq!(made, vec![], "what else is new may be anybody's");
}

#[test]
fn a_create_is_recorded_with_its_mark_alone() {
    let full = CreateIntent {
        baseline: Some(BTreeSet::new()),
        asked: Some(Settings::default()),
        ..create(0)
    };
    assert_eq!(full.made_in(&[], &named("ep-1")), vec![create(0)]);
    assert_eq!(
        full.made_in(&[], &replica("ep-1")),
        vec![full.clone()],
        "the platform shows no name"
    );
    assert_eq!(create(0).made_in(&[], &replica("ep-1")), vec![]);
    assert_eq!(
        full.made_in(&[], &compute("ep-1")),
        vec![],
        "a branch has one primary"
    );
    let other = CreateIntent {
        mark: Some("before".into()),
        ..create(-10)
    };
    assert_eq!(
        full.made_in(&[other.clone(), create(-5)], &named("ep-1")),
        vec![other, create(0)]
    );
    let long_ago = CreateIntent {
        mark: Some("before".into()),
        ..create(-DAY)
    };
    assert_eq!(full.made_in(&[long_ago], &named("ep-1")), vec![create(0)]);
}

#[test]
fn a_record_of_before_is_read() {
    let record =
        json!({"binding": {"id": "ep-1", "project": "p-1", "origin": "Created", "at": at(0)}});
    let read: ComputeIdentity = serde_json::from_value(record.clone()).unwrap();
    assert_eq!((&read.made, &read.twins), (&vec![], &BTreeMap::new()));
    assert_eq!(serde_json::to_value(&read).unwrap(), record);
}
