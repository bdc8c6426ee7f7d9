//! Projects, and what the platform says of the credential.

use serde::Deserialize;

use super::{DecodeError, Entries, Page, Pagination, lenient, parse, texts};
use crate::domain::Project;

#[derive(Deserialize)]
struct ProjectList {
    projects: Entries<ProjectItem>,
    #[serde(default, deserialize_with = "lenient")]
    pagination: Option<Pagination>,
}

#[derive(Deserialize)]
struct ProjectItem {
    #[serde(default, deserialize_with = "texts::identifier")]
    id: Option<String>,
    #[serde(default, deserialize_with = "texts::shown")]
    name: Option<String>,
    #[serde(default, deserialize_with = "texts::identifier")]
    org_id: Option<String>,
}

/// The answer to GET /projects.
pub(in crate::platform::http) fn projects(body: &[u8]) -> Result<Page<Project>, DecodeError> {
    let list: ProjectList = parse(body)?;
    let items = list.projects.kept.into_iter().enumerate().map(|(index, item)| {
        Ok(Project {
            id: item.id.ok_or_else(|| DecodeError::missing(&format!("projects[{index}]"), "id"))?,
            name: item.name,
            organization_id: item.org_id,
        })
    });
    Ok(Page {
        items: items.collect::<Result<_, DecodeError>>()?,
        entries: list.projects.count,
        cursor: list.pagination.and_then(Pagination::cursor),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_needs_no_more_than_its_id() {
        let page =
            projects(br#"{"projects":[{"id":"a"},{"id":"b","name":null,"org_id":7,"new":{}}],"pagination":null}"#);
        let page = page.unwrap();
        assert_eq!(page.items.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(page.items[1].organization_id, None);
        assert_eq!(page.cursor, None);
    }

    #[test]
    fn both_names_of_the_cursor_are_read() {
        for (body, expected) in [
            (r#"{"projects":[],"pagination":{"cursor":"c"}}"#, Some("c")),
            (r#"{"projects":[],"pagination":{"next":"n"}}"#, Some("n")),
            (r#"{"projects":null,"pagination":{"cursor":""}}"#, None),
            (r#"{"projects":[],"pagination":[]}"#, None),
        ] {
            assert_eq!(projects(body.as_bytes()).unwrap().cursor.as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn a_missing_id_is_named_with_its_path() {
        let error = projects(br#"{"projects":[{"id":"a"},{"name":"b"}]}"#).unwrap_err();
        assert_eq!(error.path, "projects[1].id");
    }

    #[test]
    fn an_answer_without_a_list_is_not_an_empty_list() {
        for body in ["{}", "", "[]", "<html></html>", r#"{"projects":{}}"#] {
            assert!(projects(body.as_bytes()).is_err(), "{body}");
        }
    }
}
