//! The page that orders, lists and removes faults.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::Value;

use super::fields::Fields;
use super::layout::{Frame, Place};
use super::parts::{Table, choice, field};
use super::trouble::Trouble;
use super::{Answer, Asked, At, Done};
use crate::faults::{FaultKind, FaultOrder, ListedFault, RetryAfter};
use crate::world::World;
use crate::world::model::{Action, FailureOrder};

const HEADINGS: [&str; 4] = ["No.", "Meets", "What goes wrong", "Left"];
const OPERATION_HEADINGS: [&str; 4] = ["Operation", "Tries", "Error", "Left"];
const METHODS: [(&str, &str); 5] = [
    ("", "any"),
    ("GET", "GET"),
    ("POST", "POST"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
];

/// Each kind with its name in the form and its description.
const KINDS: [(FaultKind, &str, &str); 18] = [
    (
        FaultKind::Status,
        "status",
        "another status, nothing is done",
    ),
    (
        FaultKind::StatusAfterWork,
        "status_after_work",
        "another status, but it was done",
    ),
    (
        FaultKind::Redirect,
        "redirect",
        "a redirect, but it was done",
    ),
    (
        FaultKind::LoginPage,
        "login_page",
        "a page to log in, nothing is done",
    ),
    (
        FaultKind::LoginPageAfterWork,
        "login_page_after_work",
        "a page to log in, but it was done",
    ),
    (
        FaultKind::GatewayPage,
        "gateway_page",
        "the page of a gateway, nothing is done",
    ),
    (
        FaultKind::Repeat,
        "repeat",
        "it is done twice, and the second answer comes",
    ),
    (
        FaultKind::ClockOff,
        "clock_off",
        "it is done by a machine whose clock is off",
    ),
    (
        FaultKind::TimesWithoutZone,
        "times_without_zone",
        "the right answer, with times without a zone",
    ),
    (
        FaultKind::NormalizedSettings,
        "normalized_settings",
        "the right answer, with Postgres settings in other units",
    ),
    (
        FaultKind::YoungKey,
        "young_key",
        "a key that is new is not known yet",
    ),
    (FaultKind::Delay, "delay", "the right answer, late"),
    (
        FaultKind::LoseAnswer,
        "lose_answer",
        "it is done, and no answer comes",
    ),
    (
        FaultKind::Drop,
        "drop",
        "the connection is closed, nothing is done",
    ),
    (
        FaultKind::LateWork,
        "late_work",
        "the connection is closed, and it is done later",
    ),
    (
        FaultKind::CutBody,
        "cut_body",
        "it is done, and half of the answer comes",
    ),
    (
        FaultKind::OddEntry,
        "odd_entry",
        "the right answer, with an odd entry in its list",
    ),
    (
        FaultKind::State,
        "state",
        "the right answer, with computes in another state",
    ),
];
const ACTIONS: [Action; 4] = [
    Action::StartCompute,
    Action::SuspendCompute,
    Action::ApplyConfig,
    Action::CheckAvailability,
];

pub async fn show(State(desk): At, Query(asked): Query<Asked>) -> Answer {
    let (orders, now) = desk
        .see(|world: &World| world.console_failure_orders().to_vec())
        .await?;
    let frame = desk.frame(Place::Faults, now, asked.done());
    let rows = desk.shell.faults().list().iter().map(row).collect();
    let empty = "No fault is ordered: the platform works as it should.";
    let content = html! {
        (Table { id: "faults", name: "Ordered faults", headings: &HEADINGS, rows, empty }.show())
        (frame.button("/console/pages/faults/clear", "clear-faults", "Clear all faults", ""))
        h2 { "Order a fault" }
        (fault_form(&frame))
        h2 { "Let operations fail" }
        (operations(&frame, &orders))
    };
    Ok(frame.page("Faults", content).into_response())
}

fn row(fault: &ListedFault<'_>) -> Vec<Markup> {
    let order = fault.order;
    let method = order.method.as_deref().unwrap_or("any method");
    vec![
        html! { (fault.id) },
        html! { (method) " " @match &order.path { Some(path) => code { (path) }, None => "any path" }
        @if order.after > 0 { ", after " (order.after) " others" } @if order.every > 1 { ", one in " (order.every) } },
        html! { (what_goes_wrong(order)) },
        html! { (fault.remaining) " of " (order.times) },
    ]
}

/// The order's kind may be implied by its other fields.
fn what_goes_wrong(order: &FaultOrder) -> String {
    let kind = order.kind.unwrap_or(if order.status.is_some() {
        FaultKind::Status
    } else {
        FaultKind::Delay
    });
    let words = KINDS
        .iter()
        .find(|(known, ..)| *known == kind)
        .map_or("", |(_, _, words)| *words);
    let status = order
        .status
        .map(|status| format!(" ({status})"))
        .unwrap_or_default();
    let delay = order
        .delay_ms
        .map(|delay| format!(", after {delay} ms"))
        .unwrap_or_default();
    let seconds = order
        .seconds
        .map(|seconds| format!(" ({seconds} s)"))
        .unwrap_or_default();
    let location = order
        .location
        .as_ref()
        .map(|location| format!(", to {location}"))
        .unwrap_or_default();
    let of = [("entry", &order.entry), ("field", &order.field)];
    let of: String = of
        .iter()
        .filter_map(|(what, name)| Some(format!(", {what} {}", name.as_ref()?)))
        .collect();
    format!("{words}{status}{seconds}{location}{of}{delay}")
}

fn fault_form(frame: &Frame<'_>) -> Markup {
    let kinds: Vec<(&str, &str)> = KINDS
        .iter()
        .map(|(_, name, words)| (*name, *words))
        .collect();
    html! {
        form method="post" action=(Place::Faults.path()) {
            (frame.token())
            (field("kind", "What goes wrong", choice("kind", "kind", "status", &kinds)))
            (field("status", "Status", html! {
                input #status type="number" name="status" min="200" max="599" aria-describedby="status-help"; }))
            p.help #status-help { "Of another status, a redirect or a gateway's page. If empty: 503, 302 and 502." }
            (field("method", "Method", choice("method", "method", "", &METHODS)))
            (field("path", "Path (may be empty)", html! {
                input #path name="path" placeholder="/endpoints$" aria-describedby="path-help"; }))
            p.help #path-help { "A regular expression on the path below the base URL." }
            (field("times", "How many requests it meets", html! {
                input #times type="number" name="times" min="1" value="1" required; }))
            (field("after", "How many it lets pass first", html! {
                input #after type="number" name="after" min="0" value="0" required; }))
            details {
                summary { "More" }
                (field("every", "Of those after them, one in how many", html! {
                    input #every type="number" name="every" min="1" value="1"; }))
                (field("seconds", "Seconds that the clock is fast (or slow: below 0), or that a key is new", html! {
                    input #seconds type="number" name="seconds"; }))
                (field("location", "Where the redirect leads (if empty: to the same address)", html! {
                    input #location name="location"; }))
                (field("delay", "Delay in ms", html! { input #delay type="number" name="delay_ms" min="0"; }))
                (field("retry-after", "Retry-After in seconds", html! {
                    input #retry-after type="number" name="retry_after" min="0"; }))
                (field("entry", "Entry, by its id (for the last two; the first one, or every compute)", html! {
                    input #entry name="entry"; }))
                (field("field", "Field of it (for the last two; the whole entry, or current_state)", html! {
                    input #field name="field"; }))
                (field("body", "Body of the answer, or what the field becomes (JSON or text)", html! {
                    textarea #body name="body" rows="3" {} }))
            }
            button #order { "Order fault" }
        }
    }
}

fn operations(frame: &Frame<'_>, orders: &[FailureOrder]) -> Markup {
    let rows = orders.iter().map(|order| {
        let error = if order.error.is_empty() {
            "none"
        } else {
            order.error.as_str()
        };
        vec![
            html! { (order.action.name()) },
            html! { (order.tries) },
            html! { (error) },
            html! { (order.operations) },
        ]
    });
    let table = Table {
        id: "failing",
        name: "Operations that fail",
        headings: &OPERATION_HEADINGS,
        rows: rows.collect(),
        empty: "No operation is ordered to fail.",
    };
    let actions: Vec<(&str, &str)> = ACTIONS
        .iter()
        .map(|action| (action.name(), action.name()))
        .collect();
    html! {
        (table.show())
        form method="post" action="/console/pages/faults/operations" {
            (frame.token())
            (field("action", "Operation", choice("action", "action", "start_compute", &actions)))
            (field("operations", "How many fail", html! {
                input #operations type="number" name="operations" min="1" value="1" required; }))
            (field("tries", "Tries before each is given up", html! {
                input #tries type="number" name="tries" min="1" value="1" required; }))
            (field("error", "Error (may be empty)", html! { input #error name="error"; }))
            button { "Let them fail" }
        }
        (frame.button("/console/pages/faults/operations/clear", "clear-operations", "Clear failing operations", ""))
    }
}

pub async fn order(State(desk): At, fields: Fields) -> Answer {
    let kind = fields.needed("kind")?;
    let kind = KINDS
        .iter()
        .find(|(_, name, _)| *name == kind)
        .map(|(kind, ..)| *kind);
    let kind = kind.ok_or_else(|| Trouble::Form("kind is no kind of fault".to_owned()))?;
    // The form always shows all fields, but each kind uses only some.
    let usual = matches!(kind, FaultKind::Status | FaultKind::StatusAfterWork).then_some(503);
    let is_odd = matches!(kind, FaultKind::OddEntry | FaultKind::State);
    let text_if = |used: bool, name: &str| if used { fields.text(name) } else { None };
    let (status, seconds) = (fields.number("status")?, fields.number("seconds")?);
    let body = fields
        .text("body")
        .map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)));
    let order = FaultOrder {
        method: fields.text("method"),
        path: fields.text("path"),
        times: fields.number("times")?.unwrap_or(1),
        after: fields.number("after")?.unwrap_or(0),
        every: fields.number("every")?.unwrap_or(1),
        kind: Some(kind),
        status: if kind.has_status() {
            status.or(usual)
        } else {
            None
        },
        body,
        entry: text_if(is_odd, "entry"),
        field: text_if(is_odd, "field"),
        retry_after: fields.number("retry_after")?.map(RetryAfter::Seconds),
        delay_ms: fields.number("delay_ms")?,
        location: text_if(kind == FaultKind::Redirect, "location"),
        seconds: if kind.has_seconds() { seconds } else { None },
    };
    desk.shell.faults().order(order).map_err(Trouble::Form)?;
    Ok(Done::Ordered.at(Place::Faults.path()))
}

/// Extracting `Fields` proves that the form came from this console.
pub async fn clear(State(desk): At, _: Fields) -> Answer {
    desk.shell.faults().clear();
    Ok(Done::Cleared.at(Place::Faults.path()))
}

pub async fn fail_operations(State(desk): At, fields: Fields) -> Answer {
    let named = fields.needed("action")?;
    let action = ACTIONS.into_iter().find(|action| action.name() == named);
    let order = FailureOrder {
        action: action.ok_or_else(|| Trouble::Form("action is no operation".to_owned()))?,
        operations: fields.number("operations")?.unwrap_or(1),
        tries: fields.number("tries")?.unwrap_or(1),
        error: fields.text("error").unwrap_or_default(),
    };
    desk.shell
        .perform(move |world, now| world.console_fail_operations(order, now))
        .await?;
    Ok(Done::Ordered.at(Place::Faults.path()))
}

pub async fn spare_operations(State(desk): At, _: Fields) -> Answer {
    desk.shell
        .perform(|world, _| world.console_take_back_failures())
        .await?;
    Ok(Done::Cleared.at(Place::Faults.path()))
}
