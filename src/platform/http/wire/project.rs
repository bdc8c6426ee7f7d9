//! The wire format of projects.

use serde::Deserialize;

use super::{DecodeError, DecodedList, ListEntry, ListPage, Pagination, lenient, parse, texts};
use crate::domain::{BranchId, OrganizationId, Project, ProjectId};

#[derive(Deserialize)]
struct ProjectList {
    projects: DecodedList<Project>,
    #[serde(default, deserialize_with = "lenient")]
    pagination: Option<Pagination>,
}

#[derive(Deserialize)]
pub(super) struct ProjectItem {
    #[serde(default, deserialize_with = "texts::identifier")]
    id: Option<ProjectId>,
    #[serde(default, deserialize_with = "texts::shown")]
    name: Option<String>,
    #[serde(default, deserialize_with = "texts::identifier")]
    org_id: Option<OrganizationId>,
}

impl ListEntry for Project {
    type Wire = ProjectItem;

    fn of(item: ProjectItem) -> Result<Self, &'static str> {
        Ok(Self {
            id: item.id.ok_or("id")?,
            name: item.name,
            organization_id: item.org_id,
        })
    }
}

/// The answer to GET /projects.
pub(in crate::platform::http) fn projects(body: &[u8]) -> Result<ListPage<Project>, DecodeError> {
    let list: ProjectList = parse(body)?;
    Ok(ListPage::of(list.projects, list.pagination))
}

#[derive(Deserialize)]
struct BranchList {
    branches: DecodedList<BranchId>,
    #[serde(default, deserialize_with = "lenient")]
    pagination: Option<Pagination>,
}

#[derive(Deserialize)]
pub(super) struct BranchItem {
    #[serde(default, deserialize_with = "texts::identifier")]
    id: Option<BranchId>,
}

impl ListEntry for BranchId {
    type Wire = BranchItem;

    fn of(item: BranchItem) -> Result<Self, &'static str> {
        item.id.ok_or("id")
    }
}

/// The answer to GET /projects/{project_id}/branches.
pub(in crate::platform::http) fn branches(body: &[u8]) -> Result<ListPage<BranchId>, DecodeError> {
    let list: BranchList = parse(body)?;
    Ok(ListPage::of(list.branches, list.pagination))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_needs_no_more_than_its_id() {
        let page =
            projects(br#"{"projects":[{"id":"a"},{"id":"b","name":null,"org_id":7,"new":{}}],"pagination":null}"#);
        let page = page.unwrap();
        assert_eq!(
            page.items.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(),
            ["a", "b"]
        );
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
            assert_eq!(
                projects(body.as_bytes()).unwrap().cursor.as_deref(),
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn a_project_without_its_id_is_told_and_the_others_are_read() {
        let page = projects(
            br#"{"projects":[{"id":"a"},{"name":"b"},{"id":7},{"id":"c","org_id":"No Org"}]}"#,
        )
        .unwrap();
        let unreadable: Vec<_> = page.unreadable.iter().map(ToString::to_string).collect();
        let without_id = "one whose identifier cannot be read (id)";
        assert_eq!((page.items.len(), page.entries), (1, 4));
        assert_eq!(unreadable, [without_id, without_id, "c (org_id)"]);
    }

    #[test]
    fn an_answer_without_a_list_is_not_an_empty_list() {
        for body in ["{}", "", "[]", "<html></html>", r#"{"projects":{}}"#] {
            assert!(projects(body.as_bytes()).is_err(), "{body}");
        }
    }
}
