//! A Compute whose project was deleted.

use super::*;

/// The platform does not know the project, and the account's checks show that it is gone.
fn without_project() -> GivenCompute {
    deleting(GivenCompute::bound()).observing(|seen| {
        seen.project_gone = true;
        seen.snapshot = SnapshotState::Failed(Fault::NotFound {
            message: "project not found".into(),
        });
    })
}

#[test]
fn a_compute_is_released_with_its_project() {
    let ComputeStep::ReleaseWithProject { event } = without_project().step() else {
        panic!("another step")
    };
    mentions(&event, &["p-1", "ep-1", "transferred"]);
    let open = deleting(GivenCompute::intended()).observing(|seen| {
        (seen.project_gone, seen.snapshot) = (true, without_project().observed.facts.snapshot);
    });
    assert!(matches!(
        open.step(),
        ComputeStep::ReleaseWithProject { .. }
    ));
}

#[test]
fn a_compute_stays_where_something_of_the_evidence_is_missing() {
    let seen = |edit: fn(&mut ComputeObserved)| without_project().observing(edit);
    let elsewhere = seen(|seen| seen.platform = Some("https://there".into()))
        .binding(|binding| binding.platform = Some("https://here".into()));
    let without_account = seen(|seen| {
        seen.account = AccountView::Missing {
            name: "Account prod".into(),
        };
    });
    let of_another_project = without_project().binding(|binding| binding.project = "p-2".into());
    let protected = without_project().declaring(json!({"deletionProtection": true}));
    for (what, given) in [
        (
            "the checks do not show it",
            seen(|seen| seen.project_gone = false),
        ),
        (
            "not read",
            seen(|seen| seen.snapshot = SnapshotState::Pending),
        ),
        ("another platform", elsewhere),
        ("another project", of_another_project),
        ("protected", protected),
        ("paused", seen(|seen| seen.meta.paused = true)),
        ("the account cannot be used", without_account),
        ("not being deleted", seen(|seen| seen.meta.deleting = false)),
    ] {
        assert_eq!(given.decide().step, None, "{what}");
    }
    // A list that can be read is evidence that the project exists.
    assert!(matches!(
        without_project().seeing([compute("ep-1")]).step(),
        ComputeStep::Delete { .. }
    ));
}

#[test]
fn a_compute_stays_where_another_answer_than_not_found_hides_the_list() {
    let message = || "no".to_owned();
    for fault in [
        Fault::Forbidden {
            status: 404,
            message: message(),
        },
        Fault::Gateway {
            status: 404,
            form: Form::Foreign,
            message: message(),
        },
        Fault::Server {
            status: 500,
            message: message(),
        },
    ] {
        let given = without_project()
            .observing(|seen| seen.snapshot = SnapshotState::Failed(fault.clone()));
        assert_eq!(given.decide().step, None, "{fault:?}");
    }
}
