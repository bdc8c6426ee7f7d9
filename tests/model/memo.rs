//! Memoizes computations that repeat in thousands of states.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use dbplane::decide::identity::{ComputeIdentity, ProjectKeyIdentity};

use super::in_memory::{Print, hash};
use super::pass::After;
use super::replay::PendingPass;

/// Results by the hash of the input.
pub struct Memo<V>(RefCell<HashMap<u64, V>>);

impl<V: Clone> Memo<V> {
    pub fn get(&self, question: u64, answer: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.borrow().get(&question) {
            return known.clone();
        }
        let answer = answer();
        self.0.borrow_mut().insert(question, answer.clone());
        answer
    }
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

/// The memos of one exploration.
#[derive(Default)]
pub struct Memos {
    /// Results of beginning a pass.
    pub passes: Memo<After>,
    /// Results of an answer to a pass.
    pub answers: Memo<After>,
    pub bound: Memo<Arc<ComputeIdentity>>,
    pub recorded: Memo<Arc<ProjectKeyIdentity>>,
    pending_passes: Memo<Print<PendingPass>>,
}

impl Memos {
    /// The shared instance of equal passes in progress.
    pub fn pending_pass(&self, pending_pass: Print<PendingPass>) -> Print<PendingPass> {
        self.pending_passes
            .get(hash(&pending_pass), || pending_pass)
    }
}
