//! A bound compute that the platform no longer lists.

use super::*;

/// The list has lacked the compute since this time, and the platform has answered that it does not
/// exist.
fn gone(since: Timestamp) -> GivenCompute {
    GivenCompute::bound().seeing([]).remembering(|memory| {
        (memory.missing_since, memory.asked) = (
            Some(since),
            Some(ExistenceAnswer {
                at: since,
                exists: false,
            }),
        );
    })
}

#[test]
fn a_missing_compute_is_recreated_after_the_settle_time() {
    let given = GivenCompute::bound()
        .seeing([])
        .remembering(|memory| memory.missing_since = Some(NOW));
    for seconds in [0, 59] {
        let reported = given.clone().after(seconds).rest();
        reported.unknown(Reason::ComputeNotFound);
        reported.until(at(60));
    }
    let given = given.remembering(|memory| {
        memory.asked = Some(ExistenceAnswer {
            at: at(60),
            exists: false,
        })
    });
    assert!(matches!(
        given.clone().after(60).step(),
        ComputeStep::Create { .. }
    ));
    let adopted = given
        .clone()
        .binding(|binding| binding.origin = Origin::Adopted);
    assert!(matches!(
        adopted.after(60).step(),
        ComputeStep::Create { .. }
    ));
    // Someone may have created another primary in the meantime.
    let taken = given.seeing([compute("ep-2")]).after(60);
    taken.rest().stalled(Reason::PrimaryExists, &["ep-2"]);
    match taken.declaring(json!({"existing": "Adopt"})).step() {
        ComputeStep::Bind { binding, .. } => {
            assert_eq!(
                (binding.id.as_str(), binding.origin),
                ("ep-2", Origin::Adopted)
            )
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_that_lacks_a_compute_is_not_believed_before_the_platform_was_asked_for_it() {
    let given = GivenCompute::bound()
        .seeing([])
        .remembering(|memory| memory.missing_since = Some(NOW))
        .after(60);
    assert_eq!(given.step(), ComputeStep::Ask { id: "ep-1".into() });
    let asked = |at, exists| {
        given
            .clone()
            .remembering(|memory| memory.asked = Some(ExistenceAnswer { at, exists }))
    };
    let there = asked(at(60), true);
    let reported = there.rest();
    reported.unknown(Reason::ComputeNotFound);
    reported.until(at(120));
    assert_eq!(
        there.after(120).step(),
        ComputeStep::Ask { id: "ep-1".into() }
    );
    assert_eq!(
        asked(at(-1), false).step(),
        ComputeStep::Ask { id: "ep-1".into() },
        "that was before"
    );
    let refused = given.clone().failed(Action::Ask, refused());
    refused.rest().stalled(Reason::Refused, &["422"]);
    assert_eq!(
        refused.after(3600).step(),
        ComputeStep::Ask { id: "ep-1".into() }
    );
    let observed = given.clone().declaring(json!({"management": "Observe"}));
    observed.rest().stalled(Reason::ComputeNotFound, &["ep-1"]);
    let mut memory = asked(at(60), false).observed.memory;
    remember(
        &mut memory,
        version(&given.spec, GENERATION),
        None,
        &Shown::Entry(&compute("ep-1")),
        at(61),
    );
    assert_eq!(
        (memory.asked, memory.missing_since),
        (None, None),
        "it was listed again"
    );
}

#[test]
fn nothing_is_recreated_where_the_project_could_not_be_read() {
    for fault in [
        Fault::Unauthorized {
            message: "revoked".into(),
        },
        Fault::Forbidden {
            status: 403,
            message: "not yours".into(),
        },
        Fault::Forbidden {
            status: 404,
            message: "not allowed".into(),
        },
        Fault::NotFound {
            message: "project not found".into(),
        },
        Fault::Transport {
            message: "refused".into(),
        },
        Fault::Server {
            status: 500,
            message: "broken".into(),
        },
        Fault::Throttled {
            status: 503,
            retry_after: None,
        },
        lost(),
    ] {
        for given in [
            GivenCompute::bound(),
            GivenCompute::intended(),
            GivenCompute::new(),
        ] {
            let given = given.remembering(|memory| memory.missing_since = Some(at(-9999)));
            let choice = given
                .observing(|observed| observed.snapshot = SnapshotState::Failed(fault.clone()))
                .decide();
            assert_eq!(choice.step, None, "{fault:?}");
        }
    }
}

#[test]
fn what_other_credentials_did_not_see_proves_nothing() {
    let given = gone(at(-300));
    assert!(matches!(given.step(), ComputeStep::Create { .. }));
    given
        .remembering(Memory::credentials_changed)
        .rest()
        .unknown(Reason::ComputeNotFound);
}

#[test]
fn absence_before_the_binding_does_not_count() {
    let given = gone(at(-300));
    let young = given.clone().binding(|binding| binding.at = at(-10));
    let reported = young.rest();
    reported.unknown(Reason::ComputeNotFound);
    reported.until(at(50));
    assert!(matches!(given.step(), ComputeStep::Create { .. }));
}

#[test]
fn a_missing_compute_that_dbplane_did_not_create_is_reported() {
    for given in [
        gone(NOW).binding(|binding| binding.origin = Origin::Imported),
        gone(NOW)
            .binding(|binding| binding.origin = Origin::Imported)
            .declaring(json!({"computeID": "ep-1"})),
        gone(NOW).declaring(json!({"computeID": "ep-1"})),
        gone(NOW).binding(|binding| binding.origin = Origin::Observed),
        gone(NOW).declaring(json!({"management": "Observe"})),
    ] {
        given.rest().unknown(Reason::ComputeNotFound);
        given
            .after(60)
            .rest()
            .stalled(Reason::ComputeNotFound, &["ep-1", "Delete this resource"]);
    }
}

#[test]
fn a_missing_compute_is_only_reported_where_the_spec_says_so() {
    let given = gone(NOW)
        .declaring(json!({"onMissing": "Report"}))
        .after(60);
    given.rest().stalled(
        Reason::ComputeNotFound,
        &["ep-1", "kubectl -n shop patch compute orders", "Recreate"],
    );
    // The compute may reappear, such as after a restore on the platform.
    given.seeing([compute("ep-1")]).rest().in_sync();
}
