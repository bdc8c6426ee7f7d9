//! The operator's port to the cluster in memory.

use dbplane::api::Known;
use dbplane::cluster::{AppliedSecret, Cluster, Event, Object};
use dbplane::decide::Recorded;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::{Value, json};

use super::cluster::{Request, Resource, Response, full_name};
use super::print::Print;

/// Carries requests to a cluster in memory, or loses them.
pub trait Carrier: Send + Sync {
    fn carry(&self, request: Request)
    -> impl Future<Output = Result<Response, kube::Error>> + Send;
}

#[derive(Debug)]
pub struct Port<C>(pub C);

fn resource<K: Object>(object: &K) -> Resource {
    (
        kind::<K>(),
        full_name(object.namespace().as_deref(), &object.name_any()),
    )
}

fn kind<K: Object>() -> &'static str {
    match K::kind(&()) {
        std::borrow::Cow::Borrowed(kind) => kind,
        std::borrow::Cow::Owned(kind) => panic!("{kind} is no static text"),
    }
}

fn read<K: Object>(response: Response) -> K {
    match response {
        Response::Object(stored) => serde_json::from_value(stored.value.clone()).unwrap(),
        other => panic!("not an object: {other:?}"),
    }
}

impl<C: Carrier> Cluster for Port<C> {
    async fn patch<K: Object>(&self, object: &K, patch: &Value) -> Result<K, kube::Error> {
        let (resource, uid) = (resource(object), object.uid().unwrap_or_default());
        self.0
            .carry(Request::Patch {
                resource,
                uid,
                patch: patch.to_string(),
            })
            .await
            .map(read)
    }

    async fn apply_status<K>(&self, object: &K, status: &K::Status) -> Result<K, kube::Error>
    where
        K: Object + HasStatus<Status: Serialize + Sync>,
    {
        let (resource, uid) = (resource(object), object.uid().unwrap_or_default());
        let (before, status) = (json!(object)["status"].take(), json!(status));
        let same_record = before["record"] == status["record"];
        let patch =
            json!({"metadata": {"resourceVersion": object.resource_version()}, "status": status})
                .to_string();
        match self
            .0
            .carry(Request::ApplyStatus {
                resource,
                uid,
                patch,
                same_record,
            })
            .await?
        {
            // The write was left out.
            Response::Done => Ok(object.clone()),
            other => Ok(read(other)),
        }
    }

    async fn current<K: Object>(&self, object: &K) -> Result<Option<K>, kube::Error> {
        match self.0.carry(Request::ReadObject(resource(object))).await {
            Ok(found) => {
                Ok(Some(read::<K>(found)).filter(|found| found.meta().uid == object.meta().uid))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn exists<K: Object>(&self, namespace: &str, name: &str) -> Result<bool, kube::Error> {
        match self
            .0
            .carry(Request::ReadObject((
                kind::<K>(),
                full_name(Some(namespace), name),
            )))
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            found => found.map(|_| true),
        }
    }

    async fn create<K: Object + Recorded>(&self, object: &K) -> Result<Known<K>, kube::Error> {
        let object_text = json!(object).to_string();
        self.0
            .carry(Request::Create {
                resource: resource(object),
                object: object_text,
            })
            .await
            .map(read)
    }

    async fn delete<K: Object>(&self, object: &K) -> Result<(), kube::Error> {
        let (uid, version) = (
            object.uid().unwrap_or_default(),
            object.resource_version().unwrap_or_default(),
        );
        self.0
            .carry(Request::Delete {
                resource: resource(object),
                uid,
                version,
            })
            .await
            .map(drop)
    }

    async fn publish<K: Object>(&self, object: &K, event: &Event) {
        let (reason, text) = (event.reason.clone(), event.text.clone());
        let request = Request::Event {
            resource: resource(object),
            reason,
            text,
        };
        let _ = self.0.carry(request).await;
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        match self
            .0
            .carry(Request::ReadSecret(full_name(Some(namespace), name)))
            .await?
        {
            Response::Secret(secret) => Ok(secret.map(|secret| secret.clone_inner())),
            other => panic!("not a Secret: {other:?}"),
        }
    }

    async fn create_secret(&self, namespace: &str, secret: &Secret) -> Result<(), kube::Error> {
        let name = full_name(Some(namespace), &secret.name_any());
        let request = Request::CreateSecret(name, Print::of(secret.clone()));
        self.0.carry(request).await.map(drop)
    }

    async fn apply_secret(
        &self,
        namespace: &str,
        secret: &AppliedSecret,
        dry_run: bool,
    ) -> Result<Secret, kube::Error> {
        let AppliedSecret {
            name,
            uid,
            version,
            secret,
        } = secret.clone();
        let name = full_name(Some(namespace), &name);
        let secret = Print::of(secret);
        match self
            .0
            .carry(Request::ApplySecret {
                name,
                uid,
                version,
                secret,
                dry_run,
            })
            .await?
        {
            Response::Secret(Some(secret)) => Ok(secret.clone_inner()),
            other => panic!("not a Secret: {other:?}"),
        }
    }

    async fn patch_secret(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), kube::Error> {
        let request = Request::PatchSecret {
            name: full_name(Some(namespace), name),
            patch: patch.to_string(),
        };
        self.0.carry(request).await.map(drop)
    }

    async fn is_namespace_terminating(&self, _: &str) -> Result<bool, kube::Error> {
        match self.0.carry(Request::IsNamespaceTerminating).await? {
            Response::Terminating(terminating) => Ok(terminating),
            other => panic!("not a namespace: {other:?}"),
        }
    }
}
