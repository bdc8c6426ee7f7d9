//! Strays of a Compute that is being deleted.

use super::*;

fn deleting(given: GivenCompute) -> GivenCompute {
    given.observing(|observed| observed.meta.deleting = true)
}

/// The platform has confirmed the delete of the bound compute.
fn deleted(given: GivenCompute) -> GivenCompute {
    deleting(given).remembering(|memory| memory.deleted = Some(("ep-1".into(), NOW)))
}

#[test]
fn a_marked_compute_is_deleted_with_the_resource() {
    let marked = named(replica("ep-9"), MARK);
    let given = |given: GivenCompute| {
        deleting(recording(
            given.declaring(json!({"type": "ReadOnly"})),
            [record(Some(MARK))],
        ))
    };
    takes(
        &deleted(given(GivenCompute::bound())).seeing([marked.clone()]),
        "ep-9",
    );
    takes(&given(empty()).seeing([marked.clone()]), "ep-9");
    let first = given(GivenCompute::bound()).seeing([replica("ep-1"), marked.clone()]);
    assert_eq!(first.step(), ComputeStep::Delete { id: "ep-1".into() });
    let orphaned = first.declaring(json!({"deletion": "Orphan"}));
    assert_eq!(orphaned.step(), ComputeStep::RemoveFinalizer);
    let bound = given(GivenCompute::bound())
        .binding(|binding| (binding.id, binding.at) = ("ep-9".into(), at(-1)));
    let bound = bound
        .remembering(|memory| memory.deleted = Some(("ep-1".into(), at(-2))))
        .seeing([marked]);
    assert_eq!(
        bound.step(),
        ComputeStep::Delete { id: "ep-9".into() },
        "another was deleted before"
    );
}

#[test]
fn a_matching_compute_is_reported_and_not_deleted() {
    for given in [
        deleting(empty()).seeing([compute("ep-9")]),
        deleted(bound()).seeing([replica("ep-9")]),
    ] {
        let ComputeStep::RemoveFinalizerReportingStrays { event } = given.step() else {
            panic!("another step")
        };
        mentions(&event, &["ep-9", "billed", "console", "spec.computeID"]);
    }
    assert_eq!(
        deleting(empty())
            .claimed("ep-9", false)
            .seeing([compute("ep-9")])
            .step(),
        ComputeStep::RemoveFinalizer
    );
}

/// A user named a compute while a create was open. That compute is deleted, but the create may
/// still be carried out.
#[test]
fn a_create_whose_settle_time_is_not_over_is_waited_for() {
    let young = CreateIntent {
        at: at(-10),
        ..record(None)
    };
    let until = later(at(-10), SETTLE);
    let given = deleted(recording(bound(), [young.clone()])).seeing([replica("ep-0")]);
    given.rest().progressing(Reason::ConfirmingCreate);
    given.rest().until(until);
    assert_eq!(given.clone().after(49).rest().wake, Wake::At(until));
    assert_eq!(given.clone().after(50).step(), ComputeStep::RemoveFinalizer);
    // The record may come from a process with another clock. A process measures the settle time
    // from when it first saw the record.
    let seen = given.remembering(|memory| memory.note_unresolved(Some(young.at), NOW));
    seen.rest().until(later(NOW, SETTLE));
}

#[test]
fn a_record_alone_delays_no_deletion() {
    assert_eq!(deleting(empty()).step(), ComputeStep::RemoveFinalizer);
    let missing = AccountView::Missing {
        name: "Account prod".into(),
    };
    assert_eq!(
        deleting(empty())
            .observing(|seen| seen.account = missing)
            .step(),
        ComputeStep::RemoveFinalizer
    );
    let failed = SnapshotState::Failed(lost());
    assert_eq!(
        deleting(empty())
            .observing(|seen| seen.snapshot = failed)
            .step(),
        ComputeStep::RemoveFinalizer
    );
    let pending = deleting(empty()).observing(|seen| seen.snapshot = SnapshotState::Pending);
    assert_eq!(pending.decide(), Decision::silent());
}
