//! The world file: the objects that exist when a simulated platform first starts.

use serde::Deserialize;
use thiserror::Error;

use crate::world::computes::sizes::{Plan, Range};
use crate::world::keys::secret::Token;
use crate::world::model::{ComputeKind, MaintenanceWindow, Role};
use crate::world::setup::settings::Settings;

/// A declared world. Unknown fields are rejected.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorldFile {
    pub settings: Settings,
    pub organizations: Vec<DeclaredOrganization>,
    pub users: Vec<DeclaredUser>,
    pub projects: Vec<DeclaredProject>,
    pub keys: Vec<DeclaredKey>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredOrganization {
    pub id: String,
    pub name: Option<String>,
    pub plan: Plan,
    #[serde(default)]
    pub members: Vec<DeclaredMember>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredMember {
    pub user: String,
    pub role: Role,
}

/// A user, with the plan of their personal projects.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredUser {
    pub id: String,
    pub name: Option<String>,
    pub email: Option<String>,
    #[serde(default = "free")]
    pub plan: Plan,
}

/// A project. The owner is the id of an organization or a user.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredProject {
    pub id: String,
    pub name: Option<String>,
    pub owner: String,
    pub region_id: Option<String>,
    pub platform_id: Option<String>,
    pub provisioner: Option<String>,
    pub pg_version: Option<u32>,
    #[serde(default)]
    pub locked: bool,
    /// In MiB.
    pub branch_logical_size_limit: Option<u64>,
    pub default_size: Option<Range>,
    #[serde(default)]
    pub default_suspend_timeout_seconds: i64,
    pub maintenance_window: Option<MaintenanceWindow>,
    pub maintenance_scheduled_for: Option<String>,
    #[serde(default)]
    pub branches: Vec<DeclaredBranch>,
    #[serde(default)]
    pub computes: Vec<DeclaredCompute>,
}

/// A branch. Without a marked one, the first branch is the default branch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredBranch {
    pub id: String,
    pub name: Option<String>,
    pub parent: Option<String>,
    /// A protected branch cannot be deleted. In the public profile, neither can its computes.
    #[serde(default)]
    pub protected: bool,
    #[serde(default)]
    pub default: bool,
}

/// A declared compute; it begins suspended unless it says `active`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredCompute {
    pub id: Option<String>,
    pub branch: String,
    #[serde(rename = "type", default = "read_write")]
    pub kind: ComputeKind,
    pub size: Option<Range>,
    pub suspend_timeout_seconds: Option<i64>,
    pub name: Option<String>,
    #[serde(default)]
    pub active: bool,
    #[serde(default)]
    pub disabled: bool,
}

/// A key. Personal keys belong to a user, all others to an organization.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredKey {
    #[serde(rename = "type")]
    pub kind: DeclaredKeyKind,
    pub owner: String,
    pub name: String,
    /// For a project-scoped key.
    pub project: Option<String>,
    /// The token of the key; if absent, it is random and cannot be used.
    pub token: Option<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeclaredKeyKind {
    Personal,
    Organization,
    Project,
}

fn free() -> Plan {
    Plan::Free
}

fn read_write() -> ComputeKind {
    ComputeKind::ReadWrite
}

/// An error in a world file, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
pub struct WorldFileError {
    /// e.g. `projects[0].branches[2].parent`.
    pub path: String,
    pub message: String,
}

pub(in crate::world) fn fault<T>(
    path: impl Into<String>,
    message: impl Into<String>,
) -> Result<T, WorldFileError> {
    Err(WorldFileError {
        path: path.into(),
        message: message.into(),
    })
}

impl WorldFile {
    /// Parses a world file. [`crate::world::World::new`] checks the references in it.
    pub fn parse(yaml: &str) -> Result<Self, WorldFileError> {
        let mut found = None;
        let outcome = serde_saphyr::with_deserializer_from_str(yaml, |deserializer| {
            match serde_path_to_error::deserialize(deserializer) {
                Ok(file) => Ok(file),
                Err(error) => {
                    found = Some(error.path().to_string());
                    Err(error.into_inner())
                }
            }
        });
        outcome.map_err(|error| WorldFileError {
            path: found.unwrap_or_else(|| ".".to_owned()),
            message: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_path() {
        let cases = [
            (
                "projects: [{id: p, owner: o, colour: red}]",
                "projects[0].colour",
            ),
            ("settings: {start_ms: soon}", "settings.start_ms"),
            (
                "organizations: [{id: o, plan: gold}]",
                "organizations[0].plan",
            ),
            (
                "projects: [{id: p, owner: o, default_size: {min: 0.3, max: 1}}]",
                "projects[0].default_size.min",
            ),
        ];
        for (yaml, path) in cases {
            assert_eq!(WorldFile::parse(yaml).unwrap_err().path, path, "{yaml}");
        }
    }
}
