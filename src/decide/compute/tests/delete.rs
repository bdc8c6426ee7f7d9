//! A Compute that is being deleted.

mod project;

use super::*;
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{Action, Brake};
use crate::domain::Form;

fn deleting(given: GivenCompute) -> GivenCompute {
    given.observing(|observed| observed.meta.deleting = true)
}

fn orphan() -> Value {
    json!({"deletion": "Orphan"})
}

#[test]
fn the_compute_is_deleted_first() {
    let given = deleting(GivenCompute::bound());
    assert_eq!(given.step(), ComputeStep::Delete { id: "ep-1".into() });
    assert_eq!(
        given.seeing([]).step(),
        ComputeStep::Delete { id: "ep-1".into() },
        "a list proves nothing by itself"
    );
}

#[test]
fn a_protected_compute_waits_for_a_person() {
    let protection = |on: bool| json!({"deletionProtection": on});
    let given = deleting(GivenCompute::bound()).declaring(protection(true));
    given.rest().stalled(
        Reason::DeletionProtected,
        &["ep-1", "kubectl -n shop patch compute orders", "Orphan"],
    );
    assert_eq!(given.rest().wake, Wake::OnChange);
    assert!(matches!(
        given.clone().declaring(protection(false)).step(),
        ComputeStep::Delete { .. }
    ));
    assert_eq!(
        given.declaring(orphan()).step(),
        ComputeStep::RemoveFinalizer
    );
    let open = deleting(GivenCompute::intended()).declaring(protection(true));
    open.rest()
        .stalled(Reason::DeletionProtected, &["a compute"]);
    let nothing = deleting(GivenCompute::new())
        .declaring(protection(true))
        .observing(|seen| seen.meta.has_finalizer = true);
    assert_eq!(
        nothing.step(),
        ComputeStep::RemoveFinalizer,
        "there is none"
    );
}

#[test]
fn every_origin_is_deleted_unless_orphaned() {
    for origin in [Origin::Created, Origin::Adopted, Origin::Imported] {
        let given = deleting(GivenCompute::bound().binding(|binding| binding.origin = origin));
        assert!(
            matches!(given.step(), ComputeStep::Delete { .. }),
            "{origin:?}"
        );
        assert_eq!(
            given.declaring(orphan()).step(),
            ComputeStep::RemoveFinalizer,
            "{origin:?}"
        );
    }
}

#[test]
fn orphaning_needs_neither_account_nor_platform() {
    for leave in [orphan(), json!({"management": "Observe"})] {
        for given in [
            GivenCompute::bound(),
            GivenCompute::intended(),
            GivenCompute::new().observing(|seen| seen.meta.has_finalizer = true),
        ] {
            let given = deleting(given.declaring(leave.clone())).observing(|observed| {
                observed.account = AccountView::Missing {
                    name: "Account prod".into(),
                };
                observed.snapshot = SnapshotState::Pending;
            });
            assert_eq!(given.step(), ComputeStep::RemoveFinalizer);
        }
    }
}

#[test]
fn nothing_was_ever_asked_for() {
    let given = deleting(GivenCompute::new()).observing(|observed| {
        observed.meta.has_finalizer = true;
        observed.account = AccountView::Missing {
            name: "Account prod".into(),
        };
    });
    assert_eq!(given.step(), ComputeStep::RemoveFinalizer);
    deleting(GivenCompute::new())
        .rest()
        .progressing(Reason::Deleting);
}

#[test]
fn a_paused_resource_waits() {
    let given = deleting(GivenCompute::bound()).observing(|observed| observed.meta.paused = true);
    given.rest().paused();
    given.declaring(orphan()).rest().paused();
}

#[test]
fn a_delete_that_is_refused_keeps_the_resource() {
    let given = deleting(GivenCompute::bound()).failed(Action::Delete, refused());
    let reported = given.rest();
    reported.stalled(
        Reason::Refused,
        &[
            "422",
            "not on this plan",
            "tries the deletion again",
            "Orphan",
        ],
    );
    reported.until(at(30));
    assert!(matches!(
        given.clone().after(30).step(),
        ComputeStep::Delete { .. }
    ));
    assert_eq!(
        given.declaring(orphan()).step(),
        ComputeStep::RemoveFinalizer
    );
}

