//! Lays out the files: a kustomization, a directory for each project, and a file for each resource.

use std::collections::BTreeMap;

use super::{FoundKey, text};
use crate::decide::names::Mark;
use crate::domain::ProjectId;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the target directory.
    pub path: String,
    pub text: String,
    pub role: FileRole,
}

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// A resource that changes nothing on the platform when it is applied unchanged.
    Resource,
    /// A ProjectKey whose apply creates a key, so the kustomization names it only in a comment.
    Replacement,
    Kustomization,
}

/// The resources of one project.
#[derive(Debug, Default)]
pub struct ProjectFolder {
    /// By the name of the resource.
    pub computes: BTreeMap<String, String>,
    pub replacements: BTreeMap<String, String>,
    pub keys: Vec<FoundKey>,
}

/// The directory of replacements within a project's directory.
const KEYS: &str = "keys";

/// All files, in a stable order.
pub fn layout(projects: &BTreeMap<&ProjectId, ProjectFolder>, preface: &[String]) -> Vec<File> {
    let folders = projects.keys().map(ToString::to_string);
    let mut files = vec![kustomization("", &text::comment(preface), folders, "")];
    for (id, project) in projects {
        let mut others = project.keys.clone();
        others.sort();
        let commented: String = project
            .replacements
            .keys()
            .map(|name| format!("# - {KEYS}/{name}.yaml\n"))
            .collect();
        let resources = project.computes.keys().map(|name| format!("{name}.yaml"));
        files.push(kustomization(
            id,
            &about_keys(&others, project),
            resources,
            &commented,
        ));
        files.extend(project.computes.iter().map(|(name, text)| File {
            path: format!("{id}/{name}.yaml"),
            text: text.clone(),
            role: FileRole::Resource,
        }));
        files.extend(project.replacements.iter().map(|(name, text)| File {
            path: format!("{id}/{KEYS}/{name}.yaml"),
            text: text.clone(),
            role: FileRole::Replacement,
        }));
    }
    files
}

fn kustomization(
    folder: &str,
    above: &str,
    resources: impl Iterator<Item = String>,
    below: &str,
) -> File {
    let listed: String = resources
        .map(|resource| format!("- {resource}\n"))
        .collect();
    let resources = if listed.is_empty() {
        "resources: []\n".to_owned()
    } else {
        format!("resources:\n{listed}")
    };
    let path = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    File {
        path: format!("{path}kustomization.yaml"),
        text: format!(
            "{above}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n{resources}{below}"
        ),
        role: FileRole::Kustomization,
    }
}

fn about_keys(keys: &[FoundKey], project: &ProjectFolder) -> String {
    let mut lines = Vec::new();
    if !keys.is_empty() {
        lines.extend([
            "API keys of this project. The platform shows a key once, when it is created: none of them can be imported.".to_owned(),
            "For each one that is still used: apply a ProjectKey, have what uses the key read the Secret of the ProjectKey,".to_owned(),
            "and then revoke the key in the console (docs/guide/import.md).".to_owned(),
        ]);
        lines.extend(keys.iter().map(|key| {
            let by = Mark::of(&key.name).map_or("", |_| ", which dbplane created for a ProjectKey");
            format!("  {} (id {}){by}", key.name, key.id)
        }));
    }
    if !project.replacements.is_empty() {
        lines.push(
            "Each of the files in the comments below creates a key when it is applied: read it first.".to_owned(),
        );
    }
    text::comment(lines)
}
