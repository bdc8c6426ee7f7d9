//! Start-up: wait for what is missing, say what that is, never crash over it.

use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::kind::Managed;
use crate::api::{Account, ClusterAccount, Compute, ProjectKey};
use crate::telemetry::Readiness;

const PAUSE: Duration = Duration::from_secs(2);

/// Waits until the API server serves all custom resources in `namespace`, or everywhere; `false` when stopped before.
pub async fn wait_for_resources(
    client: &Client,
    namespace: Option<&str>,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> bool {
    let mut said = String::new();
    loop {
        let missing = missing(client, namespace).await;
        readiness.only(&missing);
        if missing.is_empty() {
            info!("the API server serves all resources");
            return true;
        }
        let text = missing.join("; ");
        if text != said {
            warn!(missing = text, "waiting");
            said = text;
        }
        tokio::select! {
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn missing(client: &Client, namespace: Option<&str>) -> Vec<String> {
    let (accounts, computes, keys) = match namespace {
        Some(namespace) => (
            Api::<Account>::namespaced(client.clone(), namespace),
            Api::<Compute>::namespaced(client.clone(), namespace),
            Api::<ProjectKey>::namespaced(client.clone(), namespace),
        ),
        None => (Api::all(client.clone()), Api::all(client.clone()), Api::all(client.clone())),
    };
    let cluster_accounts = Api::<ClusterAccount>::all(client.clone());
    let answers =
        [served(&accounts).await, served(&cluster_accounts).await, served(&computes).await, served(&keys).await];
    let mut missing: Vec<String> = answers.into_iter().flatten().collect();
    missing.dedup();
    missing
}

/// Why the resources of a kind cannot be listed.
async fn served<K: Managed>(api: &Api<K>) -> Option<String> {
    let plural = K::plural(&());
    match api.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Some(format!("the CustomResourceDefinition {plural}.dbplane.dev (kubectl apply -k crds/)"))
        }
        Err(kube::Error::Api(status)) => Some(format!("permission to list {plural} ({})", status.message)),
        Err(error) => Some(format!("the API server ({error})")),
    }
}