#[test]
fn a_delete_that_was_confirmed_is_shown_by_the_list() {
    let given = deleting(GivenCompute::bound())
        .remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)));
    let reported = given.rest();
    reported.progressing(Reason::Deleting);
    reported.until(at(60));
    assert!(
        matches!(given.clone().after(60).step(), ComputeStep::Delete { .. }),
        "it is still there"
    );
    assert_eq!(given.seeing([]).step(), ComputeStep::RemoveFinalizer);
}

#[test]
fn a_list_that_may_lag_behind_the_create_proves_nothing() {
    let young = deleting(
        GivenCompute::bound()
            .binding(|binding| binding.at = at(-10))
            .seeing([]),
    );
    let reported = young.rest();
    reported.progressing(Reason::Deleting);
    reported.until(at(50));
    assert!(matches!(
        young.clone().after(50).step(),
        ComputeStep::Delete { .. }
    ));
    let confirmed = young.remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)));
    assert_eq!(confirmed.step(), ComputeStep::RemoveFinalizer);
}

#[test]
fn the_compute_that_another_resource_had_first_is_not_deleted() {
    assert_eq!(
        deleting(GivenCompute::bound()).claimed("ep-1", true).step(),
        ComputeStep::RemoveFinalizer
    );
    assert!(matches!(
        deleting(GivenCompute::bound())
            .claimed("ep-1", false)
            .step(),
        ComputeStep::Delete { .. }
    ));
    let outside = |seen: &mut ComputeObserved| {
        seen.claims.outside = [("ep-1".into(), holder("outside"))].into()
    };
    let step = deleting(GivenCompute::bound()).observing(outside).step();
    let ComputeStep::RemoveFinalizerReportingStrays { event } = step else {
        panic!("{step:?}")
    };
    assert!(
        event.contains("Compute ep-1 is not deleted") && event.contains("Compute shop/outside"),
        "{event}"
    );
    // The other resource's spec has named the result of this resource's open create.
    let created = GivenCompute::intended()
        .seeing([compute("ep-1")])
        .remembering(|memory| memory.created = Some("ep-1".into()));
    assert!(matches!(
        deleting(created.clone()).step(),
        ComputeStep::Bind { .. }
    ));
    assert_eq!(
        deleting(created).claimed("ep-1", true).step(),
        ComputeStep::RemoveFinalizer
    );
}

