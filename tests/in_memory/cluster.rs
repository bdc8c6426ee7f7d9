//! A cluster in memory, with the versions, finalizers and owners that the operator relies on.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dbplane::cluster::merge;
use dbplane::controller::index::Key;
use dbplane::controller::object::Managed;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::Status;
use serde_json::{Value, json};

use super::objects::Objects;
use super::print::{Print, hash};
pub use super::request::{Request, Resource, Response, Target};
pub use super::stored::{Stored, kind};

pub const NAMESPACE: &str = "shop";

/// The name of an object in the cluster, with its namespace unless that is `NAMESPACE`.
pub fn full_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) if namespace != NAMESPACE => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

/// The namespace and the name.
pub fn place(full_name: &str) -> (&str, &str) {
    full_name.split_once('/').unwrap_or((NAMESPACE, full_name))
}

#[derive(Clone, Debug, Default, Hash)]
pub struct Cluster {
    pub objects: Objects,
    pub secrets: BTreeMap<String, Print<Secret>>,
    /// Number of objects and Secrets created so far.
    made: u32,
    /// The namespace is being deleted.
    pub terminating: bool,
}

pub fn refused(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status {
        code,
        message: message.into(),
        ..Status::default()
    }))
}

impl Cluster {
    pub fn resources(&self) -> Vec<Resource> {
        self.objects.keys().cloned().collect()
    }

    pub fn get<K: Managed>(&self, name: &str) -> Option<Arc<K>> {
        Some(self.objects.get(&(kind::<K>(), name.to_owned()))?.typed())
    }

    pub fn all<K: Managed>(&self) -> Vec<Arc<K>> {
        let of_kind = self
            .objects
            .range((kind::<K>(), String::new())..)
            .take_while(|((this, _), _)| *this == kind::<K>());
        of_kind.map(|(_, stored)| stored.typed()).collect()
    }

    /// The objects of a kind that have this key.
    pub fn all_by<K: Managed>(&self, key: &Key) -> Vec<Arc<K>> {
        self.objects
            .having(kind::<K>(), hash(key))
            .map(|stored| stored.typed())
            .collect()
    }

    /// Creates an object like a user, with these annotations.
    pub fn create(
        &mut self,
        resource: &Resource,
        spec: &Value,
        annotations: &Value,
        now: Timestamp,
    ) {
        self.made += 1;
        let uid = format!("{:08x}-0000-4000-8000-000000000000", 0x1000 + self.made);
        let mut object = json!({
            "apiVersion": "dbplane.dev/v1alpha1",
            "kind": resource.0,
            "metadata": {
                "name": place(&resource.1).1,
                "uid": uid,
                "generation": 1,
                "resourceVersion": "1",
                "creationTimestamp": now.round(jiff::Unit::Second).unwrap().to_string(),
                "annotations": annotations,
            },
            "spec": spec,
        });
        if resource.0 != "ClusterAccount" {
            object["metadata"]["namespace"] = json!(place(&resource.1).0);
        }
        self.objects
            .insert(resource.clone(), Stored::new(resource.0, object));
    }

    /// Edits an object like a user. Only a change of the spec increments the generation.
    pub fn edit(&mut self, resource: &Resource, patch: &Value) {
        let Some(stored) = self.objects.get(resource) else {
            return;
        };
        let mut next = stored.value.clone();
        merge(&mut next, patch);
        if next["spec"] != stored.value["spec"] {
            next["metadata"]["generation"] =
                json!(next["metadata"]["generation"].as_i64().unwrap() + 1);
        }
        self.put(resource, next);
    }

    /// Replaces an object by its manifest: annotations and finalizers go, the status stays.
    pub fn replace(&mut self, resource: &Resource) {
        let Some(stored) = self.objects.get(resource) else {
            return;
        };
        let mut next = stored.value.clone();
        let metadata = next["metadata"].as_object_mut().unwrap();
        metadata.retain(|name, _| !["annotations", "finalizers"].contains(&name.as_str()));
        self.put(resource, next);
    }

