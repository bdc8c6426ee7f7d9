//! The operator's port to the cluster in memory.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::Status;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::print::Print;
use super::request::{Request, Resource, Response, full_name};
use super::stored::kind;
use crate::api::Known;
use crate::cluster::{AppliedSecret, Cluster, Event, Object};
use crate::decide::Recorded;

/// Carries requests to a cluster in memory, or loses them.
pub trait Carrier: Send + Sync {
    fn carry(&self, request: Request)
    -> impl Future<Output = Result<Response, kube::Error>> + Send;

    /// The name of an object or Secret in the cluster in memory.
    fn full_name(namespace: Option<&str>, name: &str) -> String {
        full_name(namespace, name)
    }
}

#[derive(Debug)]
pub struct Port<C>(pub C);

/// A refusal by the API server.
pub fn refused(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status {
        code,
        message: message.to_owned(),
        ..Status::default()
    }))
}

fn unexpected(response: &Response) -> kube::Error {
    refused(500, &format!("unexpected: {response:?}"))
}

fn object<K: Object>(response: Response) -> Result<K, kube::Error> {
    match response {
        Response::Object(stored) => K::deserialize(&stored.value).map_err(kube::Error::SerdeError),
        other => Err(unexpected(&other)),
    }
}

impl<C: Carrier> Port<C> {
    fn resource<K: Object>(object: &K) -> Resource {
        let name = C::full_name(object.namespace().as_deref(), &object.name_any());
        (kind::<K>(), name)
    }

    /// The response, or `None` if the requested object does not exist.
    async fn found(&self, resource: Resource) -> Result<Option<Response>, kube::Error> {
        match self.0.carry(Request::ReadObject(resource)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            found => found.map(Some),
        }
    }

    async fn secret_of(&self, request: Request) -> Result<Option<Secret>, kube::Error> {
        match self.0.carry(request).await? {
            Response::Secret(secret) => Ok(secret.map(|secret| secret.clone_inner())),
            other => Err(unexpected(&other)),
        }
    }
}

impl<C: Carrier> Cluster for Port<C> {
    async fn patch<K: Object>(&self, patched: &K, patch: &Value) -> Result<K, kube::Error> {
        let request = Request::Patch {
            resource: Self::resource(patched),
            uid: patched.uid().unwrap_or_default(),
            patch: patch.to_string(),
        };
        object(self.0.carry(request).await?)
    }

    async fn apply_status<K>(&self, of: &K, status: &K::Status) -> Result<K, kube::Error>
    where
        K: Object + HasStatus<Status: Serialize + Sync>,
    {
        let (before, status) = (json!(of)["status"].take(), json!(status));
        let same_record = before["record"] == status["record"];
        let patch =
            json!({"metadata": {"resourceVersion": of.resource_version()}, "status": status});
        let request = Request::ApplyStatus {
            resource: Self::resource(of),
            uid: of.uid().unwrap_or_default(),
            patch: patch.to_string(),
            same_record,
        };
        match self.0.carry(request).await? {
            // The write was left out.
            Response::Done => Ok(of.clone()),
            other => object(other),
        }
    }

    async fn current<K: Object>(&self, known: &K) -> Result<Option<K>, kube::Error> {
        let Some(found) = self.found(Self::resource(known)).await? else {
            return Ok(None);
        };
        let found: K = object(found)?;
        Ok(Some(found).filter(|found| found.meta().uid == known.meta().uid))
    }

    async fn exists<K: Object>(&self, namespace: &str, name: &str) -> Result<bool, kube::Error> {
        let resource = (kind::<K>(), C::full_name(Some(namespace), name));
        Ok(self.found(resource).await?.is_some())
    }

    async fn create<K: Object + Recorded>(&self, new: &K) -> Result<Known<K>, kube::Error> {
        let mut value = json!(new);
        value["apiVersion"] = json!(K::api_version(&()));
        value["kind"] = json!(K::kind(&()));
        let request = Request::Create {
            resource: Self::resource(new),
            object: value.to_string(),
        };
        object(self.0.carry(request).await?)
    }

    async fn delete<K: Object>(&self, object: &K) -> Result<(), kube::Error> {
        let request = Request::Delete {
            resource: Self::resource(object),
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
        };
        self.0.carry(request).await.map(drop)
    }

    async fn publish<K: Object>(&self, object: &K, event: &Event) {
        let request = Request::Event {
            resource: Self::resource(object),
            reason: event.reason.clone(),
            text: event.text.clone(),
        };
        let _ = self.0.carry(request).await;
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        let name = C::full_name(Some(namespace), name);
        self.secret_of(Request::ReadSecret(name)).await
    }

    async fn create_secret(&self, namespace: &str, secret: &Secret) -> Result<(), kube::Error> {
        let name = C::full_name(Some(namespace), &secret.name_any());
        let mut secret = secret.clone();
        secret.metadata.namespace = Some(namespace.to_owned());
        let request = Request::CreateSecret(name, Print::of(secret));
        self.0.carry(request).await.map(drop)
    }

    async fn apply_secret(
        &self,
        namespace: &str,
        applied: &AppliedSecret,
        dry_run: bool,
    ) -> Result<Secret, kube::Error> {
        let mut secret = applied.secret.clone();
        secret.metadata.name = Some(applied.name.clone());
        secret.metadata.namespace = Some(namespace.to_owned());
        let request = Request::ApplySecret {
            name: C::full_name(Some(namespace), &applied.name),
            uid: applied.uid.clone(),
            version: applied.version.clone(),
            secret: Print::of(secret),
            dry_run,
        };
        Ok(self.secret_of(request).await?.unwrap_or_default())
    }

    async fn patch_secret(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), kube::Error> {
        let request = Request::PatchSecret {
            name: C::full_name(Some(namespace), name),
            patch: patch.to_string(),
        };
        self.0.carry(request).await.map(drop)
    }

    async fn is_namespace_terminating(&self, name: &str) -> Result<bool, kube::Error> {
        let request = Request::IsNamespaceTerminating(name.to_owned());
        match self.0.carry(request).await? {
            Response::Terminating(terminating) => Ok(terminating),
            other => Err(unexpected(&other)),
        }
    }
}
