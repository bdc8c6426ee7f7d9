//! A Compute whose project was deleted.

use super::*;

/// The platform does not know the project, and the account's checks show that it is gone.
fn without_project() -> Given {
    deleting(Given::bound()).observing(|seen| {
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
    let open = deleting(Given::intended()).observing(|seen| {
        (seen.project_gone, seen.snapshot) = (true, without_project().observed.snapshot);
    });
    assert!(matches!(
        open.step(),
        ComputeStep::ReleaseWithProject { .. }
    ));
}

#[test]
fn a_compute_stays_where_something_of_the_evidence_is_missing() {
    let text = || "no".to_owned();
    let failed = |fault: Fault| {
        without_project().observing(|seen| seen.snapshot = SnapshotState::Failed(fault))
    };
    for (what, given) in [
        (
            "the checks do not show it",
            without_project().observing(|seen| seen.project_gone = false),
        ),
        (
            "not allowed",
            failed(Fault::Forbidden {
                status: 404,
                message: text(),
            }),
        ),
        (
            "a gateway",
            failed(Fault::Gateway {
                status: 404,
                form: Form::Foreign,
                message: text(),
            }),
        ),
        (
            "a failure",
            failed(Fault::Server {
                status: 500,
                message: text(),
            }),
        ),
        (
            "not read",
            without_project().observing(|seen| seen.snapshot = SnapshotState::Pending),
        ),
        (
            "another platform",
            without_project()
                .observing(|seen| seen.platform = Some("https://there".into()))
                .binding(|binding| binding.platform = Some("https://here".into())),
        ),
        (
            "another project",
            without_project().binding(|binding| binding.project = "p-2".into()),
        ),
        (
            "protected",
            without_project().declaring(json!({"deletionProtection": true})),
        ),
        (
            "paused",
            without_project().observing(|seen| seen.meta.paused = true),
        ),
        (
            "the account cannot be used",
            without_project().observing(|seen| {
                seen.account = AccountView::Missing {
                    name: "Account prod".into(),
                };
            }),
        ),
        (
            "not being deleted",
            without_project().observing(|seen| seen.meta.deleting = false),
        ),
    ] {
        assert_eq!(given.decide().step, None, "{what}");
    }
    // A list that can be read is evidence that the project exists.
    assert!(matches!(
        without_project().seeing([compute("ep-1")]).step(),
        ComputeStep::Delete { .. }
    ));
}
