//! The start page: a summary of the world and of operations in progress.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};

use super::layout::Place;
use super::parts::{MOST, count};
use super::{Answer, Asked, At, computes, operations, requests};
use crate::world::World;
use crate::world::console::ComputeLine;
use crate::world::inventory::OperationLine;

const LATEST: usize = 10;

/// The parts of the world that the page shows.
#[derive(Debug)]
struct Seen {
    computes: Vec<ComputeLine>,
    under_way: Vec<OperationLine>,
    keys: usize,
    projects: usize,
}

fn look(world: &World) -> Seen {
    let operations = world.console_operations(MOST);
    Seen {
        computes: world.console_computes(None),
        under_way: operations
            .into_iter()
            .filter(|operation| operation.under_way)
            .collect(),
        keys: world
            .console_keys()
            .iter()
            .filter(|key| !key.revoked)
            .count(),
        projects: world.console_projects().len(),
    }
}

pub async fn show(State(desk): At, Query(asked): Query<Asked>) -> Answer {
    let (seen, now) = desk.see(look).await?;
    let frame = desk.frame(Place::Overview, now, asked.done());
    let entries = desk.shell.log().latest(|_| true, LATEST);
    let standing = desk
        .shell
        .faults()
        .list()
        .iter()
        .filter(|fault| fault.remaining > 0)
        .count();
    let content = html! {
        (summary(&seen, standing))
        h2 { a href=(Place::Computes.path()) { "Computes" } }
        (computes::table(&frame, &seen.computes[..seen.computes.len().min(MOST)]))
        h2 { a href=(Place::Operations.path()) { "Operations under way" } }
        (operations::table(&frame, &seen.under_way, "No operation is under way."))
        h2 { a href=(Place::Requests.path()) { "Latest requests" } }
        (requests::table(&frame, &entries, "The API was sent no request yet."))
        (addresses())
    };
    Ok(frame.page("Overview", content).into_response())
}

fn summary(seen: &Seen, standing: usize) -> Markup {
    let of = |status: &str| {
        seen.computes
            .iter()
            .filter(|compute| compute.status == status)
            .count()
    };
    let (active, idle, init) = (of("Active"), of("Idle"), of("Init"));
    html! {
        div #summary data-live aria-live="polite" aria-atomic="true" {
            p { (count(seen.computes.len(), "compute")) ": " (active) " Active, " (idle) " Idle, " (init) " Init. "
                (count(seen.projects, "project")) ", " (count(seen.keys, "valid key")) ". "
                (count(seen.under_way.len(), "operation")) " under way. "
                @if standing > 0 { a href=(Place::Faults.path()) { (count(standing, "ordered fault")) } "." } }
        }
    }
}

fn addresses() -> Markup {
    html! {
        h2 { "For programs" }
        p { "The API of the platform is served below " code { "/api/v2" } ", with an API key that you "
            a href=(Place::Keys.path()) { "create here" } ". What these pages do, programs can do as JSON below " code { "/console" }
            ", e.g. " code { "GET /console/computes" } "." }
    }
}
