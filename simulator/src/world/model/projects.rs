//! Projects and their branches.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Compute;
use crate::world::sizes::Range;

/// The owner of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    User(String),
    Organization(String),
}

impl Owner {
    /// The id of the user or organization.
    pub fn id(&self) -> &str {
        match self {
            Owner::User(id) | Owner::Organization(id) => id,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Project {
    pub id: String,
    pub name: String,
    pub owner: Owner,
    pub region_id: String,
    pub platform_id: String,
    pub provisioner: String,
    pub pg_version: u32,
    pub locked: bool,
    /// Compute seconds, weighted by size.
    pub cpu_used_sec: u64,
    /// In MiB.
    pub branch_logical_size_limit: u64,
    pub branches: BTreeMap<String, Branch>,
    /// Every branch has this database. Older state files have neither this nor the settings.
    #[serde(default)]
    pub database: Database,
    pub defaults: ComputeDefaults,
    /// Settings that are stored and returned without any other effect.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
    pub maintenance: Maintenance,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Project {
    /// The parent of new branches that name none.
    pub fn default_branch(&self) -> Option<&Branch> {
        self.branches.values().find(|branch| branch.default)
    }
}

/// A deleted project during its recovery period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeletedProject {
    pub project: Project,
    pub computes: Vec<Compute>,
    pub at: Timestamp,
    pub recoverable_until: Timestamp,
}

impl Project {
    /// The reason why a branch cannot be deleted, if any.
    pub fn why_kept(&self, branch: &Branch) -> Option<&'static str> {
        let is_parent = self
            .branches
            .values()
            .any(|other| other.parent.as_ref() == Some(&branch.id));
        // Branches of a schema alone, and branches declared beside the root, have no parent either.
        let of_nothing = |other: &&Branch| other.parent.is_none() && other.origin.source.is_none();
        let root = self
            .branches
            .values()
            .filter(of_nothing)
            .max_by_key(|other| other.default);
        let is_root = root.is_some_and(|root| root.id == branch.id);
        match (branch.default, is_root, branch.protected, is_parent) {
            (true, _, _, _) => Some("the default branch"),
            (_, true, _, _) => Some("the root branch"),
            (_, _, true, _) => Some("a protected branch"),
            (_, _, _, true) => Some("a branch with children"),
            (false, false, false, false) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Database {
    pub name: String,
    pub role: String,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            name: "app".to_owned(),
            role: "app_owner".to_owned(),
        }
    }
}

/// Defaults for new computes of a project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComputeDefaults {
    pub range: Option<Range>,
    /// Seconds; 0 is the platform's default, -1 is never.
    pub suspend_timeout_seconds: i64,
}

/// The maintenance times of a project's computes, as the API writes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Maintenance {
    pub window: Option<MaintenanceWindow>,
    /// As the platform prints it, e.g. `2025-02-07T07:00`; this is not RFC 3339.
    pub scheduled_for: Option<String>,
}

/// Weekdays are 1 (Monday) to 7; times are `HH:MM` in UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceWindow {
    pub weekdays: Vec<u8>,
    pub start_time: String,
    pub end_time: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    pub id: String,
    pub name: String,
    pub parent: Option<String>,
    /// The project's default branch; initially the root.
    pub default: bool,
    /// A protected branch cannot be deleted. In the public profile, neither can its computes.
    pub protected: bool,
    pub created_at: Timestamp,
    /// Older state files lack the following fields.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
    #[serde(default)]
    pub origin: Origin,
    #[serde(default)]
    pub expiry: Option<Expiry>,
    /// The last time that the branch took data of another branch or of an earlier time.
    #[serde(default)]
    pub reset_at: Option<Timestamp>,
}

impl Branch {
    /// A branch with its id as name and defaults for the rest.
    pub fn new(id: String, created_at: Timestamp) -> Self {
        Self {
            name: id.clone(),
            id,
            parent: None,
            default: false,
            protected: false,
            created_at,
            updated_at: None,
            origin: Origin::default(),
            expiry: None,
            reset_at: None,
        }
    }

    pub fn changed_at(&self) -> Timestamp {
        self.updated_at.unwrap_or(self.created_at)
    }
}

/// The part of its parent that a branch began with; it has at most one point in time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub lsn: Option<String>,
    pub timestamp: Option<Timestamp>,
    /// As the request named it, e.g. `schema-only`.
    pub source: Option<String>,
}

/// The expiration of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expiry {
    pub at: Timestamp,
    /// Seconds from setting it to the expiration; a reset of the branch starts them again.
    pub seconds: i64,
}
