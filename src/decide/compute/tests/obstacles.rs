//! Preconditions of every decision: valid annotations, no pause, an account, a snapshot.

use super::*;
use crate::decide::seal::InvalidAnnotation;

#[test]
fn nothing_is_done_with_an_invalid_record() {
    let forget = "kubectl -n shop annotate compute orders dbplane.dev/record-";
    for (problem, reported) in [
        (
            InvalidAnnotation::Unreadable("expected value".into()),
            ["expected value", forget],
        ),
        (
            InvalidAnnotation::Edited,
            ["not as dbplane wrote it", forget],
        ),
        (
            InvalidAnnotation::Newer,
            [
                "a newer version of dbplane",
                "until that version runs again",
            ],
        ),
        (
            InvalidAnnotation::HandOver,
            ["does not offer that any more", "set its spec.computeID"],
        ),
        (
            InvalidAnnotation::CopiedFrom("shop/other".into()),
            ["copied from shop/other", forget],
        ),
    ] {
        for given in [GivenCompute::new(), GivenCompute::bound()] {
            given
                .with_invalid_record(&problem)
                .rest()
                .stalled(Reason::BindingConflict, &reported);
        }
    }
}

#[test]
fn a_finalizer_that_was_lost_is_written_again_before_anything_else() {
    let text = || Some("the record".to_owned());
    let losing = |given: GivenCompute| {
        given.observing(|observed| {
            observed.meta.record = text();
            observed.meta.record_lost = true;
            observed.meta.has_finalizer = false;
            observed.account = AccountView::Pending;
        })
    };
    for given in [GivenCompute::bound(), GivenCompute::intended()] {
        assert_eq!(
            losing(given.clone()).step(),
            ComputeStep::Restore { record: text() }
        );
        let finalizer =
            losing(given.clone()).observing(|observed| observed.meta.record_lost = false);
        assert_eq!(
            finalizer.step(),
            ComputeStep::Restore { record: None },
            "the finalizer alone"
        );
        let copy = losing(given.clone()).observing(|observed| observed.meta.has_finalizer = true);
        assert_eq!(
            copy.decide(),
            Decision::silent(),
            "the copy of the record alone can wait"
        );
        let paused = losing(given).observing(|observed| observed.meta.paused = true);
        paused.rest().paused();
    }
    let observing = losing(GivenCompute::bound()).declaring(json!({"management": "Observe"}));
    assert_eq!(
        observing.decide(),
        Decision::silent(),
        "nothing is held that is only observed"
    );
    let nothing =
        losing(GivenCompute::new()).observing(|observed| observed.meta.record_lost = false);
    assert_eq!(
        nothing.decide(),
        Decision::silent(),
        "nothing is held where nothing was begun"
    );
}

#[test]
fn a_paused_resource_is_left_alone() {
    for given in [
        GivenCompute::new(),
        GivenCompute::intended(),
        GivenCompute::bound().declaring(json!({"size": {"fixed": 4}})),
    ] {
        let given = given.observing(|observed| observed.meta.paused = true);
        let reported = given.rest();
        reported.paused();
        assert_eq!(reported.wake, Wake::OnChange);
    }
}

#[test]
fn an_account_that_cannot_be_used_is_reported() {
    let name = || "Account prod".to_owned();
    let forbidden = || AccountView::ProjectNotAllowed {
        name: name(),
        project: "p-1".into(),
    };
    for (account, reason, words) in [
        (
            AccountView::Missing { name: name() },
            Reason::AccountNotFound,
            "Create it",
        ),
        (
            AccountView::NotServed { name: name() },
            Reason::AccountNotFound,
            "--no-cluster-accounts",
        ),
        (
            AccountView::NamespaceNotAllowed { name: name() },
            Reason::NamespaceNotAllowed,
            "spec.namespaces",
        ),
        (
            forbidden(),
            Reason::ProjectNotAllowed,
            "not for project p-1. Ask whoever",
        ),
    ] {
        let given = GivenCompute::bound().observing(|observed| observed.account = account);
        given.rest().stalled(reason, &["Account prod", words]);
    }
    let account = AccountView::NotReady {
        name: name(),
        message: "the key was revoked".into(),
    };
    let reported = GivenCompute::bound()
        .observing(|observed| observed.account = account)
        .rest();
    reported.unknown(Reason::AccountNotReady);
    assert!(
        matches!(&reported.health, Health::Unknown(_, text) if text.contains("the key was revoked")),
        "{reported:?}"
    );
}

