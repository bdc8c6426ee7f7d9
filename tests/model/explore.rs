//! Explores every reachable state breadth-first, so that the first violation has the shortest path.
//! States are identified by a 64-bit hash. Among ten million states, two collide with a probability
//! of three in a million.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use super::actions::{Action, successors};
use super::bound::Bound;
use super::in_memory::hash;
use super::promises::broken;
use super::settling::{Settled, established};
use super::state::State;

/// The result of an exploration.
#[derive(Debug)]
pub struct Explored {
    /// A description of the bound.
    pub name: String,
    pub states: usize,
    pub depth: u32,
    pub time: Duration,
    pub outcome: Outcome,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every promise holds in every state.
    Held,
    /// A promise is broken: the violation and the path to it.
    Broken(String),
    /// The exploration is incomplete, which proves nothing: the last steps of a longest path.
    TooLarge(Vec<Action>),
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            states,
            depth,
            time,
            outcome,
        } = self;
        write!(
            f,
            "{name}: {states} states, depth {depth}, {:.1} s",
            time.as_secs_f64()
        )?;
        match outcome {
            Outcome::Held => Ok(()),
            Outcome::Broken(how) => write!(f, "; {how}"),
            Outcome::TooLarge(last) => write!(
                f,
                "; the bound is too large to be explored: it goes on by {last:?}"
            ),
        }
    }
}

/// Several times the length of the longest finite path.
const DEEPEST: u32 = 500;
/// Enough steps to show the repetition of an endless path.
const LAST: usize = 30;

struct Visited {
    from: u64,
    by: Option<Action>,
    depth: u32,
}

/// Explores all states within the bound, or stops at the first violation.
pub fn explore(bound: &Bound) -> Explored {
    let began = Instant::now();
    let mut first = State::first(bound);
    if bound.established {
        first = established(bound, first);
    }
    let mut visited = HashMap::from([(
        hash(&first),
        Visited {
            from: 0,
            by: None,
            depth: 0,
        },
    )]);
    let mut frontier = VecDeque::from([first]);
    let mut settled = Settled::default();
    let mut depth = 0;
    let mut outcome = Outcome::Held;
    while let Some(state) = frontier.pop_front() {
        let here = hash(&state);
        depth = visited[&here].depth;
        if let Some(what) = broken(bound, &state).or_else(|| settled.unsettled(bound, &state)) {
            outcome = Outcome::Broken(format!("{what}; by way of {:?}", way(&visited, here)));
            break;
        }
        if visited.len() > bound.most || depth > DEEPEST {
            outcome = Outcome::TooLarge(
                way(&visited, here)
                    .into_iter()
                    .rev()
                    .take(LAST)
                    .rev()
                    .collect(),
            );
            break;
        }
        let next = successors(bound, &state).into_iter();
        for (action, next) in next.filter(|(_, next)| next.platform.made <= bound.creates) {
            visited.entry(hash(&next)).or_insert_with(|| {
                frontier.push_back(next);
                Visited {
                    from: here,
                    by: Some(action),
                    depth: depth + 1,
                }
            });
        }
    }
    Explored {
        name: bound.to_string(),
        states: visited.len(),
        depth,
        time: began.elapsed(),
        outcome,
    }
}

fn way(visited: &HashMap<u64, Visited>, mut here: u64) -> Vec<Action> {
    let mut way = Vec::new();
    while let Some((from, by)) = visited
        .get(&here)
        .and_then(|found| Some((found.from, found.by?)))
    {
        way.push(by);
        here = from;
    }
    way.reverse();
    way
}
