//! The list of computes, and the form that creates one.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::json;

use super::fields::Fields;
use super::layout::{Frame, Place};
use super::parts::{MOST, Table, badge, choice, field, more};
use super::times::moment;
use super::trouble::Trouble;
use super::{Answer, Asked, At, Done};
use crate::world::console::ComputeLine;
use crate::world::inventory::ProjectLine;

const HEADINGS: [&str; 7] = [
    "Compute",
    "Project and branch",
    "Type",
    "Status",
    "Size",
    "Last active",
    "Do",
];

pub async fn show(State(desk): At, Query(asked): Query<Asked>) -> Answer {
    let look =
        |world: &crate::world::World| (world.console_computes(None), world.console_projects());
    let ((computes, projects), now) = desk.see(look).await?;
    let frame = desk.frame(Place::Computes, now, asked.done());
    let found = |compute: &ComputeLine| {
        let name = compute.name.as_deref().unwrap_or_default();
        asked.finds(&[
            &compute.id,
            name,
            &compute.project_id,
            &compute.branch_id,
            compute.status,
            compute.kind,
        ])
    };
    let found: Vec<ComputeLine> = computes.into_iter().filter(found).collect();
    let shown = &found[..found.len().min(MOST)];
    let content = html! {
        form.filter role="search" method="get" {
            (field("search", "Search", html! { input #search type="search" name="search" value=(asked.search); }))
            button { "Search" }
        }
        (table(&frame, shown))
        (more(shown.len(), found.len()))
        h2 { "Create a compute" }
        (creation(&frame, &projects))
    };
    Ok(frame.page("Computes", content).into_response())
}

/// Computes with their quick actions.
pub fn table(frame: &Frame<'_>, computes: &[ComputeLine]) -> Markup {
    let rows = computes.iter().map(|compute| row(frame, compute)).collect();
    Table {
        id: "computes",
        name: "Computes and what they do",
        headings: &HEADINGS,
        rows,
        empty: "No computes to show.",
    }
    .show()
}

fn row(frame: &Frame<'_>, compute: &ComputeLine) -> Vec<Markup> {
    let (id, path) = (&compute.id, path(&compute.id));
    vec![
        html! { a id={ "to-" (id) } href=(path) { (id) } @if let Some(name) = &compute.name { br; (name) } },
        html! { (compute.project_id) br; (compute.branch_id) },
        html! { (compute.kind) },
        html! { (badge(compute.status)) @if compute.disabled { " " (badge("disabled")) } },
        html! { (compute.size) },
        last_active(compute, frame),
        frame.button(&format!("{path}/activity"), &format!("use-{id}"), "Use", id),
    ]
}

/// A new compute has no such time.
pub fn last_active(compute: &ComputeLine, frame: &Frame<'_>) -> Markup {
    match &compute.last_active {
        Some(at) => moment(at, frame.now),
        None => html! { "never" },
    }
}

/// The path of a compute's page.
pub fn path(id: &str) -> String {
    format!("{}/{id}", Place::Computes.path())
}

fn creation(frame: &Frame<'_>, projects: &[ProjectLine]) -> Markup {
    let kinds = [("read_write", "Primary"), ("read_only", "Read Replica")];
    html! {
        form method="post" action=(Place::Computes.path()) {
            (frame.token())
            (field("branch", "Branch", html! {
                select #branch name="branch" required {
                    @for project in projects {
                        optgroup label={ (project.name) " (" (project.id) ")" } {
                            @for branch in &project.branches {
                                option value={ (project.id) "/" (branch.id) } { (branch.name) " (" (branch.id) ")" } }
                        }
                    }
                }
            }))
            (field("kind", "Type", choice("kind", "type", "read_write", &kinds)))
            button { "Create compute" }
        }
    }
}

pub async fn create(State(desk): At, fields: Fields) -> Answer {
    let branch = fields.needed("branch")?;
    let (project, branch) = branch
        .split_once('/')
        .ok_or_else(|| Trouble::Form("branch is no branch".to_owned()))?;
    let attributes = json!({ "branch_id": branch, "type": fields.needed("type")? });
    let project = project.to_owned();
    desk.shell
        .perform(move |world, now| world.console_create_compute(&project, &attributes, now))
        .await??;
    Ok(Done::Created.at(Place::Computes.path()))
}
