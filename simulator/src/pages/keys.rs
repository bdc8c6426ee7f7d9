//! The page that lists, creates and revokes API keys. It shows a secret once and asks before it
//! revokes.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::fields::Fields;
use super::layout::{Frame, Place};
use super::parts::{MOST, Table, badge, field, more};
use super::times::moment;
use super::trouble::Trouble;
use super::{Answer, Asked, At, Desk, Done};
use crate::world::World;
use crate::world::console::{CreatedKey, KeyLine, OwnerLine};
use crate::world::errors::Refusal;
use crate::world::inventory::ProjectLine;

const HEADINGS: [&str; 7] = ["Key", "Type", "Owner", "Project", "Created", "Status", "Do"];

pub async fn show(State(desk): At, Query(asked): Query<Asked>) -> Answer {
    let look = |world: &World| {
        (
            world.console_keys(),
            world.console_owners(),
            world.console_projects(),
        )
    };
    let ((mut keys, owners, projects), now) = desk.see(look).await?;
    let frame = desk.frame(Place::Keys, now, asked.done());
    keys.retain(|key| {
        let project = key.project_id.as_deref().unwrap_or_default();
        asked.finds(&[
            &key.id.to_string(),
            &key.name,
            key.kind,
            &key.owner,
            project,
            status(key),
        ])
    });
    keys.sort_by_key(|key| (key.revoked, std::cmp::Reverse(key.id)));
    let shown = &keys[..keys.len().min(MOST)];
    let rows = shown.iter().map(|key| row(&frame, key)).collect();
    let empty = "No keys to show.";
    let content = html! {
        form.filter role="search" method="get" {
            (field("search", "Search", html! { input #search type="search" name="search" value=(asked.search); }))
            button { "Search" }
        }
        (Table { id: "keys", name: "API keys, valid ones first", headings: &HEADINGS, rows, empty }.show())
        (more(shown.len(), keys.len()))
        h2 { "Create an API key" }
        (creation(&frame, &owners, &projects))
    };
    Ok(frame.page("API keys", content).into_response())
}

fn status(key: &KeyLine) -> &'static str {
    if key.revoked { "revoked" } else { "valid" }
}

fn row(frame: &Frame<'_>, key: &KeyLine) -> Vec<Markup> {
    vec![
        html! { (key.name) " " span.number { "no. " (key.id) } },
        html! { (key.kind) },
        html! { (key.owner) },
        html! { (key.project_id.as_deref().unwrap_or("all")) },
        moment(&key.created_at, frame.now),
        badge(status(key)),
        html! { @if !key.revoked {
            a.button id={ "revoke-" (key.id) } href=(path(key.id)) {
                "Revoke…" span.visually-hidden { " " (key.name) ", no. " (key.id) } }
        } },
    ]
}

fn path(id: i64) -> String {
    format!("{}/{id}/revoke", Place::Keys.path())
}

fn creation(frame: &Frame<'_>, owners: &[OwnerLine], projects: &[ProjectLine]) -> Markup {
    let of = |kind: &'static str| owners.iter().filter(move |owner| owner.kind == kind);
    html! {
        form method="post" action=(Place::Keys.path()) {
            (frame.token_once())
            (field("reach", "Type", html! {
                select #reach name="reach" required aria-describedby="reach-help" {
                    optgroup label="Project: one project of an organization" {
                        @for project in projects.iter().filter(|project| project.of_organization) {
                            option value={ "project/" (project.owner) "/" (project.id) } { (project.name) " (" (project.id) ")" } }
                    }
                    optgroup label="Organization: all of its projects" {
                        @for owner in of("organization") { option value={ "organization/" (owner.id) } { (owner.name) " (" (owner.id) ")" } }
                    }
                    optgroup label="Personal: what a user's account reaches" {
                        @for owner in of("user") { option value={ "user/" (owner.id) } { (owner.name) " (" (owner.id) ")" } }
                    }
                }
            }))
            p.help #reach-help { "A project's key reaches that project alone, as a member. An organization's key is its administrator." }
            (field("key-name", "Name", html! { input #key-name name="name" required maxlength="200" autocomplete="off"; }))
            p.help { "Its secret is shown once, on the page that follows." }
            button #create { "Create key" }
        }
    }
}

pub async fn create(State(desk): At, fields: Fields) -> Answer {
    let (reach, name) = (fields.needed("reach")?, fields.needed("name")?);
    if !fields.are_first(&desk) {
        let message =
            "this form was sent already. A secret is shown once, and no second key was created";
        return Err(Trouble::Stale(StatusCode::CONFLICT, message));
    }
    let create = move |world: &mut World, now| {
        let created = make(world, &reach, &name, now);
        (created, world.now())
    };
    let (created, now) = desk.shell.perform(create).await?;
    let created = created?;
    let frame = desk.frame(Place::Keys, now, None);
    Ok((
        StatusCode::CREATED,
        frame.page("Key created", secret(&created)),
    )
        .into_response())
}

fn make(
    world: &mut World,
    reach: &str,
    name: &str,
    now: jiff::Timestamp,
) -> Result<CreatedKey, Refusal> {
    let parts: Vec<&str> = reach.split('/').collect();
    match parts[..] {
        ["user", user] => world.console_create_personal_key(user, name, now),
        ["organization", organization] => {
            world.console_create_organization_key(organization, name, None, now)
        }
        ["project", organization, project] => {
            world.console_create_organization_key(organization, name, Some(project.to_owned()), now)
        }
        _ => Err(Refusal::invalid("type is none of the three")),
    }
}

/// The only page that shows the secret.
fn secret(created: &CreatedKey) -> Markup {
    html! {
        p.notice { "The key " strong { (created.name) } " (no. " (created.id) ") is valid from now on, until it is revoked." }
        p #secret-label { "Its secret. " strong { "It is shown this once: copy it now." } " A key whose secret is lost is revoked and replaced." }
        p.secret { code #secret tabindex="0" aria-labelledby="secret-label" role="group" { (created.key) } " "
            button #copy type="button" hidden { "Copy" } span #copied role="status" {} }
        p { a href=(Place::Keys.path()) { "All API keys" } }
    }
}

pub async fn confirm_revocation(State(desk): At, Path(id): Path<i64>) -> Answer {
    let (key, frame) = find(&desk, id).await?;
    let project = key
        .project_id
        .as_ref()
        .map(|project| format!(", project {project}"))
        .unwrap_or_default();
    let content = html! {
        dl {
            dt { "Key" } dd { (key.name) " (no. " (key.id) ")" }
            dt { "Type" } dd { (key.kind) }
            dt { "Owner" } dd { (key.owner) (project) }
            dt { "Created" } dd { (moment(&key.created_at, frame.now)) }
            dt { "Status" } dd { (badge(status(&key))) }
        }
        @if key.revoked { p { "It is revoked already, for ever." } }
        @else {
            p.notice.wrong { "Revoking is immediate and permanent: every later request with this key is answered with 401." }
        }
        div.buttons {
            @if !key.revoked { (frame.button(&path(id), "revoke", "Revoke the key", &key.name)) }
            a.button href=(Place::Keys.path()) { @if key.revoked { "All API keys" } @else { "Keep it" } }
        }
    };
    Ok(frame.page("Revoke this key?", content).into_response())
}

async fn find(desk: &Desk, id: i64) -> Result<(KeyLine, Frame<'_>), Trouble> {
    let look = move |world: &World| world.console_keys().into_iter().find(|key| key.id == id);
    let (key, now) = desk.see(look).await?;
    Ok((
        key.ok_or(Trouble::Absent("key"))?,
        desk.frame(Place::Keys, now, None),
    ))
}

/// Extracting `Fields` proves that the form came from this console.
pub async fn revoke(State(desk): At, Path(id): Path<i64>, _: Fields) -> Answer {
    desk.shell
        .perform(move |world, now| world.console_revoke_key(id, now))
        .await??;
    Ok(Done::Revoked.at(Place::Keys.path()))
}
