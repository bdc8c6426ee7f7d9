//! Passes that ended with an error, and what people were told of it.

use std::time::Duration;

use jiff::Timestamp;

use super::ProcessState;
use crate::decide::memory::{NO_GENERATION, Problem};
use crate::decide::{Action, later};

/// The third error comes 6 s after the first.
const HINDERED: u32 = 3;
const TOLD_EVERY: Duration = Duration::from_secs(60);

impl<P> ProcessState<P> {
    /// A call that may be recorded was not made. Nothing waits for that: it is recorded again in the next pass.
    pub fn call_not_made(&self, uid: &str, (action, problem): (Action, Problem), now: Timestamp) {
        self.update(uid, |resource| resource.memory.failed(action, problem, NO_GENERATION, now));
    }

    /// A pass ended well.
    pub fn pass_succeeded(&self, uid: &str) {
        self.with(|contents| {
            contents.resources.change_known(uid, |resource| (resource.errors, resource.conflict) = (0, None))
        });
    }

    /// A pass ended with an error; how many in a row did.
    pub fn pass_failed(&self, uid: &str) -> u32 {
        self.update(uid, |resource| {
            resource.errors = resource.errors.saturating_add(1);
            resource.errors
        })
    }

    /// Whether so many passes in a row, of which the last one is not counted yet, ended with an error that people have to know of it.
    pub fn is_hindered(&self, uid: &str) -> bool {
        self.with(|contents| contents.resources.get(uid).is_some_and(|resource| resource.errors + 1 >= HINDERED))
    }

    /// From when on people may be told again of what the API server refuses, if they were just now.
    pub fn tells_again(&self, uid: &str, now: Timestamp) -> Option<Timestamp> {
        let told = self.with(|contents| contents.resources.get(uid)?.told)?;
        Some(later(told, TOLD_EVERY)).filter(|until| now < *until)
    }

    pub fn told_of_refusal(&self, uid: &str, now: Timestamp) {
        self.update(uid, |resource| resource.told = Some(now));
    }
}
