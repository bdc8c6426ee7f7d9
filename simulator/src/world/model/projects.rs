//! Projects and their branches.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Compute;
use crate::world::sizes::Range;

/// Who a project belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    User(String),
    Organization(String),
}

impl Owner {
    /// The owner's id, of either kind.
    pub fn id(&self) -> &str {
        match self {
            Owner::User(id) | Owner::Organization(id) => id,
        }
    }
}

/// A project and its branches.
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
    /// Seconds of computing, weighted by size.
    pub cpu_used_sec: u64,
    /// In MiB.
    pub branch_logical_size_limit: u64,
    pub branches: BTreeMap<String, Branch>,
    /// What every branch has one of. State files of before have neither this nor the settings.
    #[serde(default)]
    pub database: Database,
    pub defaults: ComputeDefaults,
    /// Settings that are stored and shown, and have no other effect.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
    pub maintenance: Maintenance,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Project {
    /// The branch where a new one begins that names no parent.
    pub fn default_branch(&self) -> Option<&Branch> {
        self.branches.values().find(|branch| branch.default)
    }
}

/// A deleted project, as long as it can be recovered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeletedProject {
    pub project: Project,
    pub computes: Vec<Compute>,
    pub at: Timestamp,
    pub recoverable_until: Timestamp,
}

impl Project {
    /// Why a branch cannot go, if there is a reason.
    pub fn why_kept(&self, branch: &Branch) -> Option<&'static str> {
        let is_parent = self.branches.values().any(|other| other.parent.as_ref() == Some(&branch.id));
        // What was made of a schema alone, or declared beside the root, has no parent either.
        let of_nothing = |other: &&Branch| other.parent.is_none() && other.origin.source.is_none();
        let root = self.branches.values().filter(of_nothing).max_by_key(|other| other.default);
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

/// A database and the role that owns it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Database {
    pub name: String,
    pub role: String,
}

impl Default for Database {
    fn default() -> Self {
        Self { name: "app".to_owned(), role: "app_owner".to_owned() }
    }
}

/// What a new compute of a project gets when the request is silent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComputeDefaults {
    pub range: Option<Range>,
    /// Seconds; 0 is the platform's default, -1 is never.
    pub suspend_timeout_seconds: i64,
}

/// When the platform updates a project's computes. Times are as the API writes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Maintenance {
    pub window: Option<MaintenanceWindow>,
    /// As the platform prints it, e.g. `2025-02-07T07:00`: not RFC 3339.
    pub scheduled_for: Option<String>,
}

/// Weekdays are 1 (Monday) to 7; the times are `HH:MM` in UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceWindow {
    pub weekdays: Vec<u8>,
    pub start_time: String,
    pub end_time: String,
}

/// A branch of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    pub id: String,
    pub name: String,
    pub parent: Option<String>,
    /// The project's default branch; it begins as the root.
    pub default: bool,
    /// A protected branch cannot be deleted; in the public profile, its computes neither.
    pub protected: bool,
    pub created_at: Timestamp,
    /// State files of before do not have what follows.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
    #[serde(default)]
    pub origin: Origin,
    #[serde(default)]
    pub expiry: Option<Expiry>,
    /// When it last took the data of another branch, or of an earlier time.
    #[serde(default)]
    pub reset_at: Option<Timestamp>,
}

impl Branch {
    /// A branch that has its id for a name, and nothing special about it.
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

    /// When it last changed.
    pub fn changed_at(&self) -> Timestamp {
        self.updated_at.unwrap_or(self.created_at)
    }
}

/// What of its parent a branch began with; at most one point in time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub lsn: Option<String>,
    pub timestamp: Option<Timestamp>,
    /// As the request named it, e.g. `schema-only`.
    pub source: Option<String>,
}

/// When a branch is deleted by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expiry {
    pub at: Timestamp,
    /// How far away that was when it was set: so far away it is again after a reset.
    pub seconds: i64,
}
