//! The Secrets of the cluster in memory.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Map, Value};

use super::cluster::InMemoryCluster;
use super::print::Print;
use super::request::Response;
use super::stored::{CONFLICT, INVALID, NOT_FOUND};
use crate::cluster::merge;
use crate::decide::names::FIELD_MANAGER;

impl InMemoryCluster {
    /// Sets the UID and version of a new Secret.
    pub fn number(&mut self, secret: &mut Secret) {
        self.last_uid += 1;
        secret.metadata.uid = Some(format!("secret-{}", self.last_uid));
        secret.metadata.resource_version = Some("0".to_owned());
    }

    /// Writes the entries of a Secret like a user. Its metadata stays.
    pub fn put_secret(&mut self, name: &str, mut secret: Secret) {
        match self.secrets.get(name) {
            Some(before) => secret.metadata = before.metadata.clone(),
            None => self.number(&mut secret),
        }
        self.store_secret(name, secret);
    }

    pub(super) fn create_secret(&mut self, name: &str, secret: &Secret) -> Result<Response, u16> {
        if self.secrets.contains_key(name) {
            return Err(CONFLICT);
        }
        let mut secret = secret.clone();
        self.number(&mut secret);
        Ok(self.store_secret(name, secret))
    }

    /// Fails unless the Secret has this UID and version, where they are given.
    pub(super) fn check_secret(
        &self,
        name: &str,
        uid: Option<&String>,
        version: Option<&String>,
    ) -> Result<(), u16> {
        let metadata = self.secrets.get(name).map(|secret| &secret.metadata);
        let stored_uid = metadata.and_then(|metadata| metadata.uid.as_ref());
        let stored_version = metadata.and_then(|metadata| metadata.resource_version.as_ref());
        if uid.is_some() && uid != stored_uid || version.is_some() && version != stored_version {
            Err(CONFLICT)
        } else {
            Ok(())
        }
    }

    /// A forced server-side apply. A dry run has no effect.
    pub(super) fn apply_secret(&mut self, name: &str, applied: &Secret, dry_run: bool) -> Response {
        let mut secret = match self.secrets.get(name) {
            Some(stored) => stored.clone_inner(),
            None => {
                let mut secret = Secret::default();
                secret.metadata.name = applied.metadata.name.clone();
                secret.metadata.namespace = applied.metadata.namespace.clone();
                self.number(&mut secret);
                secret
            }
        };
        let ours = applied_entries(&secret, FIELD_MANAGER);
        let declared = applied.data.clone().unwrap_or_default();
        let entries = secret.data.get_or_insert_default();
        entries.retain(|entry, _| !ours.contains(entry) || declared.contains_key(entry));
        entries.extend(declared);
        let owners = secret.metadata.owner_references.get_or_insert_default();
        for owner in applied.owner_references() {
            if owners.iter().all(|other| other.uid != owner.uid) {
                owners.push(owner.clone());
            }
        }
        secret.labels_mut().extend(applied.labels().clone());
        let annotations = applied.annotations().clone();
        secret.annotations_mut().extend(annotations);
        if dry_run {
            return Response::Secret(Some(Print::of(secret)));
        }
        self.store_secret(name, secret)
    }

    pub(super) fn patch_secret(&mut self, name: &str, patch: &str) -> Result<Response, u16> {
        let secret = self.secrets.get(name).ok_or(NOT_FOUND)?;
        let patch: Value = serde_json::from_str(patch).map_err(|_| INVALID)?;
        let wanted = patch["metadata"]["resourceVersion"].as_str();
        if wanted.is_some() && wanted != secret.metadata.resource_version.as_deref() {
            return Err(CONFLICT);
        }
        let mut value = serde_json::to_value(&**secret).map_err(|_| INVALID)?;
        merge(&mut value, &patch);
        let secret: Secret = serde_json::from_value(value).map_err(|_| INVALID)?;
        if secret.metadata.deletion_timestamp.is_some() && secret.finalizers().is_empty() {
            self.secrets.remove(name);
        } else {
            self.store_secret(name, secret);
        }
        Ok(Response::Done)
    }

    /// Stores a Secret with its next version. An unchanged one keeps its version.
    fn store_secret(&mut self, name: &str, mut secret: Secret) -> Response {
        let before = self.secrets.get(name);
        if before.is_none_or(|before| **before != secret) {
            let version = secret.metadata.resource_version.as_deref();
            let version: u64 = version.and_then(|it| it.parse().ok()).unwrap_or_default();
            secret.metadata.resource_version = Some((version + 1).to_string());
        }
        let secret = Print::of(secret);
        self.secrets.insert(name.to_owned(), secret.clone());
        Response::Secret(Some(secret))
    }

    /// Removes an owner that is gone from the Secrets. A Secret goes with its last owner.
    pub(super) fn drop_owner_of_secrets(&mut self, uid: &str) {
        let owned = self.secrets.iter().filter(|(_, secret)| {
            let owners = secret.owner_references();
            owners.iter().any(|owner| owner.uid == uid)
        });
        let owned: Vec<String> = owned.map(|(name, _)| name.clone()).collect();
        for name in owned {
            let Some(secret) = self.secrets.remove(&name) else {
                continue;
            };
            let mut secret = secret.clone_inner();
            let owners = secret.owner_references_mut();
            owners.retain(|owner| owner.uid != uid);
            if !owners.is_empty() {
                self.store_secret(&name, secret);
            }
        }
    }
}

/// The entries of a Secret that `manager` has applied.
fn applied_entries(secret: &Secret, manager: &str) -> BTreeSet<String> {
    let managed = secret.metadata.managed_fields.iter().flatten();
    let applied = managed.filter(|entry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply")
    });
    let fields = applied.filter_map(|entry| entry.fields_v1.as_ref()?.0.get("f:data")?.as_object());
    fields
        .flat_map(Map::keys)
        .filter_map(|name| name.strip_prefix("f:"))
        .map(str::to_owned)
        .collect()
}
