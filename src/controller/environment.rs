//! The two traits that a pass uses: `Kind` defines the work for one kind of resource, `Environment`
//! provides everything outside of it. The operator, `dbplane plan`, the model checker and the
//! property tests have their own environments and run the same passes.

mod effects;
mod kind;
mod ports;

use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use secrecy::SecretString;
use thiserror::Error;

pub use self::effects::{Effects, Observation, observed};
pub use self::kind::{Change, Kind, KindVisitor, Kinds, Relations, account_of, keys, wake_by};
pub use self::ports::{ListFaults, Lists, Objects};
use super::labels;
use super::object::{AccountName, Managed};
use super::state::{AccountConnection, ProcessState};
use crate::api::PlatformAccess;
use crate::cluster::{Cluster, explained};
use crate::decide::memory::ActionProblem;
use crate::decide::names::{AccountFinalizers, ClusterId};
use crate::decide::seal::InvalidAnnotation;
use crate::decide::{Action, Limits};
use crate::domain::Fault;
use crate::platform::{ConnectError, PlatformClient, Platforms, Tick};
use crate::telemetry::metrics::{CreateOutcome, KeyChange};

/// Everything outside of a pass: time, randomness, the cluster, the platform, the memory of this
/// process, and, as `Objects` and `Lists`, what was read of the cluster and of the platform.
pub trait Environment: Objects + Lists<Self::Client> + Send + Sync + 'static {
    type Client: PlatformClient;
    type Cluster: Cluster;
    type Kinds: Kinds;

    fn now(&self) -> Timestamp;
    /// A random number, for unique names.
    fn random(&self) -> u32;
    /// The current tick. A snapshot shows a write only if it began after the write's tick.
    fn tick(&self) -> Tick;
    fn settings(&self) -> &PassSettings;
    fn state(&self) -> &ProcessState<Self::Client>;
    fn cluster(&self) -> &Self::Cluster;

    /// A client of the platform with this API key. `name` is the account that it belongs to.
    fn connect(
        &self,
        name: &AccountName,
        access: &PlatformAccess,
        key: &SecretString,
    ) -> Result<Self::Client, ConnectError>;
    /// Waits for room in the account's budget for one call, and returns a client for that call.
    /// `None` if the process stops first.
    fn admit(
        &self,
        client: &Self::Client,
        call: AdmittedCall,
    ) -> impl Future<Output = Result<Option<Self::Client>, Fault>> + Send;

    /// Records something that a pass did for `object`, for the metrics.
    fn record<K: Managed>(&self, _object: &K, _occurrence: Occurrence<'_>) {}
}

/// A call that needs room in the account's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmittedCall {
    Change,
    KeyCreation,
}

/// Something that a pass did.
#[derive(Debug)]
pub enum Occurrence<'a> {
    /// A create on the platform ended.
    Create(CreateOutcome),
    /// A deletion on the platform begins.
    Deletion,
    /// A declared field is restored that something else had changed.
    Corrected {
        field: &'a str,
    },
    KeyChanged(KeyChange),
    StepFailed {
        action: Action,
        problem: &'a ActionProblem,
    },
}

#[derive(Clone, Debug)]
pub struct PassSettings {
    pub limits: Limits,
    /// The timeout of one request to the platform.
    pub request_timeout: Duration,
    /// The base URLs that lead to the same platform.
    pub platforms: Platforms,
    /// The ID of this cluster in the names of keys and computes.
    pub cluster: ClusterId,
    /// The watched namespaces; empty means all.
    pub namespaces: Vec<String>,
    pub cluster_accounts: bool,
}

impl PassSettings {
    /// The name of the platform that a connection leads to, as records contain it.
    pub fn platform<P>(&self, connection: &AccountConnection<P>) -> String {
        self.platforms.of(&connection.access.base_url)
    }

    /// How long after it was recorded a call may still be sent.
    pub fn slack(&self) -> Duration {
        self.limits.settle.saturating_sub(self.request_timeout)
    }

    /// True if other operators may manage the object too. Each operator knows only the resources in
    /// its own namespaces.
    pub fn is_shared<K: Resource>(&self, object: &K) -> bool {
        object.meta().namespace.is_none() && !self.namespaces.is_empty()
    }

    pub fn finalizers<K: Resource>(&self, account: &K) -> AccountFinalizers {
        if self.is_shared(account) {
            AccountFinalizers::confined_to(&self.namespaces)
        } else {
            AccountFinalizers::whole()
        }
    }
}

/// Why a step could not be performed.
#[derive(Debug, Error)]
pub enum StepError {
    /// The step was refused or failed. The failure is remembered, and the next decision uses it.
    #[error("{}", labels::text(.1))]
    Failed(Action, ActionProblem),
    /// The API server was unavailable or refused.
    #[error("the API server: {}", explained(.0))]
    Cluster(kube::Error),
    /// The record of the resource cannot be read any more.
    #[error("the record of the resource cannot be read")]
    Record(InvalidAnnotation),
}

impl From<InvalidAnnotation> for StepError {
    fn from(invalid: InvalidAnnotation) -> Self {
        Self::Record(invalid)
    }
}

impl From<kube::Error> for StepError {
    fn from(error: kube::Error) -> Self {
        Self::Cluster(error)
    }
}
