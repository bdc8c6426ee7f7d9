//! Start-up waits for what is missing and reports it, but never crashes over it.

use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cluster::explained;
use crate::config::OperatorSettings;
use crate::controller::environment::{Kind, KindVisitor, Kinds};
use crate::controller::object::Managed;
use crate::controller::registry::AllKinds;
use crate::decide::names::ClusterId;
use crate::telemetry::Readiness;

const PAUSE: Duration = Duration::from_secs(2);

/// Waits until the API server serves all custom resources that the operator reads; `false` if
/// stopped first.
pub async fn wait_for_resources(
    client: &Client,
    settings: &OperatorSettings,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> bool {
    let mut waiting = Waiting {
        readiness,
        stop,
        last_logged: String::new(),
    };
    loop {
        let missing = missing(client, settings).await;
        if missing.is_empty() {
            readiness.only(&[]);
            info!("the API server serves all resources");
            return true;
        }
        if !waiting.pause(&missing).await {
            return false;
        }
    }
}

/// The ID of this cluster in names: the start of the UID of namespace kube-system, which lives as
/// long as the cluster. An operator that is `confined` to namespaces may lack the right to read it,
/// and then fails with a message that says what to do. `None` if stopped first.
pub async fn cluster_id(
    client: &Client,
    confined: bool,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> Result<Option<ClusterId>, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut waiting = Waiting {
        readiness,
        stop,
        last_logged: String::new(),
    };
    loop {
        let error = match namespaces.get_metadata("kube-system").await {
            Ok(found) => match found.metadata.uid.as_deref().and_then(ClusterId::of_uid) {
                Some(cluster) => {
                    readiness.only(&[]);
                    info!(%cluster, "the id of this cluster, a part of the names of its keys and computes");
                    return Ok(Some(cluster));
                }
                None => "it has no UID".to_owned(),
            },
            Err(kube::Error::Api(status)) if status.code == 403 && confined => {
                return Err(format!(
                    "--cluster-id is needed, as namespace kube-system cannot be read: {}",
                    status.message
                ));
            }
            Err(error) => explained(&error),
        };
        let missing =
            format!("the UID of namespace kube-system ({error}), or --cluster-id in its place");
        if !waiting.pause(&[missing]).await {
            return Ok(None);
        }
    }
}

struct Waiting<'a> {
    readiness: &'a Readiness,
    stop: &'a CancellationToken,
    last_logged: String,
}

impl Waiting<'_> {
    /// Reports what is missing, once, and waits a little; `false` if stopped meanwhile.
    async fn pause(&mut self, missing: &[String]) -> bool {
        self.readiness.only(missing);
        let text = missing.join("; ");
        if text != self.last_logged {
            warn!(missing = text, "waiting");
            self.last_logged = text;
        }
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(PAUSE) => true,
        }
    }
}

async fn missing(client: &Client, settings: &OperatorSettings) -> Vec<String> {
    let mut checks = Checks {
        client,
        settings,
        running: Vec::new(),
    };
    AllKinds::each(&mut checks);
    let mut missing: Vec<String> = join_all(checks.running)
        .await
        .into_iter()
        .flatten()
        .collect();
    missing.dedup();
    missing
}

/// Checks that the API server serves each kind.
struct Checks<'a> {
    client: &'a Client,
    settings: &'a OperatorSettings,
    running: Vec<BoxFuture<'static, Option<String>>>,
}

impl KindVisitor for Checks<'_> {
    fn visit<K: Kind>(&mut self) {
        if !K::Object::is_namespaced() && !self.settings.cluster_accounts {
            return;
        }
        let namespace = self.settings.watch_namespaces.first().map(String::as_str);
        self.running
            .push(not_served(K::Object::api::<K::Object>(self.client, namespace)).boxed());
    }
}

/// Why the resources of a kind cannot be listed.
async fn not_served<K: Managed>(api: Api<K>) -> Option<String> {
    let plural = K::plural(&());
    match api.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.code == 404 => Some(format!(
            "the CustomResourceDefinition {plural}.dbplane.dev (kubectl apply -k crds/)"
        )),
        Err(kube::Error::Api(status)) => {
            Some(format!("permission to list {plural} ({})", status.message))
        }
        Err(error) => Some(format!("the API server ({})", explained(&error))),
    }
}