#[test]
fn nothing_is_reported_before_something_is_known() {
    let account =
        GivenCompute::bound().observing(|observed| observed.account = AccountView::Pending);
    let snapshot =
        GivenCompute::bound().observing(|observed| observed.snapshot = SnapshotState::Pending);
    for given in [account, snapshot] {
        assert_eq!(given.decide(), Decision::silent());
    }
}

#[test]
fn a_failed_snapshot_is_not_an_empty_one() {
    let given = |fault| {
        GivenCompute::bound().observing(|observed| observed.snapshot = SnapshotState::Failed(fault))
    };
    given(lost()).rest().unknown(Reason::PlatformUnreachable);
    given(Fault::Unauthorized {
        message: "revoked".into(),
    })
    .rest()
    .unknown(Reason::Unauthorized);
    given(Fault::Throttled {
        status: 429,
        retry_after: None,
    })
    .rest()
    .unknown(Reason::PlatformBusy);
    let absent = given(Fault::NotFound {
        message: "project not found".into(),
    });
    absent.rest().stalled(
        Reason::Refused,
        &["Project p-1", "project not found", "spec.projectID"],
    );
    let forbidden = given(Fault::Forbidden {
        status: 404,
        message: "not allowed".into(),
    });
    forbidden
        .rest()
        .stalled(Reason::Forbidden, &["Project p-1", "API key"]);
}

#[test]
fn an_intent_that_may_be_written_is_looked_for_at_the_end_of_the_settle_time() {
    let missing = AccountView::NotReady {
        name: "Account prod".into(),
        message: "it is being deleted.".into(),
    };
    let given = GivenCompute::new().observing(|observed| observed.account = missing);
    assert_eq!(given.rest().wake, Wake::OnChange);
}

#[test]
fn an_ageing_snapshot_is_used_until_it_is_too_old() {
    let aging =
        |given: GivenCompute| given.observing(|observed| observed.stale_from = Some(at(20)));
    let reported = aging(GivenCompute::bound()).rest();
    reported.in_sync();
    reported.until(at(20));
    let starting = with(compute("ep-1"), |compute| {
        compute.current_state = ComputeState::Init
    });
    aging(
        GivenCompute::bound()
            .binding(|binding| binding.at = at(-590))
            .seeing([starting]),
    )
    .rest()
    .until(at(10));
}

#[test]
fn a_wrong_account_leaves_a_compute_ready_that_could_be_used() {
    let name = || "Account typo".to_owned();
    for (view, reason) in [
        (
            AccountView::Missing { name: name() },
            Reason::AccountNotFound,
        ),
        (
            AccountView::NotServed { name: name() },
            Reason::AccountNotFound,
        ),
        (
            AccountView::NamespaceNotAllowed { name: name() },
            Reason::NamespaceNotAllowed,
        ),
        (
            AccountView::ProjectNotAllowed {
                name: name(),
                project: "p-1".into(),
            },
            Reason::ProjectNotAllowed,
        ),
    ] {
        let given = |ready| {
            GivenCompute::bound().observing(|observed| {
                observed.meta.ready = ready;
                observed.account = view.clone();
            })
        };
        given(true).rest().refused(reason, &["Account typo"]);
        given(false).rest().stalled(reason, &["Account typo"]);
    }
}
