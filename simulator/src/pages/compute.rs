//! The page of one compute, with its details and actions.

use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::json;

use super::computes::{last_active, path};
use super::fields::Fields;
use super::layout::{Frame, Place};
use super::parts::{badge, field};
use super::trouble::Trouble;
use super::{Answer, Asked, At, Desk, Done, operations};
use crate::world::console::ComputeLine;
use crate::world::inventory::OperationLine;
use crate::world::sizes::Size;

const OPERATIONS: usize = 1000;

/// The compute with this id, its latest operations, and the frame of its page.
async fn find<'a>(
    desk: &'a Desk,
    id: &str,
    asked: &Asked,
) -> Result<(ComputeLine, Vec<OperationLine>, Frame<'a>), Trouble> {
    let wanted = id.to_owned();
    let look = move |world: &crate::world::World| {
        let compute = world
            .console_computes(None)
            .into_iter()
            .find(|compute| compute.id == wanted);
        let operations = world.console_operations(OPERATIONS).into_iter();
        (
            compute,
            operations
                .filter(|operation| operation.endpoint_id == wanted)
                .take(10)
                .collect(),
        )
    };
    let ((compute, operations), now) = desk.see(look).await?;
    let compute = compute.ok_or(Trouble::Absent("compute"))?;
    Ok((
        compute,
        operations,
        desk.frame(Place::Computes, now, asked.done()),
    ))
}

pub async fn show(State(desk): At, Path(id): Path<String>, Query(asked): Query<Asked>) -> Answer {
    let (compute, operations, frame) = find(&desk, &id, &asked).await?;
    let path = path(&compute.id);
    let content = html! {
        (facts(&frame, &compute))
        h2 { "Use it" }
        form method="post" action={ (path) "/activity" } {
            (frame.token())
            (field("load", "Load in CU (may be empty)", html! {
                input #load type="number" name="load" min="0" step="any" aria-describedby="load-help"; }))
            p.help #load-help { "A query or a connection: an idle compute starts. With a load, an active one is resized within its range." }
            button #use { "Use" }
        }
        h2 { "Change it" }
        form method="post" action={ (path) "/size" } {
            (frame.token())
            (field("min", "Smallest size in CU", size("min", compute.range.min)))
            (field("max", "Largest size in CU", size("max", compute.range.max)))
            button { "Change size" }
        }
        div.buttons {
            (frame.button(&format!("{path}/restart"), "restart", "Restart", ""))
            (frame.button(&format!("{path}/disk"), "disk", "Fill its temporary disk", ""))
            a.button href={ (path) "/delete" } { "Delete…" }
        }
        h2 { "Its latest operations" }
        (operations::table(&frame, &operations, "It has had no operation yet."))
    };
    Ok(frame.page(&compute.id, content).into_response())
}

fn size(name: &str, chosen: Size) -> Markup {
    html! {
        select id=(name) name=(name) {
            @for size in Size::all() { option value=(size.cu()) selected[size == chosen] { (size.cu()) } }
        }
    }
}

fn facts(frame: &Frame<'_>, compute: &ComputeLine) -> Markup {
    let capacity = &compute.capacity;
    html! {
        dl #facts data-live {
            @if let Some(name) = &compute.name { dt { "Name" } dd { (name) } }
            dt { "Project" } dd { (compute.project_id) }
            dt { "Branch" } dd { (compute.branch_id) }
            dt { "Type" } dd { (compute.kind) }
            dt { "Status" } dd { (badge(compute.status)) @if compute.disabled { " " (badge("disabled")) } }
            dt { "Size" } dd { (compute.size) ", at present " (compute.current_size) " CU; at least "
                (capacity.vcpu) " vCPU, " (capacity.ram_gb) " GB RAM" }
            dt { "Last active" } dd { (last_active(compute, frame)) }
            dt { "Scale to zero" } dd { (scale_to_zero(compute.suspend_timeout_seconds)) }
            dt { "Interruptions" } dd { (compute.interruptions) }
            dt { "Connections" } dd { (capacity.max_connections) ", and " (compute.max_pooled_connections) " pooled" }
            dt { "Temporary disk" } dd { "about " (compute.temporary_disk_gib) " GB" }
            @if let Some(release) = &compute.release { dt { "Release" } dd { (release) } }
        }
    }
}

fn scale_to_zero(seconds: i64) -> String {
    match seconds {
        ..0 => "never".to_owned(),
        0 => "after the platform's default".to_owned(),
        _ => format!("after {seconds} s"),
    }
}

pub async fn activity(State(desk): At, Path(id): Path<String>, fields: Fields) -> Answer {
    let load = fields.number("load")?;
    let compute = desk
        .shell
        .perform(move |world, now| world.console_activity(&id, load, now))
        .await??;
    Ok(Done::Used.at(&path(&compute.id)))
}

pub async fn resize(State(desk): At, Path(id): Path<String>, fields: Fields) -> Answer {
    let (min, max) = (fields.number::<f64>("min")?, fields.number::<f64>("max")?);
    let attributes = json!({ "autoscaling_limit_min_cu": min, "autoscaling_limit_max_cu": max });
    let change = move |world: &mut crate::world::World, now| {
        world.console_change_compute(&id, &attributes, now)
    };
    let compute = desk.shell.perform(change).await??;
    Ok(Done::Resized.at(&path(&compute.id)))
}

/// Extracting `Fields` proves that the form came from this console.
pub async fn restart(State(desk): At, Path(id): Path<String>, _: Fields) -> Answer {
    let compute = desk
        .shell
        .perform(move |world, now| world.console_restart_compute(&id, now))
        .await??;
    Ok(Done::Restarted.at(&path(&compute.id)))
}

pub async fn fill_disk(State(desk): At, Path(id): Path<String>, _: Fields) -> Answer {
    let filled = id.clone();
    let error = desk
        .shell
        .perform(move |world, now| world.console_fill_temporary_disk(&filled, now))
        .await??;
    let (_, _, frame) = find(&desk, &id, &Asked::default()).await?;
    let content = html! {
        p { "A query that needs more temporary disk than " a href=(path(&id)) { (id) } " has would now be answered with:" }
        pre { "SQLSTATE " (error.sqlstate) "\n" (error.message) }
    };
    Ok(frame
        .page("The temporary disk is full", content)
        .into_response())
}

pub async fn confirm_deletion(State(desk): At, Path(id): Path<String>) -> Answer {
    let (compute, _, frame) = find(&desk, &id, &Asked::default()).await?;
    let path = path(&compute.id);
    let content = html! {
        p.notice.wrong { "Deleting " strong { (compute.id) } " is permanent: its connections are cut, and it cannot be brought back." }
        div.buttons {
            (frame.button(&format!("{path}/delete"), "delete", "Delete the compute", &compute.id))
            a.button href=(path) { "Keep it" }
        }
    };
    Ok(frame.page("Delete this compute?", content).into_response())
}

pub async fn delete(State(desk): At, Path(id): Path<String>, _: Fields) -> Answer {
    desk.shell
        .perform(move |world, now| world.console_delete_compute(&id, now))
        .await??;
    Ok(Done::Deleted.at(Place::Computes.path()))
}
