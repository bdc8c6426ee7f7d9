//! The model check: the shipped decisions and steps, in every order of events within stated bounds.
//!
//! Nothing here decides or acts: `controller::pass` is the code that ships. The model provides its
//! surroundings: a platform, an API server with compare-and-swap, stale caches, a clock, users, and
//! processes that die. docs/decisions/0011 gives the reasons.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    dead_code,
    reason = "the lints know #[test] functions, not what they call; `make test` and `make verify` each use a part"
)]

mod actions;
mod bound;
mod bounds;
mod edits;
mod effects;
mod explore;
#[path = "../in_memory/mod.rs"]
mod in_memory;
mod memo;
mod mutation;
mod pass;
mod past;
mod pending_pass;
mod people;
mod promises;
mod remote;
mod replay;
mod replay_log;
mod settling;
mod state;
mod surroundings;
mod tenant;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::thread;

pub use bound::Bound;
pub use bounds::{Extent, bounds, mutations};
pub use explore::{Explored, Outcome};

/// Explores this many bounds in parallel. The results are in the order of the bounds.
pub fn explore(bounds: Vec<Bound>, at_a_time: usize) -> Vec<Explored> {
    let waiting: Mutex<VecDeque<(usize, Bound)>> =
        Mutex::new(bounds.into_iter().enumerate().collect());
    let next = || waiting.lock().unwrap().pop_front();
    let done = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some((place, bound)) = next() {
            let explored = explore::explore(&bound);
            eprintln!("{explored}");
            done.lock().unwrap().insert(place, explored);
        }
    };
    thread::scope(|scope| (0..at_a_time).for_each(|_| drop(scope.spawn(work))));
    done.into_inner().unwrap().into_values().collect()
}
