//! The port to the API server, and its adapter.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{
    DeleteParams, GetParams, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams,
    PostParams, Preconditions,
};
use kube::core::Request;
use kube::core::object::HasStatus;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::events::{Event, Events};
use super::metadata::{MetadataPatch, resource_version};
use crate::api::Known;
use crate::decide::Recorded;
use crate::decide::names::FIELD_MANAGER;

pub trait Object:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

/// The requests to the API server. Every method sends one request.
pub trait Cluster: Send + Sync {
    /// Sends a merge patch. If it names another version than the stored one, the API server answers
    /// 409.
    fn patch<K: Object>(
        &self,
        object: &K,
        patch: &Value,
    ) -> impl Future<Output = Result<K, kube::Error>> + Send;

    /// Patches an object's metadata if the object still has this version; otherwise the API server
    /// answers 409.
    fn patch_metadata<K: Object>(
        &self,
        object: &K,
        patch: &MetadataPatch,
    ) -> impl Future<Output = Result<K, kube::Error>> + Send {
        async move { self.patch(object, &patch.body(object)).await }
    }

    /// Replaces the whole status if the object still has this version; fields that are not given
    /// are removed.
    fn apply_status<K>(
        &self,
        object: &K,
        status: &K::Status,
    ) -> impl Future<Output = Result<K, kube::Error>> + Send
    where
        K: Object + HasStatus<Status: Serialize + Sync>;

    /// The stored object, which may be newer than the watch's. `None` if it is gone, or another
    /// object has its name.
    fn current<K: Object>(
        &self,
        object: &K,
    ) -> impl Future<Output = Result<Option<K>, kube::Error>> + Send;

    /// True if an object of this kind and name is stored now.
    fn exists<K: Object>(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<bool, kube::Error>> + Send;

    /// The managers of the object's fields, if they are known.
    fn managed_fields<K: Object>(
        &self,
        _object: &K,
    ) -> impl Future<Output = Result<Vec<ManagedFieldsEntry>, kube::Error>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Creates an object. The API server answers 409 if one with this name exists.
    fn create<K: Object + Recorded>(
        &self,
        object: &K,
    ) -> impl Future<Output = Result<Known<K>, kube::Error>> + Send;

    /// Deletes an object if it still has this version; otherwise the API server answers 409.
    fn delete<K: Object>(&self, object: &K)
    -> impl Future<Output = Result<(), kube::Error>> + Send;

    /// Publishes an event about an object. A failure is logged and the event dropped, because
    /// nothing depends on it.
    fn publish<K: Object>(&self, object: &K, event: &Event) -> impl Future<Output = ()> + Send;

    /// A Secret, if it exists.
    fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Secret>, kube::Error>> + Send;

    /// Creates a Secret. The API server answers 409 if one with this name exists.
    fn create_secret(
        &self,
        namespace: &str,
        secret: &Secret,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;

    /// Applies a Secret, server-side, optionally as a dry run. Returns the resulting Secret.
    fn apply_secret(
        &self,
        namespace: &str,
        secret: &AppliedSecret,
        dry_run: bool,
    ) -> impl Future<Output = Result<Secret, kube::Error>> + Send;

    /// Merge patch of a Secret.
    fn patch_secret(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;

    /// True if a namespace is being deleted, or is gone.
    fn is_namespace_terminating(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<bool, kube::Error>> + Send;
}

/// The fields of a Secret that are applied.
#[derive(Clone)]
pub struct AppliedSecret {
    pub name: String,
    /// If set, only the Secret with this UID and version is changed.
    pub uid: Option<String>,
    pub version: Option<String>,
    pub secret: Secret,
}

/// Leaves out the entries because they are secret.
impl Debug for AppliedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppliedSecret")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .finish_non_exhaustive()
    }
}

impl AppliedSecret {
    fn body(&self) -> Value {
        let Secret {
            metadata,
            data,
            type_,
            ..
        } = &self.secret;
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": type_,
            "metadata": {
                "name": self.name,
                "uid": self.uid,
                "resourceVersion": self.version,
                "labels": metadata.labels,
                "annotations": metadata.annotations,
                "ownerReferences": metadata.owner_references,
            },
            "data": data,
        })
    }
}

/// The API server.
#[derive(Clone)]
pub struct ApiServer {
    client: Client,
    events: Events,
}

