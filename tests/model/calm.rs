//! From here on without faults: every process goes on, every request under way ends, time passes. All must come to rest, and
//! rest as promised. The schedule is fixed, so what follows from a state is one path, and a path that runs into one that was
//! followed before needs no further look. A path ends in rest within a bounded time or is reported, so that no fairness has
//! to be assumed; that other schedules come to rest too is shown where their states are visited and followed themselves.

use std::collections::HashSet;

use super::actions::{Action, happen, pending};
use super::bound::Bound;
use super::effects::writes;
use super::in_memory::hash;
use super::pass::pass;
use super::promises::{broken, unfinished};
use super::state::{Left, State};

/// So many ticks without a write are rest: more than settling and the longest pause after what the faults can do.
const REST: u8 = 5;
/// All must have come to rest by then.
const PATIENCE: u8 = 60;
const LONGEST: usize = 2000;

/// The states that are known to come to rest.
#[derive(Default)]
pub struct Calm(HashSet<u64>);

impl Calm {
    /// How `state` fails to come to rest as promised, once faults have stopped.
    pub fn unsettled(&mut self, bound: &Bound, state: &State) -> Option<String> {
        // The faults that were left to happen make no difference to what follows without them.
        let mut here = State { left: Left::default(), ..state.clone() };
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
                return Some(format!("without faults it does not come to rest: {}", last_words(bound, &here)));
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
        let reports: Vec<_> = bound.subjects().map(|i| pass(bound, &here, 0, i).and_then(|pass| pass.report)).collect();
        let short = unfinished(bound, &here, &reports);
        if short.is_none() {
            self.0.extend(path);
        }
        short.map(|short| format!("at rest: {short}"))
    }
}

/// What there is once all that is declared was done, before time passes and anything goes wrong.
pub fn established(bound: &Bound, first: State) -> State {
    let mut here = State { left: Left::default(), ..first.clone() };
    while let Some((next, _)) = step(bound, &here) {
        here = next;
    }
    State { left: first.left, ..here }
}

/// What happens next, and whether it writes anything.
fn step(bound: &Bound, state: &State) -> Option<(State, bool)> {
    if state.processes.is_empty() {
        return happen(bound, state, Action::Leads).map(|next| (next, true));
    }
    if let Some(p) = state.processes.iter().position(|process| process.cut_off) {
        return happen(bound, state, Action::Dies(p, false)).map(|next| (next, true));
    }
    let processes = 0..state.processes.len();
    let each: Vec<_> = processes.clone().flat_map(|p| bound.all().map(move |i| (p, i))).collect();
    let first = |actions: Vec<Action>| actions.into_iter().find_map(|action| happen(bound, state, action));
    for (p, i) in &each {
        if let Some(next) = happen(bound, state, Action::Carried(*p, *i)) {
            return Some((next, pending(state, *p, *i).is_some_and(|pending| writes(&pending.effect))));
        }
    }
    if let Some(next) = first((0..state.platform.floating.len()).map(Action::CarriedLate).collect()) {
        return Some((next, true));
    }
    let looked = first(each.iter().map(|(p, i)| Action::Delivered(*p, *i)).collect())
        .or_else(|| first(processes.map(Action::Reads).collect()));
    if let Some(next) = looked {
        return Some((next, false));
    }
    first(each.iter().map(|(p, i)| Action::Pass(*p, *i)).collect()).map(|next| (next, false))
}

fn last_words(bound: &Bound, state: &State) -> String {
    let reports = bound.subjects().map(|i| pass(bound, state, 0, i).and_then(|pass| pass.report));
    format!("{:?}", reports.collect::<Vec<_>>())
}
