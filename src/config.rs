//! Settings, from flags and environment; passed by reference.

use std::time::Duration;

use crate::decide::Limits;
use crate::decide::names::ClusterId;
use crate::platform::{Platforms, Reach};

/// How the operator runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where accounts may lead.
    pub reach: Reach,
    /// Which base URLs lead to one platform.
    pub platforms: Platforms,
    /// The namespaces to watch; empty means all.
    pub watch_namespaces: Vec<String>,
    /// Beside them: where ClusterAccounts have their credentials, of which changes are noticed.
    pub credentials_namespaces: Vec<String>,
    /// Whether ClusterAccounts are read.
    pub cluster_accounts: bool,
    /// Which cluster this is, in the names of keys and computes; by the UID of namespace kube-system where absent.
    pub cluster_id: Option<ClusterId>,
    /// How long one request to the platform may take.
    pub request_timeout: Duration,
    /// How many resources of a kind are reconciled at the same time, for each account and namespace.
    pub concurrency: u16,
    /// Bytes that the platform lists of one namespace's Accounts may take together.
    pub list_memory: usize,
    /// The times that decisions rest on.
    pub limits: Limits,
    /// Who this process is, in events and in the lease.
    pub identity: String,
}
