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
pub struct KeyReads<'a> {
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

impl KeyReads<'_> {
    /// A personal key can access an organization's projects only in requests that name it. Other
    /// kinds need no name.
    pub fn kind(&self) -> KeyKind {
        match (self.named, self.unnamed) {
            (Ok(named), Some(Ok(unnamed))) => self.kind_by_lists(&ids(named), &ids(unnamed)),
            (Ok(named), Some(Err(fault))) if is_request_refused(fault) && named.count() > 0 => {
                KeyKind::Personal
            }
            // On some platforms only project-scoped keys cannot list projects.
            (Err(fault), _) if is_request_refused(fault) && self.reads_computes => {
                KeyKind::ProjectScoped
            }
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

    /// The rights of a key of this kind, for users.
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
        let computes = if self.reads_computes {
            "their list can be read; whether it may create and change them was not tried"
        } else {
            "no list of computes could be read"
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

/// True if the platform accepts the key and refuses the request.
fn is_request_refused(fault: &Fault) -> bool {
    fault.is_refusal() && !matches!(fault, Fault::Unauthorized { .. })
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
                id: (*id).into(),
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

    fn not_offered() -> Fault {
        Fault::Unsupported {
            status: 404,
            message: String::new(),
        }
    }

    fn unauthorized() -> Fault {
        Fault::Unauthorized {
            message: String::new(),
        }
    }

    const BOTH: &[&str] = &["a", "b"];

    fn kind(
        named: Result<Listed<Project>, Fault>,
        unnamed: Result<Listed<Project>, Fault>,
        keys: Result<Listed<KeyEntry>, Fault>,
    ) -> KeyKind {
        let reads = KeyReads {
            named: &named,
            unnamed: Some(&unnamed),
            keys: Some(&keys),
            reads_computes: true,
        };
        reads.kind()
    }

    #[test]
    fn the_lists_of_projects_show_the_kind() {
        let all_keys = || Ok(Listed::default());
        assert_eq!(
            kind(projects(BOTH), projects(&["a"]), all_keys()),
            KeyKind::Personal
        );
        assert_eq!(
            kind(projects(BOTH), Err(refused()), Err(refused())),
            KeyKind::Personal
        );
        assert_eq!(
            kind(projects(BOTH), projects(BOTH), all_keys()),
            KeyKind::Organization
        );
        assert_eq!(
            kind(projects(BOTH), projects(BOTH), Err(not_offered())),
            KeyKind::Organization
        );
        assert_eq!(
            kind(Err(refused()), Err(refused()), Err(refused())),
            KeyKind::ProjectScoped
        );
        assert_eq!(
            kind(projects(&[]), projects(&[]), all_keys()),
            KeyKind::Unknown
        );
        assert_eq!(
            kind(
                Err(unauthorized()),
                Err(unauthorized()),
                Err(unauthorized())
            ),
            KeyKind::Unknown
        );
    }

    #[test]
    fn with_a_single_project_the_list_of_keys_shows_the_kind() {
        for (keys, expected) in [
            (Ok(Listed::default()), KeyKind::Organization),
            (Err(refused()), KeyKind::ProjectScoped),
            (Err(not_offered()), KeyKind::Unknown),
        ] {
            let found = kind(projects(&["a"]), projects(&["a"]), keys.clone());
            assert_eq!(found, expected, "{keys:?}");
        }
    }

    #[test]
    fn the_kind_is_unknown_without_a_request_that_names_no_organization() {
        let (named, keys) = (projects(BOTH), Ok(Listed::default()));
        let reads = KeyReads {
            named: &named,
            unnamed: None,
            keys: Some(&keys),
            reads_computes: true,
        };
        assert_eq!(reads.kind(), KeyKind::Unknown);
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
            let reads = KeyReads {
                named: &named,
                unnamed: None,
                keys: Some(&keys),
                reads_computes: true,
            };
            let may = reads.may(kind);
            assert!(may[2].starts_with(begins), "{may:?}");
        }
    }
}
