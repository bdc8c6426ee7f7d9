//! Finds the objects that dbplane's finalizers block and removes the finalizers, for clusters
//! without an operator.

use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{DeserializeGuard, Request};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use super::environment::{Kind, KindVisitor, Kinds};
use super::object::{ApiScope, Managed};
use super::pass::label_of;
use super::registry::AllKinds;
use crate::api::ObjectMeta;
use crate::decide::identity::object_key;
use crate::decide::names::{self, FIELD_MANAGER};
use crate::decide::seal::InvalidAnnotation;

/// An object with a finalizer of dbplane.
#[derive(Debug)]
pub struct WithFinalizer {
    /// Kind and namespace/name, for users.
    pub label: String,
    meta: ObjectMeta,
    /// The URL path of objects of its kind and namespace.
    url: String,
    /// The platform objects in its record.
    pub has: Vec<String>,
}

impl WithFinalizer {
    /// `None` if the object has no finalizer of dbplane.
    fn of<K: Resource<DynamicType = ()>>(meta: ObjectMeta, has: Vec<String>) -> Option<Self> {
        let is_held = meta
            .finalizers
            .iter()
            .flatten()
            .any(|finalizer| names::is_finalizer(finalizer));
        let namespace = meta.namespace.as_deref();
        let label = label_of::<K>(namespace, meta.name.as_deref().unwrap_or_default());
        let url = K::url_path(&(), namespace);
        is_held.then_some(Self {
            label,
            meta,
            url,
            has,
        })
    }

    /// Removes dbplane's finalizers, unless the object was changed since it was read.
    ///
    /// # Errors
    /// Errors of the API server; 409 if the object was changed.
    pub async fn remove_finalizer(&self, client: &Client) -> Result<(), kube::Error> {
        let others: Vec<&String> = self
            .meta
            .finalizers
            .iter()
            .flatten()
            .filter(|finalizer| !names::is_finalizer(finalizer))
            .collect();
        let metadata = json!({"resourceVersion": self.meta.resource_version, "finalizers": others});
        let body = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let name = self.meta.name.as_deref().unwrap_or_default();
        let request = Request::new(&self.url)
            .patch(name, &params, &body)
            .map_err(kube::Error::BuildRequest)?;
        client.request::<Value>(request).await.map(drop)
    }
}

/// All selected objects with a finalizer of dbplane, in `namespace` or everywhere. Credentials come
/// last, since the others need them.
///
/// # Errors
/// Errors of the API server.
pub async fn with_finalizer(
    client: &Client,
    namespace: Option<&str>,
    selected: &ListParams,
) -> Result<Vec<WithFinalizer>, kube::Error> {
    let mut lists = ListsOfKinds {
        client,
        namespace,
        selected,
        running: Vec::new(),
    };
    AllKinds::each(&mut lists);
    let mut held: Vec<WithFinalizer> = try_join_all(lists.running)
        .await?
        .into_iter()
        .flatten()
        .collect();
    let secrets: Api<Secret> = NamespaceResourceScope::api(client, namespace);
    let secrets = secrets.list_metadata(selected).await?;
    held.extend(
        secrets
            .into_iter()
            .filter_map(|secret| WithFinalizer::of::<Secret>(secret.metadata, Vec::new())),
    );
    Ok(held)
}

struct ListsOfKinds<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    selected: &'a ListParams,
    running: Vec<BoxFuture<'static, Result<Vec<WithFinalizer>, kube::Error>>>,
}

impl KindVisitor for ListsOfKinds<'_> {
    fn visit<K: Kind>(&mut self) {
        if self.namespace.is_none() || K::Object::is_namespaced() {
            self.running.push(
                of_kind::<K>(
                    K::Object::api(self.client, self.namespace),
                    self.selected.clone(),
                )
                .boxed(),
            );
        }
    }
}

async fn of_kind<K: Kind>(
    api: Api<DeserializeGuard<K::Object>>,
    selected: ListParams,
) -> Result<Vec<WithFinalizer>, kube::Error> {
    let listed = api.list(&selected).await?;
    let held = listed
        .into_iter()
        .filter_map(|DeserializeGuard(read)| match read {
            Ok(object) => WithFinalizer::of::<K::Object>(object.meta().clone(), has::<K>(&object)),
            Err(invalid) => {
                let unknown = format!(
                    "something unknown: the resource cannot be read ({})",
                    invalid.error
                );
                WithFinalizer::of::<K::Object>(invalid.metadata, vec![unknown])
            }
        });
    Ok(held.collect())
}

fn has<K: Kind>(object: &K::Object) -> Vec<String> {
    let explain = |invalid: InvalidAnnotation| {
        let kind = K::Object::kind(&()).to_lowercase();
        vec![format!(
            "something unknown: {}",
            invalid.explain(&kind, object_key(object.meta()))
        )]
    };
    K::platform_objects(object).unwrap_or_else(explain)
}
