//! Access to the objects of one namespace as an administrator, not through the proxy.

use std::time::{Duration, Instant};

use kube::api::{
    DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use dbplane::decide::names;

use crate::support::{Error, PATIENCE, Result, objects};

/// Time between two reads of an object.
const MOMENT: Duration = Duration::from_millis(20);
/// Attempts to replace an object that changes concurrently.
const TRIES: usize = 20;

#[derive(Clone)]
pub struct Objects {
    client: Client,
    pub namespace: String,
}

impl Objects {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
        }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        objects(&self.client, &self.namespace, kind)
    }

    pub async fn create(&self, manifest: &Value) -> Result<()> {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let object: DynamicObject = serde_json::from_value(manifest.clone())
            .map_err(Error::while_doing("reading a manifest"))?;
        self.api(kind)
            .create(&PostParams::default(), &object)
            .await?;
        Ok(())
    }

    pub async fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        self.api(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    pub async fn patch_status(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        self.api(kind)
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Replaces all resources by their manifests, or only removes their annotations. Skips
    /// resources that are being deleted.
    pub async fn rewrite(&self, replace: bool) -> Result<()> {
        for kind in ["Compute", "ProjectKey", "ReadReplicaSet"] {
            for object in self.list(kind).await? {
                let metadata = &object["metadata"];
                if metadata["deletionTimestamp"].is_null() {
                    self.rewrite_one(kind, name(&object), replace).await?;
                }
            }
        }
        Ok(())
    }

    async fn rewrite_one(&self, kind: &str, name: &str, replace: bool) -> Result<()> {
        let api = self.api(kind);
        for _ in 0..TRIES {
            let found = api
                .get_opt(name)
                .await?
                .filter(|object| object.metadata.deletion_timestamp.is_none());
            let Some(mut object) = found else {
                return Ok(());
            };
            let asked = object.annotations_mut().remove(names::ROTATE);
            object.metadata.annotations = None;
            object.metadata.managed_fields = None;
            if replace {
                object.metadata.finalizers = None;
            }
            match api.replace(name, &PostParams::default(), &object).await {
                // A concurrent write happened since the read.
                Err(kube::Error::Api(status)) if status.code == 409 => continue,
                other => drop(other?),
            }
            // The operator may not have seen the request for another key yet, so it is set again.
            if let Some(asked) = asked {
                let again = json!({"metadata": {"annotations": {names::ROTATE: asked}}});
                api.patch(name, &PatchParams::default(), &Patch::Merge(again))
                    .await?;
            }
            return Ok(());
        }
        Err(Error::new(format!(
            "{kind} {name} changes too often to be replaced"
        )))
    }

    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.api(kind)
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Deletes a resource once it has a finalizer. Without one, it would be gone before the next
    /// pass, and its compute forgotten (docs/guarantees.md, 2).
    pub async fn delete_held(&self, kind: &str, name: &str) -> Result<()> {
        let (api, begun) = (self.api(kind), Instant::now());
        while begun.elapsed() < PATIENCE {
            let Some(object) = api.get_opt(name).await? else {
                return Ok(());
            };
            let resource_version = object.metadata.resource_version;
            let as_seen = Preconditions {
                resource_version,
                uid: None,
            };
            if object
                .metadata
                .finalizers
                .is_some_and(|finalizers| !finalizers.is_empty())
            {
                match api
                    .delete(name, &DeleteParams::default().preconditions(as_seen))
                    .await
                {
                    // A concurrent write happened since the read.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    other => return Ok(other.map(drop)?),
                }
            }
            tokio::time::sleep(MOMENT).await;
        }
        Err(Error::new(format!(
            "{kind} {name} is not held by a finalizer in time"
        )))
    }

    pub async fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind).get_opt(name).await?;
        Ok(found.map(|object| json!(object)))
    }

    pub async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let listed = self.api(kind).list(&ListParams::default()).await?;
        Ok(listed
            .items
            .into_iter()
            .map(|object| json!(object))
            .collect())
    }
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
