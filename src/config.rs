//! Settings from flags and environment variables, passed by reference.

use std::time::Duration;

use crate::decide::Limits;
use crate::decide::names::ClusterId;
use crate::platform::{Platforms, Reach};

#[derive(Clone, Debug)]
pub struct OperatorSettings {
    /// The hosts that accounts may use.
    pub reach: Reach,
    /// The base URLs that lead to the same platform.
    pub platforms: Platforms,
    /// The namespaces to watch; all if empty.
    pub watch_namespaces: Vec<String>,
    /// Further namespaces whose Secrets are watched, because ClusterAccounts have their credentials
    /// there.
    pub credentials_namespaces: Vec<String>,
    /// True if ClusterAccounts are read.
    pub cluster_accounts: bool,
    /// The identity of this cluster in the names of keys and computes. By default it comes from the
    /// UID of namespace kube-system.
    pub cluster_id: Option<ClusterId>,
    /// Timeout of one request to the platform.
    pub request_timeout: Duration,
    /// Number of resources of a kind that are reconciled at the same time, for each account and
    /// namespace.
    pub concurrency: u16,
    /// Memory limit in bytes for the platform lists of one namespace's Accounts together.
    pub list_memory: usize,
    /// The time limits that decisions use.
    pub limits: Limits,
    /// The name of this process in events and in the Lease.
    pub identity: String,
}
