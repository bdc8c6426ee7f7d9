//! Writes the condition of a stored object that cannot be read, and keeps the rest of its status.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use kube::core::Request;
use serde_json::{Value, json};
use tracing::warn;

use crate::api::Condition;
use crate::cluster::{explained, is_unavailable};
use crate::controller::environment::Environment;
use crate::controller::live::Live;
use crate::controller::live::guarded::Invalid;
use crate::controller::live::stores::UnreadableObjects;
use crate::controller::object::Managed;
use crate::decide::names::FIELD_MANAGER;
use crate::decide::{Reason, Report};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Writes the condition. After a failure it retries as long as the object has the same error.
pub async fn report<K: Managed>(env: Arc<Live>, unreadable: UnreadableObjects, invalid: Invalid) {
    let (namespace, name) = (
        invalid.meta.namespace.as_deref(),
        invalid.meta.name.as_deref(),
    );
    let mut pause = FIRST_PAUSE;
    while unreadable.still(&invalid) {
        let Err(error) = write::<K>(&env, &invalid).await else {
            return;
        };
        warn!(kind = %K::kind(&()), namespace, name, error = explained(&error), "the condition of an object that cannot be read is not written yet");
        tokio::select! {
            () = env.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = if is_unavailable(&error) {
            FIRST_PAUSE
        } else {
            LONGEST_PAUSE.min(pause * 2)
        };
    }
}

async fn write<K: Managed>(
    env: &Live,
    Invalid { meta, error }: &Invalid,
) -> Result<(), kube::Error> {
    let requests = Request::new(K::url_path(&(), meta.namespace.as_deref()));
    let name = meta.name.as_deref().unwrap_or_default();
    // A list, because the operator may not get resources of every kind.
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    let listed = requests.list(&named).map_err(kube::Error::BuildRequest)?;
    let listed: Value = env.cluster.client().request(listed).await?;
    let found = &listed["items"][0];
    if found["metadata"]["uid"].as_str() != meta.uid.as_deref() {
        return Ok(());
    }
    let status = status(
        &found["status"],
        meta.generation.unwrap_or_default(),
        error,
        env,
    );
    if status == found["status"] {
        return Ok(());
    }
    // Server-side apply fails on an object that violates its definition; a merge patch passes.
    let body = Patch::Merge(json!({
        "metadata": {"uid": meta.uid, "resourceVersion": found["metadata"]["resourceVersion"]},
        "status": status,
    }));
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = requests
        .patch_subresource("status", name, &params, &body)
        .map_err(kube::Error::BuildRequest)?;
    env.cluster.client().request::<Value>(patch).await.map(drop)
}

/// The previous status with other conditions.
fn status(before: &Value, generation: i64, error: &str, env: &Live) -> Value {
    let conditions: Vec<Condition> =
        serde_json::from_value(before["conditions"].clone()).unwrap_or_default();
    let message = format!(
        "The stored object cannot be read: {error}. dbplane changes nothing that it has on the platform. Correct the field that is \
         named, with kubectl edit or by applying the manifest again."
    );
    let report = Report::stalled(Reason::Unreadable, message);
    let mut status = if before.is_object() {
        before.clone()
    } else {
        json!({})
    };
    status["conditions"] = json!(report.conditions(&conditions, generation, env.now()));
    status["observedGeneration"] = json!(generation);
    status
}
