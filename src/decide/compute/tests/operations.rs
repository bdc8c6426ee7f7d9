//! The platform's operations change only requests for operations and reports in a decision.

use super::*;
use crate::api::LastOperation;
use crate::decide::Action;

fn operation(status: &str, failures: u32) -> LastOperation {
    LastOperation {
        id: "op-1".into(),
        action: "apply_config".into(),
        status: status.into(),
        failures: Some(failures).filter(|failures| *failures > 0),
        error: Some("no room".into()).filter(|_: &String| failures > 0),
    }
}

fn pending() -> Compute {
    with(compute("ep-1"), |compute| {
        compute.pending_state = Some(ComputeState::Active)
    })
}

/// This compute as snapshots have shown it since NOW.
fn seen(compute: Compute) -> GivenCompute {
    let given = GivenCompute::bound().seeing([compute.clone()]);
    let spec = given.spec.clone();
    given.remembering(|memory| {
        remember(
            memory,
            version(&spec, GENERATION),
            None,
            &Shown::Entry(&compute),
            NOW,
        )
    })
}

fn ask() -> ComputeStep {
    ComputeStep::AskOperations { id: "ep-1".into() }
}

#[test]
fn a_compute_that_is_settled_is_not_asked_about() {
    let given = seen(compute("ep-1"))
        .remembering(|memory| memory.operations_started(&[operation("running", 0)]));
    let reported = given.after(9999).rest();
    reported.in_sync();
    assert_eq!(reported.wake, Wake::OnChange);
}

#[test]
fn a_change_that_takes_long_is_asked_about() {
    for given in [
        seen(pending()),
        seen(pending()).declaring(json!({"management": "Observe"})),
    ] {
        given.rest().until(at(30));
        assert_eq!(given.clone().after(30).step(), ask());
        let asked = given
            .remembering(|memory| memory.operations_listed(&[operation("running", 0)], at(30)))
            .after(31);
        let reported = asked.rest();
        reported.in_sync();
        reported.until(at(60));
        assert_eq!(asked.after(60).step(), ask());
    }
}

#[test]
fn a_question_that_fails_is_repeated_and_changes_no_report() {
    let given = seen(pending())
        .after(30)
        .failed(Action::AskOperations, refused());
    let reported = given.rest();
    reported.in_sync();
    reported.until(at(60));
    assert_eq!(given.after(60).step(), ask());
}

#[test]
fn a_platform_without_the_list_is_asked_once() {
    let given = seen(pending())
        .remembering(Memory::operations_not_listed)
        .after(300);
    let reported = given.rest();
    reported.in_sync();
    assert_eq!(reported.wake, Wake::OnChange);
    assert_eq!(given.remembering(Memory::credentials_changed).step(), ask());
}

#[test]
fn an_operation_that_failed_is_reported_with_its_id_action_and_count() {
    let told = ["ep-1", "op-1", "apply_config", "3 failures", "no room"];
    for (status, words) in [
        ("failed", "may try it again"),
        ("running", "may try it again"),
        ("error", "annotate"),
    ] {
        for compute in [pending(), compute("ep-1")] {
            let given = seen(compute)
                .remembering(|memory| memory.operations_listed(&[operation(status, 3)], NOW));
            let reported = given.rest();
            reported.ready();
            reported.out_of_sync(Reason::OperationFailed, &[&told[..], &[words]].concat());
            reported.until(at(30));
            let finished = operation("finished", 3);
            given
                .remembering(|memory| memory.operations_listed(&[finished], at(1)))
                .rest()
                .in_sync();
        }
    }
}

#[test]
fn an_answer_that_shows_a_failure_is_reported_where_operations_are_not_listed() {
    let given =
        seen(pending()).remembering(|memory| memory.operations_started(&[operation("failed", 1)]));
    assert_eq!(given.step(), ask());
    let given = given.remembering(Memory::operations_not_listed);
    given.rest().out_of_sync(
        Reason::OperationFailed,
        &["op-1", "1 failure", "answers to changes"],
    );
    let spec = given.spec.clone();
    given
        .remembering(|memory| {
            remember(
                memory,
                version(&spec, GENERATION),
                None,
                &Shown::Entry(&compute("ep-1")),
                NOW,
            )
        })
        .rest()
        .in_sync();
}

#[test]
fn what_differs_because_of_it_stays_the_reason() {
    let larger = json!({"size": {"fixed": 2}});
    let failed = |memory: &mut Memory| memory.operations_listed(&[operation("error", 3)], NOW);
    let waiting = seen(pending())
        .declaring(larger.clone())
        .remembering(failed);
    waiting.rest().out_of_sync(
        Reason::OperationFailed,
        &["op-1", "size is 1, declared is 2"],
    );
    let observed = json!({"size": {"fixed": 2}, "management": "Observe"});
    let observed = seen(compute("ep-1"))
        .declaring(observed)
        .remembering(failed);
    observed
        .rest()
        .out_of_sync(Reason::Drifted, &["size is 1, declared is 2", "op-1"]);
    // A failed operation neither causes nor prevents a change.
    let settled = seen(compute("ep-1")).declaring(larger).remembering(failed);
    assert!(matches!(settled.step(), ComputeStep::Change { .. }));
}

#[test]
fn a_compute_that_never_starts_is_reported_with_since_when_and_its_operations() {
    let init = || {
        with(compute("ep-1"), |compute| {
            compute.current_state = ComputeState::Init
        })
    };
    let given = seen(init()).binding(|binding| binding.at = at(-599));
    given.rest().progressing(Reason::Starting);
    assert_eq!(
        given.clone().after(1).step(),
        ask(),
        "without a pause at the deadline"
    );
    let known = |operations: &[LastOperation]| {
        given
            .clone()
            .remembering(|memory| memory.operations_listed(operations, at(1)))
            .after(2)
            .rest()
    };
    let since = at(-7200).to_string();
    known(&[]).stalled(Reason::StartTimeout, &["ep-1", &since, "No operation"]);
    let reported = known(&[operation("scheduling", 0), operation("running", 2)]);
    let told = "apply_config op-1 (scheduling); apply_config op-1 (running, 2 failures: no room)";
    reported.stalled(Reason::StartTimeout, &[&since, told]);
    reported.out_of_sync(Reason::OperationFailed, &["op-1"]);
    known(&[operation("error", 3)])
        .out_of_sync(Reason::OperationFailed, &["3 failures", "console"]);
    let unlisted = given
        .clone()
        .remembering(Memory::operations_not_listed)
        .after(2);
    unlisted
        .rest()
        .stalled(Reason::StartTimeout, &[&since, "only in its answers"]);
    let answered =
        unlisted.remembering(|memory| memory.operations_started(&[operation("running", 0)]));
    answered.rest().stalled(
        Reason::StartTimeout,
        &["answer to the last change", "apply_config op-1 (running)"],
    );
    let undated = with(init(), |compute| compute.created_at = None);
    let undated = given
        .seeing([undated])
        .remembering(Memory::operations_not_listed)
        .after(2);
    undated
        .rest()
        .stalled(Reason::StartTimeout, &[&at(-599).to_string()]);
}
