//! The cluster of a plan: reads reach the real one, and writes stay in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::Value;

use super::PlanError;
use super::id::Id;
use super::outside::Outside;
use super::steps::PlannedStep;
use super::trail::StepTrail;
use crate::api::ObjectMeta;
use crate::controller::object::Managed;
use crate::in_memory::{
    Carrier, InMemoryCluster, Print, Request, RequestTarget, Response, Stored, full_name, kind,
    refused,
};

/// Carries the requests of passes to a cluster in memory, and records their steps.
pub struct PlanCluster {
    stored: Mutex<InMemoryCluster>,
    /// The Secrets that were read or declared.
    known_secrets: Mutex<BTreeSet<String>>,
    /// The Secrets of accounts whose key the user gave, for a user who may not read them.
    given: BTreeMap<String, Secret>,
    /// Unreadable objects, by kind.
    unreadable: BTreeMap<&'static str, Vec<Arc<ObjectMeta>>>,
    outside: Arc<dyn Outside>,
    pub trail: Arc<StepTrail>,
    pub now: Timestamp,
}

impl fmt::Debug for PlanCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanCluster").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if the user lacks the right for this request.
pub fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

impl PlanCluster {
    /// A cluster with these objects, as JSON of the API server.
    pub fn new(
        objects: Vec<Value>,
        outside: Arc<dyn Outside>,
        trail: Arc<StepTrail>,
        now: Timestamp,
    ) -> Self {
        let mut stored = InMemoryCluster::default();
        let mut unreadable = BTreeMap::<_, Vec<_>>::new();
        for value in objects {
            let Some(resource) = Id::of_value(&value).and_then(|id| id.resource()) else {
                continue;
            };
            let metadata = value["metadata"].clone();
            if let Ok(object) = Stored::read(value) {
                stored.objects.insert(resource, object);
            } else {
                let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
                let of_kind = unreadable.entry(resource.0).or_default();
                of_kind.push(Arc::new(metadata));
            }
        }
        Self {
            stored: Mutex::new(stored),
            known_secrets: Mutex::default(),
            given: BTreeMap::new(),
            unreadable,
            outside,
            trail,
            now,
        }
    }

    pub fn stored(&self) -> MutexGuard<'_, InMemoryCluster> {
        lock(&self.stored)
    }

    pub fn find(&self, id: &Id) -> Option<Print<Stored>> {
        self.stored().objects.get(&id.resource()?).cloned()
    }

    pub fn object<K: Managed>(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        let namespace = if K::is_namespaced() {
            reference.namespace.as_deref()
        } else {
            None
        };
        self.stored().get(&full_name(namespace, &reference.name))
    }

    pub fn unreadable<K: Managed>(&self) -> Vec<Arc<ObjectMeta>> {
        self.unreadable
            .get(kind::<K>())
            .cloned()
            .unwrap_or_default()
    }

    /// A Secret that the user declares.
    pub fn declare_secret(&self, name: &str, secret: Secret) {
        self.stored().put_secret(name, secret);
        lock(&self.known_secrets).insert(name.to_owned());
    }

    /// The Secret of an account, with a key from the user.
    pub fn give_secret(&mut self, name: String, mut secret: Secret) {
        self.stored().number(&mut secret);
        self.given.insert(name, secret);
    }

    /// Reads each Secret once. There is no plan if one may not be read, unless it is that of an
    /// account whose key the user gave.
    async fn read_secret(&self, full_name: &str) -> Result<(), kube::Error> {
        if lock(&self.known_secrets).contains(full_name) {
            return Ok(());
        }
        let (namespace, name) = full_name.split_once('/').unwrap_or(("", full_name));
        let secret = match self.outside.secret(namespace, name).await {
            Err(error) if is_forbidden(&error) => {
                let given = self.given.get(full_name).cloned();
                if given.is_none() {
                    self.trail.fail(PlanError::Secret {
                        namespace: namespace.to_owned(),
                        name: name.to_owned(),
                    });
                }
                Some(given.ok_or(error)?)
            }
            read => read?,
        };
        if let Some(secret) = secret {
            let secret = Print::of(secret);
            self.stored().secrets.insert(full_name.to_owned(), secret);
        }
        lock(&self.known_secrets).insert(full_name.to_owned());
        Ok(())
    }

    async fn is_terminating(&self, namespace: &str) -> Result<bool, kube::Error> {
        match self.outside.is_namespace_terminating(namespace).await {
            Err(error) if is_forbidden(&error) => {
                self.trail.not_read(format!(
                    "Namespace {namespace}: you may not. It is assumed to stay."
                ));
                Ok(false)
            }
            other => other,
        }
    }

    /// Carries out a request, and records the step that it is.
    fn handle(&self, request: &Request) -> Result<Response, kube::Error> {
        let mut stored = self.stored();
        let (mut object, mut secret) = (None, None);
        match request.target() {
            RequestTarget::Object(resource) => object = stored.objects.get(resource).cloned(),
            RequestTarget::Secret(name) => secret = stored.secrets.get(name).cloned(),
            RequestTarget::Namespace(_) => {}
        }
        let response = stored.handle(request, self.now).map_err(|code| {
            let message = match code {
                404 => "not found",
                409 => "somebody else was faster",
                _ => "not as its kind",
            };
            refused(code, message)
        })?;
        let step = match (request.target(), &response) {
            _ if !request.writes() => None,
            (RequestTarget::Secret(name), _) => {
                let after = stored.secrets.get(name);
                after.and_then(|after| write_of(secret.as_deref(), after))
            }
            (_, Response::Object(after)) => step_of(request, object.as_deref(), after),
            _ => object.and_then(|object| step_of(request, None, &object)),
        };
        if let Some(step) = step {
            self.trail.record(step);
        }
        Ok(response)
    }
}

/// The step that a request for an object is, if it is one.
fn step_of(request: &Request, before: Option<&Stored>, object: &Stored) -> Option<PlannedStep> {
    let id = Id::of_value(&object.value)?;
    let (kind, name) = (id.kind, id.name);
    match request {
        Request::Create { .. } => Some(PlannedStep::CreateObject { kind, name }),
        Request::Delete { .. } => Some(PlannedStep::DeleteObject { kind, name }),
        Request::Patch { .. } if before?.value["spec"] != object.value["spec"] => {
            Some(PlannedStep::ChangeObject { kind, name })
        }
        _ => None,
    }
}

/// The write of a Secret, unless no entry has changed.
fn write_of(before: Option<&Secret>, after: &Secret) -> Option<PlannedStep> {
    let nothing = BTreeMap::new();
    let entries_before = before.and_then(|secret| secret.data.as_ref());
    let entries_before = entries_before.unwrap_or(&nothing);
    let entries_after = after.data.as_ref().unwrap_or(&nothing);
    let names: BTreeSet<&String> = entries_before.keys().chain(entries_after.keys()).collect();
    let entries: Vec<String> = names
        .into_iter()
        .filter(|name| entries_before.get(*name) != entries_after.get(*name))
        .cloned()
        .collect();
    if before.is_some() && entries.is_empty() {
        return None;
    }
    Some(PlannedStep::WriteSecret {
        name: after.name_any(),
        new: before.is_none(),
        entries,
    })
}

impl Carrier for PlanCluster {
    async fn carry(&self, request: Request) -> Result<Response, kube::Error> {
        match request.target() {
            RequestTarget::Secret(name) => self.read_secret(name).await?,
            RequestTarget::Namespace(name) => {
                return self.is_terminating(name).await.map(Response::Terminating);
            }
            RequestTarget::Object(_) => {}
        }
        self.handle(&request)
    }
}
