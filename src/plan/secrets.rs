//! The Secrets of a plan: read when needed, and changed only in memory. Their values are never
//! shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::fields::applied_entries;
use super::objects::{CONFLICT, NOT_FOUND};
use crate::cluster::{AppliedSecret, merge};
use crate::decide::names::FIELD_MANAGER;

/// Namespace and name.
pub type SecretName = (String, String);

/// The Secrets that were read, declared or written.
#[derive(Default)]
pub struct Secrets {
    /// `None` if there is no such Secret.
    pub known: BTreeMap<SecretName, Option<Secret>>,
    /// The Secrets of accounts whose key the user gave, for a user who may not read them.
    pub given: BTreeMap<SecretName, Secret>,
    made: u64,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// The result of a write.
#[derive(Debug, PartialEq, Eq)]
pub struct SecretWrite {
    pub new: bool,
    /// Names of the added, changed or removed entries.
    pub entries: BTreeSet<String>,
    /// True if anything changed.
    pub changed: bool,
}

impl Secrets {
    fn number(&mut self, secret: &mut Secret) {
        self.made += 1;
        secret
            .metadata
            .uid
            .get_or_insert_with(|| format!("secret-{}", self.made));
        secret
            .metadata
            .resource_version
            .get_or_insert_with(|| "0".to_owned());
    }

    fn get(&self, place: &SecretName) -> Option<Secret> {
        self.known.get(place)?.clone()
    }

    /// A Secret that the user declares.
    pub fn declare(&mut self, place: SecretName, mut secret: Secret) {
        if let Some(before) = self.get(&place) {
            secret.metadata = before.metadata;
        }
        self.number(&mut secret);
        self.known.insert(place, Some(secret));
    }

    /// The Secret of an account, with a key from the user.
    pub fn give(&mut self, place: SecretName, entry: String, key: &SecretString) {
        let mut secret = Secret::default();
        (secret.metadata.namespace, secret.metadata.name) =
            (Some(place.0.clone()), Some(place.1.clone()));
        let value = ByteString(key.expose_secret().as_bytes().to_vec());
        secret.data = Some([(entry, value)].into());
        self.number(&mut secret);
        self.given.insert(place, secret);
    }

    pub fn create(&mut self, place: &SecretName, secret: &Secret) -> Result<SecretWrite, u16> {
        if self.get(place).is_some() {
            return Err(CONFLICT);
        }
        let mut secret = secret.clone();
        secret.metadata.namespace = Some(place.0.clone());
        self.number(&mut secret);
        Ok(self.put(place, secret))
    }

    /// A forced server-side apply. A dry run has no effect.
    pub fn apply(
        &mut self,
        namespace: &str,
        applied: &AppliedSecret,
        dry_run: bool,
    ) -> Result<(Secret, SecretWrite), u16> {
        let place = (namespace.to_owned(), applied.name.clone());
        let stored = self.get(&place);
        let differs =
            |wanted: &Option<String>, stored: Option<String>| wanted.is_some() && *wanted != stored;
        if differs(&applied.uid, stored.as_ref().and_then(Secret::uid))
            || differs(
                &applied.version,
                stored.as_ref().and_then(Secret::resource_version),
            )
        {
            return Err(CONFLICT);
        }
        let mut next = stored.unwrap_or_else(|| {
            let mut secret = Secret::default();
            (secret.metadata.name, secret.metadata.namespace) =
                (Some(place.1.clone()), Some(place.0.clone()));
            secret
        });
        self.number(&mut next);
        let mine = applied_entries(&next, FIELD_MANAGER);
        let wanted = &applied.secret;
        let entries = next.data.get_or_insert_default();
        entries.retain(|entry, _| {
            !mine.contains(entry) || wanted.data.iter().any(|data| data.contains_key(entry))
        });
        entries.extend(wanted.data.clone().unwrap_or_default());
        next.labels_mut().extend(wanted.labels().clone());
        next.annotations_mut().extend(wanted.annotations().clone());
        let owners = next.metadata.owner_references.get_or_insert_default();
        for owner in wanted.owner_references() {
            if owners.iter().all(|known| known.uid != owner.uid) {
                owners.push(owner.clone());
            }
        }
        if dry_run {
            let unchanged = SecretWrite {
                new: false,
                entries: BTreeSet::new(),
                changed: false,
            };
            return Ok((next, unchanged));
        }
        let written = self.put(&place, next);
        Ok((self.get(&place).unwrap_or_default(), written))
    }

    pub fn patch(&mut self, place: &SecretName, patch: &Value) -> Result<SecretWrite, u16> {
        let secret = self.get(place).ok_or(NOT_FOUND)?;
        let wanted = patch["metadata"]["resourceVersion"].as_str();
        if wanted.is_some() && wanted != secret.metadata.resource_version.as_deref() {
            return Err(CONFLICT);
        }
        let mut value = serde_json::to_value(&secret).map_err(|_| 422_u16)?;
        merge(&mut value, patch);
        let next: Secret = serde_json::from_value(value).map_err(|_| 422_u16)?;
        if next.metadata.deletion_timestamp.is_some() && next.finalizers().is_empty() {
            self.known.insert(place.clone(), None);
            return Ok(SecretWrite {
                new: false,
                entries: BTreeSet::new(),
                changed: true,
            });
        }
        Ok(self.put(place, next))
    }

    /// Removes the Secrets of an owner that is gone.
    pub fn collect(&mut self, uid: &str) {
        for known in self.known.values_mut() {
            let owned = known.as_ref().is_some_and(|secret| {
                !secret.owner_references().is_empty()
                    && secret
                        .owner_references()
                        .iter()
                        .all(|owner| owner.uid == uid)
            });
            if owned {
                *known = None;
            }
        }
    }

    fn put(&mut self, place: &SecretName, mut next: Secret) -> SecretWrite {
        let stored = self.known.get(place).and_then(Option::as_ref);
        let changed = stored != Some(&next);
        let entries = differing(stored, &next);
        if changed {
            let version = next
                .resource_version()
                .and_then(|text| text.parse::<u64>().ok())
                .unwrap_or_default();
            next.metadata.resource_version = Some((version + 1).to_string());
        }
        let written = SecretWrite {
            new: stored.is_none(),
            entries,
            changed,
        };
        self.known.insert(place.clone(), Some(next));
        written
    }
}

fn differing(before: Option<&Secret>, after: &Secret) -> BTreeSet<String> {
    let nothing = BTreeMap::<String, ByteString>::new();
    let before = before
        .and_then(|secret| secret.data.as_ref())
        .unwrap_or(&nothing);
    let after = after.data.as_ref().unwrap_or(&nothing);
    let names = before.keys().chain(after.keys());
    names
        .filter(|name| before.get(*name) != after.get(*name))
        .cloned()
        .collect()
}
