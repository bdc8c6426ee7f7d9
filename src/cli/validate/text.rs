//! Writes lines for users, and for editors that jump to `file:line:column`.

use std::io::{self, Write};

use super::ValidationReport;

pub(super) fn write(report: &ValidationReport, out: &mut dyn Write) -> io::Result<()> {
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
    writeln!(
        out,
        "{} checked, {}; {} skipped",
        counted(objects, "object"),
        counted(errors, "error"),
        counted(report.skipped, "other")
    )
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
