//! Writes the status as text for users.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;

use super::collect::{NotRead, OperatorStatus};
use super::fleet::{AccountLine, Fleet, ListedResource, StatusGroup};
use super::page::{ResourcePage, flat};
use crate::cli::called::program;
use crate::cli::screen::{HEADING, PLAIN, Table, one_line, style, wrapped};

/// How a status is written.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// More details.
    pub wide: bool,
    /// `None` if the output is no terminal.
    pub width: Option<usize>,
    /// Times are shown relative to it.
    pub now: Timestamp,
}

pub fn fleet(fleet: &Fleet, out: &mut impl Write, layout: Layout) -> io::Result<()> {
    let place = fleet
        .namespace
        .as_ref()
        .map_or("all namespaces".to_owned(), |name| {
            format!("namespace {name}")
        });
    let operator = fleet.operator.as_ref().map(operator);
    let operator = operator.map_or(String::new(), |text| format!("; {text}"));
    let title = format!("{HEADING}dbplane in {place}{HEADING:#}{operator}");
    for line in wrapped(&title, 0, layout.width) {
        writeln!(out, "{line}")?;
    }
    if fleet.counts.is_empty() {
        writeln!(out, "There are no resources of dbplane.")?;
    } else {
        writeln!(out)?;
        counts(fleet).write(out, "", layout.width)?;
    }
    for (state, items) in [
        (StatusGroup::NeedsPerson, &fleet.needs_person),
        (StatusGroup::Waits, &fleet.waits),
        (StatusGroup::UnderWay, &fleet.under_way),
    ] {
        if !items.is_empty() {
            let color = style(state.needs());
            writeln!(out, "\n{color}{}{color:#}", heading(state))?;
            listed(items, fleet.namespace.is_none(), layout, state).write(
                out,
                "  ",
                layout.width,
            )?;
        }
    }
    if !fleet.accounts.is_empty() {
        writeln!(out, "\n{HEADING}Accounts{HEADING:#}")?;
        accounts(fleet.accounts.iter(), layout.wide).write(out, "  ", layout.width)?;
    }
    if let Some(first) = fleet.needs_person.first() {
        let namespace = first
            .namespace
            .as_ref()
            .map(|name| format!(" -n {name}"))
            .unwrap_or_default();
        writeln!(
            out,
            "\nWhat to do: {} status{namespace} {}",
            program(),
            first.target()
        )?;
    }
    not_read(&fleet.not_read, fleet.namespace.as_deref(), out, layout)
}

fn heading(state: StatusGroup) -> &'static str {
    match state {
        StatusGroup::NeedsPerson => "Needs a person",
        StatusGroup::Waits => "Waits for time",
        StatusGroup::UnderWay => "Under way",
        StatusGroup::Well => "Well",
    }
}

fn operator(operator: &OperatorStatus) -> String {
    let namespace = &operator.namespace;
    match &operator.leader {
        Some(leader) => format!("the operator {leader} has the lead"),
        None => format!(
            "nobody leads by a Lease in namespace {namespace} (an operator without --leader-elect has none)"
        ),
    }
}

fn counts(fleet: &Fleet) -> Table {
    let mut table = Table::headed(&[
        "KIND",
        "ALL",
        "NEEDS A PERSON",
        "WAITS",
        "UNDER WAY",
        "WELL",
    ]);
    for count in &fleet.counts {
        table.row([
            (count.kind.clone(), PLAIN),
            (count.all.to_string(), PLAIN),
            count_cell(count.needs_person, StatusGroup::NeedsPerson),
            count_cell(count.waits, StatusGroup::Waits),
            count_cell(count.under_way, StatusGroup::UnderWay),
            count_cell(count.well, StatusGroup::Well),
        ]);
    }
    table
}

/// Only counts other than zero have a color.
fn count_cell(count: usize, state: StatusGroup) -> (String, Style) {
    let style = if count == 0 {
        PLAIN
    } else {
        style(state.needs())
    };
    (count.to_string(), style)
}

fn listed(
    items: &[ListedResource],
    with_namespace: bool,
    layout: Layout,
    state: StatusGroup,
) -> Table {
    let mut table = Table::default();
    for item in items {
        let mut cells = Vec::new();
        if with_namespace {
            cells.push((item.namespace.clone().unwrap_or_default(), PLAIN));
        }
        cells.push((item.target(), PLAIN));
        cells.push((item.reason.clone(), style(state.needs())));
        if layout.wide {
            cells.push((layout.age(item.since), PLAIN));
        }
        cells.push((item.message.clone(), PLAIN));
        table.row(cells);
    }
    table
}

