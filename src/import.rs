//! Writes manifests that declare the current state of the platform or of a Terraform state. The
//! same computes always give the same files, byte for byte.

mod files;
mod manifest;
mod names;
pub mod terraform;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::{AccountRef, Deletion, Management};
use crate::domain::{self, BranchId, ComputeId, KeyEntry, ProjectId, Role, Settings};
use crate::validate::Checker;

pub use files::{File, FileRole};

/// The contents of the manifests that do not come from the computes.
#[derive(Clone, Debug)]
pub struct Choices {
    pub account: AccountRef,
    /// The value of `metadata.namespace`, which is left out if this is `None`.
    pub namespace: Option<String>,
    pub management: Management,
    pub deletion: Deletion,
    /// Also declare fields with the values of a new compute.
    pub all_fields: bool,
}

/// A compute to declare.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundCompute {
    pub id: ComputeId,
    pub project: ProjectId,
    pub branch: BranchId,
    pub role: Role,
    pub name: Option<String>,
    pub created_at: Option<Timestamp>,
    pub settings: Settings,
    /// Notes for the reader of the manifest, one per line.
    pub notes: Vec<String>,
}

impl From<domain::Compute> for FoundCompute {
    fn from(compute: domain::Compute) -> Self {
        Self {
            id: compute.id,
            project: compute.project_id,
            branch: compute.branch_id,
            role: compute.role,
            name: compute.name.filter(|name| !name.is_empty()),
            created_at: compute.created_at,
            settings: compute.settings,
            notes: Vec::new(),
        }
    }
}

/// An API key of one project. It cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundKey {
    pub project: ProjectId,
    pub name: String,
    pub id: String,
    /// Its address in a Terraform state. A ProjectKey that replaces it is then written.
    pub address: Option<String>,
}

impl FoundKey {
    /// `None` for a key of the whole organization.
    pub fn of(entry: KeyEntry) -> Option<Self> {
        Some(Self {
            project: entry.project_id?,
            name: entry.name,
            id: entry.id.to_string(),
            address: None,
        })
    }
}

/// The objects to declare.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    pub computes: Vec<FoundCompute>,
    pub keys: Vec<FoundKey>,
    /// Names that other resources already use.
    pub taken: BTreeSet<String>,
    /// Notes at the top of the first file, one per line.
    pub preface: Vec<String>,
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Import {
    pub files: Vec<File>,
    /// Number of declared computes.
    pub computes: usize,
    /// Number of projects with a directory.
    pub projects: usize,
    /// Objects that could not be declared, with the reasons.
    pub undeclared: Vec<String>,
}

pub fn import(subjects: &Subjects, choices: &Choices, checker: &Checker) -> Import {
    let names = names::assign(&subjects.computes, &subjects.taken);
    let mut import = Import::default();
    let mut projects = BTreeMap::<&ProjectId, files::ProjectFolder>::new();
    for found in &subjects.computes {
        let name = names
            .get(&found.id)
            .map_or(found.id.as_str(), String::as_str);
        match manifest::of_compute(found, name, choices, checker) {
            Ok(text) => {
                import.computes += 1;
                projects
                    .entry(&found.project)
                    .or_default()
                    .computes
                    .insert(name.to_owned(), text);
            }
            Err(problems) => import
                .undeclared
                .push(format!("compute {}: {problems}", text::line(&found.id))),
        }
    }
    let key_names = names::of_keys(&subjects.keys);
    for (key, name) in subjects.keys.iter().zip(&key_names) {
        let Some(address) = &key.address else {
            // Keys matter only in projects with declared resources.
            projects
                .get_mut(&key.project)
                .into_iter()
                .for_each(|project| project.keys.push(key.clone()));
            continue;
        };
        match manifest::of_key(key, name, address, choices, checker) {
            Ok(text) => {
                projects
                    .entry(&key.project)
                    .or_default()
                    .replacements
                    .insert(name.clone(), text);
            }
            Err(problems) => import
                .undeclared
                .push(format!("key {}: {problems}", text::line(&key.name))),
        }
    }
    import.projects = projects.len();
    import.files = files::layout(&projects, &subjects.preface);
    import
}

#[cfg(test)]
mod tests;