impl Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// `identity` names this process in events.
    pub fn new(client: Client, identity: &str) -> Self {
        Self {
            events: Events::new(client.clone(), identity),
            client,
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The stored version of an object, which may be newer than the watch's. `None` if it is gone,
    /// or another object has its name.
    ///
    /// # Errors
    /// If the API server does not return it.
    pub async fn stored_version<K: Object>(&self, object: &K) -> Result<Option<u64>, kube::Error> {
        let found = self
            .named::<K>(object.namespace().as_deref(), &object.name_any())
            .await?;
        let same = found
            .items
            .iter()
            .find(|found| found.metadata.uid == object.meta().uid);
        Ok(same.and_then(resource_version))
    }

    /// The metadata of the object with this name, as a list: the operator may list wherever it
    /// watches.
    async fn named<K: Object>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<ObjectList<PartialObjectMeta<K>>, kube::Error> {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let request = Request::new(K::url_path(&(), namespace)).list_metadata(&named);
        self.client
            .request(request.map_err(kube::Error::BuildRequest)?)
            .await
    }
}

/// The requests for objects of this kind, in the namespace of `object`.
fn requests<K: Object>(object: &K) -> Request {
    Request::new(K::url_path(&(), object.namespace().as_deref()))
}

impl Cluster for ApiServer {
    async fn patch<K: Object>(&self, object: &K, patch: &Value) -> Result<K, kube::Error> {
        let body = Patch::Merge(patch);
        let request = requests(object)
            .patch(&object.name_any(), &managed(), &body)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    async fn apply_status<K>(&self, object: &K, status: &K::Status) -> Result<K, kube::Error>
    where
        K: Object + HasStatus<Status: Serialize + Sync>,
    {
        let body = Patch::Apply(json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            // The UID prevents writing the status to a newer object of the same name.
            "metadata": {
                "name": object.name_any(),
                "uid": object.uid(),
                "resourceVersion": object.resource_version(),
            },
            "status": status,
        }));
        let request =
            requests(object).patch_subresource("status", &object.name_any(), &applied(), &body);
        self.client
            .request(request.map_err(kube::Error::BuildRequest)?)
            .await
    }

    async fn current<K: Object>(&self, object: &K) -> Result<Option<K>, kube::Error> {
        let request = requests(object).get(&object.name_any(), &GetParams::default());
        let found: Option<K> = match self
            .client
            .request(request.map_err(kube::Error::BuildRequest)?)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            found => Some(found?),
        };
        Ok(found.filter(|found| found.meta().uid == object.meta().uid))
    }

    async fn managed_fields<K: Object>(
        &self,
        object: &K,
    ) -> Result<Vec<ManagedFieldsEntry>, kube::Error> {
        let found = self
            .named::<K>(object.namespace().as_deref(), &object.name_any())
            .await?;
        Ok(found
            .items
            .into_iter()
            .filter_map(|found| found.metadata.managed_fields)
            .flatten()
            .collect())
    }

    async fn exists<K: Object>(&self, namespace: &str, name: &str) -> Result<bool, kube::Error> {
        let found = self.named::<K>(Some(namespace), name).await?;
        Ok(!found.items.is_empty())
    }

    async fn create<K: Object + Recorded>(&self, object: &K) -> Result<Known<K>, kube::Error> {
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let request = requests(object)
            .create(&params, body)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    async fn delete<K: Object>(&self, object: &K) -> Result<(), kube::Error> {
        let preconditions = Preconditions {
            uid: object.uid(),
            resource_version: object.resource_version(),
        };
        let params = DeleteParams::default().preconditions(preconditions);
        let request = requests(object)
            .delete(&object.name_any(), &params)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request_text(request).await.map(drop)
    }

    async fn publish<K: Object>(&self, object: &K, event: &Event) {
        self.events.publish(object, event).await;
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, kube::Error> {
        self.secrets(namespace).get_opt(name).await
    }

    async fn create_secret(&self, namespace: &str, secret: &Secret) -> Result<(), kube::Error> {
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        self.secrets(namespace)
            .create(&params, secret)
            .await
            .map(drop)
    }

    async fn apply_secret(
        &self,
        namespace: &str,
        secret: &AppliedSecret,
        dry_run: bool,
    ) -> Result<Secret, kube::Error> {
        let params = PatchParams {
            dry_run,
            ..applied()
        };
        self.secrets(namespace)
            .patch(&secret.name, &params, &Patch::Apply(secret.body()))
            .await
    }

    async fn patch_secret(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), kube::Error> {
        let patch = Patch::Merge(patch);
        // The answer contains only the metadata.
        self.secrets(namespace)
            .patch_metadata(name, &managed(), &patch)
            .await
            .map(drop)
    }

    async fn is_namespace_terminating(&self, name: &str) -> Result<bool, kube::Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = namespaces.get_metadata_opt(name).await?;
        Ok(namespace.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()))
    }
}

fn managed() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn applied() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}
