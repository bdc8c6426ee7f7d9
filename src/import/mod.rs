//! From what exists on the platform, or stands in a state of Terraform, to the manifests that declare it as it is. The same computes
//! always give the same files, byte for byte.

mod files;
mod manifest;
mod names;
pub mod terraform;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::{AccountRef, Deletion, Management};
use crate::domain::{self, KeyEntry, Role, Settings};
use crate::validate::Checker;

pub use files::{File, FileRole};
pub use text::quoted;

/// What the manifests say beside what the computes are.
#[derive(Clone, Debug)]
pub struct Choices {
    pub account: AccountRef,
    /// What `metadata.namespace` is; left out where there is none.
    pub namespace: Option<String>,
    pub management: Management,
    pub deletion: Deletion,
    /// Also the fields that a fresh compute has.
    pub all_fields: bool,
}

/// A compute to declare.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub id: String,
    pub project: String,
    pub branch: String,
    pub role: Role,
    pub name: Option<String>,
    pub created_at: Option<Timestamp>,
    pub settings: Settings,
    /// For who reads the manifest, a line each.
    pub notes: Vec<String>,
}

impl From<domain::Compute> for Found {
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

/// An API key of one project, which cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub project: String,
    pub name: String,
    pub id: String,
    /// Its address in a state of Terraform: a ProjectKey that replaces it is written.
    pub address: Option<String>,
}

impl Key {
    /// `None` for a key of the whole organization.
    pub fn of(entry: KeyEntry) -> Option<Self> {
        Some(Self { project: entry.project_id?, name: entry.name, id: entry.id.to_string(), address: None })
    }
}

/// Everything that is to be declared.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    pub computes: Vec<Found>,
    pub keys: Vec<Key>,
    /// Names that other resources have.
    pub taken: BTreeSet<String>,
    /// What the uppermost file says, a line each.
    pub preface: Vec<String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Import {
    pub files: Vec<File>,
    /// How many computes are declared.
    pub computes: usize,
    /// How many projects have a folder.
    pub projects: usize,
    /// What could not be declared, and why.
    pub undeclared: Vec<String>,
}

/// Declares everything.
pub fn import(subjects: &Subjects, choices: &Choices, checker: &Checker) -> Import {
    let names = names::assign(&subjects.computes, &subjects.taken);
    let mut import = Import::default();
    let mut projects = BTreeMap::<&str, files::Project>::new();
    for found in &subjects.computes {
        let name = names.get(&found.id).map_or(found.id.as_str(), String::as_str);
        match manifest::of_compute(found, name, choices, checker) {
            Ok(text) => {
                import.computes += 1;
                projects.entry(&found.project).or_default().computes.insert(name.to_owned(), text);
            }
            Err(problems) => import.undeclared.push(format!("compute {}: {problems}", text::line(&found.id))),
        }
    }
    let key_names = names::of_keys(&subjects.keys);
    for (key, name) in subjects.keys.iter().zip(&key_names) {
        let Some(address) = &key.address else {
            // The keys of a project that nothing is declared of are nobody's concern.
            projects.get_mut(key.project.as_str()).into_iter().for_each(|project| project.keys.push(key.clone()));
            continue;
        };
        match manifest::of_key(key, name, address, choices, checker) {
            Ok(text) => {
                projects.entry(&key.project).or_default().replacements.insert(name.clone(), text);
            }
            Err(problems) => import.undeclared.push(format!("key {}: {problems}", text::line(&key.name))),
        }
    }
    import.projects = projects.len();
    import.files = files::layout(&projects, &subjects.preface);
    import
}

#[cfg(test)]
mod tests;
