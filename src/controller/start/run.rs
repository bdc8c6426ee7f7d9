//! Runs the operator: waits for what is missing, then for the lead, then works until it is stopped.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::assembly::{Assembly, Inputs};
use super::leader::{Election, Lead, lead};
use super::waiting;
use crate::config::OperatorSettings;
use crate::controller::key::flush;
use crate::decide::names::ClusterId;
use crate::leadership::Leadership;
use crate::telemetry::{Metrics, Readiness};

/// How long the operator tries to save unsaved keys when it stops.
const FLUSH_GRACE: Duration = Duration::from_secs(25);

/// How much longer than one call to the platform a pass may take to end when the operator stops. An
/// API server that does not answer must not use up the time for saving keys.
const PASS_GRACE: Duration = Duration::from_secs(3);

/// The inputs of the operator.
pub struct Operator {
    pub client: Client,
    pub settings: OperatorSettings,
    /// `None` if every process may act.
    pub election: Option<Election>,
    pub readiness: Readiness,
    pub metrics: Arc<Metrics>,
    /// The clock of decisions.
    pub clock: fn() -> Timestamp,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Runs until `stop`. An error says why it ended earlier.
pub async fn run(operator: Operator, stop: CancellationToken) -> Result<(), String> {
    let Some(cluster) = prepared(&operator, &stop).await? else {
        return Ok(());
    };
    let Some(election) = &operator.election else {
        let leadership = Leadership::default();
        operator.metrics.leads_while(leadership.clone());
        control(operator, cluster, leadership, stop).await;
        return Ok(());
    };
    let Some(lead) = lead(election, &operator.settings.identity, &stop).await else {
        return Ok(());
    };
    operator.metrics.leads_while(lead.leadership.clone());
    let well = while_leading(operator, cluster, &lead, stop).await;
    lead.release().await;
    if well {
        Ok(())
    } else {
        Err("the lead was lost".to_owned())
    }
}

/// Waits for what is missing. Returns the ID of this cluster, or `None` if the operator is stopped
/// before it is known.
async fn prepared(
    operator: &Operator,
    stop: &CancellationToken,
) -> Result<Option<ClusterId>, String> {
    let Operator {
        client,
        settings,
        readiness,
        ..
    } = operator;
    if !waiting::wait_for_resources(client, settings, readiness, stop).await {
        return Ok(None);
    }
    match &settings.cluster_id {
        Some(given) => Ok(Some(given.clone())),
        None => {
            waiting::cluster_id(
                client,
                !settings.watch_namespaces.is_empty(),
                readiness,
                stop,
            )
            .await
        }
    }
}

/// Runs while this process leads. Nothing may begin once another process may lead.
async fn while_leading(
    operator: Operator,
    cluster: ClusterId,
    lead: &Lead,
    stop: CancellationToken,
) -> bool {
    let until = stop.child_token();
    let work = control(operator, cluster, lead.leadership.clone(), until.clone());
    tokio::pin!(work);
    tokio::select! {
        () = &mut work => true,
        () = lead.lost() => {
            until.cancel();
            work.await;
            false
        }
    }
}

/// Runs until `stop`. Then the running passes end, and the keys that they left in memory are saved.
async fn control(
    operator: Operator,
    cluster: ClusterId,
    leadership: Leadership,
    stop: CancellationToken,
) {
    let Operator {
        client,
        settings,
        readiness,
        metrics,
        clock,
        ..
    } = operator;
    let longest = settings.request_timeout.saturating_add(PASS_GRACE);
    let inputs = Inputs {
        client,
        settings,
        cluster,
        metrics,
        leadership,
        clock,
    };
    let assembly = Assembly::new(inputs, &stop);
    let env = assembly.env.clone();
    tokio::select! {
        () = assembly.run(&readiness, &stop) => info!("no pass is running any more"),
        () = overdue(&stop, longest) => warn!("passes are still waiting for an answer and are left, as a crash would leave them"),
    }
    // No pass writes any more. Unsaved keys are saved also by a process that has lost the lead.
    env.leadership.end();
    flush(env.as_ref(), FLUSH_GRACE).await;
    tokio::join!(env.observers.shutdown(), env.key_observers.shutdown());
}

/// Returns `time` after `stop`.
async fn overdue(stop: &CancellationToken, time: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(time).await;
}
