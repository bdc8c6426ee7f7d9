//! Writes the status as text for users.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;

use super::collect::OperatorStatus;
use super::fleet::{AccountLine, Fleet, ListedResource, StatusGroup};
use super::page::{ResourcePage, flat};
use crate::cli::called::program;
use crate::cli::screen::{HEADING, PLAIN, Table, one_line, style};

pub fn fleet(fleet: &Fleet, out: &mut impl Write, wide: bool) -> io::Result<()> {
    let place = fleet
        .namespace
        .as_ref()
        .map_or("all namespaces".to_owned(), |name| {
            format!("namespace {name}")
        });
    writeln!(
        out,
        "{HEADING}dbplane in {place}{HEADING:#}; {}",
        operator(fleet.operator.as_ref())
    )?;
    if fleet.counts.is_empty() {
        writeln!(out, "There are no resources of dbplane.")?;
    } else {
        writeln!(out)?;
        counts(fleet).write(out, "")?;
    }
    for (state, items) in [
        (StatusGroup::NeedsPerson, &fleet.needs_person),
        (StatusGroup::Waits, &fleet.waits),
        (StatusGroup::UnderWay, &fleet.under_way),
    ] {
        if !items.is_empty() {
            let color = style(state.needs());
            writeln!(out, "\n{color}{}{color:#}", heading(state))?;
            listed(items, fleet.namespace.is_none(), wide, state).write(out, "  ")?;
        }
    }
    if !fleet.accounts.is_empty() {
        writeln!(out, "\n{HEADING}Accounts{HEADING:#}")?;
        accounts(fleet.accounts.iter(), wide).write(out, "  ")?;
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
    not_read(&fleet.not_read, out)
}

fn heading(state: StatusGroup) -> &'static str {
    match state {
        StatusGroup::NeedsPerson => "Needs a person",
        StatusGroup::Waits => "Waits for time",
        StatusGroup::UnderWay => "Under way",
        StatusGroup::Well => "Well",
    }
}

fn operator(operator: Option<&OperatorStatus>) -> String {
    match operator {
        None => "whether an operator leads cannot be read".to_owned(),
        Some(OperatorStatus {
            leader: Some(leader),
            ..
        }) => format!("the operator {leader} has the lead"),
        Some(OperatorStatus {
            namespace,
            leader: None,
        }) => {
            format!(
                "nobody leads by a Lease in namespace {namespace} (an operator without --leader-elect has none)"
            )
        }
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

/// The length of a message that fits on a line beside the other columns.
const SHORT: usize = 90;

fn listed(items: &[ListedResource], with_namespace: bool, wide: bool, state: StatusGroup) -> Table {
    let mut table = Table::default();
    for item in items {
        let mut cells = Vec::new();
        if with_namespace {
            cells.push((item.namespace.clone().unwrap_or_default(), PLAIN));
        }
        cells.push((item.target(), PLAIN));
        cells.push((item.reason.clone(), style(state.needs())));
        if wide {
            cells.push((time(item.since), PLAIN));
        }
        cells.push((
            if wide {
                item.message.clone()
            } else {
                shortened(&item.message)
            },
            PLAIN,
        ));
        table.row(cells);
    }
    table
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", message[..end].trim_end()),
        None => message.to_owned(),
    }
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

fn time(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

fn not_read(not_read: &[String], out: &mut impl Write) -> io::Result<()> {
    if not_read.is_empty() {
        return Ok(());
    }
    lines(out, "Not read", not_read)
}

pub fn page(page: &ResourcePage, out: &mut impl Write, wide: bool) -> io::Result<()> {
    title(page, out)?;
    section(out, "Declared", &rows(&page.declared))?;
    section(out, "There", &rows(&page.there))?;
    if let Some(differs) = &page.differs {
        paragraph(out, "Differs", &one_line(differs))?;
    }
    section(out, "Conditions", &conditions(page, wide))?;
    section(out, "What comes next, at the latest", &next(page))?;
    let operation = page.last_operation.as_ref().map(rows).unwrap_or_default();
    section(out, "Last operation of the platform", &operation)?;
    section(out, "Last events", &events(page))?;
    if let Some(account) = &page.account {
        section(out, "Account", &[account_row(account)])?;
    }
    paragraph(out, "Operator", &operator(page.operator.as_ref()))?;
    if let Some(advice) = &page.advice {
        let reason = &page.resource.reason;
        lines(
            out,
            &format!("What {reason} means, and what to do"),
            advice.lines(),
        )?;
    }
    lines(out, "Commands that help", &page.commands)?;
    not_read(&page.not_read, out)
}

fn title(page: &ResourcePage, out: &mut impl Write) -> io::Result<()> {
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
    writeln!(out, "  {}", one_line(&item.message))
}

fn next(page: &ResourcePage) -> Vec<[String; 2]> {
    page.next
        .iter()
        .map(|next| [time(next.at), next.what.clone()])
        .collect()
}

fn events(page: &ResourcePage) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    for event in &page.events {
        let reason = event.reason.as_deref().unwrap_or_default();
        let note = event.note.as_deref().unwrap_or_default();
        rows.push([time(event.at), format!("{reason}: {note}")]);
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

fn conditions(page: &ResourcePage, wide: bool) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    for condition in &page.conditions {
        let since = if wide {
            format!(" since {}", condition.since)
        } else {
            String::new()
        };
        rows.push([
            condition.type_.clone(),
            format!(
                "{} {}{since}: {}",
                condition.status, condition.reason, condition.message
            ),
        ]);
    }
    rows
}

fn paragraph(out: &mut impl Write, title: &str, text: &str) -> io::Result<()> {
    writeln!(out, "\n{HEADING}{title}{HEADING:#}\n  {text}")
}

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

fn section(out: &mut impl Write, title: &str, rows: &[[String; 2]]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{HEADING}{title}{HEADING:#}")?;
    let mut table = Table::default();
    for row in rows {
        table.plain(row.clone());
    }
    table.write(out, "  ")
}
