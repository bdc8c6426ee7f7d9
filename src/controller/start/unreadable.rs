//! What a stored object that cannot be read is told: a condition, beside what its status said before.

use std::sync::Arc;

use kube::api::{ListParams, Patch, PatchParams};
use kube::core::Request;
use serde_json::{Value, json};
use tracing::debug;

use super::super::environment::Environment;
use super::super::live::Live;
use super::super::object::Managed;
use crate::api::{Condition, ObjectMeta};
use crate::decide::names::FIELD_MANAGER;
use crate::decide::{Reason, Report};

/// Writes the condition. Where the API server does not take it, the log line has to do.
pub async fn report<K: Managed>(env: Arc<Live>, meta: ObjectMeta, error: String) {
    if let Err(refused) = write::<K>(&env, &meta, &error).await {
        let (kind, namespace, name) = (K::kind(&()), meta.namespace.as_deref(), meta.name.as_deref());
        debug!(%kind, namespace, name, %refused, "the condition of an object that cannot be read was not written");
    }
}

async fn write<K: Managed>(env: &Live, meta: &ObjectMeta, error: &str) -> Result<(), kube::Error> {
    let requests = Request::new(K::url_path(&(), meta.namespace.as_deref()));
    let name = meta.name.as_deref().unwrap_or_default();
    // The operator has the right to list its resources, and needs none to get one.
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let listed = requests.list(&named).map_err(kube::Error::BuildRequest)?;
    let listed: Value = env.cluster.client().request(listed).await?;
    let found = &listed["items"][0];
    if found["metadata"]["uid"].as_str() != meta.uid.as_deref() {
        return Ok(());
    }
    let status = status(&found["status"], meta.generation.unwrap_or_default(), error, env);
    if status == found["status"] {
        return Ok(());
    }
    // Server-side apply fails on an object that does not fit its definition; a merge patch passes.
    let body = Patch::Merge(json!({
        "metadata": {"uid": meta.uid, "resourceVersion": found["metadata"]["resourceVersion"]},
        "status": status,
    }));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = requests.patch_subresource("status", name, &params, &body).map_err(kube::Error::BuildRequest)?;
    env.cluster.client().request::<Value>(patch).await.map(drop)
}

/// The status as it was, with other conditions.
fn status(before: &Value, generation: i64, error: &str, env: &Live) -> Value {
    let conditions: Vec<Condition> = serde_json::from_value(before["conditions"].clone()).unwrap_or_default();
    let message = format!(
        "The stored object cannot be read: {error}. What it has on the platform is left as it is. Correct the field that is \
         named, with kubectl edit or by applying the manifest again."
    );
    let report = Report::stalled(Reason::Unreadable, message);
    let mut status = if before.is_object() { before.clone() } else { json!({}) };
    status["conditions"] = json!(report.conditions(&conditions, generation, env.now()));
    status
}
