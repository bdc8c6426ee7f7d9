//! The objects of one namespace, read and written by the administrator, past the proxy.

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::support::{Error, Result, objects};

#[derive(Clone)]
pub struct Objects {
    client: Client,
    pub namespace: String,
}

impl Objects {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        objects(&self.client, &self.namespace, kind)
    }

    pub async fn create(&self, manifest: &Value) -> Result<()> {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let object: DynamicObject =
            serde_json::from_value(manifest.clone()).map_err(Error::while_doing("reading a manifest"))?;
        self.api(kind).create(&PostParams::default(), &object).await?;
        Ok(())
    }

    pub async fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.api(kind).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub async fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = self.api(kind).get_opt(name).await?;
        Ok(found.map(|object| json!(object)))
    }

    pub async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let listed = self.api(kind).list(&ListParams::default()).await?;
        Ok(listed.items.into_iter().map(|object| json!(object)).collect())
    }
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
