//! Steps that are under way: a resource may come to need its account before the caches show it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The UIDs of the resources that a step is performed for.
#[derive(Debug, Default)]
pub struct UnderWay(Mutex<HashSet<String>>);

/// A step that is under way.
#[derive(Debug)]
pub struct Step<'a> {
    steps: &'a UnderWay,
    uid: String,
}

impl UnderWay {
    /// A resource has one step at a time.
    pub fn begin(&self, uid: &str) -> Step<'_> {
        self.with(|uids| uids.insert(uid.to_owned()));
        Step { steps: self, uid: uid.to_owned() }
    }

    pub fn has(&self, uid: &str) -> bool {
        self.with(|uids| uids.contains(uid))
    }

    fn with<T>(&self, run: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.steps.with(|uids| uids.remove(&self.uid));
    }
}
