//! What is remembered of a ProjectKey: what the platform last said of its keys, and a key that is not in its Secret yet.

use jiff::Timestamp;
use kube::Resource;
use secrecy::SecretString;
use tracing::{error, warn};

use super::ProcessState;
use crate::api::ProjectKey;
use crate::decide::identity::{KeyIdentity, KeyIntent};
use crate::decide::key::Probe;
use crate::platform::Tick;

/// What is remembered of a ProjectKey besides.
#[derive(Clone, Debug, Default)]
pub struct KeyState {
    /// When the platform answered that it offers no call to revoke a key.
    pub not_offered: Option<Timestamp>,
    /// That the platform offers no list counts only if it was asked after this: people asked to look anew.
    pub anew: Option<Tick>,
    /// What the platform said to the key itself.
    pub probe: Option<Probe>,
    /// When the key is to be asked, where others come first.
    pub turn: Option<Timestamp>,
    pub unsaved: Option<Box<UnsavedKey>>,
}

/// A key that was created and is not in its Secret yet: the only copy there is.
#[derive(Clone, Debug)]
pub struct UnsavedKey {
    pub key: KeyIdentity,
    pub intent: KeyIntent,
    pub secret: SecretString,
    /// What the platform last said to it, where it has to be accepted before it is written over a key that works.
    pub trial: Option<Probe>,
    pub namespace: String,
    pub name: String,
}

impl UnsavedKey {
    /// Logs which key is lost: its name and number, by which people and the next process find it.
    pub fn log_loss(&self, why: &str) {
        let (namespace, name) = (&self.namespace, &self.name);
        let (kind, key, key_id) = (ProjectKey::kind(&()), &self.key.name, self.key.id);
        error!(%kind, namespace, name, key, key_id, error = why, "the secret of a key is lost");
    }

    /// Logs that it could not be saved, and is tried again.
    pub fn log_delay(&self, why: &str) {
        let (namespace, name) = (&self.namespace, &self.name);
        let (kind, key, key_id) = (ProjectKey::kind(&()), &self.key.name, self.key.id);
        warn!(%kind, namespace, name, key, key_id, error = why, "a key is not saved yet");
    }
}

impl<P> ProcessState<P> {
    /// The platform offers no call to revoke a key.
    pub fn revocation_not_offered(&self, uid: &str, at: Timestamp) {
        self.update(uid, |resource| resource.key.not_offered = Some(at));
    }

    /// The key itself was asked, or could not be.
    pub fn key_probed(&self, uid: &str, probe: Probe) {
        self.update(uid, |resource| resource.key.probe = Some(probe));
    }

    /// Another key is in use: what was said to the last one says nothing of it.
    pub fn probe_outdated(&self, uid: &str) {
        self.update(uid, |resource| resource.key.probe = None);
    }

    /// The keys have changed: lists that began before `tick` do not show that. That the platform offers none stays known.
    pub fn keys_outdated(&self, uid: &str, tick: Tick) {
        self.update(uid, |resource| {
            resource.key.probe = None;
            resource.wrote = Some(tick.into());
        });
    }

    /// A key was created, and is kept until it is in its Secret.
    pub fn key_created(&self, uid: &str, key: UnsavedKey) {
        self.update(uid, |resource| resource.key.unsaved = Some(Box::new(key)));
    }

    /// The key that is not in its Secret yet was asked.
    pub fn unsaved_key_tried(&self, uid: &str, probe: Probe) {
        self.update(uid, |resource| {
            if let Some(unsaved) = &mut resource.key.unsaved {
                unsaved.trial = Some(probe);
            }
        });
    }

    /// The key that is not in its Secret yet.
    pub fn unsaved_key(&self, uid: &str) -> Option<UnsavedKey> {
        self.with(|contents| contents.resources.get(uid)?.key.unsaved.as_deref().cloned())
    }

    /// The key is in its Secret, or nothing is left that it could be saved for.
    pub fn take_unsaved_key(&self, uid: &str) -> Option<UnsavedKey> {
        let taken =
            self.with(|contents| contents.resources.change_known(uid, |resource| resource.key.unsaved.take())?);
        taken.map(|key| *key)
    }

    /// All keys that are not in their Secrets yet, by the UID of their resource.
    pub fn unsaved_keys(&self) -> Vec<(String, UnsavedKey)> {
        self.with(|contents| {
            let resources = contents.resources.iter();
            resources
                .filter_map(|(uid, resource)| Some((uid.clone(), resource.key.unsaved.as_deref().cloned()?)))
                .collect()
        })
    }
}