fn accounts<'a>(lines: impl Iterator<Item = &'a AccountLine>, wide: bool) -> Table {
    let mut heads = vec![
        "ACCOUNT",
        "READY",
        "REASON",
        "RESOURCES",
        "PROJECTS",
        "BUDGET",
    ];
    if wide {
        heads.extend(["KEYS OF THE ORGANIZATION", "MESSAGE"]);
    }
    let mut table = Table::headed(&heads);
    for line in lines {
        let place = line
            .namespace
            .as_ref()
            .map(|namespace| format!("{namespace}/"))
            .unwrap_or_default();
        let mut cells = vec![
            (format!("{} {place}{}", line.kind, line.name), PLAIN),
            (line.ready.clone(), style(line.state.needs())),
            (line.reason.clone(), PLAIN),
            (line.resources.to_string(), PLAIN),
            (number_or_dash(line.projects), PLAIN),
            (budget(line), PLAIN),
        ];
        if wide {
            cells.extend([
                (number_or_dash(line.organization_keys), PLAIN),
                (line.message.clone(), PLAIN),
            ]);
        }
        table.row(cells);
    }
    table
}

fn number_or_dash(number: Option<u64>) -> String {
    match number {
        Some(number) => number.to_string(),
        None => "-".to_owned(),
    }
}

fn budget(line: &AccountLine) -> String {
    let declared = format!("{}/min, {} at once", line.requests_per_minute, line.burst);
    match line.left {
        Some(left) => format!("{declared}, {left}"),
        None => declared,
    }
}

/// From which number of the next smaller unit a unit is used, as kubectl does.
const UNITS: [(i64, i64, &str); 3] = [
    (2 * 86_400, 86_400, "d"),
    (2 * 3_600, 3_600, "h"),
    (120, 60, "m"),
];

impl Layout {
    fn age(self, time: Option<Timestamp>) -> String {
        let Some(time) = time else {
            return String::new();
        };
        let seconds = time.duration_since(self.now).as_secs();
        let size = seconds.abs();
        let unit = UNITS.iter().find(|(from, ..)| size >= *from);
        let text = match unit {
            Some((_, unit, name)) => format!("{}{name}", size / unit),
            None => format!("{size}s"),
        };
        match seconds {
            1.. => format!("in {text}"),
            _ => format!("{text} ago"),
        }
    }

    /// A text of a status. A time keeps its seconds, for comparisons with logs.
    fn value(self, text: String) -> String {
        match text.parse::<Timestamp>() {
            Ok(time) => format!("{time:.0} ({})", self.age(Some(time))),
            Err(_) => text,
        }
    }
}

/// Missing rights take one line: the texts of the API server repeat it for
/// each request.
fn not_read(
    not_read: &[NotRead],
    namespace: Option<&str>,
    out: &mut impl Write,
    layout: Layout,
) -> io::Result<()> {
    let (forbidden, failed): (Vec<_>, Vec<_>) =
        not_read.iter().partition(|missing| missing.is_forbidden());
    if !forbidden.is_empty() {
        let limit = namespace.map_or(String::new(), |name| {
            format!(" (limited to namespace {name})")
        });
        let names: Vec<_> = forbidden.iter().map(|one| one.what.as_str()).collect();
        let text = format!("Not read, for lack of rights{limit}: {}", names.join(", "));
        writeln!(out)?;
        for line in wrapped(&text, 0, layout.width) {
            writeln!(out, "{line}")?;
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{HEADING}Not read{HEADING:#}")?;
    for missing in failed {
        indented(out, &missing.to_string(), layout)?;
    }
    Ok(())
}

pub fn page(page: &ResourcePage, out: &mut impl Write, layout: Layout) -> io::Result<()> {
    title(page, out, layout)?;
    section(out, "Declared", &rows(&page.declared), layout)?;
    section(out, "There", &observed(&page.there, layout), layout)?;
    let mut said = Said(vec![one_line(&page.resource.message)]);
    let differs = page.differs.as_deref().unwrap_or_default();
    if !differs.is_empty() && !said.before(differs) {
        paragraph(out, "Differs", &one_line(differs), layout)?;
    }
    let rows = conditions(page, &mut said, layout);
    section(out, "Conditions", &rows, layout)?;
    let next = next(page, layout);
    section(out, "What comes next, at the latest", &next, layout)?;
    let operation = page.last_operation.as_ref();
    let operation = operation.map_or(Vec::new(), |value| observed(value, layout));
    section(out, "Last operation of the platform", &operation, layout)?;
    let rows = events(page, &mut said, layout);
    section(out, "Last events", &rows, layout)?;
    if let Some(account) = &page.account {
        section(out, "Account", &[account_row(account)], layout)?;
    }
    if let Some(leader) = &page.operator {
        paragraph(out, "Operator", &operator(leader), layout)?;
    }
    if let Some(advice) = &page.advice {
        let reason = &page.resource.reason;
        let title = format!("What {reason} means, and what to do");
        writeln!(out, "\n{HEADING}{title}{HEADING:#}")?;
        for line in advice.lines() {
            indented(out, line, layout)?;
        }
    }
    lines(out, "Commands that help", &page.commands)?;
    let namespace = page.resource.namespace.as_deref();
    not_read(&page.not_read, namespace, out, layout)
}

fn title(page: &ResourcePage, out: &mut impl Write, layout: Layout) -> io::Result<()> {
    let item = &page.resource;
    let place = item
        .namespace
        .as_ref()
        .map(|name| format!(" in namespace {name}"))
        .unwrap_or_default();
    let color = style(page.needs.needs());
    writeln!(
        out,
        "{HEADING}{}{HEADING:#}{place}: {color}{}{}{color:#}",
        item.target(),
        page.needs.words(),
        reason(page)
    )?;
    indented(out, &one_line(&item.message), layout)
}

fn next(page: &ResourcePage, layout: Layout) -> Vec<[String; 2]> {
    page.next
        .iter()
        .map(|next| [layout.age(next.at), next.what.clone()])
        .collect()
}

/// The messages on a page so far: each is shown once.
struct Said(Vec<String>);

impl Said {
    fn before(&mut self, message: &str) -> bool {
        let message = one_line(message);
        let is_known = self.0.contains(&message);
        if !is_known {
            self.0.push(message);
        }
        is_known
    }

    fn once<'a>(&mut self, message: &'a str) -> &'a str {
        if self.before(message) {
            "as above"
        } else {
            message
        }
    }
}

fn events(page: &ResourcePage, said: &mut Said, layout: Layout) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    for event in &page.events {
        let reason = event.reason.as_deref().unwrap_or_default();
        let note = said.once(event.note.as_deref().unwrap_or_default());
        rows.push([layout.age(event.at), format!("{reason}: {note}")]);
    }
    rows
}

