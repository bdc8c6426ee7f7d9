//! A Compute without a binding and an intent.

mod rivals;

use super::*;
use crate::decide::Action;

fn creates(given: &GivenCompute) -> (CreateIntent, NewCompute, RestartRecord) {
    match given.step() {
        ComputeStep::Create {
            intent,
            new,
            restart,
            ..
        } => (intent, *new, restart),
        other => panic!("{other:?}"),
    }
}

fn binds(given: &GivenCompute, id: &str, origin: Origin) {
    match given.step() {
        ComputeStep::Bind {
            binding, restart, ..
        } => {
            assert_eq!(
                restart.noted,
                origin != Origin::Created,
                "nothing was started that was there before"
            );
            let SnapshotState::Taken { computes, .. } = &given.observed.snapshot else {
                panic!("not read")
            };
            let found = computes
                .shown()
                .iter()
                .find(|compute| compute.id == id)
                .unwrap();
            let (project, branch) = ("p-1".into(), Some(found.branch_id.clone()));
            assert_eq!(
                binding,
                Binding {
                    id: id.into(),
                    project,
                    platform: None,
                    branch,
                    origin,
                    at: NOW
                }
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_primary_is_created_on_a_branch_without_one() {
    let others = [
        replica("ep-7"),
        with(compute("ep-8"), |compute| {
            compute.branch_id = "br-dev".into()
        }),
    ];
    let given = GivenCompute::new().seeing(others).declaring(
        json!({"size": {"autoscaling": {"min": 0.25, "max": 2}}, "scaleToZero": {"never": true}}),
    );
    let (intent, new, restart) = creates(&given);
    let asked = Some(new.settings.clone());
    let baseline = Some([].into());
    assert_eq!(
        intent,
        CreateIntent {
            at: NOW,
            branch: BRANCH.into(),
            platform: None,
            baseline,
            newest: None,
            mark: None,
            asked
        }
    );
    assert_eq!(
        (new.branch_id.as_str(), new.role, &new.name),
        (BRANCH, Role::Primary, &None)
    );
    assert_eq!((new.settings.min, new.settings.max), (cu(0.25), cu(2.)));
    assert_eq!(new.settings.suspend_after, Some(SuspendAfter::Never));
    assert_eq!(
        (new.settings.disabled, new.settings.pooler_enabled),
        (None, None),
        "only what is declared"
    );
    let nothing = RestartRecord {
        at: NOW,
        ..RestartRecord::default()
    };
    assert_eq!(restart, nothing);
}

#[test]
fn the_token_that_a_compute_is_created_with_asks_for_no_restart() {
    let given = GivenCompute::new()
        .declaring(json!({"restartToken": "one"}))
        .observing(|observed| observed.restart_annotation = Some("two".into()));
    let restart = creates(&given).2;
    assert_eq!(
        (restart.token.as_str(), restart.annotation.as_str()),
        ("one", "two")
    );
}

#[test]
fn the_existing_replicas_are_the_baseline_of_a_new_one() {
    let made = |id, second| with(replica(id), |compute| compute.created_at = second);
    let given = GivenCompute::new()
        .declaring(json!({"type": "ReadOnly"}))
        .seeing([
            compute("ep-1"),
            made("ep-2", Some(at(-60))),
            made("ep-3", Some(at(-90))),
            with(replica("ep-4"), |compute| {
                compute.branch_id = "br-dev".into()
            }),
        ]);
    let (intent, new, _) = creates(&given);
    assert_eq!(intent.baseline, Some(["ep-2".into(), "ep-3".into()].into()));
    assert_eq!(intent.newest, Some(at(-60)));
    assert_eq!(new.role, Role::Replica);
}

#[test]
fn a_platform_that_shows_names_is_given_one_that_is_unique() {
    let given =
        GivenCompute::new().observing(|observed| observed.name_support = NameSupport::Offered);
    let (intent, new, _) = creates(&given);
    assert_eq!(
        new.name.as_deref(),
        Some("orders-c1u57e-3pk3zawwrdgc0-00000007")
    );
    assert_eq!(intent.mark, new.name);
    assert!(
        intent.baseline.is_some(),
        "whether it keeps names is not known yet"
    );
    let keeps = creates(
        &GivenCompute::new().observing(|observed| observed.name_support = NameSupport::Kept),
    )
    .0;
    assert_eq!((keeps.mark, keeps.baseline), (intent.mark, None));
}

#[test]
fn an_existing_primary_is_refused_adopted_or_observed_as_declared() {
    let given = GivenCompute::new().seeing([compute("ep-1")]);
    given.rest().stalled(
        Reason::PrimaryExists,
        &["ep-1", BRANCH, "spec.existing to Adopt"],
    );
    binds(
        &given.clone().declaring(json!({"existing": "Adopt"})),
        "ep-1",
        Origin::Adopted,
    );
    let observe = given.declaring(json!({"management": "Observe"}));
    binds(&observe, "ep-1", Origin::Observed);
    binds(
        &observe.clone().declaring(json!({"existing": "Adopt"})),
        "ep-1",
        Origin::Observed,
    );
    let none = observe.seeing([]);
    none.rest().stalled(
        Reason::ComputeNotFound,
        &[BRANCH, "no primary compute to observe"],
    );
}

#[test]
fn a_compute_that_is_named_is_imported_wherever_it_is() {
    let given = GivenCompute::new().declaring(json!({"computeID": "ep-9"}));
    given
        .rest()
        .stalled(Reason::ComputeNotFound, &["p-1", "ep-9", "spec.computeID"]);
    let elsewhere = with(compute("ep-9"), |compute| {
        compute.branch_id = "br-dev".into()
    });
    binds(&given.clone().seeing([elsewhere]), "ep-9", Origin::Imported);
    let observe = given.clone().declaring(json!({"management": "Observe"}));
    binds(&observe.seeing([compute("ep-9")]), "ep-9", Origin::Observed);
    given.seeing([replica("ep-9")]).rest().stalled(
        Reason::BindingConflict,
        &["ep-9 is a read replica", "ReadWrite"],
    );
    let wanted = GivenCompute::new()
        .declaring(json!({"computeID": "ep-9", "type": "ReadOnly"}))
        .seeing([compute("ep-9")]);
    wanted.rest().stalled(
        Reason::BindingConflict,
        &["the branch's primary", "ReadOnly"],
    );
}

#[test]
fn a_create_that_failed_is_tried_again_later_or_with_another_spec() {
    let given = GivenCompute::new().failed(Action::Create, refused());
    let reported = given.rest();
    reported.stalled(Reason::Refused, &["422", "not on this plan"]);
    reported.until(at(30));
    creates(&given.clone().after(30));
    // The backoff comes first: reporting the turn instead would rewrite the status at each turn.
    let behind = given
        .clone()
        .observing(|observed| observed.claims.creating = Some(rival("first", -1)));
    behind
        .rest()
        .stalled(Reason::Refused, &["422", "not on this plan"]);
    behind.after(30).rest().progressing(Reason::Creating);
    creates(&given.observing(|observed| observed.meta.generation = 4));
    let throttled = Fault::Throttled {
        status: 429,
        retry_after: Some(Duration::from_secs(40)),
    };
    let reported = GivenCompute::new().failed(Action::Create, throttled).rest();
    reported.progressing(Reason::PlatformBusy);
    reported.until(at(40));
}

#[test]
fn a_create_rests_on_a_list_that_is_young_or_newer_than_its_place_in_the_budget() {
    let placed = |seconds| Some(at(seconds));
    let cases = [
        (-9, None, true),
        (-10, None, false),
        // The list began before the place was granted: others may have created computes during the
        // whole wait.
        (-5, placed(-4), false),
        (-5, placed(-5), true),
        (-59, placed(-100), true),
        (-60, placed(-100), false),
    ];
    let intent = creates(&GivenCompute::new()).0;
    let by_mark = CreateIntent {
        baseline: None,
        ..intent.clone()
    };
    for (seen, place, expected) in cases {
        assert_eq!(
            is_current(&intent, at(seen), place, NOW),
            expected,
            "begun at {seen}, place at {place:?}"
        );
        assert!(
            is_current(&by_mark, at(seen), place, NOW),
            "its mark tells it from whatever came since"
        );
    }
}

#[test]
fn only_who_creates_by_a_mark_rests_on_an_older_list() {
    let may = |declared: Value, computes: &[Compute], names| {
        let spec = GivenCompute::new().declaring(declared).spec;
        may_rest_on_older_list(&spec, &ComputeIdentity::default(), computes, names)
    };
    let primary = [compute("ep-1")];
    let a_replica = || json!({"type": "ReadOnly"});
    assert!(may(a_replica(), &primary, NameSupport::Kept));
    assert!(
        !may(a_replica(), &[], NameSupport::Offered),
        "there may be no names"
    );
    let a_primary = || json!({});
    assert!(may(a_primary(), &[], NameSupport::Kept));
    assert!(
        !may(a_primary(), &primary, NameSupport::Kept),
        "the list has a primary"
    );
    for declared in [
        json!({"existing": "Adopt"}),
        json!({"management": "Observe"}),
        json!({"computeID": "ep-2"}),
    ] {
        assert!(
            !may(declared.clone(), &[], NameSupport::Kept),
            "{declared} may bind to an existing compute"
        );
    }
    let intended = GivenCompute::intended().observed.facts.identity.unwrap();
    assert!(
        !may_rest_on_older_list(&GivenCompute::new().spec, &intended, &[], NameSupport::Kept),
        "it has a record"
    );
}
