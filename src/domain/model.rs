//! The platform's objects in domain terms. Decisions are based on them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::id::{BranchId, ComputeId, KeyId, OrganizationId, ProjectId};
use super::{ComputeState, ComputeUnits, Support};

/// A project, as the project list shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    pub id: ProjectId,
    pub name: Option<String>,
    pub organization_id: Option<OrganizationId>,
}

/// The role of a compute on its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// For writes; a branch has at most one.
    Primary,
    /// For reads; a branch may have several.
    Replica,
}

/// When a compute suspends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuspendAfter {
    /// The platform's default.
    Default,
    Never,
    /// After this many seconds without activity.
    Seconds(u32),
}

impl SuspendAfter {
    /// The platform's encoding: 0 is its default, a negative number is never.
    pub fn of_seconds(seconds: i64) -> Self {
        match seconds {
            0 => Self::Default,
            ..0 => Self::Never,
            _ => Self::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX)),
        }
    }
}

/// How the pooler shares connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PoolingMode {
    /// Assigns a server connection for one transaction.
    Transaction,
    /// Any other word of the platform.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for PoolingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transaction => "transaction",
            Self::Other(word) => word,
        })
    }
}

/// Parses the platform's word.
impl From<String> for PoolingMode {
    fn from(word: String) -> Self {
        if word == Self::Transaction.to_string() {
            Self::Transaction
        } else {
            Self::Other(word)
        }
    }
}

/// Database settings by name. Their values may be confidential, so they are not printed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PostgresSettings(pub BTreeMap<String, String>);

impl PostgresSettings {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The attributes of a compute that can be declared. `None` means "not reported" in a snapshot, and
/// "do not change" in a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<ComputeUnits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<ComputeUnits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_after: Option<SuspendAfter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler_mode: Option<PoolingMode>,
    /// Database settings by name. A change declares only those it names, but sends the whole
    /// resulting map.
    #[serde(skip_serializing_if = "PostgresSettings::is_empty")]
    pub postgres: PostgresSettings,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passwordless_access: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

impl Settings {
    /// Sets what a change contains. Its database settings replace all others, as on the platform.
    pub fn set(&mut self, change: &Self) {
        let Self {
            min,
            max,
            suspend_after,
            pooler_enabled,
            pooler_mode,
            postgres,
            passwordless_access,
            disabled,
        } = change.clone();
        self.min = min.or(self.min);
        self.max = max.or(self.max);
        self.suspend_after = suspend_after.or(self.suspend_after);
        self.pooler_enabled = pooler_enabled.or(self.pooler_enabled);
        self.pooler_mode = pooler_mode.or_else(|| self.pooler_mode.take());
        self.passwordless_access = passwordless_access.or(self.passwordless_access);
        self.disabled = disabled.or(self.disabled);
        if !postgres.is_empty() {
            self.postgres = postgres;
        }
    }
}

/// A compute, as the list of computes shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compute {
    pub id: ComputeId,
    pub project_id: ProjectId,
    pub branch_id: BranchId,
    /// The platform's identifier of its region.
    pub region: Option<String>,
    pub role: Role,
    pub host: Option<String>,
    /// The host of the connection pooler in front of it, if the platform shows one.
    pub pooled_host: Option<String>,
    pub name: Option<String>,
    pub current_state: ComputeState,
    /// The state that the platform is changing it to.
    pub pending_state: Option<ComputeState>,
    pub settings: Settings,
    pub last_active: Option<Timestamp>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    /// The features of the platform that this reading shows.
    pub support: Support,
}

impl Compute {
    /// The current or pending state, if dbplane does not know it.
    pub fn unknown_state(&self) -> Option<&ComputeState> {
        [Some(&self.current_state), self.pending_state.as_ref()]
            .into_iter()
            .flatten()
            .find(|state| !state.is_known())
    }
}

/// A compute to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCompute {
    pub branch_id: BranchId,
    pub role: Role,
    /// The mark that identifies the create; only if the platform shows names.
    pub name: Option<String>,
    pub settings: Settings,
}

/// The attributes of a compute to change. `None` or empty attributes are not sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeChange {
    pub branch_id: Option<BranchId>,
    pub settings: Settings,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub id: String,
    pub compute_id: Option<ComputeId>,
    pub action: String,
    pub status: String,
    /// Number of failures so far.
    pub failures: Option<u32>,
    pub error: Option<String>,
}

/// A key in the answer to its create. The secret is shown only this once.
#[derive(Clone, Debug)]
pub struct CreatedKey {
    pub id: KeyId,
    pub name: String,
    pub secret: SecretString,
    pub created_at: Option<Timestamp>,
    pub created_by: Option<String>,
    pub project_id: Option<ProjectId>,
}

/// A key in the list of keys, if the platform offers one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    pub id: KeyId,
    pub name: String,
    pub project_id: Option<ProjectId>,
    pub created_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub last_used_from: Option<String>,
}
