//! The model check: the shipped decisions and the shipped steps, in every order of events within stated bounds.
//!
//! Nothing here decides or acts: `controller::pass` is the code that ships. What is modelled is what surrounds it: a platform, an
//! API server with compare-and-swap, caches that lag behind, a clock, people, and processes that die. docs/decisions/0011 says
//! why it is made like this.

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
mod calm;
mod edits;
mod effects;
mod explore;
mod flight;
#[path = "../in_memory/mod.rs"]
mod in_memory;
mod memo;
mod mutation;
mod noted;
mod pass;
mod people;
mod promises;
mod remote;
mod replay;
mod state;
mod surroundings;
mod tape;
mod tenant;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::thread;

pub use bound::Bound;
pub use bounds::{Extent, bounds, mutations};
pub use explore::{Explored, Outcome};

/// Explores so many bounds at a time; they are returned in their order.
pub fn explore(bounds: Vec<Bound>, at_a_time: usize) -> Vec<Explored> {
    let waiting: Mutex<VecDeque<(usize, Bound)>> = Mutex::new(bounds.into_iter().enumerate().collect());
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