    /// Deletes an object. It is gone at once unless a finalizer holds it.
    pub fn delete(&mut self, resource: &Resource, now: Timestamp) {
        let Some(stored) = self.objects.get(resource) else {
            return;
        };
        if !stored.is_deleting() {
            let at = now.round(jiff::Unit::Second).unwrap().to_string();
            self.edit(resource, &json!({"metadata": {"deletionTimestamp": at}}));
        }
        self.collect(resource);
    }

    /// Removes an object even if a finalizer holds it.
    pub fn forget(&mut self, resource: &Resource) -> Option<Value> {
        self.objects
            .remove(resource)
            .map(|stored| stored.value.clone())
    }

    /// Writes a Secret like a user.
    pub fn put_secret(&mut self, name: &str, mut secret: Secret) {
        let before = self.secrets.get(name);
        match before {
            Some(before) => secret.metadata = before.metadata.clone(),
            None => self.number(&mut secret),
        }
        let (namespace, short) = place(name);
        secret.metadata.name = Some(short.to_owned());
        secret.metadata.namespace = Some(namespace.to_owned());
        bump(&mut secret);
        self.secrets.insert(name.to_owned(), Print::of(secret));
    }

    /// Deletes a Secret. It is gone at once unless a finalizer holds it.
    pub fn delete_secret(&mut self, name: &str, now: Timestamp) {
        let Some(secret) = self.secrets.get(name) else {
            return;
        };
        if secret.finalizers().is_empty() {
            self.secrets.remove(name);
            return;
        }
        let mut secret = secret.clone_inner();
        if secret.metadata.deletion_timestamp.is_none() {
            secret.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                    now.round(jiff::Unit::Second).unwrap(),
                ));
            bump(&mut secret);
        }
        self.secrets.insert(name.to_owned(), Print::of(secret));
    }

    fn number(&mut self, secret: &mut Secret) {
        self.made += 1;
        secret.metadata.uid = Some(format!("secret-{}", self.made));
        secret.metadata.resource_version = Some("0".to_owned());
    }

    fn put(&mut self, resource: &Resource, mut next: Value) {
        if let Some(stored) = self.objects.get(resource) {
            if stored.value == next {
                return;
            }
            next["metadata"]["resourceVersion"] = json!((stored.version() + 1).to_string());
        }
        self.objects
            .insert(resource.clone(), Stored::new(resource.0, next));
        self.collect(resource);
    }

    /// Removes an object that is being deleted without finalizers, and the objects that it owns.
    fn collect(&mut self, resource: &Resource) {
        let Some(stored) = self.objects.get(resource) else {
            return;
        };
        let held = stored.value["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
        if !stored.is_deleting() || held {
            return;
        }
        let uid = stored.uid().to_owned();
        let at = stored.value["metadata"]["deletionTimestamp"]
            .as_str()
            .and_then(|time| time.parse().ok());
        self.objects.remove(resource);
        self.secrets.retain(|_, secret| {
            secret
                .owner_references()
                .iter()
                .all(|owner| owner.uid != uid)
        });
        let is_owned = |value: &Value| {
            let owners = value["metadata"]["ownerReferences"].as_array();
            owners
                .into_iter()
                .flatten()
                .any(|owner| owner["uid"] == uid.as_str())
        };
        let owned: Vec<Resource> = self
            .objects
            .iter()
            .filter(|(_, stored)| is_owned(&stored.value))
            .map(|(owned, _)| owned.clone())
            .collect();
        for child in owned {
            self.delete(&child, at.unwrap_or_default());
        }
    }

    fn delete_version(
        &mut self,
        resource: &Resource,
        uid: &str,
        version: &str,
    ) -> Result<Response, u16> {
        let stored = self.objects.get(resource).ok_or(404_u16)?;
        if stored.uid() != uid || stored.version().to_string() != version {
            return Err(409);
        }
        self.delete(resource, Timestamp::UNIX_EPOCH);
        Ok(Response::Done)
    }

    /// A hash of the object that a request targets.
    pub fn standing(&self, request: &Request) -> Option<u64> {
        match request.target() {
            Target::Object(resource) => self.objects.get(resource).map(hash),
            Target::Secret(name) => self.secrets.get(name).map(hash),
            Target::Namespace => None,
        }
    }

    /// Carries out a request.
    pub fn handle(&mut self, request: &Request) -> Result<Response, u16> {
        match request {
            Request::Patch {
                resource,
                uid,
                patch,
            } => self.change(resource, uid, patch, patched),
            Request::Delete {
                resource,
                uid,
                version,
            } => self.delete_version(resource, uid, version),
            Request::ApplyStatus {
                resource,
                uid,
                patch,
                ..
            } => self.change(resource, uid, patch, with_status),
            Request::Create { resource, .. } if self.objects.contains_key(resource) => Err(409),
            Request::Create { resource, object } => {
                let object: Value = serde_json::from_str(object).unwrap();
                let metadata = &object["metadata"];
                self.create(
                    resource,
                    &object["spec"],
                    &metadata["annotations"],
                    Timestamp::UNIX_EPOCH,
                );
                let more = json!({"ownerReferences": metadata["ownerReferences"], "labels": metadata["labels"]});
                self.edit(resource, &json!({"metadata": more}));
                Ok(Response::Object(self.objects[resource].clone()))
            }
            Request::Event { .. } => Ok(Response::Done),
            Request::ReadObject(resource) => self
                .objects
                .get(resource)
                .cloned()
                .map(Response::Object)
                .ok_or(404),
            Request::ReadSecret(name) => Ok(Response::Secret(self.secrets.get(name).cloned())),
            Request::CreateSecret(name, _) if self.secrets.contains_key(name) => Err(409),
            Request::CreateSecret(name, secret) => {
                let mut secret = secret.clone_inner();
                self.number(&mut secret);
                self.put_new_secret(name, secret)
            }
            Request::ApplySecret {
                name,
                uid,
                version,
                secret,
                dry_run,
            } => {
                self.check_secret(name, uid.as_ref(), version.as_ref())?;
                self.apply_secret(name, secret, *dry_run)
            }
            Request::PatchSecret { name, patch } => self.patch_secret(name, patch),
            Request::IsNamespaceTerminating => Ok(Response::Terminating(self.terminating)),
        }
    }

    /// An unchanged Secret keeps its version.
    fn put_new_secret(&mut self, name: &str, mut secret: Secret) -> Result<Response, u16> {
        if self
            .secrets
            .get(name)
            .is_none_or(|stored| **stored != secret)
        {
            bump(&mut secret);
        }
        let secret = Print::of(secret);
        self.secrets.insert(name.to_owned(), secret.clone());
        Ok(Response::Secret(Some(secret)))
    }

    fn change(
        &mut self,
        resource: &Resource,
        uid: &str,
        text: &str,
        change: fn(&Value, &str) -> Option<Value>,
    ) -> Result<Response, u16> {
        let stored = self.objects.get(resource).ok_or(404_u16)?.clone();
        if stored.uid() != uid {
            return Err(409);
        }
        let next = known(hash(&(&stored, text, change as usize)), || {
            let next = change(&stored.value, text)?;
            if next == stored.value {
                return Some(stored.clone());
            }
            let mut next = next;
            if next["spec"] != stored.value["spec"] {
                next["metadata"]["generation"] =
                    json!(next["metadata"]["generation"].as_i64().unwrap() + 1);
            }
            next["metadata"]["resourceVersion"] = json!((stored.version() + 1).to_string());
            Some(Stored::new(resource.0, next))
        });
        let next = next.ok_or(409_u16)?;
        self.objects.insert(resource.clone(), next.clone());
        self.collect(resource);
        if self.objects.contains_key(resource) {
            return Ok(Response::Object(next));
        }
        // If the last finalizer was removed, the answer has the previous version.
        let mut gone = next.value.clone();
        gone["metadata"]["resourceVersion"] = json!(stored.version().to_string());
        Ok(Response::Object(Stored::new(resource.0, gone)))
    }

    /// Fails unless the Secret has this UID and version, where they are given.
    fn check_secret(
        &self,
        name: &str,
        uid: Option<&String>,
        version: Option<&String>,
    ) -> Result<(), u16> {
        let metadata = self.secrets.get(name).map(|secret| &secret.metadata);
        let stored_uid = metadata.and_then(|metadata| metadata.uid.as_ref());
        let stored_version = metadata.and_then(|metadata| metadata.resource_version.as_ref());
        if uid.is_some() && uid != stored_uid || version.is_some() && version != stored_version {
            Err(409)
        } else {
            Ok(())
        }
    }

    fn apply_secret(
        &mut self,
        name: &str,
        applied: &Secret,
        dry_run: bool,
    ) -> Result<Response, u16> {
        let mut secret = match self.secrets.get(name) {
            Some(stored) => stored.clone_inner(),
            None => {
                let mut secret = Secret::default();
                secret.metadata.name = Some(place(name).1.to_owned());
                self.number(&mut secret);
                secret
            }
        };
        let owners = secret.metadata.owner_references.get_or_insert_default();
        for owner in applied.owner_references() {
            if owners.iter().all(|other| other.uid != owner.uid) {
                owners.push(owner.clone());
            }
        }
        secret.labels_mut().extend(applied.labels().clone());
        secret
            .annotations_mut()
            .extend(applied.annotations().clone());
        secret
            .data
            .get_or_insert_default()
            .extend(applied.data.clone().unwrap_or_default());
        if dry_run {
            Ok(Response::Secret(Some(Print::of(secret))))
        } else {
            self.put_new_secret(name, secret)
        }
    }

    fn patch_secret(&mut self, name: &str, patch: &str) -> Result<Response, u16> {
        let secret = self.secrets.get(name).ok_or(404_u16)?.clone_inner();
        let patch: Value = serde_json::from_str(patch).unwrap();
        let wanted = patch["metadata"]["resourceVersion"].as_str();
        if wanted.is_some() && wanted != secret.metadata.resource_version.as_deref() {
            return Err(409);
        }
        let mut value = serde_json::to_value(&secret).unwrap();
        merge(&mut value, &patch);
        let secret: Secret = serde_json::from_value(value).unwrap();
        if secret.metadata.deletion_timestamp.is_some() && secret.finalizers().is_empty() {
            self.secrets.remove(name);
            return Ok(Response::Done);
        }
        self.put_new_secret(name, secret).map(|_| Response::Done)
    }
}

