//! Creates on one branch are made one after the other: whose turn it is, before the caches show it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Where a create is made; the same identifiers mean something else on another platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub platform: String,
    pub project: String,
    pub branch: String,
}

#[derive(Clone, Debug)]
struct Begun {
    place: Place,
    running: bool,
    /// Its resource is gone: the create is resolved once it does not run any more.
    gone: bool,
}

/// The creates of this process that were begun and are not resolved, by the UID of their resource.
#[derive(Debug, Default)]
pub struct Creating(Mutex<HashMap<String, Begun>>);

/// A create that is running.
#[derive(Debug)]
pub struct Turn<'a> {
    creating: &'a Creating,
    uid: String,
}

impl Creating {
    /// Takes the branch's turn; `None` while another resource has it.
    pub fn begin(&self, uid: &str, place: Place) -> Option<Turn<'_>> {
        self.with(|begun| {
            if begun.iter().any(|(other, entry)| other != uid && entry.place == place) {
                return None;
            }
            begun.insert(uid.to_owned(), Begun { place, running: true, gone: false });
            Some(Turn { creating: self, uid: uid.to_owned() })
        })
    }

    /// Whether a resource has begun a create that is not resolved.
    pub fn has(&self, uid: &str) -> bool {
        self.with(|begun| begun.contains_key(uid))
    }

    /// The create is resolved, unless it is running right now; whether that is news.
    pub fn unless_running(&self, uid: &str) -> bool {
        self.with(|begun| begun.get(uid).is_some_and(|entry| !entry.running) && begun.remove(uid).is_some())
    }

    /// The resource is gone: its create is waited for no longer than it runs.
    pub fn gone(&self, uid: &str) {
        self.with(|begun| {
            if let Some(entry) = begun.get_mut(uid) {
                entry.gone = true;
            }
            begun.retain(|_, entry| entry.running || !entry.gone);
        });
    }

    fn with<T>(&self, run: impl FnOnce(&mut HashMap<String, Begun>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.creating.with(|begun| {
            if let Some(entry) = begun.get_mut(&self.uid) {
                entry.running = false;
            }
            begun.retain(|_, entry| entry.running || !entry.gone);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(platform: &str, branch: &str) -> Place {
        Place { platform: platform.into(), project: "p".into(), branch: branch.into() }
    }

    #[test]
    fn a_branch_has_one_create_at_a_time_until_it_is_resolved() {
        let creating = Creating::default();
        let turn = creating.begin("one", place("a", "br-1")).unwrap();
        assert!(creating.begin("two", place("a", "br-1")).is_none());
        assert!(creating.begin("three", place("a", "br-2")).is_some());
        assert!(creating.begin("four", place("b", "br-1")).is_some(), "another platform");
        assert!(!creating.unless_running("one"), "it is running");
        assert!(creating.has("one"));
        drop(turn);
        assert!(creating.begin("two", place("a", "br-1")).is_none(), "it is not resolved");
        assert!(creating.begin("one", place("a", "br-1")).is_some(), "its own turn");
        assert!(creating.unless_running("one"));
        assert!(!creating.unless_running("one"));
        assert!(creating.begin("two", place("a", "br-1")).is_some());
    }

    #[test]
    fn a_resource_that_is_gone_keeps_nobody_waiting() {
        let creating = Creating::default();
        drop(creating.begin("one", place("a", "br-1")).unwrap());
        creating.gone("one");
        assert!(!creating.has("one"));
        // Deleted while its create waits for its place in the budget.
        let turn = creating.begin("two", place("a", "br-1")).unwrap();
        creating.gone("two");
        assert!(creating.begin("one", place("a", "br-1")).is_none(), "it is running");
        drop(turn);
        assert!(creating.begin("one", place("a", "br-1")).is_some());
    }
}
