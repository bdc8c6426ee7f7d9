//! Manifests of the scenarios. The account reference is added where they are created.

use serde_json::{Value, json};

use super::platform::{ADMIN, ORGANIZATION, PROJECT};

pub fn compute(name: &str, branch: &str, role: &str) -> Value {
    let spec = json!({"projectID": PROJECT, "branchID": branch, "type": role});
    json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Compute", "metadata": {"name": name}, "spec": spec})
}

pub fn key(name: &str) -> Value {
    let spec = json!({"projectID": PROJECT, "keyName": name, "secret": {"name": key_secret(name)}});
    json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "ProjectKey", "metadata": {"name": name}, "spec": spec})
}

pub fn replica_set(name: &str, branch: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"projectID": PROJECT, "branchID": branch}});
    let spec =
        json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "ReadReplicaSet", "metadata": {"name": name}, "spec": spec})
}

/// Name of the Secret of a ProjectKey.
pub fn key_secret(name: &str) -> String {
    format!("{name}-key")
}

/// Merges fields into the spec of a manifest.
pub fn with(mut manifest: Value, more: &Value) -> Value {
    for (field, value) in more.as_object().into_iter().flatten() {
        manifest["spec"][field] = value.clone();
    }
    manifest
}

pub fn secret(name: &str, entry: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"api-key": entry}})
}

pub fn credentials() -> Value {
    secret("platform-api-key", ADMIN)
}

pub fn account(base_url: &str) -> Value {
    let spec = json!({
        "baseURL": base_url, "organizationID": ORGANIZATION, "pollInterval": "5s",
        "apiKeySecretRef": {"name": "platform-api-key"},
    });
    json!({"apiVersion": "dbplane.dev/v1alpha1", "kind": "Account", "metadata": {"name": "prod"}, "spec": spec})
}

/// A ClusterAccount for one namespace, with its credentials in another.
pub fn cluster_account(name: &str, base_url: &str, credentials: &str) -> Value {
    let mut manifest = account(base_url);
    manifest["kind"] = json!("ClusterAccount");
    manifest["metadata"]["name"] = json!(name);
    manifest["spec"]["apiKeySecretRef"]["namespace"] = json!(credentials);
    manifest["spec"]["namespaces"] = json!({"names": [name]});
    manifest
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
