//! What this process remembers of each resource between two passes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, Weak};

use jiff::Timestamp;
use secrecy::SecretString;
use tracing::error;

use crate::decide::Memory;
use crate::decide::identity::{KeyIdentity, KeyIntent};
use crate::decide::key::{KeyListing, Probe};
use crate::platform::{RateLimited, Tick};

/// What is remembered of one resource.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub memory: Memory,
    /// A reading has to have begun after this to be decided on: our last change ended then.
    pub wrote: Option<Tick>,
    /// The version that our last patch left behind; older ones are not decided on.
    pub version: Option<u64>,
    /// What the resource was decided on with last; another one has other credentials.
    pub platform: Weak<RateLimited>,
    /// The platform is expected to change something soon that the resource waits for.
    pub awaiting: bool,
    /// How many passes in a row ended with an error.
    pub errors: u32,
    pub key: KeyTrace,
}

/// What is remembered of a ProjectKey besides.
#[derive(Clone, Debug, Default)]
pub struct KeyTrace {
    pub listing: Option<(Timestamp, KeyListing)>,
    pub probe: Option<Probe>,
}

/// Traces by UID.
#[derive(Debug, Default)]
pub struct Traces(Mutex<HashMap<String, Trace>>);

impl Traces {
    pub fn get(&self, uid: &str) -> Trace {
        self.with(|traces| traces.get(uid).cloned().unwrap_or_default())
    }

    /// The version that our last patch left behind.
    pub fn version(&self, uid: &str) -> Option<u64> {
        self.with(|traces| traces.get(uid).and_then(|trace| trace.version))
    }

    pub fn update<T>(&self, uid: &str, change: impl FnOnce(&mut Trace) -> T) -> T {
        self.with(|traces| change(traces.entry(uid.to_owned()).or_default()))
    }

    pub fn forget(&self, uid: &str) {
        self.with(|traces| traces.remove(uid));
    }

    fn with<T>(&self, run: impl FnOnce(&mut HashMap<String, Trace>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A key that was created and is not in its Secret yet: the only copy there is.
#[derive(Clone, Debug)]
pub struct UnsavedKey {
    pub key: KeyIdentity,
    pub intent: KeyIntent,
    pub secret: SecretString,
    pub namespace: String,
    pub name: String,
}

impl UnsavedKey {
    /// Says which key is lost: its name and number, by which people and the next process find it.
    pub fn tell_loss(&self, why: &str) {
        let (namespace, name) = (&self.namespace, &self.name);
        error!(key = self.key.name, id = self.key.id, namespace, name, why, "the secret of a key is lost");
    }
}

/// Keys that are not in their Secrets yet, by the UID of their resource.
#[derive(Debug, Default)]
pub struct Unsaved(Mutex<HashMap<String, UnsavedKey>>);

impl Unsaved {
    pub fn get(&self, uid: &str) -> Option<UnsavedKey> {
        self.with(|keys| keys.get(uid).cloned())
    }

    pub fn keep(&self, uid: &str, key: UnsavedKey) {
        self.with(|keys| keys.insert(uid.to_owned(), key));
    }

    /// It is saved, or nothing is left that it could be saved for.
    pub fn take(&self, uid: &str) -> Option<UnsavedKey> {
        self.with(|keys| keys.remove(uid))
    }

    pub fn all(&self) -> Vec<(String, UnsavedKey)> {
        self.with(|keys| keys.iter().map(|(uid, key)| (uid.clone(), key.clone())).collect())
    }

    fn with<T>(&self, run: impl FnOnce(&mut HashMap<String, UnsavedKey>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_memory_is_not_in_debug() {
        let key =
            KeyIdentity { id: 1, name: "ci".to_owned(), at: Timestamp::UNIX_EPOCH, created_at: None, created_by: None };
        let intent = KeyIntent { name: "ci".to_owned(), ..KeyIntent::default() };
        let unsaved = Unsaved::default();
        let secret = SecretString::from("canary-in-memory");
        unsaved.keep("uid", UnsavedKey { key, intent, secret, namespace: "shop".to_owned(), name: "ci".to_owned() });
        let text = format!("{unsaved:?} {unsaved:#?} {:?}", unsaved.get("uid"));
        assert!(text.contains("shop") && !text.contains("canary"), "{text}");
    }
}
