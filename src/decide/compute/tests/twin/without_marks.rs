//! Twins on a platform that keeps no names.

use super::*;

fn unnamed() -> CreateIntent {
    let asked = Some(Settings {
        min: cu(1.),
        max: cu(1.),
        ..Settings::default()
    });
    CreateIntent {
        mark: None,
        baseline: Some(["ep-0".into()].into()),
        asked,
        ..create(-10)
    }
}

/// A replica that is bound to ep-1 by the answer to a create of 10 s ago.
fn young() -> GivenCompute {
    let given = GivenCompute::bound()
        .declaring(json!({"type": "ReadOnly"}))
        .binding(|binding| binding.at = at(-10));
    given
        .identity(|identity| identity.made = vec![unnamed()])
        .seeing([replica("ep-0"), replica("ep-1")])
}

fn beside(edit: impl FnOnce(&mut Compute)) -> GivenCompute {
    young().seeing([
        replica("ep-0"),
        replica("ep-1"),
        with(replica("ep-9"), edit),
    ])
}

/// The twin is recorded, and so it is named.
fn named(given: GivenCompute) -> GivenCompute {
    let ComputeStep::RecordTwins { twins } = given.step() else {
        panic!("{:?}", given.step())
    };
    given.identity(|identity| identity.twins = twins)
}

#[test]
fn what_is_new_beside_its_own_and_matches_is_reported_and_never_deleted() {
    let given = named(beside(|_| {}));
    given.rest().out_of_sync(
        Reason::StrayCompute,
        &["ep-9", "billed", "dbplane.dev/not-created=ep-9"],
    );
    given
        .clone()
        .after(2 * DAY)
        .rest()
        .out_of_sync(Reason::StrayCompute, &["ep-9"]);
    let deleted = given.observing(|seen| seen.meta.deleting = true);
    let deleted = deleted
        .remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)))
        .seeing([replica("ep-9")]);
    let ComputeStep::RemoveFinalizerReportingStrays { event } = deleted.step() else {
        panic!("another step")
    };
    mentions(&event, &["ep-9"]);
}

#[test]
fn what_shows_that_it_is_somebody_elses_keeps_it_unnamed() {
    for given in [
        beside(|_| {}).claimed("ep-9", false),
        beside(|_| {}).observing(|seen| seen.not_created = ["ep-9".into()].into()),
        beside(|_| {}).observing(|seen| seen.claims.creating = Some(rival("other", -1))),
        beside(|compute| compute.settings.max = cu(4.)),
        beside(|compute| compute.name = Some("a person's".into())),
        beside(|compute| compute.branch_id = "br-dev".into()),
    ] {
        given.rest().in_sync();
    }
}

#[test]
fn it_is_looked_for_until_two_minutes_after_the_settle_time() {
    young().rest().in_sync();
    named(beside(|_| {}).after(169));
    beside(|_| {}).after(170).rest().in_sync();
    let identity = young().observed.facts.identity.unwrap();
    assert!(looks_besides(&identity, SETTLE, at(169)));
    assert!(!looks_besides(&identity, SETTLE, at(170)));
    let marked = ComputeIdentity {
        made: vec![create(-10)],
        ..identity
    };
    assert!(!looks_besides(&marked, SETTLE, NOW));
}

/// ep-9 was there before the last create, and the one before is too old to have made it.
#[test]
fn each_create_has_its_own_time() {
    let before = CreateIntent {
        at: at(-7200),
        ..unnamed()
    };
    let last = CreateIntent {
        baseline: Some(["ep-0".into(), "ep-9".into()].into()),
        ..unnamed()
    };
    beside(|_| {})
        .identity(|identity| identity.made = vec![before, last])
        .rest()
        .in_sync();
}

#[test]
fn what_is_recorded_stays_recorded_while_nothing_else_explains_it() {
    let given = named(beside(|_| {})).after(3600);
    let rival = given
        .clone()
        .observing(|seen| seen.claims.creating = Some(rival("other", -1)));
    rival.rest().out_of_sync(Reason::StrayCompute, &["ep-9"]);
    given.clone().seeing([replica("ep-1")]).rest().in_sync();
    let cleared = ComputeStep::RecordTwins {
        twins: BTreeMap::new(),
    };
    assert_eq!(given.claimed("ep-9", false).step(), cleared);
}

/// The binding was not recorded, but this process knows the answer.
#[test]
fn an_answer_that_was_not_recorded_is_remembered() {
    let given = GivenCompute::intended()
        .declaring(json!({"type": "ReadOnly"}))
        .seeing([replica("ep-1")])
        .after(60);
    let made = |given: &GivenCompute| match given.step() {
        ComputeStep::Bind { made, .. } => made.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(made(&given), 0);
    assert_eq!(
        made(&given.remembering(|memory| memory.created = Some("ep-1".into()))),
        1
    );
}

#[test]
fn a_resource_whose_compute_is_gone_does_not_take_it() {
    let asked = crate::decide::memory::ExistenceAnswer {
        at: NOW,
        exists: false,
    };
    let given = beside(|_| {})
        .seeing([replica("ep-0"), replica("ep-9")])
        .binding(|binding| binding.at = at(-3600));
    let given = given.remembering(|memory| {
        (memory.missing_since, memory.asked) = (Some(at(-120)), Some(asked));
    });
    assert!(
        matches!(given.step(), ComputeStep::Create { .. }),
        "{:?}",
        given.step()
    );
}
