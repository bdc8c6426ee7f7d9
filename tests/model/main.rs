//! Checks the model within the small bounds, in every run of the tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "the lints know #[test] functions, not what they call"
)]

#[path = "mod.rs"]
mod model;

use model::{Bound, Extent, Outcome, bounds, explore, mutations};

/// One bound at a time, because the tests already share the cores.
fn hold(wanted: impl Fn(&Bound) -> bool) {
    let chosen: Vec<Bound> = bounds(Extent::Small).into_iter().filter(wanted).collect();
    assert!(!chosen.is_empty());
    for explored in explore(chosen, 1) {
        assert!(explored.outcome == Outcome::Held, "{explored}");
    }
}

#[test]
fn one_compute_is_never_two_and_always_settles() {
    hold(|bound| !bound.is_of_key() && bound.count() == 1);
}

#[test]
fn computes_of_one_branch_never_take_each_others() {
    hold(|bound| bound.count() > 1);
}

#[test]
fn no_key_is_forgotten_and_every_secret_settles() {
    hold(Bound::is_of_key);
}

#[test]
fn every_rule_that_is_broken_on_purpose_is_noticed() {
    let tried = explore(mutations(), 1);
    let caught = tried
        .iter()
        .filter(|explored| matches!(explored.outcome, Outcome::Broken(_)))
        .count();
    eprintln!("{caught} of {} broken rules were noticed", tried.len());
    for explored in &tried {
        assert!(
            matches!(explored.outcome, Outcome::Broken(_)),
            "not noticed: {explored}"
        );
    }
    assert!(tried.len() >= 10);
}
