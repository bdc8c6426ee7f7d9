//! Writes that the API server refuses. The resource reports it, nothing is done without the write,
//! and it is retried until it succeeds.

use dbplane::decide::names::{FINALIZER, RECORD};
use serde_json::json;

use crate::faults::Fault;
use crate::history::{Access, compute, key};
use crate::in_memory::Resource;
use crate::injector::{Injected, Times};
use crate::run::Run;
use crate::watching::{history, replica};

const DENIED: &str = "a policy denies it";

fn denied() -> Injected {
    Injected::Fault(Fault::Denied)
}

impl Run<'_> {
    fn assert_stalled(&self, resource: &Resource, what: &str) {
        let stalled = self.condition(resource, "Stalled");
        let reported =
            format!("the API server refuses what dbplane asks of the API server: {what}: {DENIED}");
        assert!(
            stalled.starts_with("RequestRefused: ") && stalled.contains(&reported),
            "{resource:?}: {stalled}"
        );
        assert_eq!(
            self.status_of(resource)["observedGeneration"],
            1,
            "{resource:?}"
        );
    }
}

#[test]
fn a_refused_finalizer_is_reported_and_nothing_is_created_without_it() {
    let history = history(&[replica()], true);
    for (at, resource, what) in [
        ("patch of Compute r0", compute(0), "the finalizer"),
        ("patch of ProjectKey ci", key(), "the finalizer"),
        (
            "patch of Account prod",
            Access::Account.resource(),
            "the finalizer",
        ),
        (
            "patch of Secret platform-api-key",
            Access::Account.resource(),
            "the finalizer of Secret shop/platform-api-key",
        ),
    ] {
        let mut run = Run::prepared(&history);
        run.inject(at, Times::Always, denied());
        run.declare();
        run.run_for(300).unwrap();
        run.assert_stalled(&resource, what);
        let reported = run
            .take_events()
            .into_iter()
            .filter(|reported| reported.contains("RequestRefused"))
            .count();
        assert!(
            (1..=6).contains(&reported),
            "{at}: reported {reported} times in 5 minutes"
        );
        run.without_injected_faults();
        run.run_for(300).unwrap();
        for resource in [compute(0), key(), Access::Account.resource()] {
            assert!(
                run.condition(&resource, "Ready").starts_with("Available: "),
                "{at}: {resource:?}"
            );
            assert_eq!(
                run.condition(&resource, "Stalled"),
                "",
                "{at}: {resource:?}"
            );
        }
    }
}

/// For example, annotations have a size limit, and the copy of the record may exceed it.
#[test]
fn a_refused_copy_is_reported_with_everything_else() {
    let history = history(&[replica()], false);
    let mut run = Run::begin(&history).unwrap();
    run.run_for(60).unwrap();
    run.take_events();
    run.simulation.lock().cluster.edit(
        &compute(0),
        &json!({"metadata": {"annotations": {RECORD: null}}}),
    );
    run.inject("patch of Compute r0", Times::Always, denied());
    let reported = run.events_after(600, |_| ());
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0]
            .contains("RequestRefused: The API server refuses the annotation dbplane.dev/record"),
        "{reported:?}"
    );
    assert!(
        run.condition(&compute(0), "RequestRefused")
            .contains(DENIED)
    );
    assert!(
        run.condition(&compute(0), "Ready")
            .starts_with("Available: ")
    );
    assert_eq!(run.condition(&compute(0), "Stalled"), "");
    run.without_injected_faults();
    run.run_for(120).unwrap();
    assert_eq!(run.condition(&compute(0), "RequestRefused"), "");
}

#[test]
fn the_finalizer_is_written_again_although_the_copy_is_refused() {
    let history = history(&[replica()], false);
    let mut run = Run::begin(&history).unwrap();
    run.run_for(60).unwrap();
    run.simulation.lock().cluster.replace(&compute(0));
    // The first patch contains both, the second one only the finalizer.
    run.inject("patch of Compute r0", Times::Once, denied());
    run.run_for(5).unwrap();
    assert_eq!(run.finalizers_of(&compute(0)), [FINALIZER]);
}

#[test]
fn a_refused_status_is_reported_by_an_event() {
    let history = history(&[replica()], false);
    let mut run = Run::prepared(&history);
    run.inject("patch of Compute r0", Times::Always, denied());
    run.inject("status of Compute r0", Times::Always, denied());
    let reported = run.events_after(600, Run::declare);
    let of_this = reported
        .iter()
        .filter(|reported| {
            reported.starts_with("r0 RequestRefused: ") && reported.contains("the finalizer")
        })
        .count();
    assert!((1..=11).contains(&of_this), "{reported:?}");
}
