//! Writes one JSON object with findings, unreadable files and counts.

use std::io::Write;

use serde::Serialize;

use super::{Error, ValidationReport};
use crate::cli::files::UnreadableFile;
use crate::validate::Finding;

#[derive(Serialize)]
struct FindingsDocument<'a> {
    findings: Vec<FindingLine<'a>>,
    unreadable: &'a [UnreadableFile],
    checked: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct FindingLine<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    #[serde(flatten)]
    finding: &'a Finding,
}

pub(super) fn write(report: &ValidationReport, out: &mut dyn Write) -> Result<(), Error> {
    let mut findings = Vec::new();
    for (file, checked, finding) in report.findings() {
        findings.push(FindingLine {
            file: &file.name,
            object: checked.object.as_deref(),
            finding,
        });
    }
    let document = FindingsDocument {
        findings,
        unreadable: &report.unreadable,
        checked: report.objects(),
        skipped: report.skipped,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}