fn bump(secret: &mut Secret) {
    let version: u64 = secret
        .metadata
        .resource_version
        .as_deref()
        .unwrap_or("0")
        .parse()
        .unwrap();
    secret.metadata.resource_version = Some((version + 1).to_string());
}

/// `None` if the patch names another version.
fn patched(stored: &Value, patch: &str) -> Option<Value> {
    let patch: Value = serde_json::from_str(patch).unwrap();
    if patch["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
        return None;
    }
    let mut next = stored.clone();
    merge(&mut next, &patch);
    Some(next)
}

/// `None` if the patch names another version.
fn with_status(stored: &Value, patch: &str) -> Option<Value> {
    let patch: Value = serde_json::from_str(patch).unwrap();
    if patch["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
        return None;
    }
    let mut next = stored.clone();
    next["status"] = patch["status"].clone();
    Some(next)
}

thread_local! {
    /// Memoizes changes, because the same one occurs in thousands of states.
    static KNOWN: RefCell<HashMap<u64, Option<Print<Stored>>>> = RefCell::default();
}

fn known(question: u64, answer: impl FnOnce() -> Option<Print<Stored>>) -> Option<Print<Stored>> {
    if let Some(known) = KNOWN.with(|known| known.borrow().get(&question).cloned()) {
        return known;
    }
    let answer = answer();
    KNOWN.with(|known| known.borrow_mut().insert(question, answer.clone()));
    answer
}
