//! Runs a state on without faults: every process continues, every pending request ends, and time
//! passes. Everything must become stable, in a state that keeps the promises. The schedule is fixed,
//! so each state has one path, and a path that joins an earlier one needs no further check. A path
//! becomes stable within a bounded time or is reported, so no fairness is assumed. Other schedules
//! are covered where their own states are visited and followed.

use std::collections::HashSet;

use super::actions::{Action, happen, pending};
use super::bound::Bound;
use super::effects::writes;
use super::in_memory::hash;
use super::pass::pass;
use super::promises::{broken, unfinished};
use super::state::{Left, State};

/// Ticks without a write that count as rest: more than the settle time and the longest pause that
/// the faults can cause.
const REST: u8 = 5;
/// The most ticks until rest.
const PATIENCE: u8 = 60;
const LONGEST: usize = 2000;

/// States that are known to settle.
#[derive(Default)]
pub struct Settled(HashSet<u64>);

impl Settled {
    /// Why `state` does not settle as promised without further faults; `None` if it does.
    pub fn unsettled(&mut self, bound: &Bound, state: &State) -> Option<String> {
        // Without faults, the unused fault counts make no difference.
        let mut here = State {
            left: Left::default(),
            ..state.clone()
        };
        let mut path = Vec::new();
        let mut quiet = 0;
        loop {
            let print = hash(&here);
            if self.0.contains(&print) {
                self.0.extend(path);
                return None;
            }
            path.push(print);
            if here.tick > state.tick + PATIENCE || path.len() > LONGEST {
                return Some(format!(
                    "without faults it does not come to rest: {}",
                    last_words(bound, &here)
                ));
            }
            here = match step(bound, &here) {
                Some((next, true)) => {
                    quiet = 0;
                    next
                }
                Some((next, false)) => next,
                None if quiet == REST => break,
                None => {
                    quiet += 1;
                    happen(bound, &here, Action::Tick).unwrap()
                }
            };
            if let Some(what) = broken(bound, &here) {
                return Some(format!("without further faults: {what}"));
            }
        }
        let reports: Vec<_> = bound
            .subjects()
            .map(|i| pass(bound, &here, 0, i).and_then(|pass| pass.report))
            .collect();
        let short = unfinished(bound, &here, &reports);
        if short.is_none() {
            self.0.extend(path);
        }
        short.map(|short| format!("at rest: {short}"))
    }
}

/// The state after all declared changes are made, before time passes and before the first fault.
pub fn established(bound: &Bound, first: State) -> State {
    let mut here = State {
        left: Left::default(),
        ..first.clone()
    };
    while let Some((next, _)) = step(bound, &here) {
        here = next;
    }
    State {
        left: first.left,
        ..here
    }
}

/// The next state of the fixed schedule. The flag is true if the step writes.
fn step(bound: &Bound, state: &State) -> Option<(State, bool)> {
    if state.processes.is_empty() {
        return happen(bound, state, Action::Leads).map(|next| (next, true));
    }
    if let Some(p) = state.processes.iter().position(|process| process.cut_off) {
        return happen(bound, state, Action::Dies(p, false)).map(|next| (next, true));
    }
    let processes = 0..state.processes.len();
    let each: Vec<_> = processes
        .clone()
        .flat_map(|p| bound.all().map(move |i| (p, i)))
        .collect();
    let first = |actions: Vec<Action>| {
        actions
            .into_iter()
            .find_map(|action| happen(bound, state, action))
    };
    for (p, i) in &each {
        if let Some(next) = happen(bound, state, Action::Carried(*p, *i)) {
            return Some((
                next,
                pending(state, *p, *i).is_some_and(|pending| writes(&pending.effect)),
            ));
        }
    }
    if let Some(next) = first(
        (0..state.platform.floating.len())
            .map(Action::CarriedLate)
            .collect(),
    ) {
        return Some((next, true));
    }
    let looked = first(
        each.iter()
            .map(|(p, i)| Action::Delivered(*p, *i))
            .collect(),
    )
    .or_else(|| first(processes.map(Action::Reads).collect()));
    if let Some(next) = looked {
        return Some((next, false));
    }
    first(each.iter().map(|(p, i)| Action::Pass(*p, *i)).collect()).map(|next| (next, false))
}

fn last_words(bound: &Bound, state: &State) -> String {
    let reports = bound
        .subjects()
        .map(|i| pass(bound, state, 0, i).and_then(|pass| pass.report));
    format!("{:?}", reports.collect::<Vec<_>>())
}
