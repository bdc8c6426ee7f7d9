//! Building blocks of pages.

use maud::{Markup, html};

/// Most rows that a page shows; a search finds the others.
pub const MOST: usize = 100;

/// A table that becomes a list of cards on a narrow screen. Its ARIA roles are explicit, because
/// `display` removes them there.
#[derive(Debug)]
pub struct Table<'a> {
    pub id: &'a str,
    /// For screen readers: on the screen, the heading above the table says it.
    pub name: &'a str,
    pub headings: &'a [&'a str],
    /// The first cell of each row is its heading.
    pub rows: Vec<Vec<Markup>>,
    /// The text that replaces an empty table.
    pub empty: &'a str,
}

impl Table<'_> {
    /// Renders the table; the script refreshes it.
    pub fn show(self) -> Markup {
        html! {
            div id=(self.id) data-live {
                @if self.rows.is_empty() { p.empty { (self.empty) } }
                @else {
                    table role="table" aria-label=(self.name) {
                        thead role="rowgroup" {
                            tr role="row" { @for heading in self.headings {
                                th role="columnheader" scope="col" { (heading) } } }
                        }
                        tbody role="rowgroup" { @for row in self.rows { (line(self.headings, row)) } }
                    }
                }
            }
        }
    }
}

fn line(headings: &[&str], row: Vec<Markup>) -> Markup {
    html! {
        tr role="row" {
            @for (index, (heading, cell)) in headings.iter().zip(row).enumerate() {
                @if index == 0 { th role="rowheader" scope="row" data-label=(heading) { (cell) } }
                @else { td role="cell" data-label=(heading) { (cell) } }
            }
        }
    }
}

/// A coloured word. The colour adds no information.
pub fn badge(word: &str) -> Markup {
    let colour = match word {
        "Active" | "finished" | "valid" => "good",
        "Init" | "running" | "scheduling" | "under way" => "busy",
        "failed" | "error" | "revoked" | "no answer" => "wrong",
        _ => "calm",
    };
    html! { span.badge.(colour) { (word) } }
}

/// The status of an answer as a badge.
pub fn status_badge(status: Option<u16>, over: bool) -> Markup {
    match status {
        Some(status @ 400..) => html! { span.badge.wrong { (status) } },
        Some(status) => html! { span.badge.good { (status) } },
        None if over => badge("no answer"),
        None => badge("under way"),
    }
}

pub fn field(id: &str, label: &str, input: Markup) -> Markup {
    html! { p.field { label for=(id) { (label) } (input) } }
}

/// A select box of values and their labels.
pub fn choice(id: &str, name: &str, chosen: &str, values: &[(&str, &str)]) -> Markup {
    html! {
        select id=(id) name=(name) {
            @for (value, word) in values { option value=(value) selected[*value == chosen] { (word) } }
        }
    }
}

/// Says that the list is truncated.
pub fn more(shown: usize, all: usize) -> Markup {
    html! { @if shown < all { p { "The first " (shown) " of " (all) " are shown: search for others." } } }
}

/// E.g. `1 compute`, `2 computes`.
pub fn count(number: usize, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}
