//! Status, by server-side apply.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::decide::names::FIELD_MANAGER;

/// Writes the whole status of `object`; fields that are not given are removed.
pub async fn apply_status<K, S>(api: &Api<K>, object: &K, status: &S) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    S: Serialize,
{
    let body = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        // The UID keeps the status off an object of the same name that was created since.
        "metadata": {"name": object.name_any(), "uid": object.uid()},
        "status": status,
    });
    api.patch_status(&object.name_any(), &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(body)).await
}
