//! The turn to create on a branch, when the intent of one Compute cannot be written.

use crate::faults::Fault;
use crate::history::compute;
use crate::injector::{Injected, Times};
use crate::run::Run;
use crate::watching::{history, replica};

const INTENT: &str = "status of Compute r0";

/// The condition of a Compute while writes of another one's intent get these answers; the last one
/// repeats.
fn beside_one_with(answers: &[Fault]) -> String {
    let history = history(&[replica(), replica()], false);
    let mut run = Run::prepared(&history);
    let (last, first) = answers.split_last().unwrap();
    for answer in first {
        run.inject(INTENT, Times::Once, Injected::Fault(answer.clone()));
    }
    run.inject(INTENT, Times::Always, Injected::Fault(last.clone()));
    run.declare();
    run.run_for(60).unwrap();
    let found = run.condition(&compute(1), "Ready");
    run.without_injected_faults();
    run.run_for(120).unwrap();
    for number in [0, 1] {
        assert_eq!(
            run.condition(&compute(number), "Ready"),
            AVAILABLE,
            "{answers:?}"
        );
    }
    found
}

const AVAILABLE: &str = "Available: The compute can be used";

#[test]
fn a_refused_intent_makes_nobody_wait() {
    assert_eq!(beside_one_with(&[Fault::Denied]), AVAILABLE);
}

#[test]
fn an_intent_that_may_have_been_written_keeps_the_turn() {
    let waits = "Creating: Waiting for another Compute, whose create on branch b0 comes first";
    for answers in [
        &[Fault::Refused(500)][..],
        &[Fault::Refused(409)],
        &[Fault::Refused(500), Fault::Denied],
    ] {
        assert_eq!(beside_one_with(answers), waits, "{answers:?}");
    }
}