#[test]
fn an_unresolved_create_is_resolved_first() {
    let given = deleting(GivenCompute::intended());
    let reported = given.rest();
    reported.progressing(Reason::ConfirmingCreate);
    reported.until(at(50));
    assert_eq!(given.clone().after(50).step(), ComputeStep::RemoveFinalizer);
    match given.clone().seeing([compute("ep-1")]).step() {
        ComputeStep::Bind { binding, .. } => assert_eq!(binding.id, "ep-1"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        given.failed(Action::Create, refused()).step(),
        ComputeStep::RemoveFinalizer
    );
}

/// Deleting the namespace must not need a user: computes without proof of origin are kept and
/// reported.
#[test]
fn what_a_create_may_have_made_is_left_and_reported_and_a_person_can_decide() {
    let older = |given: GivenCompute| given.intent(|intent| intent.newest = Some(at(-60)));
    let given = |computes: Vec<Compute>| {
        deleting(GivenCompute::intended())
            .declaring(json!({"type": "ReadOnly", "size": {"fixed": 1}}))
            .seeing(computes)
    };
    let asking = |given: GivenCompute| {
        given.intent(|intent| {
            intent.asked = Some(Settings {
                max: cu(4.),
                min: cu(4.),
                ..Settings::default()
            })
        })
    };
    for (given, ids) in [
        (
            given(vec![replica("ep-1"), replica("ep-2")]),
            &["ep-1", "ep-2"][..],
        ),
        (asking(given(vec![replica("ep-1")])), &["ep-1"]),
        (older(given(vec![replica("ep-1")])), &["ep-1"]),
    ] {
        let reported = given.rest();
        reported.progressing(Reason::ConfirmingCreate);
        reported.until(at(50));
        let step = given.clone().after(50).step();
        let ComputeStep::RemoveFinalizerReportingStrays { event } = step else {
            panic!("{step:?}")
        };
        mentions(&event, &["billed", "console", "spec.computeID"]);
        mentions(&event, ids);
        given
            .declaring(json!({"deletionProtection": true}))
            .rest()
            .stalled(Reason::DeletionProtected, &[]);
    }
    let named =
        given(vec![replica("ep-1"), replica("ep-2")]).declaring(json!({"computeID": "ep-2"}));
    match named.step() {
        ComputeStep::Bind { binding, .. } => assert_eq!(binding.id, "ep-2"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_compute_id_that_names_nothing_does_not_make_an_open_create_forgotten() {
    let given = deleting(GivenCompute::intended()).declaring(json!({"computeID": "ep-9"}));
    given.rest().until(at(50));
    assert_eq!(given.clone().after(50).step(), ComputeStep::RemoveFinalizer);
    for given in [
        given.clone().seeing([compute("ep-1")]),
        given
            .seeing([compute("ep-1"), compute("ep-9")])
            .claimed("ep-9", false),
    ] {
        match given.step() {
            ComputeStep::Bind { binding, .. } => assert_eq!(binding.id, "ep-1"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn nothing_is_deleted_while_the_spec_contradicts_the_record() {
    let deleting = || deleting(GivenCompute::bound());
    let misnamed = deleting().declaring(json!({"computeID": "ep-2"}));
    let elsewhere = deleting().binding(|binding| binding.project = "p-2".into());
    for given in [misnamed, elsewhere] {
        let words = ["ep-1", "kubectl -n shop patch compute orders", "Orphan"];
        for given in [given.clone(), given.clone().seeing([])] {
            given.rest().stalled(Reason::BindingConflict, &words);
        }
        assert_eq!(
            given.declaring(orphan()).step(),
            ComputeStep::RemoveFinalizer
        );
    }
    let named = deleting().declaring(json!({"computeID": "ep-1"}));
    assert_eq!(named.step(), ComputeStep::Delete { id: "ep-1".into() });
}

#[test]
fn without_its_account_the_resource_waits_and_names_what_to_do() {
    let given =
        |account| deleting(GivenCompute::bound()).observing(|observed| observed.account = account);
    let missing = given(AccountView::Missing {
        name: "Account prod".into(),
    });
    missing.rest().stalled(
        Reason::AccountNotFound,
        &["Account prod", "Restore the account", "Orphan"],
    );
    let broken = AccountView::NotReady {
        name: "Account prod".into(),
        message: "no Secret.".into(),
    };
    let reported = given(broken).rest();
    reported.unknown(Reason::AccountNotReady);
    assert!(
        matches!(&reported.health, Health::Unknown(_, text) if text.contains("Orphan")),
        "{reported:?}"
    );
    assert_eq!(given(AccountView::Pending).decide(), Decision::silent());
}

#[test]
fn a_failed_snapshot_does_not_count_as_deletion() {
    let given = |snapshot| {
        deleting(GivenCompute::bound()).observing(|observed| observed.snapshot = snapshot)
    };
    given(SnapshotState::Failed(lost()))
        .rest()
        .unknown(Reason::PlatformUnreachable);
    let gone = SnapshotState::Failed(Fault::NotFound {
        message: "project not found".into(),
    });
    given(gone)
        .rest()
        .stalled(Reason::Refused, &["p-1", "404", "Orphan"]);
    assert_eq!(given(SnapshotState::Pending).decide(), Decision::silent());
}

#[test]
fn an_invalid_record_blocks_only_what_would_be_deleted() {
    for problem in [
        InvalidAnnotation::Unreadable("expected value".into()),
        InvalidAnnotation::Edited,
    ] {
        let given = deleting(GivenCompute::bound()).with_invalid_record(&problem);
        given
            .rest()
            .stalled(Reason::BindingConflict, &["dbplane.dev/record"]);
        assert_eq!(
            given.declaring(orphan()).step(),
            ComputeStep::RemoveFinalizer
        );
    }
}

#[test]
fn a_copied_record_is_dropped_and_its_compute_kept() {
    let copied = InvalidAnnotation::CopiedFrom("shop/other".into());
    assert_eq!(
        deleting(GivenCompute::bound())
            .with_invalid_record(&copied)
            .step(),
        ComputeStep::RemoveFinalizer
    );
}

#[test]
fn a_paused_deletion_stays_paused_whatever_is_observed() {
    let paused = deleting(GivenCompute::bound())
        .observing(|observed| observed.meta.brake = Brake::Paused("wait".into()));
    for given in [
        paused.clone(),
        paused.clone().seeing([]),
        paused
            .clone()
            .observing(|observed| observed.snapshot = SnapshotState::Failed(lost())),
        paused.clone().observing(|observed| {
            observed.account = AccountView::Missing {
                name: "Account prod".into(),
            }
        }),
        paused
            .clone()
            .observing(|observed| observed.meta.paused = true),
        paused.clone().failed(Action::Delete, refused()),
    ] {
        let reported = given.rest();
        reported.stalled(Reason::DeletionPaused, &["wait"]);
        assert_eq!(reported.wake, Wake::OnChange);
    }
    assert_eq!(
        paused.clone().declaring(orphan()).step(),
        ComputeStep::RemoveFinalizer
    );
    let without = paused
        .clone()
        .observing(|observed| observed.limits.deletes_per_minute = 0);
    assert!(
        matches!(without.step(), ComputeStep::Delete { .. }),
        "there is no brake any more"
    );
    let confirmed = paused.observing(|observed| observed.meta.brake = Brake::Confirmed);
    assert!(matches!(confirmed.step(), ComputeStep::Delete { .. }));
    assert!(matches!(
        confirmed.clone().seeing([]).step(),
        ComputeStep::Delete { .. }
    ));
    let deleted = confirmed
        .seeing([])
        .remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)));
    assert_eq!(deleted.step(), ComputeStep::RemoveFinalizer);
}

#[test]
fn only_an_answer_to_the_delete_beside_a_list_without_the_compute_shows_that_it_is_deleted() {
    let faults = [
        Fault::Unauthorized {
            message: "no".into(),
        },
        Fault::Forbidden {
            status: 403,
            message: "no".into(),
        },
        Fault::Forbidden {
            status: 404,
            message: "not allowed to see it".into(),
        },
        Fault::NotFound {
            message: "no such project".into(),
        },
        Fault::Throttled {
            status: 429,
            retry_after: None,
        },
        Fault::Server {
            status: 500,
            message: "broken".into(),
        },
        Fault::Transport {
            message: "no route".into(),
        },
        Fault::Undecodable {
            path: "endpoints".into(),
            message: "missing".into(),
        },
        Fault::TooLarge {
            message: "the list".into(),
        },
        lost(),
    ];
    for fault in faults {
        let unreadable = deleting(GivenCompute::bound())
            .observing(|observed| observed.snapshot = SnapshotState::Failed(fault.clone()));
        unreadable.rest();
        let unanswered = deleting(GivenCompute::bound()).failed(Action::Delete, fault);
        unanswered.rest();
        assert!(matches!(
            unanswered.clone().after(3600).step(),
            ComputeStep::Delete { .. }
        ));
        unanswered.clone().seeing([]).rest();
        let answered = unanswered
            .seeing([])
            .remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)));
        assert_eq!(answered.step(), ComputeStep::RemoveFinalizer);
    }
}
