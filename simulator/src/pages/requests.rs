//! The page with the request log and its filters.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde::Deserialize;

use super::fields::Fields;
use super::layout::{Frame, Place};
use super::parts::{MOST, Table, choice, field, status_badge};
use super::times::moment;
use super::{Answer, Asked, At, Done};
use crate::log::{Entry, KEPT};

const HEADINGS: [&str; 5] = ["No.", "Request", "Status", "Key", "Arrived"];
const METHODS: [(&str, &str); 5] = [
    ("", "any"),
    ("GET", "GET"),
    ("POST", "POST"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
];
const OUTCOMES: [(&str, &str); 7] = [
    ("", "any"),
    ("failed", "failed"),
    ("2", "2xx"),
    ("3", "3xx"),
    ("4", "4xx"),
    ("5", "5xx"),
    ("none", "no answer"),
];

/// The filters; an empty one matches everything.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Filter {
    method: String,
    path: String,
    outcome: String,
    key: String,
    /// Only older requests than this number.
    before: String,
    done: String,
}

impl Filter {
    fn wants(&self, entry: &Entry) -> bool {
        let (path, key) = (self.path.trim(), self.key.trim());
        (self.method.is_empty() || entry.method == self.method)
            && self.before.parse().map_or(true, |before| entry.n < before)
            && (entry.path.contains(path) || entry.query.contains(path))
            && (key.is_empty() || entry.key_id.is_some_and(|id| id.to_string() == key))
            && self.wants_status(entry)
    }

    /// Buttons that lead to other pages with the same filters. A page begins with a number, so that
    /// new requests do not move it.
    fn pages(&self, older: Option<u64>) -> Markup {
        let filters = [
            ("method", &self.method),
            ("outcome", &self.outcome),
            ("path", &self.path),
            ("key", &self.key),
        ];
        html! {
            form.buttons #pages data-live method="get" {
                @for (name, value) in filters { input type="hidden" name=(name) value=(value); }
                @if !self.before.is_empty() { button #newest { "Newest" } }
                @if let Some(number) = older { button #older name="before" value=(number) { "Older" } }
            }
        }
    }

    fn wants_status(&self, entry: &Entry) -> bool {
        match (self.outcome.as_str(), entry.status) {
            ("failed", None) | ("none", None) => entry.over,
            ("failed", Some(status)) => status >= 400,
            ("none", Some(_)) => false,
            ("2" | "3" | "4" | "5", None) => false,
            (hundreds @ ("2" | "3" | "4" | "5"), Some(status)) => {
                status.to_string().starts_with(hundreds)
            }
            (_, _) => true,
        }
    }
}

pub async fn show(State(desk): At, Query(filter): Query<Filter>) -> Answer {
    let ((), now) = desk.see(|_| ()).await?;
    let asked = Asked {
        done: filter.done.clone(),
        ..Asked::default()
    };
    let frame = desk.frame(Place::Requests, now, asked.done());
    let mut entries = desk
        .shell
        .log()
        .latest(|entry| filter.wants(entry), MOST + 1);
    let more = entries.len() > MOST;
    entries.truncate(MOST);
    let older = entries.last().filter(|_| more).map(|entry| entry.n);
    let content = html! {
        form.filter role="search" method="get" {
            (field("method", "Method", choice("method", "method", &filter.method, &METHODS)))
            (field("outcome", "Status", choice("outcome", "outcome", &filter.outcome, &OUTCOMES)))
            (field("path", "Path has", html! { input #path type="search" name="path" value=(filter.path); }))
            (field("key", "Key no.", html! { input #key name="key" inputmode="numeric" value=(filter.key); }))
            button { "Filter" }
        }
        (table(&frame, &entries, "No requests to show."))
        (filter.pages(older))
        p { "A page has " (MOST) " requests at most, the newest first, without their secrets. The last " (KEPT)
            " are kept. What these pages do is not logged." }
        (frame.button("/console/pages/requests/clear", "forget", "Forget all requests", ""))
    };
    Ok(frame.page("Requests", content).into_response())
}

pub fn table(frame: &Frame<'_>, entries: &[Entry], empty: &str) -> Markup {
    let rows = entries.iter().map(|entry| row(frame, entry)).collect();
    Table {
        id: "requests",
        name: "Requests to the API, the newest first",
        headings: &HEADINGS,
        rows,
        empty,
    }
    .show()
}

fn row(frame: &Frame<'_>, entry: &Entry) -> Vec<Markup> {
    vec![
        html! { (entry.n) },
        html! { code { (entry.method) " " (entry.path) @if !entry.query.is_empty() { "?" (entry.query) } } },
        status_badge(entry.status, entry.over),
        html! { @if let Some(key) = entry.key_id { "no. " (key) } @else { "none" } },
        moment(&entry.at, frame.now),
    ]
}

/// Extracting `Fields` proves that the form came from this console.
pub async fn clear(State(desk): At, _: Fields) -> Answer {
    desk.shell.log().clear();
    Ok(Done::Forgotten.at(Place::Requests.path()))
}
