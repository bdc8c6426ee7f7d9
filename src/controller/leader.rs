//! Leader election: one process at a time acts, told by a Lease.

use kube::Client;
use kube_lease_manager::LeaseManagerBuilder;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

const LEASE: &str = "dbplane";
/// Seconds that a lease is valid, and how much earlier it is renewed; docs/decisions say how the settle time follows.
const DURATION: u64 = 15;
const GRACE: u64 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_secs(2);

/// Waits for the lead; `None` when stopped before. What is returned ends when the lead is lost, and gives it up when dropped.
pub async fn lead(client: &Client, identity: &str, stop: &CancellationToken) -> Option<Lead> {
    loop {
        let manager = LeaseManagerBuilder::new(client.clone(), LEASE)
            .with_namespace(client.default_namespace())
            .with_identity(identity)
            .with_duration(DURATION)
            .with_grace(GRACE)
            .build();
        match manager.await {
            Ok(manager) => {
                let (mut state, task) = manager.watch().await;
                info!(lease = LEASE, "waiting for the lead");
                let led = tokio::select! {
                    () = stop.cancelled() => return None,
                    led = state.wait_for(|led| *led) => led.is_ok(),
                };
                if led {
                    info!("leading");
                    return Some(Lead { state, task });
                }
            }
            Err(error) => warn!(%error, "the lease cannot be used"),
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// The lead.
#[derive(Debug)]
pub struct Lead {
    state: tokio::sync::watch::Receiver<bool>,
    task: tokio::task::JoinHandle<kube_lease_manager::Result<kube_lease_manager::LeaseManager>>,
}

impl Lead {
    /// Returns when the lead is lost.
    pub async fn lost(&self) {
        // An error is a closed channel: the manager is gone, and so is the lead.
        let _ = self.state.clone().wait_for(|led| !*led).await;
    }

    /// Gives the lead up, so that a successor need not wait for the lease to run out.
    pub async fn release(self) {
        drop(self.state);
        if let Ok(Err(error)) = self.task.await {
            warn!(%error, "the lease could not be released");
        }
    }
}
