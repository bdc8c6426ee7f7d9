//! Leader election: one process at a time acts, told by a Lease.

use std::time::Duration;

use kube::Client;
use kube_lease_manager::LeaseManagerBuilder;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

const LEASE: &str = "dbplane";
/// How long a lease is valid. A successor makes no change before it has expired. The settle time has to be longer.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How much earlier it is renewed.
const GRACE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_secs(2);

/// Waits for the lead; `None` when stopped before. What is returned ends when the lead is lost.
pub async fn lead(client: &Client, identity: &str, stop: &CancellationToken) -> Option<Lead> {
    info!(lease = LEASE, "waiting for the lead");
    loop {
        match contend(client, identity, stop).await {
            Ok(lead) => {
                info!("leading");
                return Some(lead);
            }
            Err(error) if !stop.is_cancelled() => warn!(error, "the lease cannot be used"),
            Err(_) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn contend(client: &Client, identity: &str, stop: &CancellationToken) -> Result<Lead, String> {
    let manager = LeaseManagerBuilder::new(client.clone(), LEASE)
        .with_namespace(client.default_namespace())
        .with_identity(identity)
        .with_duration(LEASE_DURATION.as_secs())
        .with_grace(GRACE.as_secs())
        .build();
    let (mut state, task) = manager.await.map_err(|error| error.to_string())?.watch().await;
    tokio::select! {
        () = stop.cancelled() => return Err("the operator is stopping".to_owned()),
        led = state.wait_for(|led| *led) => { led.map_err(|error| error.to_string())?; }
    }
    Ok(Lead { state, task })
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
