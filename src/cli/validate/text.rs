//! Writes lines for users, and for editors that jump to `file:line:column`.

use std::io::{self, Write};

use super::Report;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for (file, checked, finding) in report.findings() {
        write!(
            out,
            "{}:{}:{}: ",
            file.name, finding.position.line, finding.position.column
        )?;
        if let Some(object) = &checked.object {
            write!(out, "{object}: ")?;
        }
        writeln!(out, "{finding}")?;
        if let Some(help) = &finding.help {
            writeln!(out, "    {help}")?;
        }
    }
    let (objects, errors) = (report.objects(), report.findings().count());
    let of =
        |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    writeln!(
        out,
        "{} checked, {}; {} skipped",
        of(objects, "object"),
        of(errors, "error"),
        of(report.skipped, "other")
    )
}
