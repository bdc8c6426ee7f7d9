//! The page that lists operations, newest first.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::computes::path;
use super::layout::{Frame, Place};
use super::parts::{MOST, Table, badge, field};
use super::times::moment;
use super::{Answer, Asked, At};
use crate::world::World;
use crate::world::inventory::OperationLine;

const HEADINGS: [&str; 6] = [
    "Operation",
    "Status",
    "Compute",
    "Project and branch",
    "Created",
    "Changed",
];
/// Number of operations that a search covers.
const SEARCHED: usize = 10_000;

pub async fn show(State(desk): At, Query(asked): Query<Asked>) -> Answer {
    let (mut operations, now) = desk
        .see(|world: &World| world.console_operations(SEARCHED))
        .await?;
    let frame = desk.frame(Place::Operations, now, asked.done());
    operations.retain(|operation| {
        let (project, branch) = (&operation.project_id, &operation.branch_id);
        asked.finds(&[
            operation.action,
            operation.status,
            &operation.endpoint_id,
            project,
            branch,
            &operation.id,
        ])
    });
    operations.truncate(MOST);
    let content = html! {
        form.filter role="search" method="get" {
            (field("search", "Search", html! { input #search type="search" name="search" value=(asked.search); }))
            button { "Search" }
        }
        (table(&frame, &operations, "No operations to show."))
        p { "The latest " (MOST) " are shown. " a href=(Place::Faults.path()) { "Let operations fail" } }
    };
    Ok(frame.page("Operations", content).into_response())
}

pub fn table(frame: &Frame<'_>, operations: &[OperationLine], empty: &str) -> Markup {
    let rows = operations
        .iter()
        .map(|operation| row(frame, operation))
        .collect();
    Table {
        id: "operations",
        name: "Operations, the newest first",
        headings: &HEADINGS,
        rows,
        empty,
    }
    .show()
}

fn row(frame: &Frame<'_>, operation: &OperationLine) -> Vec<Markup> {
    vec![
        html! { span title=(operation.id) { (operation.action) } },
        html! { (badge(operation.status))
        @if operation.failures > 0 { " " (operation.failures) "× failed" }
        @if let Some(error) = &operation.error { br; (error) } },
        html! { a id={ "of-" (operation.id) } href=(path(&operation.endpoint_id)) { (operation.endpoint_id) } },
        html! { (operation.project_id) br; (operation.branch_id) },
        moment(&operation.created_at, frame.now),
        moment(&operation.updated_at, frame.now),
    ]
}
