//! Starting and stopping: what is missing is waited for, then the lead, then everything runs until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::assembly::Assembly;
use super::key::flush;
use super::{leader, startup};
use crate::config::Settings;
use crate::telemetry::{Metrics, Readiness};

/// How long keys that are not in their Secrets yet are tried to be saved when the operator stops.
const FLUSH_GRACE: Duration = Duration::from_secs(25);

/// What the operator runs with.
pub struct Operator {
    pub client: Client,
    pub settings: Settings,
    pub leader_elect: bool,
    pub readiness: Readiness,
    pub metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Runs until `stop`, or until the lead is lost; whether it ended because it was told to.
pub async fn run(operator: Operator, stop: CancellationToken) -> bool {
    let namespace = operator.settings.watch_namespaces.first().map(String::as_str);
    if !startup::wait_for_resources(&operator.client, namespace, &operator.readiness, &stop).await {
        return true;
    }
    if !operator.leader_elect {
        control(operator, stop).await;
        return true;
    }
    let Some(lead) = leader::lead(&operator.client, &operator.settings.identity, &stop).await else { return true };
    let well = while_leading(operator, &lead, stop).await;
    lead.release().await;
    well
}

/// Nothing may be begun once another process may lead.
async fn while_leading(operator: Operator, lead: &leader::Lead, stop: CancellationToken) -> bool {
    let until = stop.child_token();
    let work = control(operator, until.clone());
    tokio::pin!(work);
    tokio::select! {
        () = &mut work => true,
        () = lead.lost() => {
            warn!("the lead is lost");
            until.cancel();
            work.await;
            false
        }
    }
}

/// Passes that are running when `stop` comes are ended; then what they left in memory is saved.
async fn control(operator: Operator, stop: CancellationToken) {
    let Operator { client, settings, readiness, metrics, .. } = operator;
    let assembly = Assembly::new(client, settings, metrics, &stop);
    let context = assembly.context.clone();
    assembly.run(&readiness, &stop).await;
    info!("no pass is running any more");
    flush(&context, FLUSH_GRACE).await;
    context.observers.shutdown().await;
}
