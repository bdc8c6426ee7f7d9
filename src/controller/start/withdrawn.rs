//! Detects that the operator has lost all rights in a namespace. The Roles of an operator that is
//! confined to namespaces are deleted with their namespace, in any order. Its resources may then
//! still exist, and their finalizers block the namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::watcher;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::cluster::{Cluster, Event, explained};
use crate::controller::live::Live;
use crate::controller::rights::{self, Who};
use crate::decide::names::LEASE;

/// The API server is asked about one namespace at most this often, however often it refuses.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Lost rights may come back.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// True if a request was refused for a lack of rights.
pub fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Like `is_forbidden`, for a watch.
pub fn is_watch_forbidden(error: &watcher::Error) -> bool {
    use watcher::Error::{
        InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed,
    };
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            is_forbidden(error)
        }
        WatchError(status) => status.code == 403,
        NoResourceVersion => false,
    }
}

/// Checks for each namespace with a refused request whether all rights are gone there. Reports that
/// once.
pub async fn notice(
    env: Arc<Live>,
    mut refused: UnboundedReceiver<String>,
    stop: CancellationToken,
) {
    let mut notice = Notice {
        env,
        asked: BTreeMap::new(),
        gone: BTreeSet::new(),
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            namespace = refused.recv() => match namespace {
                Some(namespace) => notice.refused(namespace).await,
                None => return,
            },
            () = tokio::time::sleep(LOOK_AGAIN), if !notice.gone.is_empty() => notice.recheck().await,
        }
    }
}

struct Notice {
    env: Arc<Live>,
    /// When the API server was last asked about each namespace.
    asked: BTreeMap<String, Instant>,
    /// The namespaces in which the operator has no rights.
    gone: BTreeSet<String>,
}

impl Notice {
    async fn refused(&mut self, namespace: String) {
        let lately = self
            .asked
            .get(&namespace)
            .is_some_and(|asked| asked.elapsed() < ASK_AGAIN);
        if lately
            || self.gone.contains(&namespace)
            || !self.env.settings.watch_namespaces.contains(&namespace)
        {
            return;
        }
        self.asked.insert(namespace.clone(), Instant::now());
        if self.are_gone(&namespace).await == Some(true) {
            self.tell(&namespace).await;
            self.gone.insert(namespace);
        }
    }

    async fn recheck(&mut self) {
        for namespace in self.gone.clone() {
            if self.are_gone(&namespace).await == Some(false) {
                info!(namespace, "the operator has rights in this namespace again");
                self.gone.remove(&namespace);
            }
        }
    }

    /// `None` if the API server does not say.
    async fn are_gone(&self, namespace: &str) -> Option<bool> {
        match rights::left(self.env.cluster.client(), Who::Me, namespace).await {
            Ok(left) => Some(left.is_empty()),
            Err(error) => {
                debug!(
                    error = explained(&error),
                    namespace, "the API server does not say which rights are left"
                );
                None
            }
        }
    }

    /// Reports in the operator's own namespace: it may no longer write in the other one.
    async fn tell(&self, namespace: &str) {
        let client = self.env.cluster.client();
        let own = client.default_namespace();
        let account = rights::service_account(client).await.ok().flatten();
        let account = account
            .filter(|(namespace, _)| namespace == own)
            .map(|(_, name)| name);
        let account = account
            .map(|name| format!(" --operator-service-account {name}"))
            .unwrap_or_default();
        let text = format!(
            "The operator has no rights in namespace {namespace} any more, and does nothing for its resources. Give it its Roles again. \
             If the namespace is being deleted, this lists what its resources have on the platform, and with --yes takes their finalizers off: \
             dbplane remove-finalizers -n {namespace} --operator-namespace {own}{account}"
        );
        warn!(namespace, "{text}");
        let leases: Api<Lease> = Api::default_namespaced(client.clone());
        match leases.get_opt(LEASE).await {
            Ok(Some(lease)) => {
                self.env
                    .cluster
                    .publish(&lease, &Event::warning("RightsGone", text))
                    .await
            }
            // Without leader election there is no Lease.
            Ok(None) => {}
            Err(error) => debug!(
                error = explained(&error),
                "the Lease that events are about cannot be read"
            ),
        }
    }
}
