//! The cluster in memory as the tests use it: what users do to objects, and memoized answers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use dbplane::cluster::merge;
use dbplane::in_memory::{CONFLICT, InMemoryCluster, Print, hash};
pub use dbplane::in_memory::{Request, RequestTarget, Resource, Response, Stored, kind};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

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

#[derive(Clone, Debug, Hash)]
pub struct Cluster(InMemoryCluster);

/// UIDs begin where those of a plan of this cluster do not.
impl Default for Cluster {
    fn default() -> Self {
        Self(InMemoryCluster {
            last_uid: 0x1000,
            ..InMemoryCluster::default()
        })
    }
}

impl Deref for Cluster {
    type Target = InMemoryCluster;

    fn deref(&self) -> &InMemoryCluster {
        &self.0
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut InMemoryCluster {
        &mut self.0
    }
}

impl Cluster {
    pub fn resources(&self) -> Vec<Resource> {
        self.objects.keys().cloned().collect()
    }

    /// Creates an object like a user, with these annotations.
    pub fn create(
        &mut self,
        resource: &Resource,
        spec: &Value,
        annotations: &Value,
        now: Timestamp,
    ) {
        let (namespace, name) = place(&resource.1);
        let mut object = json!({
            "apiVersion": "dbplane.dev/v1alpha1",
            "kind": resource.0,
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
        });
        if resource.0 != "ClusterAccount" {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.0.create(resource, object, now).unwrap();
    }

    /// Edits an object like a user.
    pub fn edit(&mut self, resource: &Resource, patch: &Value) {
        self.edited(resource, |object| merge(object, patch));
    }

    /// Replaces an object by its manifest: annotations and finalizers go, the status stays.
    pub fn replace(&mut self, resource: &Resource) {
        self.edited(resource, |object| {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| !["annotations", "finalizers"].contains(&name.as_str()));
        });
    }

    fn edited(&mut self, resource: &Resource, edit: impl FnOnce(&mut Value)) {
        if let Some(stored) = self.objects.get(resource) {
            let next = stored.changed(edit).unwrap();
            self.put(resource, next);
        }
    }

    /// Removes an object even if a finalizer holds it.
    pub fn forget(&mut self, resource: &Resource) -> Option<Value> {
        self.objects
            .remove(resource)
            .map(|stored| stored.value.clone())
    }

    /// Writes a Secret like a user.
    pub fn put_secret(&mut self, full_name: &str, mut secret: Secret) {
        let (namespace, name) = place(full_name);
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.namespace = Some(namespace.to_owned());
        self.0.put_secret(full_name, secret);
    }

    /// Deletes a Secret. It is gone at once unless a finalizer holds it.
    pub fn delete_secret(&mut self, name: &str, now: Timestamp) {
        let Some(secret) = self.secrets.get(name) else {
            return;
        };
        let at = now.round(jiff::Unit::Second).unwrap().to_string();
        let deletion = json!({"metadata": {"deletionTimestamp": at}});
        if secret.metadata.deletion_timestamp.is_none() {
            let patch = Request::PatchSecret {
                name: name.to_owned(),
                patch: deletion.to_string(),
            };
            self.handle(&patch).unwrap();
        }
    }

    /// A hash of the object that a request targets.
    pub fn standing(&self, request: &Request) -> Option<u64> {
        match request.target() {
            RequestTarget::Object(resource) => self.objects.get(resource).map(hash),
            RequestTarget::Secret(name) => self.secrets.get(name).map(hash),
            RequestTarget::Namespace(_) => None,
        }
    }

    /// Carries out a request.
    pub fn handle(&mut self, request: &Request) -> Result<Response, u16> {
        match request {
            Request::Patch {
                resource,
                uid,
                patch,
            } => self.change(resource, uid, |stored| {
                known(hash(&(stored, patch, "patch")), || {
                    names_version(patch)?;
                    stored.patched(patch)
                })
            }),
            Request::ApplyStatus {
                resource,
                uid,
                patch,
                ..
            } => self.change(resource, uid, |stored| {
                known(hash(&(stored, patch, "status")), || {
                    names_version(patch)?;
                    stored.with_status(patch)
                })
            }),
            _ => self.0.handle(request, Timestamp::UNIX_EPOCH),
        }
    }
}

type Change = Result<Print<Stored>, u16>;

thread_local! {
    /// Memoizes changes, because the same one occurs in thousands of states.
    static KNOWN: RefCell<HashMap<u64, Change>> = RefCell::default();
}

/// The operator names the version that it has decided on, so a patch without one conflicts.
fn names_version(patch: &str) -> Result<(), u16> {
    let patch: Value = serde_json::from_str(patch).unwrap();
    if patch["metadata"]["resourceVersion"].is_null() {
        return Err(CONFLICT);
    }
    Ok(())
}

fn known(question: u64, answer: impl FnOnce() -> Change) -> Change {
    if let Some(known) = KNOWN.with(|known| known.borrow().get(&question).cloned()) {
        return known;
    }
    let answer = answer();
    KNOWN.with(|known| known.borrow_mut().insert(question, answer.clone()));
    answer
}