fn account_row(account: &AccountLine) -> [String; 2] {
    [
        format!("{} {}", account.kind, account.name),
        format!(
            "Ready {} {}, {}",
            account.ready,
            account.reason,
            budget(account)
        ),
    ]
}

fn reason(page: &ResourcePage) -> String {
    match page.needs {
        StatusGroup::Well => String::new(),
        _ => format!(" ({})", page.resource.reason),
    }
}

fn rows(value: &serde_json::Value) -> Vec<[String; 2]> {
    flat(value)
        .into_iter()
        .map(|(place, text)| [place, text])
        .collect()
}

/// The same for a status, whose times have their ages.
fn observed(value: &serde_json::Value, layout: Layout) -> Vec<[String; 2]> {
    rows(value)
        .into_iter()
        .map(|[place, text]| [place, layout.value(text)])
        .collect()
}

fn conditions(page: &ResourcePage, said: &mut Said, layout: Layout) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    for condition in &page.conditions {
        let since = if layout.wide {
            format!(" since {}", layout.age(Some(condition.since)))
        } else {
            String::new()
        };
        rows.push([
            condition.type_.clone(),
            format!(
                "{} {}{since}: {}",
                condition.status,
                condition.reason,
                said.once(&condition.message)
            ),
        ]);
    }
    rows
}

fn paragraph(out: &mut impl Write, title: &str, text: &str, layout: Layout) -> io::Result<()> {
    writeln!(out, "\n{HEADING}{title}{HEADING:#}")?;
    indented(out, text, layout)
}

fn indented(out: &mut impl Write, text: &str, layout: Layout) -> io::Result<()> {
    for line in wrapped(text, 2, layout.width) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// Commands stay on one line, so that they can be pasted.
fn lines(
    out: &mut impl Write,
    title: &str,
    lines: impl IntoIterator<Item = impl Display>,
) -> io::Result<()> {
    writeln!(out, "\n{HEADING}{title}{HEADING:#}")?;
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn section(
    out: &mut impl Write,
    title: &str,
    rows: &[[String; 2]],
    layout: Layout,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{HEADING}{title}{HEADING:#}")?;
    let mut table = Table::default();
    for row in rows {
        table.plain(row.clone());
    }
    table.write(out, "  ", layout.width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_by_its_age() {
        let layout = Layout {
            wide: false,
            width: None,
            now: "2026-01-02T00:00:00.5Z".parse().unwrap(),
        };
        for (time, age) in [
            ("2026-01-01T23:59:00.123456Z", "60s ago"),
            ("2026-01-01T23:50:00Z", "10m ago"),
            ("2026-01-01T20:00:00Z", "4h ago"),
            ("2025-12-25T00:00:00Z", "8d ago"),
            ("2026-01-02T03:30:01Z", "in 3h"),
            ("2026-01-02T00:00:00Z", "0s ago"),
        ] {
            assert_eq!(layout.age(time.parse().ok()), age, "{time}");
        }
        assert_eq!(
            layout.value("2026-01-01T23:50:00.123456Z".to_owned()),
            "2026-01-01T23:50:00Z (10m ago)"
        );
        assert_eq!(layout.value("0.25-2".to_owned()), "0.25-2");
    }
}
