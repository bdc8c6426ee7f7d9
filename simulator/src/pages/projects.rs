//! Projects and their branches.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::layout::{Frame, Place};
use super::parts::{MOST, Table, badge, field, more};
use super::times::moment;
use super::{Answer, Asked, At};
use crate::world::World;
use crate::world::inventory::{BranchLine, ProjectLine};

const HEADINGS: [&str; 5] = ["Branch", "Parent", "Is", "Computes", "Created"];

pub async fn show(State(desk): At, Query(asked): Query<Asked>) -> Answer {
    let (mut projects, now) = desk.see(World::console_projects).await?;
    let frame = desk.frame(Place::Projects, now, asked.done());
    projects.retain(|project| {
        asked.finds(&[
            &project.id,
            &project.name,
            &project.owner,
            &project.region_id,
        ])
    });
    let shown = &projects[..projects.len().min(MOST)];
    let content = html! {
        form.filter role="search" method="get" {
            (field("search", "Search", html! { input #search type="search" name="search" value=(asked.search); }))
            button { "Search" }
        }
        @if shown.is_empty() { p.empty { "No projects to show." } }
        @for project in shown { (section(&frame, project)) }
        (more(shown.len(), projects.len()))
    };
    Ok(frame.page("Projects", content).into_response())
}

fn section(frame: &Frame<'_>, project: &ProjectLine) -> Markup {
    let rows = project
        .branches
        .iter()
        .map(|branch| row(frame, branch))
        .collect();
    html! {
        section aria-labelledby={ "of-" (project.id) } {
            h2 id={ "of-" (project.id) } { (project.name) " " span.number { (project.id) } }
            p { "Owner " (project.owner) ", region " (project.region_id) ", Postgres " (project.pg_version)
                ", created " (moment(&project.created_at, frame.now)) "." }
            (Table {
                id: &format!("branches-{}", project.id),
                name: &format!("Branches of {}", project.name),
                headings: &HEADINGS,
                rows,
                empty: "It has no branches.",
            }.show())
        }
    }
}

fn row(frame: &Frame<'_>, branch: &BranchLine) -> Vec<Markup> {
    vec![
        html! { (branch.name) @if branch.name != branch.id { " " span.number { (branch.id) } } },
        html! { (branch.parent.as_deref().unwrap_or("none")) },
        html! { @if branch.default { (badge("default")) " " } @if branch.protected { (badge("protected")) } },
        html! { (branch.computes) },
        moment(&branch.created_at, frame.now),
    ]
}
