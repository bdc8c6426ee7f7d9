//! The controller: for each kind observe, decide, perform, record; and how they are started and stopped.

mod account;
mod account_view;
mod accounts;
mod any_account;
mod assembly;
mod brake;
mod compute;
mod creating;
mod dependents;
mod hands;
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
mod under_way;

use std::sync::Arc;

use kube::Client;
use kube::runtime::reflector::ObjectRef;
use tokio_util::sync::CancellationToken;

pub use compute::{Seen, ids as compute_ids, learn as learn_compute, perform as perform_compute, secret_view};
pub use creating::{Creating, Place, Turn};
pub use hands::{Hands, Usable};
pub use key::{key_listing, key_secret_view, perform as perform_key, secret_contents, write_unsaved};
pub use kind::{Managed, StepError};
pub use run::{Operator, run};
pub use traces::{KeyTrace, Trace, Traces, Unsaved, UnsavedKey};

use self::accounts::Accounts;
use self::brake::Deletions;
use self::stores::Stores;
use self::triggers::Triggers;
use self::under_way::UnderWay;
use crate::api::Compute;
use crate::cluster::{Events, Secrets};
use crate::config::Settings;
use crate::decide::names::ClusterId;
use crate::platform::Observers;
use crate::telemetry::Metrics;

/// What every pass has at hand.
pub struct Context {
    client: Client,
    settings: Settings,
    stores: Stores,
    accounts: Accounts,
    observers: Observers<ObjectRef<Compute>>,
    secrets: Secrets,
    /// Which cluster this is, in the names of keys and computes.
    cluster: ClusterId,
    events: Events,
    metrics: Arc<Metrics>,
    traces: Traces,
    unsaved: Unsaved,
    creating: Creating,
    under_way: UnderWay,
    deletions: Deletions,
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
    /// What `wait` comes to, unless the operator is stopped before.
    async fn unless_stopped<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            outcome = wait => Some(outcome),
            () = self.stop.cancelled() => None,
        }
    }
}
