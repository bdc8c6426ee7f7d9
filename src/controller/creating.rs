//! Creates on one branch are made one after the other: whose turn it is, before the caches show it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Debug)]
struct Begun {
    project: String,
    branch: String,
    running: bool,
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
    pub fn begin(&self, uid: &str, project: &str, branch: &str) -> Option<Turn<'_>> {
        self.with(|begun| {
            let taken =
                begun.iter().any(|(other, entry)| other != uid && entry.project == project && entry.branch == branch);
            if taken {
                return None;
            }
            let entry = Begun { project: project.to_owned(), branch: branch.to_owned(), running: true };
            begun.insert(uid.to_owned(), entry);
            Some(Turn { creating: self, uid: uid.to_owned() })
        })
    }

    /// Whether a resource has begun a create that is not resolved.
    pub fn has(&self, uid: &str) -> bool {
        self.with(|begun| begun.contains_key(uid))
    }

    /// The create is resolved, unless it is running right now.
    pub fn unless_running(&self, uid: &str) {
        self.with(|begun| {
            if begun.get(uid).is_some_and(|entry| !entry.running) {
                begun.remove(uid);
            }
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
        });
    }
}
