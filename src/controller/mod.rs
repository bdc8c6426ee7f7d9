//! The controller: for each kind observe, decide, perform, record; and how they are started and stopped.

mod account;
mod account_view;
mod accounts;
mod any_account;
mod assembly;
mod compute;
mod creating;
mod dependents;
mod key;
mod kind;
mod leader;
mod reconcile;
mod relay;
mod run;
mod startup;
mod stores;
mod traces;
mod triggers;

use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

pub use run::{Operator, run};

use self::accounts::{AccountName, Accounts};
use self::creating::Creating;
use self::kind::StepError;
use self::stores::Stores;
use self::traces::{Traces, Unsaved};
use self::triggers::Triggers;
use crate::api::{AccountRef, Compute};
use crate::clock;
use crate::cluster::{Events, Secrets, WriteError};
use crate::config::Settings;
use crate::decide::memory::Problem;
use crate::decide::{Action, later};
use crate::platform::{Fault, Observers};
use crate::telemetry::Metrics;

/// What every pass has at hand.
pub struct Context {
    client: Client,
    settings: Settings,
    stores: Stores,
    accounts: Accounts,
    observers: Observers<ObjectRef<Compute>>,
    secrets: Secrets,
    events: Events,
    metrics: Arc<Metrics>,
    traces: Traces,
    unsaved: Unsaved,
    creating: Creating,
    triggers: Triggers,
    /// Set once all stores are filled; nothing is decided before.
    synced: CancellationToken,
    stop: CancellationToken,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Context {
    /// A resource no longer needs its account.
    fn account_may_go<K: ResourceExt>(&self, reference: &AccountRef, object: &K) {
        self.triggers.account(&AccountName::referred(reference, &object.namespace().unwrap_or_default()));
    }
}

impl Context {
    /// What `wait` comes to, unless the operator is stopped before.
    async fn unless_stopped<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            outcome = wait => Some(outcome),
            () = self.stop.cancelled() => None,
        }
    }

    /// A call that was recorded at `begun` must have ended when a successor takes its absence for a proof. Where recording
    /// it took too long it is not made.
    fn in_time(&self, action: Action, begun: Timestamp) -> Result<(), StepError> {
        let slack = self.settings.limits.settle.saturating_sub(self.settings.request_timeout);
        if clock::now() < later(begun, slack) {
            return Ok(());
        }
        let message = "recording the call took too long, so it was not made".to_owned();
        Err(StepError::Failed(action, Problem::Platform(Fault::Transport { message })))
    }
}

/// What the write of a Secret means for its resource: a conflict is looked at again, anything else is told.
fn secret_outcome(context: &Context, uid: &str, written: Result<(), WriteError>, name: &str) -> Result<(), StepError> {
    match written {
        Ok(()) => {
            context.traces.update(uid, |trace| trace.memory.succeeded(Action::WriteSecret));
            Ok(())
        }
        Err(WriteError::Cluster(kube::Error::Api(status))) if status.code == 409 => {
            Err(StepError::Cluster(kube::Error::Api(status)))
        }
        Err(WriteError::Cluster(kube::Error::Api(status))) => {
            let message = format!("Secret {name} could not be written: {}", status.message);
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
        Err(error) => {
            let message = format!("Secret {name} could not be written: {error}");
            Err(StepError::Failed(Action::WriteSecret, Problem::Secret(message)))
        }
    }
}
