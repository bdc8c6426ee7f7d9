//! The memory of a ProjectKey: the platform's last answers about its keys, and a key that is not in
//! its Secret yet.

use jiff::Timestamp;
use kube::Resource;
use secrecy::SecretString;
use tracing::{error, warn};

use super::ProcessState;
use crate::api::{ProjectKey, Uid};
use crate::decide::identity::{KeyIdentity, KeyIntent};
use crate::decide::key::Probe;
use crate::platform::Tick;

/// The memory that only a ProjectKey has.
#[derive(Clone, Debug, Default)]
pub struct KeyState {
    /// When the platform answered that it offers no call to revoke a key.
    pub not_offered: Option<Timestamp>,
    /// When a user last requested to read the platform again. An earlier answer that the platform
    /// offers no list no longer counts.
    pub anew: Option<Tick>,
    /// The platform's last answer to a request with the key itself.
    pub probe: Option<Probe>,
    /// When the key may be probed, if other keys come first.
    pub turn: Option<Timestamp>,
    pub unsaved: Option<Box<UnsavedKey>>,
}

/// The only copy of a key that was created and is not in its Secret yet.
#[derive(Clone, Debug)]
pub struct UnsavedKey {
    pub key: KeyIdentity,
    pub intent: KeyIntent,
    pub secret: SecretString,
    /// The platform's last answer to a request with this key. If the key is to replace a working
    /// one in the Secret, the platform has to accept it first.
    pub trial: Option<Probe>,
    pub namespace: String,
    pub name: String,
}

impl UnsavedKey {
    /// Logs which key is lost, with its name and number: users and the next process find it by
    /// these.
    pub fn log_loss(&self, why: &str) {
        let (namespace, name) = (&self.namespace, &self.name);
        let (kind, key, key_id) = (ProjectKey::kind(&()), &self.key.name, self.key.id.0);
        error!(%kind, namespace, name, key, key_id, error = why, "the secret of a key is lost");
    }

    /// Logs that the key could not be saved, and that dbplane retries.
    pub fn log_delay(&self, why: &str) {
        let (namespace, name) = (&self.namespace, &self.name);
        let (kind, key, key_id) = (ProjectKey::kind(&()), &self.key.name, self.key.id.0);
        warn!(%kind, namespace, name, key, key_id, error = why, "a key is not saved yet");
    }
}

impl<P> ProcessState<P> {
    pub fn revocation_not_offered(&self, uid: &Uid, at: Timestamp) {
        self.update(uid, |resource| resource.key.not_offered = Some(at));
    }

    /// Records the result of a request with the key itself, also if it failed.
    pub fn key_probed(&self, uid: &Uid, probe: Probe) {
        self.update(uid, |resource| resource.key.probe = Some(probe));
    }

    /// Another key is in use, so the probe of the previous one no longer counts.
    pub fn probe_outdated(&self, uid: &Uid) {
        self.update(uid, |resource| resource.key.probe = None);
    }

    /// The keys have changed, and lists that began before `tick` do not show that. That the
    /// platform offers no list stays known.
    pub fn keys_outdated(&self, uid: &Uid, tick: Tick) {
        self.update(uid, |resource| {
            resource.key.probe = None;
            resource.wrote = Some(tick.into());
        });
    }

    /// Keeps a created key until it is in its Secret.
    pub fn key_created(&self, uid: &Uid, key: UnsavedKey) {
        self.update(uid, |resource| resource.key.unsaved = Some(Box::new(key)));
    }

    /// Records the result of a request with the unsaved key.
    pub fn unsaved_key_tried(&self, uid: &Uid, probe: Probe) {
        self.update(uid, |resource| {
            if let Some(unsaved) = &mut resource.key.unsaved {
                unsaved.trial = Some(probe);
            }
        });
    }

    pub fn unsaved_key(&self, uid: &Uid) -> Option<UnsavedKey> {
        self.with(|contents| contents.resources.get(uid)?.key.unsaved.as_deref().cloned())
    }

    /// The key is in its Secret, or there is nothing left to save it for.
    pub fn take_unsaved_key(&self, uid: &Uid) -> Option<UnsavedKey> {
        let taken = self.with(|contents| {
            contents
                .resources
                .change_known(uid, |resource| resource.key.unsaved.take())?
        });
        taken.map(|key| *key)
    }

    /// All keys that are not in their Secrets yet, by the UID of their resource.
    pub fn unsaved_keys(&self) -> Vec<(Uid, UnsavedKey)> {
        self.with(|contents| {
            let resources = contents.resources.iter();
            resources
                .filter_map(|(uid, resource)| {
                    Some((uid.clone(), resource.key.unsaved.as_deref().cloned()?))
                })
                .collect()
        })
    }
}
