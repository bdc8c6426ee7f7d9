//! Recognizes the kind of a key, and what it may do, as far as reads show.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::domain::{Fault, KeyEntry, Listed, Project};

/// The kinds of the platform's API keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyKind {
    /// It can access everything that its user can.
    Personal,
    /// It can access all projects of one organization.
    Organization,
    /// It can access one project.
    ProjectScoped,
    /// Reads do not show the kind.
    #[default]
    Unknown,
}

/// The reads that show the kind.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The projects, from requests that name the organization.
    pub named: &'a Result<Listed<Project>, Fault>,
    /// The projects, from a request that names no organization. `None` if there is no organization
    /// to name.
    pub unnamed: Option<&'a Result<Listed<Project>, Fault>>,
    /// The keys of the organization, if there is one.
    pub keys: Option<&'a Result<Listed<KeyEntry>, Fault>>,
    /// True if the computes of all checked projects could be read, and at least one project was
    /// checked.
    pub reads_computes: bool,
}

impl Seen<'_> {
    /// A personal key can access an organization's projects only in requests that name it. Other
    /// kinds need no name.
    pub fn kind(&self) -> KeyKind {
        let refused =
            |fault: &Fault| fault.is_refusal() && !matches!(fault, Fault::Unauthorized { .. });
        match (self.named, self.unnamed) {
            (Ok(named), Some(Ok(unnamed))) => self.kind_by_lists(&ids(named), &ids(unnamed)),
            (Ok(named), Some(Err(fault))) if refused(fault) && named.count() > 0 => {
                KeyKind::Personal
            }
            // On some platforms only project-scoped keys cannot list projects.
            (Err(fault), _) if refused(fault) && self.reads_computes => KeyKind::ProjectScoped,
            _ => KeyKind::Unknown,
        }
    }

    fn kind_by_lists(&self, named: &BTreeSet<&str>, unnamed: &BTreeSet<&str>) -> KeyKind {
        let needs_no_name = named.is_subset(unnamed);
        match (needs_no_name, self.keys, named.len()) {
            (false, _, _) => KeyKind::Personal,
            (true, Some(Ok(_)), 1..) | (true, _, 2..) => KeyKind::Organization,
            (
                true,
                Some(Err(
                    Fault::Forbidden { .. } | Fault::NotFound { .. } | Fault::Rejected { .. },
                )),
                1,
            ) => KeyKind::ProjectScoped,
            _ => KeyKind::Unknown,
        }
    }

    /// What a key of this kind may do, for users.
    pub fn may(&self, kind: KeyKind) -> Vec<String> {
        let kind_text = match kind {
            KeyKind::Personal => "personal: it reaches what its person reaches",
            KeyKind::Organization => "an organization's: it reaches all of its projects",
            KeyKind::ProjectScoped => "scoped to one project",
            KeyKind::Unknown if self.unnamed.is_none() => {
                "not known: name the organization, which tells the kinds apart"
            }
            KeyKind::Unknown => "not known: what it reads is what several kinds read",
        };
        let computes = match self.reads_computes {
            true => "their list can be read; whether it may create and change them was not tried",
            false => "no list of computes could be read",
        };
        let keys = match (kind, self.keys) {
            (KeyKind::Personal, Some(Ok(_))) => {
                "probably: it lists the organization's keys, as an administrator's does"
            }
            (KeyKind::Personal, Some(Err(Fault::Unsupported { .. }))) | (KeyKind::Unknown, _) => {
                "not known: the platform demands the personal key of an administrator of the organization"
            }
            (KeyKind::Personal, Some(Err(_))) => {
                "no: its person is no administrator of the organization"
            }
            (KeyKind::Personal, None) => "not known: name the organization",
            (KeyKind::Organization | KeyKind::ProjectScoped, _) => {
                "no: the platform demands the personal key of an administrator of the organization"
            }
        };
        vec![
            format!("kind of key: {kind_text}"),
            format!("Computes: {computes}"),
            format!("ProjectKeys: {keys}"),
        ]
    }
}

fn ids(projects: &Listed<Project>) -> BTreeSet<&str> {
    projects
        .shown()
        .iter()
        .map(|project| project.id.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projects(ids: &[&str]) -> Result<Listed<Project>, Fault> {
        Ok(ids
            .iter()
            .map(|id| Project {
                id: (*id).to_owned(),
                ..Project::default()
            })
            .collect())
    }

    fn refused() -> Fault {
        Fault::Forbidden {
            status: 403,
            message: String::new(),
        }
    }

    #[test]
    fn the_kind_is_told_by_what_needs_the_name_of_the_organization() {
        let not_offered = || Fault::Unsupported {
            status: 404,
            message: String::new(),
        };
        let unauthorized = || Fault::Unauthorized {
            message: String::new(),
        };
        let both = &["a", "b"][..];
        for (named, unnamed, keys, expected) in [
            (
                projects(both),
                projects(&["a"]),
                Ok(Listed::default()),
                KeyKind::Personal,
            ),
            (
                projects(both),
                Err(refused()),
                Err(refused()),
                KeyKind::Personal,
            ),
            (
                projects(both),
                projects(both),
                Ok(Listed::default()),
                KeyKind::Organization,
            ),
            (
                projects(both),
                projects(both),
                Err(not_offered()),
                KeyKind::Organization,
            ),
            (
                projects(&["a"]),
                projects(&["a"]),
                Ok(Listed::default()),
                KeyKind::Organization,
            ),
            (
                projects(&["a"]),
                projects(&["a"]),
                Err(refused()),
                KeyKind::ProjectScoped,
            ),
            (
                projects(&["a"]),
                projects(&["a"]),
                Err(not_offered()),
                KeyKind::Unknown,
            ),
            (
                Err(refused()),
                Err(refused()),
                Err(refused()),
                KeyKind::ProjectScoped,
            ),
            (
                projects(&[]),
                projects(&[]),
                Ok(Listed::default()),
                KeyKind::Unknown,
            ),
            (
                Err(unauthorized()),
                Err(unauthorized()),
                Err(unauthorized()),
                KeyKind::Unknown,
            ),
        ] {
            let seen = Seen {
                named: &named,
                unnamed: Some(&unnamed),
                keys: Some(&keys),
                reads_computes: true,
            };
            assert_eq!(seen.kind(), expected, "{seen:?}");
        }
        let (named, keys) = (projects(both), Ok(Listed::default()));
        let seen = Seen {
            named: &named,
            unnamed: None,
            keys: Some(&keys),
            reads_computes: true,
        };
        assert_eq!(seen.kind(), KeyKind::Unknown);
    }

    #[test]
    fn only_the_personal_key_of_an_administrator_creates_keys() {
        let named = projects(&["a", "b"]);
        for (kind, keys, begins) in [
            (
                KeyKind::Personal,
                Ok(Listed::default()),
                "ProjectKeys: probably",
            ),
            (KeyKind::Personal, Err(refused()), "ProjectKeys: no"),
            (
                KeyKind::Organization,
                Ok(Listed::default()),
                "ProjectKeys: no",
            ),
            (KeyKind::ProjectScoped, Err(refused()), "ProjectKeys: no"),
            (
                KeyKind::Unknown,
                Ok(Listed::default()),
                "ProjectKeys: not known",
            ),
        ] {
            let seen = Seen {
                named: &named,
                unnamed: None,
                keys: Some(&keys),
                reads_computes: true,
            };
            let may = seen.may(kind);
            assert!(may[2].starts_with(begins), "{may:?}");
        }
    }
}
