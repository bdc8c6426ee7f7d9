//! Whose turn it is to create on a branch, where the API server does not say whether it has written an intent.

use crate::faults::Fault;
use crate::history::compute;
use crate::run::Run;
use crate::snares::{LIST, Snag, Times};
use crate::watching::{history, replica};

const RECORD: &str = "patch of Compute r1";

/// The intent of one Compute gets these answers, and then the last of them again and again. While no list can be read, another
/// Compute is created on the branch.
fn told_of_the_other(answers: &[Fault]) -> String {
    let history = history(&[replica(), replica()], false);
    let mut run = Run::prepared(&history);
    let (last, first) = answers.split_last().unwrap();
    for answer in first {
        run.snare(RECORD, Times::Once, Snag::Fault(answer.clone()));
    }
    run.snare(RECORD, Times::Always, Snag::Fault(last.clone()));
    // Any version that follows would show that the intent is not in it.
    run.snare("status of Compute r1", Times::Always, Snag::Fault(Fault::Refused(500)));
    run.apply(&compute(1), &history.spec(&compute(1)).unwrap());
    run.go_on(10).unwrap();
    run.snare(LIST, Times::Always, Snag::Fault(Fault::Refused(500)));
    run.go_on(120).unwrap();
    run.apply(&compute(0), &history.spec(&compute(0)).unwrap());
    run.go_on(5).unwrap();
    run.simulation.lock().snares.end(LIST);
    run.go_on(60).unwrap();
    let waiting = run.condition(&compute(0), "Ready");
    run.without_snares();
    // Sooner or later both have one.
    run.go_on(120).unwrap();
    for number in [0, 1] {
        assert!(run.condition(&compute(number), "Ready").starts_with("Available: "), "{answers:?}");
    }
    waiting
}

#[test]
fn a_refused_intent_makes_nobody_wait() {
    assert_eq!(told_of_the_other(&[Fault::Denied]), "Available: The compute can be used");
}

#[test]
fn an_intent_that_may_have_been_written_keeps_the_turn() {
    let waits = "Creating: Waiting for Compute shop/r1, whose create on branch b0 comes first";
    for answers in [&[Fault::Refused(500)][..], &[Fault::Refused(409)], &[Fault::Refused(500), Fault::Denied]] {
        assert_eq!(told_of_the_other(answers), waits, "{answers:?}");
    }
}
