//! The objects and Secrets of a cluster, with the versions, finalizers and owners that the operator
//! relies on.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::objects::ObjectsByName;
use super::print::{Print, hash};
use super::request::{Request, Resource, Response};
use super::stored::{CONFLICT, INVALID, NOT_FOUND, Stored, kind};
use crate::cluster::merge;
use crate::controller::index::Key;
use crate::controller::object::Managed;

#[derive(Clone, Debug, Default, Hash)]
pub struct InMemoryCluster {
    pub objects: ObjectsByName,
    pub secrets: BTreeMap<String, Print<Secret>>,
    /// The number in the UID of the last new object or Secret.
    pub last_uid: u32,
    /// The namespace is being deleted.
    pub terminating: bool,
}

impl InMemoryCluster {
    pub fn get<K: Managed>(&self, name: &str) -> Option<Arc<K>> {
        self.objects.get(&(kind::<K>(), name.to_owned()))?.typed()
    }

    pub fn all<K: Managed>(&self) -> Vec<Arc<K>> {
        let kind = kind::<K>();
        self.objects
            .range((kind, String::new())..)
            .take_while(|((this, _), _)| *this == kind)
            .filter_map(|(_, stored)| stored.typed())
            .collect()
    }

    /// The objects of a kind that have this key.
    pub fn all_by<K: Managed>(&self, key: &Key) -> Vec<Arc<K>> {
        self.objects
            .having(kind::<K>(), hash(key))
            .filter_map(|stored| stored.typed())
            .collect()
    }

    /// Creates an object, with the metadata that the API server sets.
    ///
    /// # Errors
    /// 409 if one with this name exists; 422 if it cannot be read as its kind.
    pub fn create(
        &mut self,
        resource: &Resource,
        mut object: Value,
        now: Timestamp,
    ) -> Result<Print<Stored>, u16> {
        if self.objects.contains_key(resource) {
            return Err(CONFLICT);
        }
        self.last_uid += 1;
        let set = json!({
            "uid": format!("{:08x}-0000-4000-8000-000000000000", self.last_uid),
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": whole_second(now).to_string(),
        });
        merge(&mut object["metadata"], &set);
        let stored = Stored::read(object).map_err(|_| INVALID)?;
        self.objects.insert(resource.clone(), stored.clone());
        Ok(stored)
    }

    /// Stores the next version of an object. If it is being deleted and has no finalizers, it goes
    /// instead, and so does what it owns.
    pub fn put(&mut self, resource: &Resource, next: Print<Stored>) {
        let deleted_at = match next.deleted_at() {
            Some(deleted_at) if !next.has_finalizers() => deleted_at,
            _ => return self.objects.insert(resource.clone(), next),
        };
        self.objects.remove(resource);
        self.drop_owner_of_secrets(next.uid());
        let owned = self
            .objects
            .iter()
            .filter(|(_, stored)| stored.is_owned_by(next.uid()));
        let owned: Vec<Resource> = owned.map(|(resource, _)| resource.clone()).collect();
        for child in owned {
            self.delete(&child, deleted_at);
        }
    }

    /// Deletes an object. It goes at once unless a finalizer holds it.
    pub fn delete(&mut self, resource: &Resource, now: Timestamp) {
        let Some(stored) = self.objects.get(resource) else {
            return;
        };
        if stored.is_deleting() {
            return;
        }
        let at = whole_second(now).to_string();
        let deleted = stored.changed(|object| object["metadata"]["deletionTimestamp"] = json!(at));
        if let Ok(deleted) = deleted {
            self.put(resource, deleted);
        }
    }

    /// Changes the object with this UID.
    ///
    /// # Errors
    /// 404 if there is none with this name, 409 if it has another UID, and those of `change`.
    pub fn change(
        &mut self,
        resource: &Resource,
        uid: &str,
        change: impl FnOnce(&Print<Stored>) -> Result<Print<Stored>, u16>,
    ) -> Result<Response, u16> {
        let stored = self.with_uid(resource, uid)?;
        let next = change(&stored)?;
        self.put(resource, next.clone());
        if self.objects.contains_key(resource) {
            return Ok(Response::Object(next));
        }
        // The answer to the removal of the last finalizer has the previous version.
        Ok(Response::Object(next.with_version(stored.version())?))
    }

    fn with_uid(&self, resource: &Resource, uid: &str) -> Result<Print<Stored>, u16> {
        let stored = self.objects.get(resource).ok_or(NOT_FOUND)?;
        if stored.uid() == uid {
            Ok(stored.clone())
        } else {
            Err(CONFLICT)
        }
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// The status code of the refusal.
    pub fn handle(&mut self, request: &Request, now: Timestamp) -> Result<Response, u16> {
        match request {
            Request::Patch {
                resource,
                uid,
                patch,
            } => self.change(resource, uid, |stored| stored.patched(patch)),
            Request::ApplyStatus {
                resource,
                uid,
                patch,
                ..
            } => self.change(resource, uid, |stored| stored.with_status(patch)),
            Request::Delete {
                resource,
                uid,
                version,
            } => {
                let stored = self.with_uid(resource, uid)?;
                if stored.version().to_string() != *version {
                    return Err(CONFLICT);
                }
                self.delete(resource, now);
                Ok(Response::Done)
            }
            Request::Create { resource, object } => {
                let object = serde_json::from_str(object).map_err(|_| INVALID)?;
                self.create(resource, object, now).map(Response::Object)
            }
            Request::ReadObject(resource) => {
                let stored = self.objects.get(resource).cloned();
                stored.map(Response::Object).ok_or(NOT_FOUND)
            }
            Request::ReadSecret(name) => Ok(Response::Secret(self.secrets.get(name).cloned())),
            Request::CreateSecret(name, secret) => self.create_secret(name, secret),
            Request::ApplySecret {
                name,
                uid,
                version,
                secret,
                dry_run,
            } => {
                self.check_secret(name, uid.as_ref(), version.as_ref())?;
                Ok(self.apply_secret(name, secret, *dry_run))
            }
            Request::PatchSecret { name, patch } => self.patch_secret(name, patch),
            Request::IsNamespaceTerminating(_) => Ok(Response::Terminating(self.terminating)),
            Request::Event { .. } => Ok(Response::Done),
        }
    }
}

/// The API server keeps times in whole seconds.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    time.round(Unit::Second).unwrap_or(time)
}
